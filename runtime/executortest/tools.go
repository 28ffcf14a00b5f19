package executortest

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// errOver ends the handlers that still wait when the test is over.
var errOver = errors.New("executortest: the test is over")

// hold waits until the channel is closed, or the handler's context ends.
func (h *handling) hold(free <-chan struct{}) (string, error) {
	select {
	case <-free:
		return h.text, nil
	case <-h.ctx.Done():
		return "", context.Cause(h.ctx)
	case <-h.k.over:
		return "", errOver
	}
}

// ask asks a question.
func (h *handling) ask(ctx context.Context, step string) (string, error) {
	answer, err := mcptask.Ask[arguments](ctx, h.task, mcptask.InputSpec{Name: "Answer", Message: "Which text?",
		Schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`}, step, "")
	return answer.Text, err
}

// echo returns its text.
func echo(policy mcptask.Policy) tool {
	return tool{"echo", policy, func(h *handling) (string, error) { return h.text, nil }}
}

// holding returns its text when the channel is closed.
func holding(name string, policy mcptask.Policy, free <-chan struct{}) tool {
	return tool{name, policy, func(h *handling) (string, error) { return h.hold(free) }}
}

// deaf is holding without regard to the context. Each run has a channel.
func deaf(policy mcptask.Policy, free ...chan struct{}) tool {
	return tool{"deaf", policy, func(h *handling) (string, error) {
		ctx := context.WithoutCancel(h.ctx)
		run := h.task.Attempt()
		select {
		case <-free[min(run, len(free))-1]:
			h.task.Message(ctx, "run "+strconv.Itoa(run))
			return "run " + strconv.Itoa(run), nil
		case <-h.k.over:
			return "", errOver
		}
	}}
}

// asking asks the steps of its text, which are separated by commas, one after another. It returns the answers.
func asking(name string, policy mcptask.Policy) tool {
	return tool{name, policy, func(h *handling) (string, error) {
		var answers []string
		for step := range strings.SplitSeq(h.text, ",") {
			answer, err := h.ask(h.ctx, step)
			if err != nil {
				return "", err
			}
			answers = append(answers, answer)
		}
		return strings.Join(answers, ","), nil
	}}
}

// panicking panics, or ends its goroutine if its text is "exit".
var panicking = tool{"panicking", restarts, func(h *handling) (string, error) {
	if h.text == "exit" {
		runtime.Goexit()
	}
	panic("on purpose")
}}

// askingTwo asks the steps a and b at once and works with the first answer.
var askingTwo = tool{"asking_two", restarts, func(h *handling) (string, error) {
	type answer struct {
		text string
		err  error
	}
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	answers := make(chan answer, 2)
	for _, step := range []string{"a", "b"} {
		go func() {
			defer guard.Recover(nil, "a question")
			text, err := h.ask(ctx, step)
			answers <- answer{text, err}
		}()
	}
	first := <-answers
	if first.err != nil {
		return "", first.err
	}
	select { // it works with the answer
	case <-time.After(time.Second):
	case <-h.ctx.Done():
	}
	return first.text, context.Cause(h.ctx)
}}
