package mcptask

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

type lacking struct {
	Asset string `json:"asset"`
	Count int    `json:"count,omitempty"`
}

func (l *lacking) Error() string       { return "no " + l.Asset }
func (*lacking) ToolErrorCode() string { return "lacking" }

type filled struct {
	Free int `json:"free"`
}

func (filled) Error() string         { return "full" }
func (filled) ToolErrorCode() string { return "filled" }

type panicking struct{ V panickingValue }

type panickingValue struct{}

func (*panicking) Error() string                     { return "" }
func (*panicking) ToolErrorCode() string             { return "lacking" }
func (*panickingValue) UnmarshalJSON(_ []byte) error { panic("in UnmarshalJSON") }

// TestTypedErrors decodes the _meta of tool errors, as servers of all kinds may send it.
func TestTypedErrors(t *testing.T) {
	for _, c := range []struct {
		meta   string
		code   string
		data   string
		lacks  *lacking
		filled *filled
	}{
		{meta: `{"code":"lacking","data":{"asset":"a","count":2}}`, code: "lacking", data: `{"asset":"a","count":2}`, lacks: &lacking{"a", 2}},
		{meta: `{"code":"lacking","data":{"asset":"1.0","count":1e2,"more":1}}`, code: "lacking", data: `{"asset":"1.0","count":1e2,"more":1}`, lacks: &lacking{"1.0", 100}},
		{meta: `{"code":"filled","data":{"free":7}}`, code: "filled", data: `{"free":7}`, filled: &filled{7}},
		{meta: `{"code":"lacking"}`, code: "lacking", lacks: &lacking{}},
		{meta: `{"code":"lacking","data":{"asset":5}}`, code: "lacking", data: `{"asset":5}`},
		{meta: `{"code":"lacking","data":[]}`, code: "lacking", data: `[]`},
		{meta: `{"code":"another","data":{"asset":"a"}}`, code: "another", data: `{"asset":"a"}`},
		{meta: `{"code":5,"data":{}}`, data: `{}`},
		{meta: `{"code":""}`},
		{meta: `[]`},
		{meta: ``},
	} {
		failed := &ToolError{Tool: "t", Result: ErrorResult("no")}
		if c.meta != "" {
			failed.Result.Meta = map[string]json.RawMessage{spec.MetaError: json.RawMessage(c.meta)}
		}
		for _, err := range []error{failed, fmt.Errorf("wrapped: %w", failed), errors.Join(errors.New("x"), failed)} {
			var lacks *lacking
			var full filled
			var whole *ToolError
			if CodeOf(err) != c.code || !errors.As(err, &whole) || string(whole.Data()) != c.data {
				t.Errorf("%s: code %q, data %s", c.meta, CodeOf(err), whole.Data())
			}
			if found := errors.As(err, &lacks); found != (c.lacks != nil) || found && *lacks != *c.lacks {
				t.Errorf("%s: %v, %+v", c.meta, found, lacks)
			}
			if found := errors.As(err, &full); found != (c.filled != nil) || found && full != *c.filled {
				t.Errorf("%s: %v, %+v", c.meta, found, full)
			}
			var byPointer *filled
			if found := errors.As(err, &byPointer); found != (c.filled != nil) {
				t.Errorf("%s: %v, %+v", c.meta, found, byPointer)
			}
			if wire := (*Error)(nil); errors.As(err, &wire) {
				t.Errorf("%s: %v", c.meta, wire)
			}
		}
	}
	hostile := &ToolError{Tool: "t", Result: &Result{Meta: map[string]json.RawMessage{spec.MetaError: json.RawMessage(`{"code":"lacking","data":{"V":1}}`)}}}
	if panics := (*panicking)(nil); errors.As(hostile, &panics) {
		t.Error("a panic is no error of that type")
	}
	if got := []string{CodeOf(nil), CodeOf(errors.New("x")), CodeOf(&ToolError{}), CodeOf((*ToolError)(nil)), CodeOf(fmt.Errorf("x: %w", filled{})), CodeOf(Errorf(1, "x"))}; strings.Join(got, " ") != "    filled " {
		t.Errorf("%q", got)
	}
}
