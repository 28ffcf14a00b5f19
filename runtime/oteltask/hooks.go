package oteltask

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// scope is the name of the instrumentation.
const scope = "github.com/mcptaskgen/mcptaskgen/runtime/oteltask"

// The names of the semantic conventions for MCP, version 1.41.0. They are written out because the conventions are
// moving to another module.
const (
	keyMethod    = attribute.Key("mcp.method.name")
	keyRevision  = attribute.Key("mcp.protocol.version")
	keyTool      = attribute.Key("gen_ai.tool.name")
	keyOperation = attribute.Key("gen_ai.operation.name")
	keyRequestID = attribute.Key("jsonrpc.request.id")
	keyStatus    = attribute.Key("rpc.response.status_code")
	keyTransport = attribute.Key("network.transport")
	keyAddress   = attribute.Key("server.address")
	keyPort      = attribute.Key("server.port")
	keyErrorType = attribute.Key("error.type")
)

// The names that no convention has.
const (
	keyTask    = attribute.Key("mcptask.task.id")
	keyAttempt = attribute.Key("mcptask.attempt")
	keyOutcome = attribute.Key("mcptask.outcome")
	keyPhase   = attribute.Key("mcptask.phase")
	keyStep    = attribute.Key("mcptask.step")
	keyStore   = attribute.Key("mcptask.store.operation")
	keyLimit   = attribute.Key("mcptask.limit")
)

// The error.type of errors without a code.
const (
	errorOther = "_OTHER"
	// errorCancelled is that of an operation that nobody waits for any more. An alert must not take it for a failure.
	errorCancelled = "cancelled"
)

// hooks makes spans and metrics.
type hooks struct {
	*config
	tracer trace.Tracer
	meters
}

// Hooks returns hooks that make spans and metrics of the work of a server or a client. One value may be given to
// several servers and clients of a process.
func Hooks(options ...Option) taskserver.Hooks {
	h := &hooks{config: newConfig(options)}
	h.tracer = h.tracerProvider.Tracer(scope)
	h.meters = newMeters(h.meterProvider.Meter(scope))
	return taskserver.Hooks{
		Server:        h.server,
		Request:       h.request,
		ClientRequest: h.clientRequest,
		Run:           h.run,
		Question:      h.question,
		Step:          h.step,
		Store:         h.store,
		Task:          h.task,
		Limit:         h.limit,
	}
}

// traceContext reads and writes trace contexts.
var traceContext propagation.TraceContext

// withRemoteSpan returns a context with the span that a trace in the form of [taskstore.Record] names.
func withRemoteSpan(ctx context.Context, traced string) context.Context {
	parent, state := taskserver.SplitTrace(traced)
	return traceContext.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// withTrace returns a context whose trace, for tasks and requests, is that of its span.
func withTrace(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	traceContext.Inject(ctx, carrier)
	traced := taskserver.FormatTrace(carrier["traceparent"], carrier["tracestate"])
	if traced == "" {
		return ctx
	}
	return taskserver.WithTrace(ctx, traced)
}

// parseSpan returns the span that a trace names. It is invalid if the trace names none.
func parseSpan(traced string) trace.SpanContext {
	return trace.SpanContextFromContext(withRemoteSpan(context.Background(), traced))
}

// linkTo returns a link to a span, unless it is invalid.
func linkTo(span trace.SpanContext) []trace.Link {
	if !span.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: span}}
}

// isPoll reports whether a request only reads tasks. A task that is polled each second would have 86,400 spans a day.
// The name of a fallback tool may begin with a prefix of its service.
func isPoll(info taskserver.RequestInfo) bool {
	switch info.Method {
	case "tasks/get", "tasks/result", "tasks/list":
		return true
	}
	return info.IsFallback && (strings.HasSuffix(info.Tool, taskserver.ToolTaskStatus) || strings.HasSuffix(info.Tool, taskserver.ToolTaskResult))
}

// nameRequest returns the name of a request's span.
func nameRequest(info taskserver.RequestInfo) string {
	if info.Tool == "" {
		return info.Method
	}
	return info.Method + " " + info.Tool
}

// longestID is how many bytes of a request's ID are kept. The client has chosen it.
const longestID = 64

// shortenID returns the beginning of a request's ID, without the quotes of JSON.
func shortenID(id string) string { return text.Shorten(strings.Trim(id, `"`), longestID) }

// describeRequest returns the attributes that the span and the metric of a request share.
func describeRequest(info taskserver.RequestInfo) []attribute.KeyValue {
	all := []attribute.KeyValue{keyMethod.String(info.Method)}
	if info.Revision != "" {
		all = append(all, keyRevision.String(info.Revision))
	}
	transport := "tcp"
	if info.IsPipe {
		transport = "pipe"
	}
	all = append(all, keyTransport.String(transport))
	if info.Tool != "" {
		all = append(all, keyTool.String(info.Tool), keyOperation.String("execute_tool"))
	}
	return all
}

// describePeer returns the attributes of a server's URL.
func describePeer(peer string) []attribute.KeyValue {
	address, err := url.Parse(peer)
	if err != nil || address.Host == "" {
		return nil
	}
	all := []attribute.KeyValue{keyAddress.String(address.Hostname())}
	if port, err := strconv.Atoi(address.Port()); err == nil {
		all = append(all, keyPort.Int(port))
	}
	return all
}

// describeResult returns the attributes of an answer. It returns none if all is well.
func describeResult(result taskserver.RequestResult) []attribute.KeyValue {
	var wire *mcptask.Error
	switch {
	case errors.As(result.Error, &wire):
		code := strconv.Itoa(wire.Code)
		return []attribute.KeyValue{keyErrorType.String(code), keyStatus.String(code)}
	case errors.Is(result.Error, context.Canceled):
		return []attribute.KeyValue{keyErrorType.String(errorCancelled)}
	case result.Error != nil:
		return []attribute.KeyValue{keyErrorType.String(errorOther)}
	case result.IsToolError:
		return []attribute.KeyValue{keyErrorType.String("tool_error")}
	}
	return nil
}

// hasOwnCode reports whether an error has a code that JSON-RPC does not reserve. A server chooses such a code.
func hasOwnCode(err error) bool {
	const first, last = -32768, -32000
	var wire *mcptask.Error
	return errors.As(err, &wire) && (wire.Code < first || wire.Code > last)
}

// operation is a request under way, at a server or a client.
type operation struct {
	*hooks
	ctx        context.Context
	began      time.Time
	isClient   bool
	attributes []attribute.KeyValue // of its span and its metric
	span       trace.Span           // nil if it has none
}

// newOperation begins to measure a request.
func (h *hooks) newOperation(ctx context.Context, info taskserver.RequestInfo) *operation {
	return &operation{hooks: h, ctx: ctx, began: time.Now(), attributes: h.keep(describeRequest(info)...)}
}

// startSpan starts the span of the operation, with more attributes than its metric has.
func (o *operation) startSpan(parent context.Context, info taskserver.RequestInfo, kind trace.SpanKind, more []attribute.KeyValue, links ...trace.Link) {
	o.ctx, o.span = o.tracer.Start(parent, nameRequest(info), trace.WithSpanKind(kind), trace.WithLinks(links...),
		trace.WithAttributes(o.attributes...), trace.WithAttributes(o.keep(more...)...))
}

// end measures the operation, and ends its span.
func (o *operation) end(result taskserver.RequestResult) {
	failure := o.keep(describeResult(result)...)
	measured, durations := failure, o.serverDuration
	if o.isClient {
		durations = o.clientDuration
		if hasOwnCode(result.Error) { // each would be a series of its own
			measured = o.keep(keyErrorType.String(errorOther))
		}
	}
	durations.record(o.ctx, time.Since(o.began), metric.WithAttributes(slices.Concat(o.attributes, measured)...))
	if o.span == nil {
		return
	}
	if result.TaskID != "" {
		o.span.SetAttributes(o.keep(keyTask.String(result.TaskID))...)
	}
	if result.Error != nil || result.IsToolError {
		o.span.SetAttributes(failure...)
		o.span.SetStatus(codes.Error, "")
	}
	o.span.End()
}

// request implements the hook of a server's requests.
func (h *hooks) request(ctx context.Context, info taskserver.RequestInfo) (context.Context, func(taskserver.RequestResult)) {
	if !h.filter(ctx, info) {
		return ctx, nil
	}
	o := h.newOperation(ctx, info)
	if isPoll(info) {
		return ctx, o.end
	}
	parent := ctx
	var links []trace.Link
	if h.trustRemote && info.Trace != "" {
		parent = withRemoteSpan(ctx, info.Trace)
		links = linkTo(trace.SpanContextFromContext(ctx)) // such as the span of the HTTP request
	} else {
		links = linkTo(parseSpan(info.Trace))
	}
	o.startSpan(parent, info, trace.SpanKindServer, []attribute.KeyValue{keyRequestID.String(shortenID(info.ID))}, links...)
	o.ctx = withTrace(o.ctx)
	return o.ctx, o.end
}

// clientRequest implements the hook of a client's requests.
func (h *hooks) clientRequest(ctx context.Context, info taskserver.RequestInfo) (context.Context, func(taskserver.RequestResult)) {
	if !h.filter(ctx, info) {
		return ctx, nil
	}
	o := h.newOperation(ctx, info)
	o.isClient = true
	if !isPoll(info) {
		o.startSpan(ctx, info, trace.SpanKindClient, describePeer(info.Peer))
	}
	return withTrace(o.ctx), o.end
}

// describeTask returns the attributes that the spans of a task have.
func describeTask(r *taskstore.Record) []attribute.KeyValue {
	all := []attribute.KeyValue{keyTool.String(r.Tool), keyAttempt.Int(r.Attempt)}
	if r.ID != "" {
		all = append(all, keyTask.String(taskstore.LogID(r.Principal, r.ID)))
	}
	return all
}

// run implements the hook of runs. A run that no call waits for may begin days after its call, so it begins a trace of
// its own, with a link to the call. If the executor has put a span into the context, the run is a child of that span: a
// tracing interceptor of Temporal continues the trace of the call so.
func (h *hooks) run(ctx context.Context, info taskserver.RunInfo) (context.Context, func(taskserver.RunResult)) {
	task := info.Task
	options := []trace.SpanStartOption{trace.WithAttributes(h.keep(describeTask(&task)...)...)}
	switch hasParent := trace.SpanContextFromContext(ctx).IsValid(); {
	case info.IsAwaited && hasParent:
	case info.IsAwaited && h.trustRemote: // the request has no span: the filter has left it out
		ctx = withRemoteSpan(ctx, task.Trace)
	default:
		options = append(options, trace.WithLinks(linkTo(parseSpan(task.Trace))...))
	}
	ctx, span := h.tracer.Start(ctx, "mcptask.run "+task.Tool, options...)
	tool := h.with(keyTool.String(task.Tool))
	h.runsActive.Add(ctx, 1, tool)
	return ctx, func(result taskserver.RunResult) {
		h.runsActive.Add(ctx, -1, tool)
		outcome := nameOutcome(result)
		span.SetAttributes(h.keep(keyOutcome.String(outcome))...)
		switch outcome {
		case "error", "tool_error", "expired", "superseded":
			failure := outcome
			if changed := result.Outcome.Error; changed != nil && errors.Is(changed, mcptask.ErrChanged) {
				failure = "declaration_changed"
			}
			span.SetAttributes(h.keep(keyErrorType.String(failure))...)
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// nameOutcome returns how a run has ended: in the words of the audit trail, left if a closing server or a question has
// ended it, or superseded if another run has the task.
func nameOutcome(result taskserver.RunResult) string {
	switch {
	case errors.Is(result.Cause, mcptask.ErrSuperseded):
		return "superseded"
	case result.Outcome.IsError:
		return "tool_error"
	case result.Outcome.Kind != taskstore.OutcomeCancelled:
		return string(result.Outcome.Kind)
	case errors.Is(result.Cause, mcptask.ErrExpired):
		return "expired"
	case errors.Is(result.Cause, mcptask.ErrCancelled):
		return "cancelled"
	}
	return "left"
}

// question implements the hook of questions.
func (h *hooks) question(ctx context.Context, info taskserver.QuestionInfo) (context.Context, func(error)) {
	return h.startStep(ctx, "mcptask.ask", info.Key, &info.Task, &h.questionDuration)
}

// step implements the hook of steps. The duration of a sleep tells nothing: the handler has chosen it.
func (h *hooks) step(ctx context.Context, info taskserver.StepInfo) (context.Context, func(error)) {
	if info.Kind == taskstore.StepSleep {
		return h.startStep(ctx, "mcptask.sleep", info.Name, &info.Task, nil)
	}
	return h.startStep(ctx, "mcptask.step", info.Name, &info.Task, &h.stepDuration)
}

// startStep starts the span of a question or a step. At its end it measures the duration, unless measured is nil.
func (h *hooks) startStep(ctx context.Context, kind, name string, task *taskstore.Record, measured *durations) (context.Context, func(error)) {
	began, tool := time.Now(), keyTool.String(task.Tool)
	ctx, span := h.tracer.Start(ctx, kind+" "+name, trace.WithAttributes(h.keep(append(describeTask(task), keyStep.String(name))...)...))
	return ctx, func(err error) {
		all := []attribute.KeyValue{tool}
		if err != nil {
			failure := keyErrorType.String(nameStepError(ctx, err))
			all = append(all, failure)
			span.SetAttributes(h.keep(failure)...)
			if failure.Value.AsString() != errorCancelled {
				span.SetStatus(codes.Error, "")
			}
		}
		if measured != nil {
			measured.record(ctx, time.Since(began), h.with(all...))
		}
		span.End()
	}
}

// nameStepError returns the error.type of a question without an answer, or of a step without a result. It is
// errorCancelled if the run no longer goes on, although nothing has failed.
func nameStepError(ctx context.Context, err error) string {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) { // as handlers return it
		err = context.Cause(ctx)
	}
	for _, end := range []error{mcptask.ErrCancelled, mcptask.ErrSuperseded, mcptask.ErrServerClosed, context.Canceled} {
		if errors.Is(err, end) {
			return errorCancelled
		}
	}
	switch {
	case errors.Is(err, mcptask.ErrDeadline):
		return "deadline"
	case errors.Is(err, mcptask.ErrExpired):
		return "expired"
	}
	return errorOther
}

// store implements the hook of the store. It makes no spans: the driver of a database can.
func (h *hooks) store(ctx context.Context, operation string) (context.Context, func(error)) {
	began := time.Now()
	return ctx, func(err error) {
		all := []attribute.KeyValue{keyStore.String(operation)}
		if err != nil {
			all = append(all, keyErrorType.String(nameStoreError(ctx, err)))
		}
		h.storeDuration.record(ctx, time.Since(began), h.with(all...))
	}
}

// nameStoreError returns the error.type of a store's error. Those that are answers have names.
func nameStoreError(ctx context.Context, err error) string {
	var quota *taskstore.QuotaError
	switch {
	case errors.Is(err, taskstore.ErrNoRecord):
		return "no_record"
	case errors.Is(err, taskstore.ErrExists):
		return "exists"
	case errors.Is(err, taskstore.ErrConflict):
		return "conflict"
	case errors.As(err, &quota):
		return "quota"
	case errors.Is(ctx.Err(), context.Canceled):
		return errorCancelled
	}
	return errorOther
}

// task implements the hook of the events of tasks.
func (h *hooks) task(ctx context.Context, e taskserver.TaskEvent) {
	r := &e.Task
	tool := keyTool.String(r.Tool)
	switch e.Kind {
	case taskstore.EventReported:
		return // an event each second would hide the others
	case taskstore.EventCreated:
		h.tasksCreated.Add(ctx, 1, h.with(tool))
	case taskstore.EventStarted:
		if r.Attempt == 1 {
			h.queueDuration.record(ctx, r.UpdatedAt.Sub(r.CreatedAt), h.with(tool))
		}
	case taskstore.EventLost:
		h.runsLost.Add(ctx, 1, h.with(tool))
	case taskstore.EventEnded:
		end := r.TerminalAt
		if end.IsZero() {
			end = r.ExpiresAt
		}
		outcome := h.with(tool, keyOutcome.String(e.Outcome))
		h.tasksEnded.Add(ctx, 1, outcome)
		h.taskDuration.record(ctx, end.Sub(r.CreatedAt), outcome)
	}
	trace.SpanFromContext(ctx).AddEvent("mcptask."+string(e.Kind), trace.WithAttributes(h.keep(describeTask(r)...)...))
}

// limit implements the hook of limits.
func (h *hooks) limit(ctx context.Context, name string) {
	h.limitRefusals.Add(ctx, 1, h.with(keyLimit.String(name)))
}
