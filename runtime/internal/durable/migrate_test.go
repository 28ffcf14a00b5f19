package durable

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// TestReadMigrations checks that a gap between versions is an error, and a newer schema too.
func TestReadMigrations(t *testing.T) {
	files := fstest.MapFS{"m/0001_a.sql": {Data: []byte("one")}, "m/0002_b.sql": {Data: []byte("two")}}
	steps, err := ReadMigrations(files, "m")
	if err != nil || len(steps) != 2 || steps[1] != (Migration{2, "0002_b.sql", "two"}) {
		t.Fatalf("%+v, %v", steps, err)
	}
	if missing, err := MissingMigrations(steps, 1); err != nil || len(missing) != 1 || missing[0].Version != 2 {
		t.Errorf("%+v, %v", missing, err)
	}
	var newer *NewerSchemaError
	if _, err := MissingMigrations(steps, 3); !errors.As(err, &newer) || newer.Has != 3 || newer.Knows != 2 {
		t.Error(err)
	}
	files["m/0004_d.sql"] = &fstest.MapFile{}
	if _, err := ReadMigrations(files, "m"); err == nil || !strings.Contains(err.Error(), "0004_d.sql should be version 0003") {
		t.Error(err)
	}
}
