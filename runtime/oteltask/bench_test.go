package oteltask_test

import (
	"context"
	"fmt"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// BenchmarkHooks polls a task, and makes tasks that end at once and gets their results, with hooks of OpenTelemetry.
// The traces and metrics are made and thrown away. Its floor is the same without hooks.
func BenchmarkHooks(b *testing.B) {
	hooked := wiretest.Unlimited()
	hooked.Hooks = []taskserver.Hooks{oteltask.Hooks(
		oteltask.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}))),
		oteltask.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))}
	b.Run("poll", func(b *testing.B) {
		poll := func(options taskserver.Options) wiretest.Posts {
			url := wiretest.ServeUnchecked(b, options)
			id := wiretest.CreateModern(b, url)
			return wiretest.NewPosts(url, wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id)))
		}
		wiretest.Beside(b, poll(hooked), 1, poll(wiretest.Unlimited()))
	})
	b.Run("life", func(b *testing.B) {
		create := func(options taskserver.Options) wiretest.Life {
			url := wiretest.ServeUnchecked(b, options)
			return wiretest.Life{
				Create: wiretest.NewPosts(url, wiretest.ModernHeaders("tools/call", "run_pipeline"), wiretest.ModernBody("tools/call", wiretest.CreateParams)),
				Result: wiretest.NewPosts(url, wiretest.ModernHeaders("tasks/get", "TASK"), wiretest.ModernBody("tasks/get", `"taskId":"TASK"`)),
			}
		}
		wiretest.Beside(b, create(hooked), 1, create(wiretest.Unlimited()))
	})
}

// discard is an exporter of spans to nowhere.
type discard struct{}

// ExportSpans implements sdktrace.SpanExporter.
func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

// Shutdown implements sdktrace.SpanExporter.
func (discard) Shutdown(context.Context) error { return nil }
