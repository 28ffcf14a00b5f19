package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// A generated server asks, and the client of 2025-11-25 answers as a task.
func TestQuestionsAsTasks(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T, gosdk.ClientOptions) (mcptask.Conn, error){
		"http": func(t *testing.T, o gosdk.ClientOptions) (mcptask.Conn, error) {
			url, _ := wiretest.Serve(t, taskserver.Options{})
			return gosdk.Connect(t.Context(), url, o)
		},
		"stdio": func(t *testing.T, o gosdk.ClientOptions) (mcptask.Conn, error) {
			return gosdk.ConnectCommand(t.Context(), wiretest.StdioServer(t), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs := &wiretest.SafeBuffer{}
			asked, ended := make(chan string, 10), make(chan error, 10)
			conn, err := connect(t, gosdk.ClientOptions{
				Revision: wiretest.LegacyRevision,
				Tasks:    taskserver.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))},
				Answer: pipeline.AnswerApproval(func(ctx context.Context, q mcptask.Question) (pipeline.Approval, error) {
					asked <- q.TaskID
					if len(asked) < 3 {
						return pipeline.Approval{Approve: true}, nil
					}
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return pipeline.Approval{}, ctx.Err()
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx := within(t, wiretest.Patience)
			ci := pipeline.NewCIClient(conn)
			in := pipeline.DeployInput{Service: "api", Environment: "production"}
			for range 2 {
				if report, err := ci.DeployService(ctx, in); err != nil || report.Version != "1.2.3" {
					t.Fatalf("%+v, %v", report, err)
				}
			}
			text := logs.WaitFor(t, "outcome=result", 2)
			if created, answered := strings.Count(text, `msg="task created"`), strings.Count(text, "outcome=result"); created != 2 || answered != 2 || !strings.Contains(text, "tool=elicitation.create") {
				t.Errorf("%d tasks at the client, %d with an answer:\n%s", created, answered, text)
			}
			// Cancelling the server's task ends the task at the client, and the person's prompt with it.
			call, err := ci.StartDeployService(ctx, in)
			if err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() {
				_, err := call.Wait(ctx)
				waited <- err
			}()
			for len(asked) < 3 {
				if ctx.Err() != nil {
					t.Fatal("the person was not asked")
				}
				time.Sleep(5 * time.Millisecond)
			}
			cancel(t, call)
			if err := <-waited; !errors.Is(err, mcptask.ErrCancelled) {
				t.Error(err)
			}
			select {
			case cause := <-ended:
				if !errors.Is(cause, mcptask.ErrCancelled) {
					t.Errorf("the prompt ended by %v", cause)
				}
			case <-ctx.Done():
				t.Error("the prompt goes on")
			}
			for range 3 {
				if id := <-asked; id == "" {
					t.Error("a question that names no task")
				}
			}
		})
	}
}

// The same for requests to a model and requests to open a page.
func TestRequestsAsTasks(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		logs := &wiretest.SafeBuffer{}
		conn := dial(t, wiretest.ServeAsk(t, wiretest.Setup{}), gosdk.ClientOptions{
			Revision: wiretest.LegacyRevision,
			Tasks:    taskserver.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))},
			Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: r.Messages[0].Content}, nil
			},
			OpenURL: func(context.Context, mcptask.Question) error { return mcptask.ErrDeclined },
		})
		ctx := within(t, wiretest.Patience)
		for tool, want := range map[string]string{"sample": `assistant m {"text":"Sum up.","type":"text"}`, "url": "declined"} {
			if got, err := mcptask.Run[string](ctx, conn, tool, wiretest.AskInput{}); err != nil || got != want {
				t.Errorf("%s: %q, %v", tool, got, err)
			}
		}
		text := logs.WaitFor(t, "outcome=result", 2)
		if strings.Count(text, "outcome=result") != 2 || !strings.Contains(text, "tool=sampling.createMessage") || !strings.Contains(text, "tool=elicitation.create") {
			t.Errorf("the tasks at the client:\n%s", text)
		}
	})
}

// The client's answer to a request of a task names the task. Its answers to other requests name none.
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
						TaskID string                             // in an answer to tasks/get (C-66)
						Meta   map[string]struct{ TaskID string } `json:"_meta"`
					}
				}
				if json.Unmarshal(body, &m) == nil && m.Method == "" && m.Result != nil && m.Result.TaskID == "" {
					mu.Lock()
					related = append(related, m.Result.Meta[spec.MetaRelatedTask].TaskID)
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
					want = 2 // the task that the client makes of the request, and its result
				}
				if len(got) != want || slices.Contains(got, "") != plain {
					t.Errorf("%s, plain %v: the answers are related to %q", tool, plain, got)
				}
			}
		}
	})
}

// roundTrip makes a transport of a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
