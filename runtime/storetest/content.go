package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newFullRecord returns a record with a value in every field.
func (k *kit) newFullRecord(id string) taskstore.Record {
	r := k.newRecord(id, "p", k.epoch)
	r.IdempotencyKey, r.ExternalID, r.CanAsk = "key of "+id, "name of "+id, []string{"elicitation/create", "roots/list"}
	r.Poll, r.Trace = 1500*time.Microsecond, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\na=b"
	r.Phase, r.StatusMessage, r.Progress, r.CancelRequested = taskstore.PhaseDone, "half way", taskstore.Progress{Done: 0.1, Total: 1e300}, true
	r.UpdatedAt, r.TerminalAt, r.Attempt, r.Tries = k.minutesAfter(1), k.minutesAfter(2), 3, 2
	r.StepBytes, r.Worked = 1<<40+1, 90*time.Minute+time.Nanosecond
	r.Nonce, r.Claim = "nonce of "+id, taskstore.Claim{Worker: "w1", State: taskstore.ClaimRunning, Nonce: "another nonce"}
	r.Inputs = []taskstore.Input{
		{Request: mcptask.Request{Key: "a", Method: "elicitation/create", Params: []byte(`{"message":"?"}`), Schema: []byte(`{}`)}, State: taskstore.InputAnswered, Response: []byte(`{"action":"accept"}`), Nonce: "a nonce", Fetched: true, Parked: true},
		{Request: mcptask.Request{Key: "b", Method: "roots/list"}, State: taskstore.InputAnswered, Error: &mcptask.Error{Code: -32050, Message: "no", Data: []byte(`[1]`)}},
		{Request: mcptask.Request{Key: "c"}, State: taskstore.InputSuperseded},
	}
	r.Timeline = r.Timeline.With(taskstore.Moment{Kind: taskstore.EventCreated, At: k.epoch})
	r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -32603, Message: "m", Data: []byte(`{"reason":"x"}`)}}
	return r
}

// everyByte returns a string with every byte, including NUL and invalid UTF-8.
func everyByte() string {
	var every [256]byte
	for b := range every {
		every[b] = byte(b)
	}
	return string(every[:])
}

func testContent(k *kit) {
	every := everyByte()
	odd := k.newFullRecord("odd " + every)
	for _, s := range []*string{
		&odd.Principal, &odd.Account, &odd.Tool, &odd.Revision, &odd.IdempotencyKey, &odd.ExternalID, &odd.Trace,
		&odd.StatusMessage, &odd.Nonce, &odd.Claim.Worker, (*string)(&odd.Claim.State), &odd.Claim.Nonce, &odd.CanAsk[0], &odd.Inputs[0].Key, &odd.Inputs[0].Nonce, &odd.Inputs[0].Method, &odd.Inputs[1].Error.Message, &odd.Outcome.Error.Message,
	} {
		*s += every
	}
	odd.Timeline += taskstore.Timeline(every)
	const megabyte = 1 << 20
	huge := finishRecord(k.newRecord("huge", "p", k.epoch))
	huge.Arguments = []byte(`"` + strings.Repeat("ä", megabyte) + `"`)
	huge.Outcome.Result = []byte(`"` + strings.Repeat("x", 2*megabyte) + `"`)
	huge.StatusMessage = strings.Repeat("ü", megabyte)
	exact := k.newRecord("exact", "p", time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)) // one microsecond after the zero time
	exact.ExpiresAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	exact.Arguments = []byte(" {\"b\": 1,\n\"a\": 1.0, \"a\": 2, \"<\": \"\\u003c\"} ") // must stay byte for byte the same
	elsewhere := k.newRecord("elsewhere", "p", k.epoch.In(time.FixedZone("UTC+5", 5*60*60)))
	failed := finishRecord(k.newRecord("failed", "p", k.epoch))
	failed.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{}`), IsError: true}
	empty := taskstore.Record{ID: "empty", CreatedAt: k.epoch, ExpiresAt: k.minutesAfter(60), Phase: taskstore.PhaseQueued}
	hollow := k.newRecord("hollow", "p", k.epoch)
	hollow.Arguments, hollow.CanAsk, hollow.Inputs = json.RawMessage{}, []string{}, []taskstore.Input{}
	hollow.Outcome = &taskstore.Outcome{}

	for _, want := range []taskstore.Record{k.newFullRecord("full"), odd, huge, exact, elsewhere, failed, empty, hollow} {
		created := k.createRecord(want)
		want.Version = 1
		name := want.ID[:min(len(want.ID), 9)]
		k.wantRecord(name+", created", created, want)
		k.wantRecord(name+", got", k.getRecord(want.ID), want)
		page, err := k.s.List(k.ctx, want.Principal, taskstore.Position{CreatedAt: want.CreatedAt, ID: want.ID[:len(want.ID)-1]}, 1)
		if err != nil || len(page) != 1 {
			k.Fatalf("%s, listed: %d records, %v", name, len(page), err)
		}
		k.wantRecord(name+", listed", trimRecord(page[0]), trimRecord(want))
		updated := k.updateRecord(want, want)
		want.Version = 2
		k.wantRecord(name+", updated", updated, want)
		k.wantRecord(name+", got after the update", k.getRecord(want.ID), want)
		// The same, if all that is not fixed at the creation comes with the update.
		bare := keepFixed(taskstore.Record{Phase: taskstore.PhaseQueued, ExpiresAt: k.minutesAfter(60)}, want)
		bare.ID, bare.IdempotencyKey = "bare "+want.ID, ""
		bare = k.createRecord(bare)
		filled := keepFixed(want, bare)
		updated = k.updateRecord(bare, filled)
		filled.Version = 2
		k.wantRecord(name+", filled by an update", updated, filled)
		k.wantRecord(name+", got after it was filled", k.getRecord(filled.ID), filled)
		if want.IdempotencyKey != "" {
			again := want
			again.ID = "another"
			got, err := k.s.Create(k.ctx, again, taskstore.Quota{})
			k.wantError(name+", by its key", err, taskstore.ErrExists)
			k.wantRecord(name+", by its key", got, want)
		}
	}
	got := k.getRecord("empty")
	if got.Arguments != nil || got.CanAsk != nil || got.Inputs != nil || got.Outcome != nil ||
		!got.UpdatedAt.IsZero() || !got.TerminalAt.IsZero() {
		k.Errorf("a nil or zero value changed: %+v", got)
	}
	if in := k.getRecord("full").Inputs[2]; in.Params != nil || in.Schema != nil || in.Response != nil || in.Error != nil {
		k.Errorf("a nil value changed: %+v", in)
	}
	expired := k.getRecord(odd.ID)
	expired.ExpiresAt = k.minutesAfter(-1)
	expired = k.updateRecord(k.getRecord(odd.ID), expired)
	for _, r := range k.expireRecords(100, 1) {
		k.wantRecord("expired", trimRecord(r), trimRecord(expired))
	}
}

// keepFixed returns r with the fields that are fixed at the creation of the other record, and with its ID and version.
func keepFixed(r, created taskstore.Record) taskstore.Record {
	r.ID, r.Version, r.Principal, r.Account, r.Tool = created.ID, created.Version, created.Principal, created.Account, created.Tool
	r.Arguments, r.Revision, r.IdempotencyKey = created.Arguments, created.Revision, created.IdempotencyKey
	r.ExternalID, r.CanAsk, r.CreatedAt = created.ExternalID, created.CanAsk, created.CreatedAt
	r.Poll, r.Trace = created.Poll, created.Trace
	return r
}

// mutateRecord changes the parts of a record that a shallow copy shares. It leaves bytes alone,
// because nobody may change those.
func mutateRecord(r taskstore.Record) {
	r.CanAsk[0] = "scribble"
	r.Outcome.Kind = taskstore.OutcomeResult
	if len(r.Inputs) > 0 { // a list may leave them out
		r.Inputs[0].State, r.Inputs[1].Error.Message = taskstore.InputOutstanding, "scribble"
	}
	if r.Outcome.Error != nil {
		r.Outcome.Error.Message = "scribble"
	}
}

func testCopies(k *kit) {
	want := k.newFullRecord("t")
	given := k.newFullRecord("t")
	handed := []taskstore.Record{given, k.createRecord(given)}
	got, err := k.s.Get(k.ctx, "t")
	if err != nil {
		k.Fatalf("get: %v", err)
	}
	other := given
	other.Nonce = "" // not the same write
	again, err := k.s.Create(k.ctx, other, taskstore.Quota{})
	k.wantError("the same key", err, taskstore.ErrExists)
	handed = append(handed, got, again)
	for i, r := range handed {
		mutateRecord(r)
		want.Version = 1
		k.wantRecord([]string{"given to Create", "from Create", "from Get", "from Create by the key"}[i], k.getRecord("t"), want)
	}
	updating := k.newFullRecord("t")
	updating.Version = 1
	updated := k.updateRecord(k.getRecord("t"), updating)
	page, err := k.s.List(k.ctx, "p", taskstore.Position{}, 1)
	if err != nil || len(page) != 1 {
		k.Fatalf("list: %d records, %v", len(page), err)
	}
	for i, r := range []taskstore.Record{updating, updated, page[0]} {
		mutateRecord(r)
		want.Version = 2
		k.wantRecord([]string{"given to Update", "from Update", "from List"}[i], k.getRecord("t"), want)
	}
	running := k.newFullRecord("running")
	running.Phase = taskstore.PhaseRunning
	k.createRecord(running)
	for _, r := range k.takeLeases("w2", "running") {
		mutateRecord(r)
	}
	running.Version, running.Claim.Worker = 2, "w2"
	k.wantRecord("from Lease", k.getRecord("running"), running)
	if !bytes.Equal(k.getRecord("t").Arguments, want.Arguments) {
		k.Errorf("the arguments changed")
	}
}
