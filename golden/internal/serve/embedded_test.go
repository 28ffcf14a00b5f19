package serve_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/embedded"
	"github.com/mcptaskgen/mcptaskgen/golden/foreign/other"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
)

type embeddedImpl struct{}

func (embeddedImpl) Flat(_ context.Context, in embedded.Flat) (embedded.Flat, error) { return in, nil }
func (embeddedImpl) Hidden(_ context.Context, in embedded.Hidden) (embedded.Hidden, error) {
	return in, nil
}

func TestEmbedded(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		client := embedded.NewEmbeddedClient(s)
		serve.Echoes(s, "flat", client.Flat, embedded.Flat{}, embedded.Flat{
			Audit: embedded.Audit{Base: embedded.Base{ID: 1}, By: "me"},
			Meta:  &other.Meta{Source: "s", At: time.Date(2026, 7, 28, 12, 0, 0, 5, time.UTC)},
			Named: embedded.Named{Deep: true}, Text: "t", Own: "o",
		})
		serve.Echoes(s, "hidden", client.Hidden, embedded.Hidden{}, embedded.Seen("inner", "shown", 3))
	}, embedded.EmbeddedTools(embeddedImpl{}))
}
