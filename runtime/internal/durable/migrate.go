package durable

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Migration is one step of a schema. Steps only add, so that the processes of the former version
// go on while those of the next one start.
type Migration struct {
	// Version is the schema's version after the step, counted from 1.
	Version int
	// Name is the name of the file, such as 0001_tasks.sql.
	Name string
	SQL  string
}

// ReadMigrations reads the files of a directory, whose names start with their versions: 0001, 0002
// and so on, without a gap. It returns them in order.
func ReadMigrations(files fs.FS, directory string) ([]Migration, error) {
	entries, err := fs.ReadDir(files, directory)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	var steps []Migration
	for _, e := range entries { // sorted by name
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(steps)+1 {
			return nil, fmt.Errorf("migrations: %s should be version %04d", e.Name(), len(steps)+1)
		}
		text, err := fs.ReadFile(files, directory+"/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("migrations: %w", err)
		}
		steps = append(steps, Migration{version, e.Name(), string(text)})
	}
	return steps, nil
}

// MissingMigrations returns the steps from the schema's version on. It returns a
// *NewerSchemaError if the schema is newer than all steps.
func MissingMigrations(steps []Migration, version int) ([]Migration, error) {
	if version > len(steps) {
		return nil, &NewerSchemaError{Has: version, Knows: len(steps)}
	}
	return steps[version:], nil
}

// NewerSchemaError says that a newer version of mcptask has migrated the database.
type NewerSchemaError struct{ Has, Knows int }

// Error implements error.
func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("the database has schema version %d, and this program knows versions up to %d: "+
		"run a program with the newer version of mcptask, or restore a backup from before the upgrade", e.Has, e.Knows)
}
