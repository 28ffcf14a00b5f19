package taskserver

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestSessionKeys checks that New refuses keys that are too short, and says which.
func TestSessionKeys(t *testing.T) {
	good, short := bytes.Repeat([]byte("k"), taskstore.MinSessionKey), []byte("short")
	for want, options := range map[string]Options{
		"":                               {SessionKey: good, OtherSessionKeys: [][]byte{good}},
		"SessionKey has 5 bytes":         {SessionKey: short},
		"SessionKey has 0 bytes":         {SessionKey: []byte{}},
		"OtherSessionKeys[1] has 5":      {SessionKey: good, OtherSessionKeys: [][]byte{good, short}},
		"OtherSessionKeys needs a Sessi": {OtherSessionKeys: [][]byte{good}},
	} {
		s, err := New(options)
		if err == nil {
			_ = s.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestLocalEndings checks that a process remembers the sessions that its clients have ended, whatever others end, and
// in a bounded number.
func TestLocalEndings(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		endings, until := &localEndings{clock: steady.New(time.Now)}, time.Now().Add(time.Hour)
		end := func(principal, session string, want bool) {
			t.Helper()
			if got, err := endings.EndSession(t.Context(), principal, session, until, maxSessionsEnded); got != want || err != nil {
				t.Fatalf("%q of %q: %v, %v", session, principal, got, err)
			}
		}
		end("p", "mine", true)
		for i := range maxSessionsEnded {
			end("q", fmt.Sprint(i), true)
		}
		end("q", "one more", false)
		for i := 0; ; i++ {
			if ended, _ := endings.EndSession(t.Context(), fmt.Sprint("r", i), "s", until, maxSessionsEnded); !ended {
				break
			}
			if i > maxLocalEndings {
				t.Fatal("the number is not bounded")
			}
		}
		if ended, err := endings.HasEnded(t.Context(), "p", "mine"); !ended || err != nil {
			t.Errorf("what others have ended has pushed it out: %v", err)
		}
		time.Sleep(time.Hour)
		end("q", "one more", true)
	})
}
