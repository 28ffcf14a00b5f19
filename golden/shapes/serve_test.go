package shapes

import (
	"context"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mt "github.com/mcptaskgen/mcptaskgen/runtime"
)

type stub struct{}

func (stub) FromBase(context.Context) error                    { return nil }
func (stub) Nothing(context.Context) error                     { return nil }
func (stub) NoInput(context.Context, *mt.Task) (Report, error) { return Report{true}, nil }
func (stub) NoOutput(context.Context, Input) error             { return nil }
func (stub) TaskAlone(context.Context, *mt.Task) error         { return nil }
func (stub) Text(_ context.Context, in Input) (string, error)  { return in.Name, nil }
func (stub) Pointers(_ context.Context, in *Input) (*Report, error) {
	return &Report{in.Name != ""}, nil
}
func (stub) Alias(_ context.Context, in InputAlias) (ReportAlias, error) {
	return &Report{in.Name != ""}, nil
}
func (stub) Empty(context.Context, struct{}) (struct{}, error)    { return struct{}{}, nil }
func (stub) Shadowed(_ context.Context, in mcptask) (ctx, error)  { return ctx{len(in.Name)}, nil }
func (stub) Options(_ context.Context, in opts) (mcptask, error)  { return mcptask{Name: "o"}, nil }
func (stub) ByHand(_ context.Context, in Custom) (Report, error)  { return Report{in.value == 7}, nil }
func (stub) Policies(_ context.Context, in Input) (Report, error) { return Report{true}, nil }
func (stub) HTTPServerURL(context.Context) error                  { return nil }
func (stub) ListURLs(context.Context) error                       { return nil }
func (stub) LongestName(context.Context, *mt.Task) error          { return nil }

func (stub) Content(_ context.Context, _ *mt.Task, in Input) (*mt.Result, error) {
	return &mt.Result{Content: []mt.Content{mt.TextContent(in.Name), mt.ImageContent([]byte("i"), "image/png")}}, nil
}

func (stub) Anonymous(_ context.Context, in struct {
	Name string `json:"name,omitempty" jsonschema:"minLength=2"`
	Deep struct{ A, B int }
}) (struct {
	OK bool `json:"ok"`
}, error) {
	return struct {
		OK bool `json:"ok"`
	}{in.Deep.B == 2}, nil
}

func (stub) AVeryLongNameThatDoesNotFitOnOneLineWithItsParametersAndResults(_ context.Context, _ *mt.Task, in AVeryLongNameForAnInputThatDoesNotFitOnALine) (AVeryLongNameForAnInputThatDoesNotFitOnALine, error) {
	return in, nil
}

func TestServe(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		c, background := NewShapesClient(s), s.Context()
		for tool, call := range map[string]func(context.Context, ...mt.CallOption) error{
			"shapes.from_base": c.FromBase, "shapes.nothing": c.Nothing, "shapes.task_alone": c.TaskAlone,
			"shapes.http_server_url": c.HTTPServerURL, "shapes.list_urls": c.ListURLs,
			"shapes.a23456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_123456789_1": c.LongestName,
		} {
			serve.Wants(s, tool, struct{}{}, func() (struct{}, error) { return struct{}{}, call(background) })
		}
		in, done := Input{Name: "a"}, Report{Done: true}
		serve.Wants(s, "shapes.no_input", done, func() (Report, error) { return c.NoInput(background) })
		serve.Wants(s, "shapes.no_output", struct{}{}, func() (struct{}, error) { return struct{}{}, c.NoOutput(background, in) })
		serve.Returns(s, "shapes.text", c.Text, in, "a")
		serve.Wants(s, "shapes.content", "a", func() (string, error) {
			result, err := c.Content(background, in)
			if err != nil || len(result.Content) != 2 {
				return "", err
			}
			return result.Text(), nil
		})
		serve.Returns(s, "shapes.pointers", c.Pointers, &in, &done)
		serve.Returns(s, "shapes.alias", c.Alias, in, &done)
		type ok = struct {
			OK bool `json:"ok"`
		}
		serve.Wants(s, "shapes.anonymous", ok{true}, func() (ok, error) {
			return c.Anonymous(background, struct {
				Name string `json:"name,omitempty" jsonschema:"minLength=2"`
				Deep struct{ A, B int }
			}{Deep: struct{ A, B int }{1, 2}})
		})
		serve.Returns(s, "shapes.empty", c.Empty, struct{}{}, struct{}{})
		serve.Returns(s, "shapes.shadowed", c.Shadowed, mcptask{Name: "a"}, ctx{Depth: 1})
		serve.Returns(s, "shapes.options", c.Options, opts{Verbose: true}, mcptask{Name: "o"})
		serve.Returns(s, "shapes.by_hand", c.ByHand, Custom{value: 7}, done)
		serve.Returns(s, "shapes.policies", c.Policies, in, done)
		serve.Echoes(s, "shapes.a_very_long_name_that_does_not_fit_on_one_line_with_its_parameters_and_results",
			c.AVeryLongNameThatDoesNotFitOnOneLineWithItsParametersAndResults,
			AVeryLongNameForAnInputThatDoesNotFitOnALine{}, AVeryLongNameForAnInputThatDoesNotFitOnALine{Field: "f"})
	}, ShapesTools(stub{}))
}
