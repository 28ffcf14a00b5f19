package protocol_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The capabilities that several services declare are merged, and with those that the SDK declares.
func TestCapabilitiesAreJoined(t *testing.T) {
	service := func(name, declared string) mcptask.Tools {
		return mcptask.Tools{Service: name, Impl: 1, Capabilities: mcptask.Capabilities{mcptask.Revision20260728: declared}}
	}
	s, err := taskserver.New(taskserver.Options{}, service("A", `{"extensions":{"a":{"b":{}}}}`), service("B", ``), service("C", `{"extensions":{"a":{"c":1}},"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	result, err := protocol.Server20260728{}.Decorate(s.Backend(), taskserver.Caller{}, "server/discover", json.RawMessage(`{"capabilities":{"tools":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(result, &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"capabilities":{"tools":{},"extensions":{"a":{"b":{},"c":1}},"x":1},"resultType":"complete"}`), &want)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s", result)
	}
	if _, err := taskserver.New(taskserver.Options{}, service("D", `[]`)); err == nil {
		t.Error("capabilities that are no object are accepted")
	}
}

// TestReadCapabilities reads the capabilities of a client of 2026-07-28: which requests it answers, and if it accepts
// tasks. code is the code with which task methods are refused, or 0 if they are not.
func TestReadCapabilities(t *testing.T) {
	const form, sampling, roots = "elicitation/create", "sampling/createMessage", "roots/list"
	for _, test := range []struct {
		capabilities string
		canAsk       []string
		code         int
	}{
		{`{}`, nil, spec.CodeMissingClientCapability},
		{`null`, nil, spec.CodeMissingClientCapability},
		{`[]`, nil, mcptask.CodeInvalidParams},
		{`{"elicitation":{},"sampling":{},"roots":{}}`, []string{form, sampling, roots}, spec.CodeMissingClientCapability},
		{`{"elicitation":{"form":null,"url":null}}`, []string{form}, spec.CodeMissingClientCapability},
		{`{"elicitation":{"url":{}}}`, []string{taskserver.CanAskURL}, spec.CodeMissingClientCapability},
		{`{"elicitation":{"form":{},"url":{}}}`, []string{form, taskserver.CanAskURL}, spec.CodeMissingClientCapability},
		{`{"elicitation":{"form":1},"sampling":true,"roots":null}`, nil, spec.CodeMissingClientCapability},
		{`{"elicitation":{"url":true}}`, nil, spec.CodeMissingClientCapability},
		{`{"elicitation":{"form":1,"url":{}}}`, []string{taskserver.CanAskURL}, spec.CodeMissingClientCapability},
		{`{"extensions":{"EXT":{}}}`, nil, 0},
		{`{"extensions":{"EXT":null}}`, nil, spec.CodeMissingClientCapability},
		{`{"extensions":{"EXT":1}}`, nil, spec.CodeMissingClientCapability},
		{`{"extensions":null}`, nil, spec.CodeMissingClientCapability},
		{`{"extensions":1}`, nil, mcptask.CodeInvalidParams},
	} {
		capabilities := strings.ReplaceAll(test.capabilities, "EXT", spec.ExtensionTasks)
		params := wire.NewObject([]byte(`{"_meta":{"` + spec.MetaClientCapabilities + `":` + capabilities + `}}`))
		var d protocol.Server20260728
		if got := d.CanAsk(params.Object("_meta", spec.MetaClientCapabilities)); !slices.Equal(got, test.canAsk) {
			t.Errorf("%s: CanAsk is %q, want %q", capabilities, got, test.canAsk)
		}
		var refused *mcptask.Error
		if err := d.Check(params); errors.As(err, &refused) != (test.code != 0) || refused != nil && refused.Code != test.code {
			t.Errorf("%s: Check is %v, want the code %d", capabilities, err, test.code)
		}
	}
}
