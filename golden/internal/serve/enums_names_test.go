package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/enums"
	"github.com/mcptaskgen/mcptaskgen/golden/enums/palette"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type namedImpl struct{}

func (namedImpl) Rank(_ context.Context, in enums.Ranks) (enums.Ranks, error) { return in, nil }

func (namedImpl) Prefer(ctx context.Context, task *mcptask.Task, first enums.Preference) (enums.Preferred, error) {
	again, err := enums.AskPreference(ctx, task, "again", "And now?")
	if err == nil && !reflect.DeepEqual(again, first) {
		err = errors.New("the answers differ")
	}
	return enums.Preferred{Urgency: first.Urgency, Finish: first.Finishes[0]}, err
}

func (namedImpl) Overload(_ context.Context, _ *mcptask.Task, in enums.Load) error {
	return enums.Overloaded(in)
}

func TestEnumNames(t *testing.T) {
	none, weights := enums.UrgencyNone, enums.Weights()
	answer := func(s *serve.Session) mcptask.Answerer {
		return enums.AnswerPreference(serve.Answers(s, enums.Preference{
			Urgency: enums.HTTPUrgency, Finishes: []palette.Finish{palette.FinishSatin, palette.FinishMatt}, Weight: &weights[0],
		}))
	}
	serve.Each(t, answer, []string{"Preference"}, func(s *serve.Session) {
		client := enums.NewNamedClient(s)
		least := enums.Ranks{Weight: weights[1], Pair: [2]enums.Weight{weights[2], weights[3]}}
		filled := least
		filled.Default, filled.Defaults = enums.UrgencySoon, []enums.Urgency{enums.UrgencySoon, enums.HTTPUrgency}
		serve.Returns(s, "rank", client.Rank, least, filled)
		serve.Echoes(s, "rank", client.Rank, enums.Ranks{
			Urgency: enums.UrgencyToday, Maybe: &none, Default: enums.HTTPUrgency, Weight: weights[0], Finish: palette.FinishGlossy,
			List: []enums.Urgency{none, enums.UrgencySoon}, Defaults: []enums.Urgency{none},
			Finishes: []palette.Finish{palette.FinishMatt, palette.FinishMatt}, Pair: least.Pair,
			Counts: map[enums.Urgency]int{enums.HTTPUrgency: 2}, ByWeight: map[string][]*enums.Weight{"": {&weights[3]}},
			Keyed: map[palette.Finish]map[enums.Weight]enums.Page[enums.Urgency]{
				palette.FinishSatin: {weights[2]: {Items: []enums.Urgency{enums.UrgencyToday}}},
			},
		})
		serve.Wants(s, "prefer", enums.Preferred{Urgency: enums.HTTPUrgency, Finish: palette.FinishSatin}, func() (enums.Preferred, error) {
			return client.Prefer(s.Context())
		})
		var overloaded enums.Overloaded
		if err := client.Overload(s.Unchecked(), enums.Load{Urgency: enums.UrgencyToday}); !errors.As(err, &overloaded) || overloaded.Urgency != enums.UrgencyToday {
			s.Errorf("overload returned %v", err)
		}
		unnamed := least
		unnamed.Urgency = enums.Unnamed()
		if _, err := client.Rank(s.Unchecked(), unnamed); err == nil || !strings.Contains(err.Error(), "enums.Urgency(5) has no name") {
			s.Errorf("a value without a name returned %v", err)
		}
	}, enums.NamedTools(namedImpl{}))
}

// TestEnumNamesText reads what the methods write, and nothing else.
func TestEnumNamesText(t *testing.T) {
	written, err := json.Marshal(enums.Weights())
	if want := `["light","normal","heavy","100"]`; err != nil || string(written) != want {
		t.Errorf("wrote %s, %v; want %s", written, err, want)
	}
	var read []enums.Weight
	if err := json.Unmarshal(written, &read); err != nil || !reflect.DeepEqual(read, enums.Weights()) {
		t.Errorf("read %v, %v", read, err)
	}
	for _, wrong := range []string{`["weight_light"]`, `["Light"]`, `[""]`, `[0]`} {
		if err := json.Unmarshal([]byte(wrong), &read); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
	err = json.Unmarshal([]byte(`["huge"]`), &read)
	if want := `"huge" is not a name of enums.weight; its names are light, normal, heavy, 100`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	if _, err := json.Marshal(enums.Unnamed()); err == nil || !strings.Contains(err.Error(), "enums.Urgency(5) has no name, because it is none of the constants") {
		t.Errorf("a value without a name has the error %v", err)
	}
}
