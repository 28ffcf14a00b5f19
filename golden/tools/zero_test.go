package tools_test

import (
	"encoding/json"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/tools/issues"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/nasty"
)

// TestZeroValues encodes fields that were not set. Required lists and maps are sent empty, optional fields are left
// out, and a zero that was set is sent.
func TestZeroValues(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{issues.CreateIssueInput{}, `{"owner":"","repo":"","title":"","labels":[]}`},
		{issues.ListIssuesInput{}, `{"owner":"","repo":""}`},
		{issues.ListIssuesInput{IncludeBody: pointer(false), Labels: []string{}}, `{"owner":"","repo":"","labels":[],"includeBody":false}`},
		{nasty.ObjectsInput{}, `{"counts":{"total":0,"seen":[]},"nullable":{}}`},
		{nasty.NumbersInput{Off: pointer(int64(0))}, `{"off":0}`},
		{nasty.LooseInput{}, `{}`},
		{nasty.LooseInput{AdditionalProperties: map[string]any{"a": 1}}, `{"a":1}`},
	} {
		got, err := json.Marshal(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%T is %s, want %s: %v", c.in, got, c.want, err)
		}
	}
}

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }
