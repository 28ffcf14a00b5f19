package serve_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/enums"
	"github.com/mcptaskgen/mcptaskgen/golden/enums/palette"
	"github.com/mcptaskgen/mcptaskgen/golden/enums/palette/shade"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type enumsImpl struct{}

func (enumsImpl) Run(_ context.Context, _ *mcptask.Task, in enums.Job) (enums.Job, error) {
	return in, nil
}
func (enumsImpl) Paint(_ context.Context, in enums.Wall) (enums.Wall, error)     { return in, nil }
func (enumsImpl) Collect(_ context.Context, in enums.Lists) (enums.Lists, error) { return in, nil }

func (enumsImpl) Choose(ctx context.Context, task *mcptask.Task, first enums.Choice) (enums.Job, error) {
	again, err := enums.AskChoice(ctx, task, "again", "And now?")
	if err == nil && !reflect.DeepEqual(again, first) {
		err = errors.New("the answers differ")
	}
	return enums.Job{Mode: first.Mode, Priority: &first.Priority, Target: *first.Target}, err
}

func TestEnums(t *testing.T) {
	high, web, full, small := enums.PriorityHigh, enums.TargetWeb, enums.ModeFull, enums.SizeSmall
	answer := func(s *serve.Session) mcptask.Answerer {
		return enums.AnswerChoice(serve.Answers(s, enums.Choice{
			Mode: enums.ModeFast, Modes: []enums.Mode{enums.ModeFast, enums.ModeOld}, Color: palette.Green,
			Target: &web, Priority: enums.PriorityHigh,
		}))
	}
	serve.Each(t, answer, []string{"Choice"}, func(s *serve.Session) {
		client := enums.NewEnumsClient(s)
		serve.Returns(s, "run", client.Run, enums.Job{}, enums.Job{Mode: full}) // its default
		serve.Echoes(s, "run", client.Run, enums.Job{
			Mode: enums.ModeOld, Priority: &high, Target: web, Size: enums.SizeLarge, Rights: enums.Read | enums.Execute,
			Said: enums.ModeFast, Plain: full, Some: enums.ModeFast, Open: "anything", Null: &web, Quoted: enums.PriorityLow,
			Month: time.July, Alias: web, Other: "anything",
		})
		serve.Echoes(s, "paint", client.Paint, enums.Wall{},
			enums.Wall{Color: palette.Blue, Paint: palette.Paint{Color: palette.Red, Tone: shade.Dark}})
		serve.Echoes(s, "collect", client.Collect, enums.Lists{}, enums.Lists{
			Modes: []enums.Mode{full, full}, Nested: [][]palette.Color{nil, {}, {palette.Red}},
			Three: [3]enums.Target{"", web, ""}, Maybe: []*enums.Mode{&full}, ByName: map[string]enums.Mode{"": full},
			Counts: map[enums.Mode]int{full: 0}, Queue: map[enums.Priority][]string{high: {"a"}, enums.PriorityLow: nil},
			Page: enums.Page[enums.Mode]{Items: []enums.Mode{full}}, Bytes: []enums.Size{small, 200},
			Deep:    map[enums.Target]enums.Page[*enums.Size]{web: {Items: []*enums.Size{&small}}},
			Durable: map[enums.Mode]time.Duration{full: time.Second}, Waits: []time.Duration{time.Minute},
			Anyone: []struct{ Mode enums.Target }{{}, {Mode: web}},
		})
		serve.Wants(s, "choose", enums.Job{Mode: enums.ModeFast, Priority: &high, Target: web}, func() (enums.Job, error) {
			return client.Choose(s.Context())
		})
		if _, err := client.Run(s.Unchecked(), enums.Secret()); err == nil {
			s.Error("a value that no constant exports is admitted")
		}
	}, enums.EnumsTools(enumsImpl{}))
}
