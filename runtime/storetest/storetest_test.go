package storetest

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func openMemory(testing.TB) taskstore.Store { return taskstore.NewMemory() }

// inBubble returns stores for a test in a bubble, in which the clock goes on as the test sleeps.
func inBubble(open func(t testing.TB) taskstore.Store) Stores {
	return Stores{
		Open: open, Advance: func(_ testing.TB, _ taskstore.Store, d time.Duration) { time.Sleep(d) },
		Damage: map[string]func(t testing.TB, s taskstore.Store, id string) (undo func()){
			"aside": func(t testing.TB, s taskstore.Store, id string) (undo func()) {
				b, ok := s.(*broken)
				if !ok {
					t.Skip("a store that is slow has no records aside")
				}
				return b.aside.damage(t, id)
			},
		},
	}
}

// bubbleTimeout ends calls that hang in a bubble. No test advances the clock as far.
const bubbleTimeout = 100_000 * time.Hour

// TestSoundStore checks that the tests find nothing in a sound store, whether fast or slow.
func TestSoundStore(t *testing.T) {
	for _, latency := range []time.Duration{0, time.Millisecond} {
		for _, p := range promises {
			bubble.Run(t, p.name+" "+latency.String(), func(t *testing.T) {
				p.runTest(t, inBubble(func(t testing.TB) taskstore.Store {
					if latency == 0 {
						return newBroken(t) // by no fault
					}
					return NewFaulty(openMemory(t), Faults{Latency: latency, Miss: 0.01}, 1)
				}), bubbleTimeout)
			})
		}
	}
}

// TestFullRecord checks that the record with a value in every field has one.
func TestFullRecord(t *testing.T) {
	r := reflect.ValueOf((&kit{epoch: time.Now()}).newFullRecord("t"))
	for i := range r.NumField() {
		if name := r.Type().Field(i).Name; r.Field(i).IsZero() && name != "Version" {
			t.Errorf("newFullRecord gives %s no value", name)
		}
	}
}

// TestDocumented checks that the package comment describes each promise.
func TestDocumented(t *testing.T) {
	source, err := os.ReadFile("storetest.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented, held []string
	for line := range strings.Lines(string(source)) {
		if rest, ok := strings.CutPrefix(line, "//   - "); ok {
			name, _, _ := strings.Cut(rest, ":")
			documented = append(documented, name)
		}
	}
	for _, p := range promises {
		held = append(held, p.name)
	}
	if !slices.Equal(documented, held) {
		t.Errorf("documented are %q, held %q", documented, held)
	}
}
