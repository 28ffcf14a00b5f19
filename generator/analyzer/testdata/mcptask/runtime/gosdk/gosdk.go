// Package gosdk has the names of the glue that the analyzers know it by.
package gosdk

import "context"

type (
	Request struct{}
	Result  struct{}
)

func AddTaskTool[In, Out any](server, tasks, tool any, handler func(context.Context, *Request, In) (*Result, Out, error), policy any) error {
	return nil
}
