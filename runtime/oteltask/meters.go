package oteltask

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The boundaries of the histograms, in seconds: those of the conventions, those of tasks, which last for days, and
// those of the store.
var (
	operationBounds = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	taskBounds      = []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400, 604800}
	storeBounds     = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}
)

// meters are the metrics.
type meters struct {
	meter                          metric.Meter
	serverDuration, clientDuration durations // of requests
	taskDuration, queueDuration    durations
	questionDuration, stepDuration durations
	storeDuration                  durations
	tasksCreated, tasksEnded       metric.Int64Counter
	runsLost, limitRefusals        metric.Int64Counter
	runsActive                     metric.Int64UpDownCounter
	tasksActive                    metric.Int64ObservableGauge
}

// newMeters makes the metrics. A meter that refuses one reports it to OpenTelemetry's error handler, and returns one
// that does nothing.
func newMeters(m metric.Meter) meters {
	histogram := func(name, description string, bounds []float64) durations {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		handleError(err)
		return durations{h}
	}
	count := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		handleError(err)
		return c
	}
	runsActive, err := m.Int64UpDownCounter("mcptask.runs.active", metric.WithUnit("{run}"),
		metric.WithDescription("Handlers that run in this process."))
	handleError(err)
	tasksActive, err := m.Int64ObservableGauge("mcptask.tasks.active", metric.WithUnit("{task}"),
		metric.WithDescription("Unfinished tasks in the store, of all processes that share it."))
	handleError(err)
	return meters{
		meter:            m,
		serverDuration:   histogram("mcp.server.operation.duration", "Duration of a request as the server sees it.", operationBounds),
		clientDuration:   histogram("mcp.client.operation.duration", "Duration of a request as the client sees it.", operationBounds),
		taskDuration:     histogram("mcptask.task.duration", "Time from the creation of a task to its end.", taskBounds),
		queueDuration:    histogram("mcptask.task.queue.duration", "Time from the creation of a task to its first run.", taskBounds),
		questionDuration: histogram("mcptask.question.duration", "Time that a handler waits for an answer.", taskBounds),
		stepDuration:     histogram("mcptask.step.duration", "Duration of the work of a step, and of storing its result.", taskBounds),
		storeDuration:    histogram("mcptask.store.duration", "Duration of a call of the store.", storeBounds),
		tasksCreated:     count("mcptask.tasks.created", "{task}", "Tasks that were created."),
		tasksEnded:       count("mcptask.tasks.ended", "{task}", "Tasks that have ended."),
		runsLost:         count("mcptask.runs.lost", "{run}", "Runs that were lost with their worker, as this process has found them."),
		limitRefusals:    count("mcptask.limit.refusals", "{refusal}", "Refusals by a limit."),
		runsActive:       runsActive,
		tasksActive:      tasksActive,
	}
}

// handleError gives an error to OpenTelemetry's handler, as the SDK does with its own.
func handleError(err error) {
	if err != nil {
		otel.Handle(err)
	}
}

// durations is a histogram of durations.
type durations struct{ metric.Float64Histogram }

func (d durations) record(ctx context.Context, took time.Duration, attributes metric.MeasurementOption) {
	d.Record(ctx, max(took, 0).Seconds(), attributes)
}

// server implements the hook of servers: it observes the tasks in the store until the server closes. Lost runs count
// from 0: an alert that looks for an increase does not see a counter that begins with 1, and a loss may be the only
// one.
func (h *hooks) server(s *taskserver.Server) {
	for _, tool := range s.Backend().Tools() {
		if tool.Policy.Task != mcptask.TaskForbidden {
			h.runsLost.Add(s.Closing(), 0, h.with(keyTool.String(tool.Name)))
		}
	}
	inspector, ok := s.Inspector()
	if !ok {
		return
	}
	observation, err := h.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		counts, err := inspector.CountUnfinished(ctx)
		sums := map[attribute.Set]int64{} // a filter may drop the attributes that tell counts apart
		for _, c := range counts {
			sums[attribute.NewSet(h.keep(keyTool.String(c.Tool), keyPhase.String(string(c.Phase)))...)] += int64(c.Count)
		}
		for set, sum := range sums {
			o.ObserveInt64(h.tasksActive, sum, metric.WithAttributeSet(set))
		}
		return err
	}, h.tasksActive)
	handleError(err)
	if err == nil {
		context.AfterFunc(s.Closing(), guard.Func(s.Backend().Logger(), "the end of metrics", func() { handleError(observation.Unregister()) }))
	}
}
