package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// quotaOf limits the number of records of an account.
func quotaOf(stored, unfinished int) taskstore.Quota {
	return taskstore.Quota{Account: taskstore.Usage{Stored: stored, Unfinished: unfinished}}
}

// wantQuotaError checks the error of a call that exceeds a limit of a scope.
func (k *kit) wantQuotaError(what string, err error, scope taskstore.Scope, want error) {
	k.Helper()
	var got *taskstore.QuotaError
	if !errors.As(err, &got) || got.Scope != scope || !errors.Is(err, want) {
		k.Errorf("%s: the error is %v, want %v of the %s", what, err, want, scope)
	}
}

// owner is the principal and account of a record.
type owner struct{ principal, account string }

func (o owner) record(k *kit, id string) taskstore.Record {
	r := k.newRecord(id, o.principal, k.epoch)
	r.Account = o.account
	return r
}

// quotaScopes lists the scopes with a quota for only that scope, and with owners inside and outside
// it.
var quotaScopes = []struct {
	scope   taskstore.Scope
	quota   func(taskstore.Usage) taskstore.Quota
	in, out [2]owner
}{
	{taskstore.ScopeAccount, func(u taskstore.Usage) taskstore.Quota { return taskstore.Quota{Account: u} },
		[2]owner{{"p", "x"}, {"", "x"}}, [2]owner{{"p", "y"}, {"", ""}}},
	{taskstore.ScopeAddress, func(u taskstore.Usage) taskstore.Quota { return taskstore.Quota{Address: u} },
		[2]owner{{"", "address h"}, {"", "address h session x"}}, [2]owner{{"", "address i session x"}, {"p", "address h"}}},
	{taskstore.ScopeAnonymous, func(u taskstore.Usage) taskstore.Quota { return taskstore.Quota{Anonymous: u} },
		[2]owner{{"", "x"}, {"", ""}}, [2]owner{{"p", "x"}, {"q", ""}}},
	{taskstore.ScopeServer, func(u taskstore.Usage) taskstore.Quota { return taskstore.Quota{Server: u} },
		[2]owner{{"p", "x"}, {"", "y"}}, [2]owner{}},
}

func testQuotaScopes(k *kit) {
	for _, s := range quotaScopes {
		first, second, third := s.in[0].record(k, "1"), s.in[1].record(k, "2"), s.in[0].record(k, "3")
		for want, bound := range map[error]taskstore.Usage{
			taskstore.ErrQuotaStored:     {Stored: 2},
			taskstore.ErrQuotaUnfinished: {Unfinished: 2},
			taskstore.ErrQuotaBytes:      {Bytes: first.Size() + second.Size()},
		} {
			name := fmt.Sprintf("%v of the %s", want, s.scope)
			create := func(r taskstore.Record) error {
				_, err := k.pickStore(len(r.ID)).Create(k.ctx, r, s.quota(bound))
				return err
			}
			for _, r := range []taskstore.Record{first, second} {
				if err := create(r); err != nil {
					k.Errorf("%s: there is room for %s: %v", name, r.ID, err)
				}
			}
			k.wantQuotaError(name, create(third), s.scope, want)
			k.wantAbsent("3")
			var others []string
			if s.out != [2]owner{} {
				for i, o := range s.out {
					others = append(others, fmt.Sprint("other", i))
					if err := create(o.record(k, others[i])); err != nil {
						k.Errorf("%s: somebody else: %v", name, err)
					}
				}
			}
			k.deleteRecord("1")
			if err := create(third); err != nil { // as big as the first
				k.Errorf("%s: one has gone: %v", name, err)
			}
			for _, id := range append(others, "2", "3") {
				k.deleteRecord(id)
			}
		}
	}
	k.createRecord(k.newRecord("a", "", k.epoch))
	one := taskstore.Usage{Stored: 1, Unfinished: 1, Bytes: 1}
	_, err := k.s.Create(k.ctx, k.newRecord("b", "", k.epoch), taskstore.Quota{Account: one, Anonymous: one, Server: one})
	k.wantQuotaError("beyond every bound", err, taskstore.ScopeAccount, taskstore.ErrQuotaStored)
	_, err = k.s.Create(k.ctx, k.newRecord("b", "", k.epoch), taskstore.Quota{Anonymous: taskstore.Usage{Unfinished: 1, Bytes: 1}, Server: one})
	k.wantQuotaError("beyond the bounds of two scopes", err, taskstore.ScopeAnonymous, taskstore.ErrQuotaUnfinished)
}

func testUpdateBytes(k *kit) {
	const more = 256 // status messages count in blocks of as many bytes
	text := strings.Repeat("x", more)
	// Every part with a variable length adds to the size of a record.
	parts := map[string]func(r *taskstore.Record, text string){
		"status": func(r *taskstore.Record, text string) { r.StatusMessage += text },
		"question": func(r *taskstore.Record, text string) {
			r.Inputs = []taskstore.Input{{Request: mcptask.Request{Params: []byte(text)}}}
		},
		"schema": func(r *taskstore.Record, text string) {
			r.Inputs = []taskstore.Input{{Request: mcptask.Request{Schema: []byte(text)}}}
		},
		"answer": func(r *taskstore.Record, text string) { r.Inputs = []taskstore.Input{{Response: []byte(text)}} },
		"no answer": func(r *taskstore.Record, text string) {
			r.Inputs = []taskstore.Input{{Error: &mcptask.Error{Message: text}}}
		},
		"steps":  func(r *taskstore.Record, text string) { r.StepBytes += int64(len(text)) },
		"result": func(r *taskstore.Record, text string) { r.Outcome = &taskstore.Outcome{Result: []byte(text)} },
		"error": func(r *taskstore.Record, text string) {
			r.Outcome = &taskstore.Outcome{Error: &mcptask.Error{Data: []byte(text)}}
		},
	}
	for _, s := range quotaScopes {
		for name, grow := range parts {
			name = fmt.Sprintf("%s of the %s", name, s.scope)
			first := k.createRecord(s.in[0].record(k, "1"))
			second := k.createRecord(s.in[1].record(k, "2"))
			bytes := first.Size() + second.Size() + more
			quota := s.quota(taskstore.Usage{Stored: 1, Unfinished: 1, Bytes: bytes}) // only the bytes matter
			grown, grownMore := first, second
			grow(&grown, text)
			grow(&grownMore, "y")
			grown, err := k.s.Update(k.ctx, first, grown, quota)
			if err != nil {
				k.Fatalf("%s: there is room: %v", name, err)
			}
			_, err = k.other.Update(k.ctx, second, grownMore, quota)
			k.wantQuotaError(name, err, s.scope, taskstore.ErrQuotaBytes)
			k.wantRecord(name+", refused", k.getRecord("2"), second)
			same := second // an update without growth is never refused, whatever the limit
			same.Phase = taskstore.PhaseRunning
			if _, err := k.s.Update(k.ctx, second, same, s.quota(taskstore.Usage{Bytes: 1})); err != nil {
				k.Errorf("%s: it does not grow: %v", name, err)
			}
			k.takeLeases("another worker", "1", "2") // a new worker is not more bytes
			if grown.Outcome != nil {                // stays
				k.deleteRecord("1")
			} else {
				shrunk := k.getRecord("1")
				shrunk.StatusMessage, shrunk.Inputs, shrunk.StepBytes = "", nil, 0
				if _, err = k.s.Update(k.ctx, k.getRecord("1"), shrunk, s.quota(taskstore.Usage{Bytes: 1})); err != nil {
					k.Errorf("%s: it shrinks: %v", name, err)
				}
				k.deleteRecord("1")
			}
			same = k.getRecord("2")
			grownMore = same
			grow(&grownMore, "y")
			if _, err = k.s.Update(k.ctx, same, grownMore, quota); err != nil {
				k.Errorf("%s: there is room again: %v", name, err)
			}
			if s.out != [2]owner{} {
				other := k.createRecord(s.out[0].record(k, "3"))
				grown := other
				grow(&grown, text)
				if _, err = k.s.Update(k.ctx, other, grown, quota); err != nil {
					k.Errorf("%s: somebody else: %v", name, err)
				}
				k.deleteRecord("3")
			}
			k.deleteRecord("2")
		}
	}
	missing := k.newRecord("missing", "p", k.epoch)
	_, err := k.s.Update(k.ctx, missing, missing, taskstore.Quota{Server: taskstore.Usage{Bytes: 1}})
	k.wantError("a missing record that is too big", err, taskstore.ErrNoRecord)
}

func testUpdateBytesRace(k *kit) {
	const workers, rounds, room, more = 16, 12, 3, 1024
	// Each goroutine grows its own record. Exactly as many succeed as there is room for.
	records := make([]taskstore.Record, workers)
	var bytes int64
	for i := range records {
		r := k.newRecord(fmt.Sprint("t", i), "", k.epoch)
		r.Account = []string{"x", "y"}[i%2]
		records[i] = k.createRecord(r)
		bytes += r.Size()
	}
	bound := taskstore.Usage{Bytes: bytes + room*more}
	for round := range rounds {
		quota := taskstore.Quota{Server: bound}
		if round%2 == 1 {
			quota = taskstore.Quota{Anonymous: bound}
		}
		var grown atomic.Int32
		runConcurrently(workers, func(i int) {
			grownRecord := records[i]
			grownRecord.StatusMessage = strings.Repeat("x", more)
			r, err := k.pickStore(i).Update(k.ctx, records[i], grownRecord, quota)
			switch {
			case err == nil:
				records[i] = r
				grown.Add(1)
			case !errors.Is(err, taskstore.ErrQuotaBytes):
				k.Errorf("update: %v", err)
			}
		})
		if grown.Load() != room {
			k.Errorf("%d records grew with room for %d", grown.Load(), room)
		}
		runConcurrently(workers, func(i int) {
			if r := records[i]; r.StatusMessage != "" {
				var err error
				r.StatusMessage = ""
				if records[i], err = k.pickStore(i).Update(k.ctx, records[i], r, quota); err != nil {
					k.Errorf("update: %v", err)
				}
			}
		})
	}
}
