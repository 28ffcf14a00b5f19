package leak

import (
	"strings"
	"testing"
)

func wait(end <-chan struct{}, begun chan<- struct{}) {
	begun <- struct{}{}
	<-end
}

func other(end <-chan struct{}, begun chan<- struct{}) { wait(end, begun) }

// TestLeft checks that a goroutine that is left is reported by its stack. One that has ended may be
// replaced by one of its kind.
func TestLeft(t *testing.T) {
	begun, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	defer close(second)
	go wait(first, begun)
	<-begun
	before := Now()
	before.NoneLeft(t)
	go wait(second, begun)
	<-begun
	if left := before.newIn(list()); len(left) != 1 || !strings.HasPrefix(left[0].kind, "github.com/mcptaskgen/mcptaskgen/runtime/internal/leak.wait, created by ") {
		t.Errorf("one more: %+v", left)
	}
	before.AtMost(t, 1)
	close(first)
	before.NoneLeft(t) // it takes the place of the first
	go other(second, begun)
	<-begun
	left := before.newIn(list())
	if text := group(left); len(left) != 1 || !strings.Contains(text[0], "leak.other") || !strings.Contains(text[0], "leak_test.go") {
		t.Errorf("of another kind: %v", text)
	}
}
