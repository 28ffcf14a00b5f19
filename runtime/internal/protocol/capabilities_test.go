package protocol_test

import (
	"encoding/json"
	"reflect"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// What several services declare is joined, with what the SDK declares.
func TestCapabilitiesAreJoined(t *testing.T) {
	service := func(name, declared string) mcptask.Tools {
		return mcptask.Tools{Service: name, Impl: 1, Capabilities: mcptask.Capabilities{mcptask.Revision20260728: declared}}
	}
	s, err := mcptask.NewServer(mcptask.Options{}, service("A", `{"extensions":{"a":{"b":{}}}}`), service("B", ``), service("C", `{"extensions":{"a":{"c":1}},"x":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	result, err := protocol.Server20260728{}.Decorate(s, mcptask.Caller{}, "server/discover", json.RawMessage(`{"capabilities":{"tools":{}}}`))
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
	if _, err := mcptask.NewServer(mcptask.Options{}, service("D", `[]`)); err == nil {
		t.Error("capabilities that are no object")
	}
}
