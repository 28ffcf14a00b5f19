package main

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
)

func TestServe(t *testing.T) {
	serve.Each(t, nil, nil, func(s *serve.Session) {
		serve.Wants(s, "greet", "Good day", func() (string, error) { return newGreeterClient(s).Greet(s.Context()) })
	}, greeterTools(polite{}))
}
