package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

func TestClientAnswers(t *testing.T) {
	open := func(keys ...string) Snapshot {
		s := working("t", time.Second)
		s.Status = StatusInputRequired
		for _, key := range keys {
			s.Questions = append(s.Questions, question(key))
		}
		return s
	}
	bubble.Run(t, "each question once", func(t *testing.T) {
		var asked atomic.Int32
		conn := &fakeConn{
			answerer: Answers(Answer(approvalInput, func(_ context.Context, q Question) (approval, error) {
				asked.Add(1)
				switch q.Key {
				case "declined":
					return approval{}, fmt.Errorf("by the person: %w", ErrDeclined)
				case "dismissed":
					return approval{}, ErrDismissed
				}
				return approval{true}, nil
			})),
			task: func(_ context.Context, _ string, n int) (Snapshot, error) {
				switch n {
				case 1:
					return open("a"), nil
				case 2: // the server takes it late
					return open("a", "declined"), nil
				case 3:
					return open("a", "declined", "dismissed"), nil
				}
				return completed("t", 1), nil
			},
		}
		if _, err := started(t, conn).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := `a={"action":"accept","content":{"approve":true}} declined={"action":"decline"} dismissed={"action":"cancel"}`
		if conn.sent() != want || asked.Load() != 3 {
			t.Errorf("asked %d times, sent %s", asked.Load(), conn.sent())
		}
	})
	bubble.Run(t, "a client that cannot answer says so", func(t *testing.T) {
		strange := question("a")
		strange.Input = "Something"
		conn := &fakeConn{
			answerer: Answer(approvalInput, func(context.Context, Question) (approval, error) { t.Error("asked"); return approval{}, nil }),
			task: func(_ context.Context, _ string, n int) (Snapshot, error) {
				if n > 2 {
					return completed("t", 1), nil
				}
				s := open()
				s.Questions = []Question{strange}
				return s, nil
			},
		}
		if _, err := started(t, conn).Wait(t.Context()); err != nil || conn.sent() != `a={"action":"cancel"}` {
			t.Errorf("%v, sent %s", err, conn.sent())
		}
	})
	bubble.Run(t, "an answer that fails ends the wait at once, and may be tried again", func(t *testing.T) {
		broken := errors.New("no terminal")
		var asked atomic.Int32
		conn := &fakeConn{
			answerer: Answer(approvalInput, func(context.Context, Question) (approval, error) {
				if asked.Add(1) == 1 {
					return approval{}, broken
				}
				return approval{true}, nil
			}),
			respond: func(string, string, json.RawMessage) error {
				if asked.Load() == 2 {
					return Errorf(CodeInvalidParams, "it does not fit")
				}
				return nil
			},
			task: func(context.Context, string, int) (Snapshot, error) {
				if asked.Load() == 3 {
					return completed("t", 1), nil
				}
				s := open("a")
				s.Poll = time.Hour
				return s, nil
			},
		}
		call := started(t, conn)
		began := time.Now()
		if _, err := call.Wait(t.Context()); !errors.Is(err, broken) || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		var wire *Error
		if _, err := call.Wait(t.Context()); !errors.As(err, &wire) || errors.Is(err, ErrNotFound) {
			t.Errorf("%v", err)
		}
		if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	bubble.Run(t, "a person who thinks delays no news", func(t *testing.T) {
		var gaveUp atomic.Bool
		conn := &fakeConn{
			answerer: Answer(approvalInput, func(ctx context.Context, _ Question) (approval, error) {
				<-ctx.Done()
				gaveUp.Store(true)
				return approval{}, ctx.Err()
			}),
			task: func(_ context.Context, _ string, n int) (Snapshot, error) {
				if n < 10 {
					return open("a"), nil
				}
				s := working("t", time.Second) // another client cancelled it
				s.Status = StatusCancelled
				return s, nil
			},
		}
		call := started(t, conn)
		began := time.Now()
		var statuses []Status
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			statuses = append(statuses, s.Status)
		}
		synctest.Wait()
		if fmt.Sprint(statuses) != "[working input_required cancelled]" || time.Since(began) > 12*time.Second || !gaveUp.Load() {
			t.Errorf("%v after %v; the person was left asked: %v", statuses, time.Since(began), !gaveUp.Load())
		}
		if _, err := call.Wait(t.Context()); !errors.Is(err, ErrCancelled) {
			t.Errorf("%v", err)
		}
	})
	bubble.Run(t, "a caller that waits again asks again", func(t *testing.T) {
		var asked atomic.Int32
		conn := &fakeConn{
			answerer: Answer(approvalInput, func(ctx context.Context, _ Question) (approval, error) {
				if asked.Add(1) == 1 {
					<-ctx.Done()
					return approval{}, ctx.Err()
				}
				return approval{true}, nil
			}),
			task: func(context.Context, string, int) (Snapshot, error) {
				if asked.Load() == 2 {
					return completed("t", 1), nil
				}
				return open("a"), nil
			},
		}
		call := started(t, conn)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := call.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if _, err := call.Wait(t.Context()); err != nil || asked.Load() != 2 {
			t.Errorf("%v, asked %d times", err, asked.Load())
		}
	})
}

func TestAnswererFits(t *testing.T) {
	yes := Answer(approvalInput, func(context.Context, Question) (approval, error) { return approval{true}, nil })
	for _, c := range []struct {
		name string
		q    Question
		want bool
	}{
		{"by name", Question{Method: spec.Elicit, Input: "Approval"}, true},
		{"another name with its schema", Question{Method: spec.Elicit, Input: "Other", Schema: json.RawMessage(approvalInput.Schema)}, false},
		{"by schema, whatever its spaces", Question{Method: spec.Elicit, Schema: json.RawMessage(` {"required":["approve"], "type":"object","properties":{"approve":{"type":"boolean"}}}`)}, true},
		{"another schema", Question{Method: spec.Elicit, Schema: json.RawMessage(`{"type":"object"}`)}, false},
		{"no schema", Question{Method: spec.Elicit}, false},
		{"another request", Question{Method: "sampling/createMessage", Input: "Approval"}, false},
	} {
		if _, ok, err := yes.Answer(t.Context(), c.q); ok != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.name, ok, err)
		}
	}
	if !(Answerer{}).Empty() || yes.Empty() || Answers(Answerer{}, yes).Empty() || !Answers().Empty() {
		t.Error("Empty")
	}
}

// calls starts n calls. Their tasks have the IDs 0 to n-1.
func calls(t testing.TB, conn *fakeConn, n int) []*Call[number] {
	t.Helper()
	i := 0
	conn.call = func(ToolCall) (Snapshot, error) {
		i++
		return working(fmt.Sprint(i-1), time.Second), nil
	}
	made := make([]*Call[number], n)
	for i := range made {
		made[i] = started(t, conn)
	}
	return made
}

func TestSettledThousand(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const n = 1000
		var now, most atomic.Int32
		conn := &fakeConn{}
		conn.task = func(_ context.Context, id string, reads int) (Snapshot, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			var i int
			if _, err := fmt.Sscan(id, &i); err != nil {
				return Snapshot{}, err
			}
			if reads <= i%4 {
				return working(id, time.Second), nil
			}
			s := completed(id, i)
			switch i % 5 { // mixed ends
			case 1:
				s.Result.IsError = true
			case 2:
				s.Result, s.Status = nil, StatusCancelled
			case 3:
				return Snapshot{}, Errorf(CodeInvalidParams, "no such task")
			}
			return s, nil
		}
		all := calls(t, conn, n)
		began := time.Now()
		seen := map[*Call[number]]error{}
		for call, err := range Settled(t.Context(), all...) {
			if _, twice := seen[call]; twice || call == nil {
				t.Fatalf("%v was seen twice", call)
			}
			seen[call] = err
		}
		if len(seen) != n || most.Load() > pollsAtOnce || time.Since(began) > 10*time.Second {
			t.Errorf("%d seen after %v, %d polls at once", len(seen), time.Since(began), most.Load())
		}
		for i, call := range all {
			err := seen[call]
			var tool *ToolError
			if ok := [5]bool{err == nil, errors.As(err, &tool), errors.Is(err, ErrCancelled), errors.Is(err, ErrNotFound), err == nil}[i%5]; !ok {
				t.Errorf("call %d: %v", i, err)
			}
			if reads := conn.readsOf(fmt.Sprint(i)); len(reads) != i%4+1 {
				t.Errorf("call %d was read %d times", i, len(reads))
			} else {
				for j := range reads[1:] {
					if gap := reads[j+1].Sub(reads[j]); gap < time.Second {
						t.Errorf("call %d was read again after %v", i, gap)
					}
				}
			}
		}
	})
}

// TestSettledSlowOnes checks that neither a slow person nor a read that hangs delays the news of
// the other calls.
func TestSettledSlowOnes(t *testing.T) {
	before := leak.Now()
	bubble.Test(t, func(t *testing.T) {
		conn := &fakeConn{answerer: Answer(approvalInput, func(ctx context.Context, _ Question) (approval, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return approval{true}, ctx.Err()
		})}
		var answered atomic.Bool
		conn.respond = func(string, string, json.RawMessage) error { answered.Store(true); return nil }
		conn.task = func(ctx context.Context, id string, reads int) (Snapshot, error) {
			switch {
			case id == "0" && !answered.Load(): // it asks, and the answer takes an hour
				s := working(id, time.Second)
				s.Status, s.Questions = StatusInputRequired, []Question{question("a")}
				return s, nil
			case id == "1" && reads == 1: // it hangs
				<-ctx.Done()
				return Snapshot{}, ctx.Err()
			}
			return completed(id, 1), nil
		}
		began := time.Now()
		var at []time.Duration
		for call, err := range Settled(t.Context(), calls(t, conn, 40)...) {
			if err != nil || call == nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(began).Round(10*time.Second))
		}
		if len(at) != 40 || at[37] != 0 || at[38] != maxRead || at[39] != time.Hour {
			t.Errorf("settled after %v", at)
		}
	})
	before.NoneLeft(t)
}

// TestSettledDespiteHangingPolls checks that polls without an answer do not hold up the calls that are done.
func TestSettledDespiteHangingPolls(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		conn := &fakeConn{task: func(ctx context.Context, id string, _ int) (Snapshot, error) {
			if id != "done" {
				<-ctx.Done()
				return Snapshot{}, ctx.Err()
			}
			return completed(id, 1), nil
		}}
		var calls []*Call[*Result]
		for i := range pollsAtOnce + 1 {
			id := fmt.Sprintf("hanging%d", i)
			if i == pollsAtOnce {
				id = "done"
			}
			call, err := Resume[*Result](conn, "", NewToken("", id))
			if err != nil {
				t.Fatal(err)
			}
			calls = append(calls, call)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for call, err := range Settled(ctx, calls...) {
			if call != nil && call.TaskID() == "done" && err == nil {
				return
			}
			if call == nil {
				t.Fatalf("the call that is done was not yielded within an hour: %v", err)
			}
		}
	})
}

func TestSettledEnds(t *testing.T) {
	endless := func() *fakeConn {
		return &fakeConn{task: func(_ context.Context, id string, _ int) (Snapshot, error) {
			if id == "0" {
				return completed(id, 1), nil
			}
			return working(id, time.Second), nil
		}}
	}
	bubble.Run(t, "with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var got []string
		for call, err := range Settled(ctx, calls(t, endless(), 50)...) {
			got = append(got, fmt.Sprint(call == nil, err))
		}
		if want := "[false <nil> true context deadline exceeded]"; fmt.Sprint(got) != want {
			t.Errorf("%v", got)
		}
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		conn := endless()
		n := 0
		for call, err := range Settled(ctx, calls(t, conn, 3)...) {
			if n++; call != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%v, %v", call, err)
			}
		}
		if n != 1 || len(conn.readsOf("0")) != 0 {
			t.Errorf("%d yielded", n)
		}
	})
	bubble.Run(t, "with the loop", func(t *testing.T) {
		conn := endless()
		for range Settled(t.Context(), calls(t, conn, 20)...) {
			break
		}
		synctest.Wait()
		n := len(conn.readsOf("1"))
		time.Sleep(time.Hour)
		if len(conn.readsOf("1")) != n {
			t.Error("polls go on")
		}
	})
	t.Run("at once without calls", func(t *testing.T) {
		for range Settled[number](t.Context()) {
			t.Error("yielded")
		}
	})
}
