package mcpgo

// ServeStdioOn is ServeStdio on other pipes.
var ServeStdioOn = serveStdio
