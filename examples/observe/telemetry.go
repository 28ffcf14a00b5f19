package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// telemetry is OpenTelemetry as a program sets it up: its SDK, with an exporter of metrics and one of spans.
type telemetry struct {
	registry *prometheus.Registry
	meters   *metric.MeterProvider
	tracers  *trace.TracerProvider
	spans    *os.File // nil means that no spans are kept
}

// newTelemetry exports metrics to Prometheus, and spans to a file if it has a name. A program that has a collector of
// OpenTelemetry has an exporter of OTLP in the place of both.
func newTelemetry(file string) (*telemetry, error) {
	t := &telemetry{registry: prometheus.NewRegistry()}
	name := resource.NewSchemaless(attribute.String("service.name", "lab"))
	exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(t.registry))
	if err != nil {
		return nil, err
	}
	t.meters = metric.NewMeterProvider(metric.WithReader(exporter), metric.WithResource(name))
	options := []trace.TracerProviderOption{trace.WithResource(name)}
	if file != "" {
		if t.spans, err = os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil { //nolint:gosec // the operator names it
			return nil, fmt.Errorf("-traces: %w", err)
		}
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(t.spans))
		if err != nil {
			return nil, errors.Join(err, t.spans.Close())
		}
		// At once, so that a killed process leaves its finished spans. A busy server sends batches.
		options = append(options, trace.WithSyncer(exporter))
	}
	t.tracers = trace.NewTracerProvider(options...)
	return t, nil
}

// handler answers Prometheus.
func (t *telemetry) handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// shutDown exports the remaining spans and metrics.
func (t *telemetry) shutDown(ctx context.Context) error {
	faults := []error{t.meters.Shutdown(ctx), t.tracers.Shutdown(ctx)}
	if t.spans != nil {
		faults = append(faults, t.spans.Close())
	}
	return errors.Join(faults...)
}
