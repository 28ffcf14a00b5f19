package tools_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/golden/tools/notes"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// keeper keeps the arguments of its tools.
type keeper struct {
	wrote    notes.WriteMemoryInput
	searched notes.SearchMemoryInput
}

func (k *keeper) WriteMemory(_ context.Context, in notes.WriteMemoryInput) (notes.WriteMemoryOutput, error) {
	k.wrote = in
	return notes.WriteMemoryOutput{}, nil
}

func (k *keeper) SearchMemory(_ context.Context, in notes.SearchMemoryInput) (notes.SearchMemoryOutput, error) {
	k.searched = in
	return notes.SearchMemoryOutput{}, nil
}

// TestDefaultsOfAList checks that a server that is generated from a list gets the list's defaults for arguments that
// its client leaves out.
func TestDefaultsOfAList(t *testing.T) {
	impl := &keeper{}
	client := notes.NewNotesClient(mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{}, notes.NotesTools(impl)))
	if _, err := client.SearchMemory(t.Context(), notes.SearchMemoryInput{}); err != nil || impl.searched.Limit != 10 || impl.searched.Filter != nil {
		t.Errorf("search_memory got %+v: %v", impl.searched, err)
	}
	sent := notes.WriteMemoryInput{
		Relations: []notes.Relation{{From: "a", To: "b"}, {From: "b", To: "a", Kind: "place"}},
		ByID:      map[string]notes.Entity{"a": {Name: "a", EntityType: "person", Observations: []string{}}},
	}
	want := notes.WriteMemoryInput{
		Entities:  []notes.Entity{},
		Relations: []notes.Relation{{From: "a", To: "b", Kind: "thing"}, {From: "b", To: "a", Kind: "place"}},
		ByID:      map[string]notes.Entity{"a": {Name: "a", EntityType: "person", Observations: []string{}, Children: []notes.Entity{}}},
	}
	if _, err := client.WriteMemory(t.Context(), sent); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(want, impl.wrote); d != "" {
		t.Errorf("write_memory (-want +got):\n%s", d)
	}
}
