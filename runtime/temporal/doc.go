// Package temporal joins the runtime to Temporal, both ways. [NewExecutor] runs the handlers of tasks as
// activities, so that Temporal keeps the tasks alive. [Run] makes a workflow a tool.
//
// The store stays the only record of a task. Only the task's ID goes through Temporal, and, with Run, the arguments and
// the result of the workflow.
package temporal
