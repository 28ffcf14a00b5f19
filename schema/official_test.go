package schema_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

var update = flag.Bool("update", false, "record the fingerprints of the official files; needs MCPTASK_OFFICIAL")

// TestFingerprints compares our definitions with the recorded fingerprints of the official ones, so it needs no official
// file.
func TestFingerprints(t *testing.T) {
	if *update {
		record(t)
	}
	for _, revision := range schema.Revisions() {
		t.Run(revision, func(t *testing.T) {
			surface := load(t, revision)
			if unofficial(t, surface) {
				return
			}
			want := map[string]string{}
			for _, source := range surface.Provenance.Sources {
				for name, fingerprint := range source.Fingerprints {
					if want[name] != "" {
						t.Errorf("two sources record %s", name)
					}
					want[name] = fingerprint
				}
			}
			if diff := cmp.Diff(want, fingerprints(surface, ours(surface))); diff != "" {
				t.Errorf("tasks.schema.json differs from the recorded official structure (-recorded +ours):\n%s", diff)
			}
		})
	}
}

// TestOfficial compares with the official files themselves if MCPTASK_OFFICIAL names their directory.
func TestOfficial(t *testing.T) {
	dir := os.Getenv("MCPTASK_OFFICIAL")
	if dir == "" {
		t.Log("MCPTASK_OFFICIAL is not set: the fingerprints stand in for the official files")
		return
	}
	for _, revision := range schema.Revisions() {
		t.Run(revision, func(t *testing.T) {
			surface := load(t, revision)
			if unofficial(t, surface) {
				return
			}
			official := combined(t, surface, dir)
			for _, difference := range schema.Compare(surface, official) {
				t.Error(difference)
			}
			if diff := cmp.Diff(fingerprints(surface, ours(surface)), fingerprints(surface, official)); diff != "" {
				t.Errorf("Compare and Fingerprint do not agree:\n%s", diff)
			}
			for _, source := range surface.Provenance.Sources {
				sum := sha256.Sum256(read(t, dir, source.File))
				if got := hex.EncodeToString(sum[:]); got != source.SHA256 {
					t.Errorf("%s: sha256 is %s, recorded is %s", source.File, got, source.SHA256)
				}
				// Each by itself, as a user gives it.
				differences, notes, err := schema.Verify(surface, parse(t, read(t, dir, source.File)))
				if len(differences) > 0 || len(notes) != len(surface.Patched) || err != nil {
					t.Errorf("%s: %v, %q, %v", source.File, differences, notes, err)
				}
				if of, err := schema.IdentifyRevision(parse(t, read(t, dir, source.File))); of != revision || err != nil {
					t.Errorf("%s is taken for one of %q: %v", source.File, of, err)
				}
			}
		})
	}
}

// record writes the fingerprints of the official files to provenance.json.
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
		all := fingerprints(surface, combined(t, surface, dir))
		sources := surface.Provenance.Sources
		for i, source := range sources {
			sources[i].Fingerprints = map[string]string{}
			document := parse(t, read(t, dir, source.File))
			for _, definition := range document.Definitions {
				name := definition.Name
				if all[name] == "" {
					continue
				}
				for j := range i { // the later source counts
					delete(sources[j].Fingerprints, name)
				}
				sources[i].Fingerprints[name] = all[name]
			}
		}
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

// unofficial reports whether there is no official schema to compare with. Only an unofficial revision has none.
func unofficial(t *testing.T, surface *schema.Surface) bool {
	t.Helper()
	none := len(surface.Provenance.Sources) == 0
	if none != (surface.Standing == schema.Unofficial) {
		t.Errorf("%s is %s and has %d official schemas", surface.Revision, surface.Standing, len(surface.Provenance.Sources))
	}
	return none
}

func fingerprints(surface *schema.Surface, document *schema.Document) map[string]string {
	out := map[string]string{}
	for _, definition := range surface.Definitions {
		if fingerprint, ok := schema.Fingerprint(surface, document, definition.Name); ok {
			out[definition.Name] = fingerprint
		}
	}
	return out
}

func ours(surface *schema.Surface) *schema.Document {
	return &schema.Document{Definitions: surface.Definitions}
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
