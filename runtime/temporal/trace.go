package temporal

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// withTrace lets the interceptors of the client find the trace of a task, as a Record has it, unless ctx has a span.
// The requestor's span becomes the direct parent: this package adds none of its own.
func withTrace(ctx context.Context, recorded string) context.Context {
	if recorded == "" || trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	parent, state := taskserver.SplitTrace(recorded)
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}
