package taskserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestWithdrawnAgain runs a handler again after its worker was lost. The handler gets the stored
// answers and waits for the open question. A step whose question was withdrawn goes on under its
// next key.
func TestWithdrawnAgain(t *testing.T) {
	rules.Covers(t, "E-42", "E-43")
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		bubble.Run(t, revision, func(t *testing.T) {
			asker := alice
			asker.Revision = revision
			store := taskstore.NewMemory()
			first := &tapStore{Store: store}
			deaf := make(chan struct{})
			var trace []string
			handler := func(hold bool) func(context.Context, *mcptask.Task, number) (number, error) {
				return func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
					for _, step := range []string{"answered", "short", "short", "open"} {
						asking, cancel := ctx, context.CancelFunc(func() {})
						if step == "short" && task.Attempt() == 1 && len(trace) == 1 {
							asking, cancel = context.WithTimeout(ctx, time.Second)
						}
						began := time.Now()
						_, err := mcptask.Ask[approval](asking, task, approvalInput, step, "")
						cancel()
						if hold && ctx.Err() == nil && step == "open" || errors.Is(err, mcptask.ErrSuperseded) {
							break
						}
						trace = append(trace, fmt.Sprint(task.Attempt(), " ", step, " ", time.Since(began), " ", err))
					}
					if hold {
						<-deaf
					}
					return in, nil
				}
			}
			a := newServer(t, Options{Store: first}, numberTool("t", restart, handler(true)))
			b := newServer(t, Options{Store: store}, numberTool("t", restart, handler(false)))
			id := begin(t, a, asker, "t").ID
			give := func(key string) {
				t.Helper()
				asks(t, b, asker, id)
				synctest.Wait()
				var err error
				if revision == mcptask.Revision20251125 {
					err = b.Respond(t.Context(), asker, id, key, []byte(yes), nil)
				} else {
					err = answer(t, b, asker, id, key, yes)
				}
				if err != nil {
					t.Error(err)
				}
				synctest.Wait()
			}
			give("answered")
			time.Sleep(2 * time.Second)
			give("short") // withdrawn: ignored
			give("short#2")
			first.set(cut)
			r, err := b.Changed(t.Context(), asker, id, 0)
			for err == nil && r.Attempt != 2 {
				r, err = b.Changed(t.Context(), asker, id, r.Version)
			}
			if err != nil {
				t.Fatal(err)
			}
			give("short#3") // the first attempt's second answer is the step's first now
			give("open")
			if r := ended(t, b, asker, id); r.Outcome.Kind != taskstore.OutcomeResult {
				t.Error(outcomeText(r.Outcome))
			}
			close(deaf)
			first.set(nil)
			const want = "1 answered 0s <nil>\n1 short 1s context deadline exceeded\n1 short 1s <nil>\n" +
				"2 answered 0s <nil>\n2 short 0s <nil>\n2 short 0s <nil>\n2 open 0s <nil>"
			if got := strings.Join(trace, "\n"); got != want {
				t.Errorf("%s", got)
			}
		})
	}
}
