package gosdk_test

import (
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// TestEmptyAnswers checks that an answer to a call that is neither a result nor a task is an error, and that an empty result
// is a result.
func TestEmptyAnswers(t *testing.T) {
	for _, revision := range wiretest.AllRevisions {
		for _, c := range []struct {
			body string
			ok   bool
		}{
			{`{}`, false}, {`{"_meta":{}}`, false}, {`{"resultType":"complete"}`, false}, {`{"content":null}`, false}, {`{"structuredContent":null}`, false}, {`{"structuredContent":null,"resultType":"task"}`, false}, {`{"task":null}`, false},
			{`{"resultType":"task"}`, false}, {`{"resultType":"task","content":[]}`, false}, {`{"task":{}}`, false}, {`{"task":{"taskId":"t"},"content":[]}`, false},
			{`{"content":[]}`, true}, {`{"structuredContent":{}}`, true},
		} {
			t.Run(revision+"/"+c.body, overEachWay(func(t *testing.T, connect connector) {
				s := newScript(t, revision, "tools/call", func(*scripted, call) reply { return result("%s", c.body) })
				out, err := mcptask.Run[*mcptask.Result](t.Context(), connect(s, gosdk.ClientOptions{}), "tool", number{1})
				if (err == nil) != c.ok || c.ok && out == nil {
					t.Errorf("%+v, %v", out, err)
				}
				if err != nil && !strings.Contains(err.Error(), "malformed") && !strings.Contains(err.Error(), "the peer sent") {
					t.Error(err)
				}
			}))
		}
	}
}
