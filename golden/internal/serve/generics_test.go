package serve_test

import (
	"context"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/generics"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type genericsImpl struct{}

func (genericsImpl) Turn(_ context.Context, _ *mcptask.Task, in generics.Page[generics.Item]) (generics.Page[generics.Pair[string, *generics.Item]], error) {
	return turnPage(in), nil
}

func turnPage(in generics.Page[generics.Item]) generics.Page[generics.Pair[string, *generics.Item]] {
	out := generics.Page[generics.Pair[string, *generics.Item]]{Next: in.Next}
	for _, item := range in.Items {
		out.Items = append(out.Items, generics.Pair[string, *generics.Item]{Key: item.Name, Value: &item}, generics.Pair[string, *generics.Item]{})
	}
	return out
}

func (genericsImpl) Same(_ context.Context, in generics.Both) (generics.Both, error) { return in, nil }

func (genericsImpl) Constrained(_ context.Context, in *generics.Range[float64]) (*generics.Range[int], error) {
	return wholeRange(in), nil
}

func wholeRange(in *generics.Range[float64]) *generics.Range[int] {
	out := &generics.Range[int]{From: int(in.From)}
	if in.To != nil {
		to := int(*in.To)
		out.To = &to
	}
	return out
}

func (genericsImpl) Tree(_ context.Context, in generics.Tree[generics.Item]) (generics.Tree[generics.Item], error) {
	return in, nil
}

func TestGenerics(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		client := generics.NewGenericsClient(s)
		for _, in := range []generics.Page[generics.Item]{{}, {Items: []generics.Item{}}, {Items: []generics.Item{{}, {Name: "a"}}, Next: "b"}} {
			serve.Returns(s, "turn", client.Turn, in, turnPage(in))
		}
		to := 2.5
		for _, in := range []generics.Range[float64]{{}, {From: -1, To: &to}} {
			serve.Returns(s, "constrained", client.Constrained, &in, wholeRange(&in))
		}
		numbers := generics.Page[int]{Items: []int{1, 2}, Next: "3"}
		full := generics.Both{
			Texts: generics.Page[string]{Items: []string{"a"}}, Numbers: numbers, Again: &numbers,
			Names:  generics.Names{Key: "k", Value: []string{"v"}},
			ByName: map[string]generics.Page[int]{"": {}, "n": numbers}, Set: generics.Set[string]{"in": true, "out": false},
		}
		full.Local.Value.Deep = true
		serve.Echoes(s, "same", client.Same, generics.Both{}, full)
		leaf := generics.Tree[generics.Item]{Value: generics.Item{Name: "leaf"}}
		serve.Echoes(s, "tree", client.Tree, generics.Tree[generics.Item]{}, leaf,
			generics.Tree[generics.Item]{Left: &leaf, Children: []generics.Tree[generics.Item]{leaf, {Left: &leaf}}})
	}, generics.GenericsTools(genericsImpl{}))
}
