package gateway

import (
	"strings"
	"testing"
)

// TestTraceParents checks which traceparents are taken, and in which form.
func TestTraceParents(t *testing.T) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const good = "00-" + trace + "-" + span + "-01"
	for parent, want := range map[string]string{
		good:                                   good,
		"00-" + trace + "-" + span + "-00":     "00-" + trace + "-" + span + "-00",
		"00-" + trace + "-" + span + "-03":     "00-" + trace + "-" + span + "-03",
		"00-" + trace + "-" + span + "-ff":     "00-" + trace + "-" + span + "-03", // the other flags have no meaning yet
		"cc-" + trace + "-" + span + "-01":     good,
		"cc-" + trace + "-" + span + "-01-new": good,
		"01-" + trace + "-" + span + "-01-" + strings.Repeat("x", 1e6): good,
		"01-" + trace + "-" + span + "-01-a\nb":                        good,
		"":                                                             "",
		"-":                                                            "",
		"00":                                                           "",
		good + "-":                                                     "",
		good + "-new":                                                  "",
		good + "\n":                                                    "",
		good + " ":                                                     "",
		" " + good:                                                     "",
		good + "\na=b":                                                 "",
		good + "\x00":                                                  "",
		good + ", " + good:                                             "",
		"01-" + trace + "-" + span + "-01.x":                           "",
		"ff-" + trace + "-" + span + "-01":                             "",
		"0-" + trace + "-" + span + "-01":                              "",
		"0g-" + trace + "-" + span + "-01":                             "",
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   "",
		"00-" + trace[1:] + "-" + span + "-01":                "",
		"00-" + trace + "-" + span + "0-01":                   "",
		"00-" + trace + "-" + span + "-1":                     "",
		"00-" + trace + "-" + span:                            "",
		"00_" + trace + "-" + span + "-01":                    "",
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  "",
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": "",
		strings.Repeat("0", 1e6):                              "",
	} {
		if got := checkTrace(parent, ""); got != want {
			t.Errorf("%.80q: %.80q, want %q", parent, got, want)
		}
		if got := checkTrace(parent, "a=b"); want == "" && got != "" {
			t.Errorf("%.80q: %.80q for the state alone", parent, got)
		}
	}
}

// TestTraceStates checks that a malformed tracestate is left out, and leaves the traceparent.
func TestTraceStates(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for state, want := range map[string]string{
		"":                                   "",
		"rojo=00f067aa0ba902b7":              "rojo=00f067aa0ba902b7",
		"rojo=1,congo=t61rcWkgMzE":           "rojo=1,congo=t61rcWkgMzE",
		" rojo=1 ,\t, congo=2\t":             "rojo=1,congo=2",
		"fw529a3039@dt=a b;c:d/e~!":          "fw529a3039@dt=a b;c:d/e~!",
		"0a_-*/@z=x":                         "0a_-*/@z=x",
		strings.Repeat("a=1,", 31) + "b=2":   strings.Repeat("a=1,", 31) + "b=2",
		strings.Repeat("a=1,", 32) + "b=2":   "", // 32 members are the most
		"a=" + strings.Repeat("x", 254):      "a=" + strings.Repeat("x", 254),
		"a=" + strings.Repeat("x", 257):      "",
		strings.Repeat("a", 256) + "=x":      strings.Repeat("a", 256) + "=x",
		strings.Repeat("a", 257) + "=x":      "",
		strings.Repeat(",", 512):             "",
		strings.Repeat(" ", 507) + "a=bcd":   "a=bcd",
		strings.Repeat(" ", 508) + "a=bcd":   "", // 512 characters are the most
		"a=1,b":                              "",
		"a":                                  "",
		"a=":                                 "",
		"=b":                                 "",
		"A=b":                                "",
		"a =b":                               "",
		"a=b=c":                              "",
		"a=b\nc=d":                           "",
		"a=b\rc=d":                           "",
		"a=b\n":                              "",
		"a=b\x00":                            "",
		"a=ü":                                "",
		"a=\x7f":                             "",
		"a=b," + strings.Repeat("c=d,", 1e5): "",
	} {
		whole := parent
		if want != "" {
			whole += "\n" + want
		}
		if got := checkTrace(parent, state); got != whole {
			t.Errorf("%.80q: %.200q, want %q", state, got, whole)
		}
	}
}

// FuzzTrace checks that whatever comes in, a trace has one form.
func FuzzTrace(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=b, c=d")
	f.Add("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", "a=b\n")
	f.Fuzz(func(t *testing.T, parent, state string) {
		got := checkTrace(parent, state)
		if got == "" {
			return
		}
		first, rest, _ := strings.Cut(got, "\n")
		if len(first) != parentLength || len(rest) > maxTraceState || strings.ContainsAny(rest, "\r\n") {
			t.Fatalf("%q, %q: %q", parent, state, got)
		}
		if again := checkTrace(first, rest); again != got {
			t.Fatalf("%q, %q: %q, and then %q", parent, state, got, again)
		}
	})
}
