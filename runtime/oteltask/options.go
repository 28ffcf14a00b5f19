package oteltask

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Option changes the hooks that [Hooks] returns.
type Option func(*config)

// config has the values of the options.
type config struct {
	tracerProvider  trace.TracerProvider
	meterProvider   metric.MeterProvider
	trustRemote     bool
	filter          func(context.Context, taskserver.RequestInfo) bool
	attributeFilter attribute.Filter
}

func newConfig(options []Option) *config {
	c := &config{
		tracerProvider: otel.GetTracerProvider(), meterProvider: otel.GetMeterProvider(),
		filter:          func(context.Context, taskserver.RequestInfo) bool { return true },
		attributeFilter: func(attribute.KeyValue) bool { return true },
	}
	for _, option := range options {
		option(c)
	}
	return c
}

// WithTracerProvider sets the provider of spans. The default is the global one when [Hooks] is called.
func WithTracerProvider(tracers trace.TracerProvider) Option {
	return func(c *config) { c.tracerProvider = tracers }
}

// WithMeterProvider sets the provider of metrics. The default is the global one when [Hooks] is called.
func WithMeterProvider(meters metric.MeterProvider) Option {
	return func(c *config) { c.meterProvider = meters }
}

// WithoutTracing disables spans.
func WithoutTracing() Option { return WithTracerProvider(tracenoop.NewTracerProvider()) }

// WithoutMetrics disables metrics.
func WithoutMetrics() Option { return WithMeterProvider(metricnoop.NewMeterProvider()) }

// WithTrustRemote makes the span of a request that a server answers a child of the span that its client names. Use it
// if all clients are your own: a client decides then which trace it is and whether it is sampled. Without it, the span
// only has a link to the client's.
func WithTrustRemote() Option { return func(c *config) { c.trustRemote = true } }

// WithFilter leaves out the requests for which filter returns false: they have no span and no metrics. It is called
// from many goroutines.
func WithFilter(filter func(context.Context, taskserver.RequestInfo) bool) Option {
	return func(c *config) { c.filter = filter }
}

// WithAttributeFilter leaves out the attributes for which filter returns false, of spans and metrics. It is called from
// many goroutines.
func WithAttributeFilter(filter attribute.Filter) Option {
	return func(c *config) { c.attributeFilter = filter }
}

// keep returns the attributes that the filter admits. It changes the slice that it is given.
func (c *config) keep(all ...attribute.KeyValue) []attribute.KeyValue {
	kept := all[:0]
	for _, a := range all {
		if c.attributeFilter(a) {
			kept = append(kept, a)
		}
	}
	return kept
}

// with returns the attributes that the filter admits, for a metric.
func (c *config) with(all ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(c.keep(all...)...)
}
