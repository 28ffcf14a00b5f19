package serve_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/foreign"
	other2 "github.com/mcptaskgen/mcptaskgen/golden/foreign/elsewhere/other"
	"github.com/mcptaskgen/mcptaskgen/golden/foreign/other"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type foreignImpl struct{}

func (foreignImpl) Others(_ context.Context, in other.Context) (foreign.Both, error) {
	return foreignBoth(in), nil
}

func foreignBoth(in other.Context) foreign.Both {
	return foreign.Both{Here: foreign.Node{ID: len(in.Tags)}, There: other.Node{Label: in.Source}}
}

func (foreignImpl) Near(_ context.Context, _ *mcptask.Task, in other.Node) (other2.Node, error) {
	return other2.Node{Weight: float64(len(in.Label))}, nil
}

func (foreignImpl) Both(_ context.Context, in foreign.Both) (*foreign.Both, error) { return &in, nil }

func TestForeign(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		client := foreign.NewForeignClient(s)
		for _, in := range []other.Context{{}, {Meta: other.Meta{Source: "s", At: time.Now()}, Tags: []string{"a"}}} {
			serve.Returns(s, "others", client.Others, in, foreignBoth(in))
		}
		serve.Returns(s, "near", client.Near, other.Node{Label: "abc"}, other2.Node{Weight: 3})
		full := foreign.Both{
			Here: foreign.Node{ID: 1}, There: other.Node{Label: "l"}, Elsewhere: other2.Node{Weight: 0.5},
			Again: &foreign.Node{}, Theirs: []other.Node{{}}, Others: []other2.Node{},
		}
		for _, in := range []foreign.Both{{}, full} {
			serve.Returns(s, "both", client.Both, in, &in)
		}
	}, foreign.ForeignTools(foreignImpl{}))
}
