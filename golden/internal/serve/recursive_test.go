package serve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/recursive"
)

type recursiveImpl struct{}

func (recursiveImpl) Grow(_ context.Context, in recursive.Tree) (recursive.Tree, error) {
	return in, nil
}
func (recursiveImpl) Chain(_ context.Context, in recursive.List) (recursive.List, error) {
	return in, nil
}
func (recursiveImpl) Ring(_ context.Context, in recursive.Author) (recursive.Author, error) {
	return in, nil
}

func TestRecursive(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		client := recursive.NewRecursiveClient(s)
		leaf := recursive.Tree{Name: "leaf"}
		serve.Echoes(s, "grow", client.Grow, recursive.Tree{}, leaf, recursive.Tree{
			Left: &leaf, Right: &recursive.Tree{Right: &leaf}, Children: []recursive.Tree{leaf, {Children: []recursive.Tree{}}},
			Named: map[string]recursive.Tree{"a": leaf},
		})
		serve.Echoes(s, "chain", client.Chain, recursive.List{}, recursive.List{
			Head: &recursive.Item{Value: 1, Next: &recursive.Item{}}, Rose: recursive.Rose{nil, {}, {nil, {{}}}},
			Maze: recursive.Maze{"a": nil, "b": {"c": {}}},
		})
		serve.Echoes(s, "ring", client.Ring, recursive.Author{}, recursive.Author{
			Name: "a", Books: []*recursive.Book{{}, {Title: "t", Authors: []recursive.Author{{}, {Name: "b"}}}},
		})
		if _, err := client.Ring(s.Unchecked(), recursive.Author{Books: []*recursive.Book{nil}}); err == nil || !strings.Contains(err.Error(), "books.0: got null, want object") {
			s.Errorf("a list of nil in arguments: %v", err)
		}
	}, recursive.RecursiveTools(recursiveImpl{}))
}
