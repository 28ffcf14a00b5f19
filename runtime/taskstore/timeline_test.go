package taskstore

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(-1, -1, MaxMomentText)
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Moment {
			return Moment{
				Kind:    rapid.SampledFrom(momentKinds).Draw(t, "kind"),
				At:      time.UnixMicro(rapid.Int64Range(-1<<50, 1<<52).Draw(t, "at")).UTC(),
				Attempt: rapid.IntRange(0, 1000).Draw(t, "attempt"),
				Text:    text.Draw(t, "text"), Operator: text.Draw(t, "operator"),
			}
		}), 1, MaxMoments).Draw(t, "moments")
		var timeline Timeline
		for _, m := range want {
			timeline = timeline.With(m)
		}
		if got := timeline.Moments(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		cut := timeline[:rapid.IntRange(0, len(timeline)).Draw(t, "cut")]
		got := cut.Moments()
		if len(got) > len(want) || !reflect.DeepEqual(append([]Moment{}, got...), append([]Moment{}, want[:len(got)]...)) {
			t.Fatalf("cut: got %v, want the beginning of %v", got, want)
		}
		if more := cut.With(want[0]).Moments(); len(more) != len(got)+1 || !reflect.DeepEqual(more[len(got)], want[0]) {
			t.Fatalf("after the damage: got %v", more)
		}
	})
}

// TestTimelineBounds checks which moments a long timeline leaves out.
func TestTimelineBounds(t *testing.T) {
	var timeline Timeline
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(kind EventKind, n int) {
		for i := range n {
			at = at.Add(time.Second)
			timeline = timeline.With(Moment{Kind: kind, At: at, Text: fmt.Sprint(i)})
		}
	}
	tell := func() string {
		var b strings.Builder
		for _, m := range timeline.Moments() {
			b.WriteString(string(m.Kind) + m.Text + " ")
		}
		return b.String()
	}
	add(EventCreated, 1)
	add(EventStarted, 1)
	add(EventReported, 1000)
	add(EventAsked, 1)
	if got := tell(); !strings.HasPrefix(got, "created0 started0 reported955 ") || !strings.HasSuffix(got, " reported999 asked0 ") || len(timeline.Moments()) != MaxMoments {
		t.Error(got)
	}
	add(EventStep, 100)
	if got := tell(); !strings.HasPrefix(got, "created0 started0 asked0 step55 ") || !strings.HasSuffix(got, " step99 ") || len(timeline.Moments()) != MaxMoments {
		t.Error(got)
	}
	add(EventAnswered, 100)
	if got := tell(); !strings.HasPrefix(got, "created0 answered53 ") || !strings.HasSuffix(got, " answered99 ") || len(timeline.Moments()) != MaxMoments {
		t.Error(got)
	}
	long := Timeline("").With(Moment{Text: strings.Repeat("ä", 1000)}).Moments()[0].Text
	if long != strings.Repeat("ä", MaxMomentText/2) {
		t.Error(long)
	}
	if cut := Timeline("").With(Moment{Text: "x" + strings.Repeat("ä", 1000)}).Moments()[0].Text; cut != "x"+strings.Repeat("ä", MaxMomentText/2-1) {
		t.Error(cut)
	}
}

// TestTimelineOfAnother adds to a timeline that has more moments than this server keeps.
func TestTimelineOfAnother(t *testing.T) {
	many := Timeline(strings.Repeat(string(encodeMoment(Moment{Kind: EventAsked, At: time.UnixMicro(1)}, 0)), 100_000))
	moments := many.With(Moment{Kind: EventEnded, At: time.UnixMicro(2)}).Moments()
	if len(moments) != MaxMoments || !moments[0].At.Equal(time.UnixMicro(1)) || moments[MaxMoments-1].Kind != EventEnded {
		t.Errorf("%d moments are left: %v", len(moments), moments)
	}
}
