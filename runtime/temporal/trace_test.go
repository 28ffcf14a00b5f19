package temporal

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	recordedTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	recordedSpan  = "00f067aa0ba902b7"
)

// TestWithTrace checks that a context gets the trace of a task, unless it has a span.
func TestWithTrace(t *testing.T) {
	for recorded, want := range map[string]struct{ trace, state string }{
		"":  {},
		"x": {},
		"00-" + recordedTrace + "-" + recordedSpan + "-01":             {recordedTrace, ""},
		"00-" + recordedTrace + "-" + recordedSpan + "-01\na=b,c=d":    {recordedTrace, "a=b,c=d"},
		"00-" + recordedTrace + "-" + recordedSpan + "-01\nno state":   {recordedTrace, ""},
		"00-" + recordedTrace + "-" + recordedSpan + "-01-more\na=b":   {},
		"\n00-" + recordedTrace + "-" + recordedSpan + "-01":           {},
		"00-00000000000000000000000000000000-" + recordedSpan + "-01":  {},
		"00-" + recordedTrace + "-" + recordedSpan + "-03\nr=1\nt=2":   {recordedTrace, ""},
		"00-" + recordedTrace + "-" + recordedSpan + "-00\nvendor=a:b": {recordedTrace, "vendor=a:b"},
	} {
		span := trace.SpanContextFromContext(withTrace(t.Context(), recorded))
		if want.trace == "" {
			if span.IsValid() {
				t.Errorf("%q: %+v", recorded, span)
			}
			continue
		}
		if span.TraceID().String() != want.trace || span.SpanID().String() != recordedSpan || !span.IsRemote() || span.TraceState().String() != want.state {
			t.Errorf("%q: %+v", recorded, span)
		}
	}
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := trace.ContextWithSpanContext(t.Context(), own)
	if got := trace.SpanContextFromContext(withTrace(ctx, "00-"+recordedTrace+"-"+recordedSpan+"-01")); !got.Equal(own) {
		t.Errorf("%+v in place of the context's own span", got)
	}
}

// TestRunKeepsSpan checks that the run of a handler has the span that an interceptor gives to its activity.
func TestRunKeepsSpan(t *testing.T) {
	_, x := newSuite(t)
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	var got trace.SpanContext
	x.run = func(ctx context.Context, _ string) taskserver.RunEnd {
		got = trace.SpanContextFromContext(ctx)
		return taskserver.RunOver
	}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(func(ctx context.Context, in runInput) (runEnd, error) {
		return x.runTask(trace.ContextWithSpanContext(ctx, own), in)
	}, activity.RegisterOptions{Name: activityType})
	if _, err := env.ExecuteActivity(activityType, runInput{TaskID: "a task"}); err != nil {
		t.Fatal(err)
	}
	if !got.Equal(own) {
		t.Errorf("%+v", got)
	}
}
