package mcptask

import (
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func TestStepKeys(t *testing.T) {
	rules.Covers(t, "E-42")
	var task Task
	var got []string
	for _, step := range []string{"a", "b", "a", "a#2", "a", "a#3", "a#2"} {
		got = append(got, task.takeStepKey(step))
	}
	if s := fmt.Sprint(got); s != "[a b a#2 a#2#2 a#3 a#3#2 a#2#3]" {
		t.Error(s)
	}
}
