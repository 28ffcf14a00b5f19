package feed

import (
	"context"
	"slices"
	"sync"
	"testing"
)

const missed = -1

// TestRead checks that readers get all news in order after the first missed one, and end with their context.
func TestRead(t *testing.T) {
	var f Feed[int]
	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	begun := make(chan bool, 3)
	for range 3 {
		reading.Go(func() {
			var got []int
			for n := range f.Read(ctx, missed) {
				if got = append(got, n); n == missed {
					begun <- true
				}
				if n == 100 {
					break
				}
			}
			if want := len(got) - 1; got[0] != missed || want != 100 || !slices.IsSorted(got) {
				t.Errorf("read %v", got)
			}
		})
	}
	for range 3 {
		<-begun
	}
	for n := range 100 {
		f.Publish(n + 1)
	}
	reading.Wait()
	cancel()
	for n := range f.Read(ctx, missed) {
		if n != missed {
			t.Errorf("read %d after the end of the context", n)
		}
	}
	if len(f.readers) > 0 {
		t.Error("readers are left")
	}
}

// TestSlowReader checks that a reader that is too slow misses news, and does not hold up the writer.
func TestSlowReader(t *testing.T) {
	var f Feed[int]
	var got []int
	for n := range f.Read(t.Context(), missed) {
		if got = append(got, n); len(got) == 1 {
			for i := range most + 1 {
				f.Publish(i)
			}
			f.Publish(most + 1)
		}
		if n == most+1 {
			break
		}
	}
	if !slices.Equal(got, []int{missed, missed, most + 1}) {
		t.Errorf("read %v", got)
	}
}

// TestMissAndClose checks that Miss replaces the unread items, and that Close ends the readers.
func TestMissAndClose(t *testing.T) {
	var f Feed[int]
	var got []int
	for n := range f.Read(t.Context(), missed) {
		switch got = append(got, n); len(got) {
		case 1:
			f.Publish(1)
			f.Miss()
		case 2:
			f.Close()
		}
	}
	for range f.Read(t.Context(), missed) {
		t.Error("read from a closed feed")
	}
	if !slices.Equal(got, []int{missed, missed}) {
		t.Errorf("read %v", got)
	}
}
