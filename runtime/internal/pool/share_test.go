package pool

import (
	"fmt"
	"testing"
)

// reserveAll takes as many slots as a group gets.
func reserveAll(x *Pool, group string) (n int) {
	for x.Reserve(at(group)) {
		n++
	}
	return n
}

// TestOneGroup checks how many slots a group gets that is alone.
func TestOneGroup(t *testing.T) {
	for group, want := range map[string]map[int]int{
		"p a":           {1: 1, 2: 2, 4: 4, 7: 7, 8: 7, 16: 14, 64: 56},
		"local!":        {1: 1, 8: 8, 64: 64},
		"anonymous/s":   {1: 1, 4: 4, 64: 49},
		"anonymous/h/s": {1: 1, 4: 4, 64: 43},
	} {
		for slots, want := range want {
			x := New(slots, func() {})
			if got := reserveAll(x, group); got != want {
				t.Errorf("%s gets %d of %d slots, want %d", group, got, slots, want)
			}
			for range want {
				x.Release(at(group))
			}
			closeIdle(t, x, slots)
		}
	}
}

// TestOthersFindASlot checks that a group finds a slot at once, whatever the groups before it have taken.
func TestOthersFindASlot(t *testing.T) {
	sessions := func(n int) (groups []string) {
		for i := range n {
			groups = append(groups, fmt.Sprint("anonymous/", i))
		}
		return groups
	}
	for _, tc := range []struct {
		slots  int
		before []string
		other  string
	}{
		{8, []string{"p a"}, "p b"},
		{8, []string{"p a"}, "anonymous/s"},
		{64, []string{"p a", "p c"}, "p b"},
		{8, []string{"anonymous/s"}, "p b"},
		{8, sessions(200), "p b"},
		{64, []string{"anonymous/s"}, "anonymous/r"},
		{64, []string{"anonymous/h/s", "anonymous/h/r"}, "anonymous/g/s"},
		{64, append(sessions(10), "p a"), "p b"},
	} {
		x := New(tc.slots, func() {})
		held := 0
		for _, group := range tc.before {
			held += reserveAll(x, group)
		}
		if held < tc.slots/2 || !x.Reserve(at(tc.other)) {
			t.Errorf("%q have %d of %d slots, %s has to wait", tc.before, held, tc.slots, tc.other)
		}
	}
}
