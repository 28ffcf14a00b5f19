// Package siege has the input of a hostile peer, and tools whose schemas make the server read it.
//
// Its tests run a server, or a client, in a process of its own and attack it from outside. They
// compare what the process uses with the budgets of budgets_test.go: processor time, memory,
// goroutines, descriptors and log. A process of its own is needed because a test cannot recover
// from every crash, and because the attack uses resources too. The fuzz targets of gosdk use the
// same tools and inputs.
package siege

import (
	"context"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// These schemas reach every kind of check: of numbers, strings, arrays, objects and alternatives.
const (
	integersSchema = `{"type":"object","properties":{"v":{"type":"array","items":{"type":"integer"}}}}`
	boundedSchema  = `{"type":"object","properties":{"v":{"type":"array","items":{"type":"number","minimum":-1000,"exclusiveMaximum":1000,"multipleOf":0.01}}}}`
	wordsSchema    = `{"type":"object","properties":{"v":{"type":"array","uniqueItems":true,"items":{"type":"string","pattern":"^(a|b|ab)*$","maxLength":1000}}}}`
	choicesSchema  = `{"type":"object","properties":{"v":{"type":"array","items":{"anyOf":[{"enum":["red","green"]},{"const":7},` +
		`{"type":"array","items":{"type":"integer","minimum":0}},{"type":"object","required":["x"]}]}}},"additionalProperties":false}`
	treeSchema = `{"type":"object","properties":{"v":{"$ref":"#/$defs/node"}},"additionalProperties":false,` +
		`"$defs":{"node":{"type":"object","properties":{"a":{"$ref":"#/$defs/node"},"n":{"type":"integer"}},"additionalProperties":{"type":"integer","maximum":9}}}}`
	bigSchema = `{"type":"object","properties":{"bytes":{"type":"integer","minimum":0,"maximum":16777216}}}`
)

// Checked are the tools that only check their argument "v": arrays of integers, of bounded numbers,
// of strings and of alternatives, and a tree.
var Checked = []string{"integers", "bounded", "words", "choices", "tree"}

// Answer is the answer to the question of "bound_ask".
type Answer struct {
	Count int    `json:"count"`
	Color string `json:"color"`
	Word  string `json:"word"`
}

// Question is the question of "bound_ask". Its answer has bounds of every kind.
var Question = mcptask.InputSpec{Name: "Bounds", Message: "How many?",
	Schema: `{"type":"object","properties":{"count":{"type":"integer","minimum":1,"maximum":9},"color":{"type":"string","enum":["red","green"]},` +
		`"word":{"type":"string","pattern":"^[a-z]*$","maxLength":9}},"required":["count"]}`}

// Tools returns the tools of [Checked] and four others: "quick" ends at once, "work" runs until it
// is cancelled, "big" returns as many bytes as its argument says, and "bound_ask" asks. Their tasks
// are kept for ttl.
func Tools(ttl time.Duration) mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional, TTL: ttl, Poll: 100 * time.Millisecond}
	spec := func(name, schema string) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: schema, Policy: policy}
	}
	done := func(context.Context, *mcptask.Task, struct{}) (string, error) { return "done", nil }
	tools := []mcptask.Tool{
		mcptask.NewTool(spec("quick", integersSchema), done),
		mcptask.NewTool(spec("work", integersSchema), func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
		mcptask.NewTool(spec("big", bigSchema), func(_ context.Context, _ *mcptask.Task, in struct {
			Bytes int `json:"bytes"`
		}) (string, error) {
			return strings.Repeat("x", in.Bytes), nil
		}),
		mcptask.NewTool(spec("bound_ask", integersSchema), func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[Answer](ctx, task, Question, "step", "How many?")
			return answer.Word, err
		}),
	}
	for i, schema := range []string{integersSchema, boundedSchema, wordsSchema, choicesSchema, treeSchema} {
		tools = append(tools, mcptask.NewTool(spec(Checked[i], schema), done))
	}
	return mcptask.Tools{Service: "Siege", Impl: struct{}{}, Tools: tools}
}
