package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// full is a record that has everything.
func full(id string) mcptask.Record {
	r := record(id, "p", epoch)
	r.IdempotencyKey, r.CanAsk = "key of "+id, []string{"elicitation/create", "roots/list"}
	r.Phase, r.StatusMessage, r.CancelRequested, r.Attempt = mcptask.PhaseDone, "half way", true, 3
	r.UpdatedAt, r.TerminalAt, r.Poll = minutes(1), minutes(2), 1500*time.Microsecond
	r.Inputs = []mcptask.Input{
		{Key: "a", Method: "elicitation/create", Params: []byte(`{"message":"?"}`), Schema: []byte(`{}`), State: mcptask.InputAnswered, Response: []byte(`{"action":"accept"}`)},
		{Key: "b", Method: "roots/list", State: mcptask.InputAnswered, Error: &mcptask.Error{Code: -32050, Message: "no", Data: []byte(`[1]`)}},
		{Key: "c", State: mcptask.InputSuperseded},
	}
	r.Outcome = &mcptask.Outcome{Kind: mcptask.OutcomeError, Error: &mcptask.Error{Code: -32603, Message: "m", Data: []byte(`{"reason":"x"}`)}}
	return r
}

func testContent(k *kit) {
	var every strings.Builder // every byte, so NUL and what is no UTF-8 as well
	for b := range 256 {
		every.WriteByte(byte(b))
	}
	odd := full("odd " + every.String())
	for _, s := range []*string{
		&odd.Principal, &odd.Account, &odd.Tool, &odd.Revision, &odd.IdempotencyKey, &odd.StatusMessage, &odd.Worker,
		&odd.CanAsk[0], &odd.Inputs[0].Key, &odd.Inputs[0].Method, &odd.Inputs[1].Error.Message, &odd.Outcome.Error.Message,
	} {
		*s += every.String()
	}
	const megabyte = 1 << 20
	huge := done(record("huge", "p", epoch))
	huge.Arguments = []byte(`"` + strings.Repeat("ä", megabyte) + `"`)
	huge.Outcome.Result = []byte(`"` + strings.Repeat("x", 2*megabyte) + `"`)
	huge.StatusMessage = strings.Repeat("ü", megabyte)
	exact := record("exact", "p", time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)) // one microsecond behind the zero time
	exact.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	exact.Arguments = []byte(" {\"b\": 1,\n\"a\": 1.0, \"a\": 2, \"<\": \"\\u003c\"} ") // not a byte otherwise
	elsewhere := record("elsewhere", "p", epoch.In(time.FixedZone("UTC+5", 5*60*60)))
	failed := done(record("failed", "p", epoch))
	failed.Outcome = &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: []byte(`{}`), IsError: true}
	empty := mcptask.Record{ID: "empty", CreatedAt: epoch, ExpiresAt: epoch, Phase: mcptask.PhaseQueued}
	hollow := record("hollow", "p", epoch)
	hollow.Arguments, hollow.CanAsk, hollow.Inputs = json.RawMessage{}, []string{}, []mcptask.Input{}
	hollow.Outcome = &mcptask.Outcome{}

	for _, want := range []mcptask.Record{full("full"), odd, huge, exact, elsewhere, failed, empty, hollow} {
		created := k.create(want)
		want.Version = 1
		name := want.ID[:min(len(want.ID), 9)]
		k.same(name+", created", created, want)
		k.same(name+", got", k.get(want.ID), want)
		page, err := k.s.List(k.ctx, want.Principal, mcptask.Position{CreatedAt: want.CreatedAt, ID: want.ID[:len(want.ID)-1]}, 1)
		if err != nil || len(page) != 1 {
			k.Fatalf("%s, listed: %d records, %v", name, len(page), err)
		}
		k.same(name+", listed", page[0], want)
		updated := k.update(want)
		want.Version = 2
		k.same(name+", updated", updated, want)
		k.same(name+", got after the update", k.get(want.ID), want)
		if want.IdempotencyKey != "" {
			again := want
			again.ID = "another"
			got, err := k.s.Create(k.ctx, again, mcptask.Quota{})
			k.is(name+", by its key", err, mcptask.ErrExists)
			k.same(name+", by its key", got, want)
		}
	}
	got := k.get("empty")
	if got.Arguments != nil || got.CanAsk != nil || got.Inputs != nil || got.Outcome != nil ||
		!got.UpdatedAt.IsZero() || !got.TerminalAt.IsZero() || !got.LeaseUntil.IsZero() {
		k.Errorf("what is nil or zero did not stay so: %+v", got)
	}
	if in := k.get("full").Inputs[2]; in.Params != nil || in.Schema != nil || in.Response != nil || in.Error != nil {
		k.Errorf("what is nil did not stay so: %+v", in)
	}
	gone, err := k.s.Expire(k.ctx, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), 100)
	if err != nil || len(gone) != 8 {
		k.Fatalf("%d expired, want 8: %v", len(gone), err)
	}
	for _, r := range gone {
		if r.ID == odd.ID {
			odd.Version = 2
			k.same("odd, expired", r, odd)
		}
	}
}

// scribble changes what a record shares with whoever has a careless copy.
// Bytes are left alone: nobody changes those.
func scribble(r mcptask.Record) {
	r.CanAsk[0] = "scribble"
	r.Inputs[0].State, r.Inputs[1].Error.Message = mcptask.InputOutstanding, "scribble"
	r.Outcome.Kind, r.Outcome.Error.Message = mcptask.OutcomeResult, "scribble"
}

func testCopies(k *kit) {
	want := full("t")
	given := full("t")
	handed := []mcptask.Record{given, k.create(given)}
	got, err := k.s.Get(k.ctx, "t")
	if err != nil {
		k.Fatalf("get: %v", err)
	}
	again, err := k.s.Create(k.ctx, given, mcptask.Quota{})
	k.is("the same key", err, mcptask.ErrExists)
	handed = append(handed, got, again)
	for i, r := range handed {
		scribble(r)
		want.Version = 1
		k.same([]string{"given to Create", "from Create", "from Get", "from Create by the key"}[i], k.get("t"), want)
	}
	updating := full("t")
	updating.Version = 1
	updated := k.update(updating)
	waited, err := k.s.Wait(k.ctx, "t", 1)
	if err != nil {
		k.Fatalf("wait: %v", err)
	}
	page, err := k.s.List(k.ctx, "p", mcptask.Position{}, 1)
	if err != nil || len(page) != 1 {
		k.Fatalf("list: %d records, %v", len(page), err)
	}
	for i, r := range []mcptask.Record{updating, updated, waited, page[0]} {
		scribble(r)
		want.Version = 2
		k.same([]string{"given to Update", "from Update", "from Wait", "from List"}[i], k.get("t"), want)
	}
	running := full("running")
	running.Phase, running.Worker = mcptask.PhaseRunning, "w1"
	k.create(running)
	taken, err := k.s.Lease(k.ctx, "w2", minutes(10), minutes(20), 5)
	if err != nil || len(taken) != 1 {
		k.Fatalf("lease: %d records, %v", len(taken), err)
	}
	scribble(taken[0])
	running.Version, running.Worker, running.LeaseUntil = 2, "w2", minutes(20)
	k.same("from Lease", k.get("running"), running)
	if !bytes.Equal(k.get("t").Arguments, want.Arguments) {
		k.Errorf("the arguments changed")
	}
}
