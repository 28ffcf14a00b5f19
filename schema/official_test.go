package schema_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

var update = flag.Bool("update", false, "record the structures that were compared with the official files; needs MCPTASK_OFFICIAL")

// TestStructure checks that our definitions are those that were last compared with the official ones, so it needs no
// official file.
func TestStructure(t *testing.T) {
	if *update {
		record(t)
	}
	for _, revision := range schema.Revisions() {
		surface := load(t, revision)
		if !unofficial(t, surface) && surface.Provenance.Structure != structure(t, surface) {
			t.Errorf("schema/%s/tasks.schema.json has changed since it was compared with the official files; run go test ./schema -update with MCPTASK_OFFICIAL", revision)
		}
	}
}

// TestOfficial compares with the official files themselves if MCPTASK_OFFICIAL names their directory.
func TestOfficial(t *testing.T) {
	dir := os.Getenv("MCPTASK_OFFICIAL")
	if dir == "" {
		t.Log("MCPTASK_OFFICIAL is not set: the recorded structures stand in for the official files")
		return
	}
	for _, revision := range schema.Revisions() {
		t.Run(revision, func(t *testing.T) {
			surface := load(t, revision)
			if unofficial(t, surface) {
				return
			}
			for _, difference := range surface.Compare(combined(t, surface, dir)) {
				t.Error(difference)
			}
			for _, source := range surface.Provenance.Sources {
				sum := sha256.Sum256(read(t, dir, source.File))
				if got := hex.EncodeToString(sum[:]); got != source.SHA256 && got != source.Edition {
					t.Errorf("%s: sha256 is %s, recorded is %s", source.File, got, source.SHA256)
				}
			}
		})
	}
}

// record compares with the official files and writes the structures to provenance.json.
func record(t *testing.T) {
	t.Helper()
	dir := os.Getenv("MCPTASK_OFFICIAL")
	if dir == "" {
		t.Fatal("-update reads the official files: set MCPTASK_OFFICIAL to their directory")
	}
	for _, revision := range schema.Revisions() {
		surface := load(t, revision)
		if unofficial(t, surface) {
			continue
		}
		if differences := surface.Compare(combined(t, surface, dir)); len(differences) > 0 {
			t.Errorf("%s differs from the official files: %v", revision, differences)
			continue
		}
		surface.Provenance.Structure = structure(t, surface)
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(surface.Provenance); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(revision, "provenance.json"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("recorded; run the tests again without -update, so that they read the new files")
}

// structure returns the fingerprint of our definitions without words, as differences from nothing.
func structure(t *testing.T, surface *schema.Surface) string {
	t.Helper()
	sum := sha256.New()
	for _, d := range schema.Compare(&schema.Document{}, &surface.Document) {
		fmt.Fprintln(sum, d.Pointer, d.To)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// unofficial reports whether there is no official schema to compare with. Only an unofficial revision has none.
func unofficial(t *testing.T, surface *schema.Surface) bool {
	t.Helper()
	none := len(surface.Provenance.Sources) == 0
	if none != (surface.Standing == schema.Unofficial) {
		t.Errorf("%s is %s and has %d official schemas", surface.Revision, surface.Standing, len(surface.Provenance.Sources))
	}
	return none
}

func combined(t *testing.T, surface *schema.Surface, dir string) *schema.Document {
	t.Helper()
	var documents []*schema.Document
	for _, source := range surface.Provenance.Sources {
		documents = append(documents, parse(t, read(t, dir, source.File)))
	}
	return schema.Combine(documents...)
}

func load(t *testing.T, revision string) *schema.Surface {
	t.Helper()
	surface, err := schema.Load(revision)
	if err != nil {
		t.Fatal(err)
	}
	return surface
}

func parse(t *testing.T, data []byte) *schema.Document {
	t.Helper()
	document, err := schema.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
