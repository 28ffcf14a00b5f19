package validate

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A schema is compiled once while it is in use, and the number of those that are
// kept is bounded.
func TestCache(t *testing.T) {
	var c Cache
	text := func(i int) []byte { return fmt.Appendf(nil, `{"type":"object","title":"%d"}`, i) }
	compile := func(text []byte) *Schema {
		t.Helper()
		schema, err := c.Compile(text)
		if err != nil || schema == nil {
			t.Fatal(schema, err)
		}
		return schema
	}
	used := compile(text(0))
	for i := range 10 * generationSize {
		compile(text(i))
		if compile(text(0)) != used {
			t.Fatalf("compiled again after %d others", i)
		}
	}
	if n := len(c.recent) + len(c.older); n > 2*generationSize {
		t.Errorf("%d schemas are kept", n)
	}
	if first := compile(text(1)); first == nil || compile(text(1)) != first {
		t.Error("a schema that was dropped is not kept again")
	}
	if _, err := c.Compile([]byte(`{"type":"array"}`)); err == nil {
		t.Error("compiled a schema that is not an object's")
	}
	long := []byte(`{"type":"object","title":"` + strings.Repeat("x", maxCachedSchema) + `"}`)
	if first, second := compile(long), compile(long); first == second {
		t.Error("a schema that is too long is kept")
	}
	if schema, err := (*Cache)(nil).Compile(text(0)); err != nil || schema == nil {
		t.Error("a nil Cache does not compile", err)
	}
}

// Several goroutines use one Cache.
func TestCacheConcurrent(t *testing.T) {
	var c Cache
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 200 {
				if _, err := c.Compile(fmt.Appendf(nil, `{"type":"object","title":"%d"}`, i*j%100)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
}
