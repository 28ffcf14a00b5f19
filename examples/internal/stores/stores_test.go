package stores

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, value := range []string{"", "memory"} {
		if s, err := Open(t.Context(), value); err != nil || s.Store != nil || s.Close() != nil {
			t.Errorf("%q: %+v, %v", value, s, err)
		}
	}
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"))
	if err != nil || s.Store == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestBadValues checks that each error names the flag and the way out.
func TestBadValues(t *testing.T) {
	for value, want := range map[string]string{
		"sqlight:x": `"sqlight:x" is not a store: write memory`,
		"sqlite":    "sqlite:tasks.db",
		"sqlite:":   "sqlite:tasks.db",
		"postgres:": "postgres://user@",
		"Memory":    "write memory",
		"sqlite:" + filepath.Join(t.TempDir(), "missing", "tasks.db"):    "create it first",
		"postgres:host=" + t.TempDir() + " user=u password=secret":       "start that PostgreSQL",
		"postgres://u:secret@127.0.0.1:1/tasks":                          "start that PostgreSQL",
		"postgresql://u:secret@127.0.0.1:1/tasks?sslmode=disable":        "start that PostgreSQL",
		"postgres:postgres://u:secret@127.0.0.1:1/tasks?sslmode=disable": "start that PostgreSQL",
		"postgres://u:secret@127.0.0.1:port/tasks":                       "start that PostgreSQL",
	} {
		s, err := Open(t.Context(), value)
		if err == nil {
			t.Errorf("%s: %+v", value, s)
			continue
		}
		text := err.Error()
		if !strings.HasPrefix(text, "-store: ") || !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("%s: %s, want %s", value, text, want)
		}
	}
}
