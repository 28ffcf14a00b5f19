// Package oteltask makes OpenTelemetry traces, metrics and log attributes of the work of servers and clients.
// docs/reference/telemetry.md lists the spans, the metrics and their attributes.
//
//	hooks := oteltask.Hooks(oteltask.WithTracerProvider(tracers), oteltask.WithMeterProvider(meters))
//	server, err := taskserver.New(taskserver.Options{Hooks: []taskserver.Hooks{hooks}}, services...)
//	conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Hooks: []taskserver.Hooks{hooks}})
//
// Spans and metrics follow the semantic conventions for MCP where these have names. The conventions are in development,
// so names may change with a version of this package.
package oteltask
