package hook

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

type key struct{}

type hooks struct{ begin Begin[string, int] }

func pick(h *hooks) Begin[string, int] { return h.begin }

func TestCall(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	var told []string
	note := func(name string) hooks {
		return hooks{func(ctx context.Context, info string) (context.Context, func(int)) {
			told = append(told, name+" begins "+info)
			before, _ := ctx.Value(key{}).(string)
			return context.WithValue(ctx, key{}, before+name), func(end int) {
				told = append(told, name+" ends")
				if end != 7 {
					t.Errorf("%s is told the end %d", name, end)
				}
			}
		}}
	}
	all := []hooks{
		{},
		note("a"),
		{func(context.Context, string) (context.Context, func(int)) { panic("boom at the beginning") }},
		{func(context.Context, string) (context.Context, func(int)) { return nil, nil }},
		{func(ctx context.Context, _ string) (context.Context, func(int)) {
			return ctx, func(int) { panic("boom at the end") }
		}},
		note("b"),
	}
	ctx, end := Call(t.Context(), logger, all, pick, "it")
	if got := ctx.Value(key{}); got != "ab" {
		t.Errorf("the context has %v", got)
	}
	end(7)
	if want := []string{"a begins it", "b begins it", "b ends", "a ends"}; !reflect.DeepEqual(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for _, want := range []string{"hook panicked", "boom at the beginning", "boom at the end"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, &log)
		}
	}
}

func TestNothingToCall(t *testing.T) {
	ctx, end := Call(t.Context(), nil, nil, pick, "it")
	if ctx != t.Context() {
		t.Error("another context")
	}
	end(1)
}

// TestHooksThatExit checks that a hook which ends its goroutine is ignored like one that panics.
func TestHooksThatExit(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	ctx, end := Call(t.Context(), logger, []hooks{
		{func(context.Context, string) (context.Context, func(int)) { runtime.Goexit(); return nil, nil }},
		{func(ctx context.Context, _ string) (context.Context, func(int)) {
			return context.WithValue(ctx, key{}, "kept"), func(int) { runtime.Goexit() }
		}},
	}, pick, "it")
	if ctx.Value(key{}) != "kept" {
		t.Errorf("the context has %v", ctx.Value(key{}))
	}
	end(7)
	if n := strings.Count(log.String(), "hook ended its goroutine"); n != 2 {
		t.Errorf("%d records:\n%s", n, &log)
	}
}
