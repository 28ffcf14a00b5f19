package durable

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// oddRecord has bytes that JSON or UTF-8 would change, and nils beside empty values.
func oddRecord() taskstore.Record {
	return taskstore.Record{
		Nonce: "\xfe", Claim: taskstore.Claim{State: taskstore.ClaimRunning, Nonce: "\x00"}, Revision: "\x002026", ExternalID: "\xc3\x28",
		CanAsk: []string{"", "elicitation/create", "\xff"}, Poll: 1<<63 - 1, Trace: "a\nb",
		Inputs: []taskstore.Input{
			{},
			{Fetched: true},
			{Parked: true},
			{Fetched: true, Parked: true, Nonce: "n\x00"},
			{Request: mcptask.Request{Key: "k\x00", Method: "m", Params: json.RawMessage{}, Schema: json.RawMessage(" ")}, State: taskstore.InputAnswered, Response: json.RawMessage("null")},
			{Request: mcptask.Request{Key: "e"}, Error: &mcptask.Error{}},
			{Request: mcptask.Request{Key: "f"}, Error: &mcptask.Error{Code: -32603, Message: "\xff", Data: json.RawMessage("[ ]")}},
		},
	}
}

// TestCodecKeepsBytes checks that encoded values come back byte for byte, with nil as nil.
func TestCodecKeepsBytes(t *testing.T) {
	for _, want := range []taskstore.Record{{}, oddRecord()} {
		var got taskstore.Record
		if err := DecodeTerms(EncodeTerms(&want), &got); err != nil {
			t.Fatal(err)
		}
		if err := DecodeMark(EncodeMark(&want), &got); err != nil {
			t.Fatal(err)
		}
		var err error
		if got.Inputs, err = DecodeInputs(EncodeInputs(want.Inputs)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	left := taskstore.Record{Claim: taskstore.Claim{State: "left"}} // by an earlier version
	if err := DecodeMark(EncodeMark(&left), &left); err != nil || left.Claim.State != taskstore.ClaimWaiting {
		t.Errorf("%q, %v", left.Claim.State, err)
	}
	for _, want := range []taskstore.Outcome{
		{}, {Result: json.RawMessage{}}, {Result: json.RawMessage("{ }\xff")}, {Error: &mcptask.Error{Code: 1, Message: "m"}},
	} {
		var got taskstore.Outcome
		if err := DecodeOutcome(EncodeOutcome(&want), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%v: %s", err, cmp.Diff(want, got))
		}
	}
	for _, want := range []taskstore.Step{
		{}, {Name: "\xff", Value: json.RawMessage{}}, {Kind: "new\x00", Value: json.RawMessage(" {}\xff"), At: time.UnixMicro(-1).UTC(), Attempt: 1 << 40},
	} {
		got := taskstore.Step{Name: want.Name}
		if err := DecodeStep(EncodeStep(&want), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%v: %s", err, cmp.Diff(want, got))
		}
		want.Value = append(want.Value, make(json.RawMessage, 2*StepHead)...)
		if got, err := DecodeStepHead(EncodeStep(&want)[:StepHead], want.Name); err != nil || got != taskstore.SummarizeSteps([]taskstore.Step{want})[0] {
			t.Errorf("%+v, %v", got, err)
		}
	}
	far := taskstore.Step{Name: "far", At: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if err := DecodeStep(EncodeStep(&far), &far); !errors.Is(err, taskstore.ErrUnreadable) || !strings.Contains(err.Error(), `step "far"`) {
		t.Errorf("a time without a form in JSON: %v", err)
	}
	changes := []taskstore.Change{{Free: true}, {Missed: true}, {ID: "\xff", Version: 1 << 40, Phase: taskstore.PhaseDone}, {ID: "gone"}}
	if got, err := DecodeChanges(EncodeChanges(changes)); err != nil || !cmp.Equal(changes, got) {
		t.Errorf("%v: %s", err, cmp.Diff(changes, got))
	}
}

// FuzzDecode checks that damaged bytes are an error, never a panic, and that a decoded value is the same after a second
// encoding.
func FuzzDecode(f *testing.F) {
	r := oddRecord()
	f.Add(EncodeTerms(&r))
	f.Add(EncodeMark(&r))
	f.Add(EncodeInputs(r.Inputs))
	f.Add(EncodeOutcome(&taskstore.Outcome{Result: json.RawMessage("{}"), Error: r.Inputs[4].Error}))
	f.Add(EncodeStep(&taskstore.Step{Kind: taskstore.StepDone, Value: json.RawMessage("{}"), At: time.Unix(1, 0), Attempt: 2}))
	f.Add(EncodeChanges([]taskstore.Change{{ID: "x", Version: 2, Phase: taskstore.PhaseDone}, {Free: true}}))
	f.Add([]byte{codecVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		var call, again taskstore.Record
		if DecodeTerms(b, &call) == nil {
			if err := DecodeTerms(EncodeTerms(&call), &again); err != nil || !cmp.Equal(call, again) {
				t.Errorf("%v: %s", err, cmp.Diff(call, again))
			}
		}
		var mark, repeated taskstore.Record
		if DecodeMark(b, &mark) == nil {
			if err := DecodeMark(EncodeMark(&mark), &repeated); err != nil || !cmp.Equal(mark, repeated) {
				t.Errorf("%v: %s", err, cmp.Diff(mark, repeated))
			}
		}
		if inputs, err := DecodeInputs(b); err == nil {
			if again, err := DecodeInputs(EncodeInputs(inputs)); err != nil || !cmp.Equal(inputs, again) {
				t.Errorf("%v: %s", err, cmp.Diff(inputs, again))
			}
		}
		var outcome, second taskstore.Outcome
		if DecodeOutcome(b, &outcome) == nil {
			if err := DecodeOutcome(EncodeOutcome(&outcome), &second); err != nil || !cmp.Equal(outcome, second) {
				t.Errorf("%v: %s", err, cmp.Diff(outcome, second))
			}
		}
		var step, same taskstore.Step
		if err := DecodeStep(b, &step); err == nil {
			if err := DecodeStep(EncodeStep(&step), &same); err != nil || !cmp.Equal(step, same) {
				t.Errorf("%v: %s", err, cmp.Diff(step, same))
			}
		} else if !errors.Is(err, taskstore.ErrUnreadable) {
			t.Error(err)
		}
		if changes, err := DecodeChanges(b); err == nil {
			if again, err := DecodeChanges(EncodeChanges(changes)); err != nil || !cmp.Equal(changes, again) {
				t.Errorf("%v: %s", err, cmp.Diff(changes, again))
			}
		}
	})
}

// TestDecodeOldInputs checks that questions are read that were stored before their last byte had more than Fetched.
func TestDecodeOldInputs(t *testing.T) {
	old := []byte{codecVersion, 2}
	for fetched := range byte(2) {
		old = append(old, "\x03key\x06method\x07params\x00\x0boutstanding\x00\x00"...)
		old = append(old, fetched)
	}
	want := taskstore.Input{Request: mcptask.Request{Key: "key", Method: "method", Params: []byte("params")}, State: taskstore.InputOutstanding}
	fetched := want
	fetched.Fetched = true
	got, err := DecodeInputs(old)
	if diff := cmp.Diff([]taskstore.Input{want, fetched}, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}
