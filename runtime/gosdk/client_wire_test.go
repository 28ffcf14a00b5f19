package gosdk_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// What a client answers to a request of a task's names the task, and what it
// answers to others does not.
func TestClientAnswersRelated(t *testing.T) {
	rules.Covers(t, "C-61")
	checkClientAnswersRelated(t, wiretest.LegacyRevision)
}

func TestCandidateClientAnswersRelated(t *testing.T) {
	rules.Covers(t, "B-56")
	checkClientAnswersRelated(t, wiretest.CandidateRevision)
}

func checkClientAnswersRelated(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision})
		var mu sync.Mutex
		var related []string
		wire := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				var m struct {
					Method string
					Result *struct {
						TaskID string                             // of what answers tasks/get (C-66)
						Meta   map[string]struct{ TaskID string } `json:"_meta"`
					}
				}
				if json.Unmarshal(body, &m) == nil && m.Method == "" && m.Result != nil && m.Result.TaskID == "" {
					mu.Lock()
					related = append(related, m.Result.Meta[mcptask.MetaRelatedTask].TaskID)
					mu.Unlock()
				}
			}
			return memnet.OneOff.RoundTrip(r)
		})
		conn := dial(t, wiretest.RevisionURL(url, revision), gosdk.ClientOptions{Revision: revision, HTTPClient: &http.Client{Transport: wire},
			Roots: []mcptask.Root{{URI: "file:///a"}},
			Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: r.Messages[0].Content}, nil
			},
			Answer: mcptask.Answer(wiretest.NoteSpec, func(context.Context, mcptask.Question) (wiretest.NoteInput, error) {
				return wiretest.NoteInput{Note: "yes"}, nil
			}),
		})
		ctx := within(t, wiretest.Patience)
		for _, tool := range []string{"ask", "sample", "roots"} {
			for _, plain := range []bool{false, true} {
				var opts []mcptask.CallOption
				if plain {
					opts = append(opts, mcptask.Plain())
				}
				call, err := mcptask.Start[string](ctx, conn, tool, wiretest.AskInput{Steps: []string{"one"}}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := call.Wait(ctx); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				got := related
				related = nil
				mu.Unlock()
				want := 1
				if !plain && tool != "roots" {
					want = 2 // the task that the client makes of it, and the result of that
				}
				if len(got) != want || slices.Contains(got, "") != plain {
					t.Errorf("%s, plain %v: the answers are related to %q", tool, plain, got)
				}
			}
		}
	})
}

// roundTrip is a transport made of a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
