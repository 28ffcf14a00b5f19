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
		serve.Wants(s, "shapes.text", "a", func() (string, error) { return c.Text(background, in) })
		serve.Wants(s, "shapes.content", "a", func() (string, error) {
			result, err := c.Content(background, in)
			if err != nil || len(result.Content) != 2 {
				return "", err
			}
			return result.Text(), nil
		})
		serve.Wants(s, "shapes.pointers", &done, func() (*Report, error) { return c.Pointers(background, &in) })
		serve.Wants(s, "shapes.alias", &done, func() (ReportAlias, error) { return c.Alias(background, in) })
		type ok = struct {
			OK bool `json:"ok"`
		}
		serve.Wants(s, "shapes.anonymous", ok{true}, func() (ok, error) {
			return c.Anonymous(background, struct {
				Name string `json:"name,omitempty" jsonschema:"minLength=2"`
				Deep struct{ A, B int }
			}{Deep: struct{ A, B int }{1, 2}})
		})
		serve.Wants(s, "shapes.empty", struct{}{}, func() (struct{}, error) { return c.Empty(background, struct{}{}) })
		serve.Wants(s, "shapes.shadowed", ctx{Depth: 1}, func() (ctx, error) { return c.Shadowed(background, mcptask{Name: "a"}) })
		serve.Wants(s, "shapes.options", mcptask{Name: "o"}, func() (mcptask, error) { return c.Options(background, opts{Verbose: true}) })
		serve.Wants(s, "shapes.by_hand", done, func() (Report, error) { return c.ByHand(background, Custom{value: 7}) })
		serve.Wants(s, "shapes.policies", done, func() (Report, error) { return c.Policies(background, in) })
		serve.Echoes(s, "shapes.a_very_long_name_that_does_not_fit_on_one_line_with_its_parameters_and_results",
			c.AVeryLongNameThatDoesNotFitOnOneLineWithItsParametersAndResults,
			AVeryLongNameForAnInputThatDoesNotFitOnALine{}, AVeryLongNameForAnInputThatDoesNotFitOnALine{Field: "f"})
	}, ShapesTools(stub{}))
}
