package schema

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// levels are those of the rules in order, a letter each: M and m for MUST and
// MUST NOT, S and s for SHOULD and SHOULD NOT, A for MAY, R for RULE. They are
// the source's own, so that no rule becomes weaker by being said anew.
var levels = map[string]string{
	"sep-1686":      "MRAMARRMRR RMRSAMMMMM mASMMASAMA ASRMMARMMS ASSAASSASM MMASASMMMM SRRSRSSSSS SSSSSS",
	"2025-11-25-rc": "MRSsRRRmmS ASARRAMSRA MRAMMMMMMm SSsMMMMMMM ARmSsSMSSM AMAARMMMsM sMMSMMMMmR MSMMAsMMMS RRRSMSMMMS SSSSSSSSSS S",
	"task-patterns": "RMAmRRRRRR RRRRRRsRMM MMmRR",
	"2025-11-25":    "MRSsRRRmmS AMMRRAMSRA MAMMMMMMmS SSAsMMMMMM MARARmSsSM SSSMMAMAAR MMMsMsMMSM MMMmMSMMAs MMMSRRRSMS MsMMSSSSSS SSSSSS",
	"2026-07-28":    "RRARmMMMMS MmRRRRASAR RmMSSASSMM MMMMMAASSM SMmmMMASSS AMmMSAARAM ARRMRAmRMR RRRMSMMSRS MmMMAMMMRm MSMMmM",
}

var letters = map[string]string{"MUST": "M", "MUST NOT": "m", "SHOULD": "S", "SHOULD NOT": "s", "MAY": "A", "RULE": "R"}

// TestRules checks how many rules there are, in which order and of which level, and how many of them may lack a test.
func TestRules(t *testing.T) {
	marked, texts := 0, map[string]string{}
	for _, revision := range Revisions() {
		rules, err := Rules(revision)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for i, r := range rules {
			if i > 0 && i%10 == 0 {
				got.WriteByte(' ')
			}
			got.WriteString(letters[r.Level])
			if r.Mandatory() != (r.Level == "MUST" || r.Level == "MUST NOT") {
				t.Errorf("%s is a %s, mandatory: %v", r.ID, r.Level, r.Mandatory())
			}
			if r.NotObservable != "" {
				marked++
				if r.Mandatory() && r.ID != "D-19" { // which no dialect beside others could keep
					t.Errorf("%s is a %s, and no test can see whether it is kept", r.ID, r.Level)
				}
			}
			if plain := regexp.MustCompile(`^[ -~…]+$`); !plain.MatchString(r.Text) || strings.HasSuffix(r.Text, ".") {
				t.Errorf("%s: %q is no plain line", r.ID, r.Text)
			}
			// The revisions have some rules in common.
			if other := texts[r.Text]; other != "" && other[0] == r.ID[0] {
				t.Errorf("%s says what %s says", r.ID, other)
			}
			texts[r.Text] = r.ID
		}
		if got.String() != levels[revision] {
			t.Errorf("%s:\n got %s\nwant %s", revision, &got, levels[revision])
		}
	}
	if most := 25; marked > most {
		t.Errorf("%d rules are marked as not observable, at most %d may be", marked, most)
	}
	if len(levels) != len(Revisions()) {
		t.Errorf("levels of %d revisions, there are %d", len(levels), len(Revisions()))
	}
	if _, err := Rules("2024-01-01"); err == nil {
		t.Error("a revision that there is not has rules")
	}
}

func TestParseRules(t *testing.T) {
	const first = "C-01 MUST both: says so\n"
	rules, err := parseRules("rules.txt", first+"C-02 SHOULD NOT host: does [that] [not observable: nobody looks (or can)]\n")
	want := "[{C-01 MUST both says so } {C-02 SHOULD NOT host does [that] nobody looks (or can)}]"
	if got := fmt.Sprint(rules); got != want || err != nil {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
	for text, want := range map[string]string{
		"":                           `rules.txt:1: "" is not of the form`,
		"\n":                         `rules.txt:1: "" is not of the form`,
		first + "\n":                 `rules.txt:2: "" is not of the form`,
		"# C-01 MUST both: x":        "rules.txt:1: ",
		"C-1 MUST both: x":           "rules.txt:1: ",
		"c-01 MUST both: x":          "rules.txt:1: ",
		"C-01 must both: x":          "rules.txt:1: ",
		"C-01 MUSTNOT both: x":       "rules.txt:1: ",
		"C-01 WILL both: x":          "rules.txt:1: ",
		"C-01 MUST everybody: x":     "rules.txt:1: ",
		"C-01 MUST both:":            "rules.txt:1: ",
		"C-01 MUST both x":           "rules.txt:1: ",
		"C-02 MUST both: x":          "rules.txt:1: found rule C-02, want C-01",
		first + "C-03 MUST both: x":  "rules.txt:2: found rule C-03, want C-02",
		first + first:                "rules.txt:2: found rule C-01, want C-02",
		first + "C-002 MUST both: x": "rules.txt:2: found rule C-002, want C-02",
		first + "E-02 MUST both: x":  "rules.txt:2: the rule E-02 belongs to another revision",
		first + "\nC-02 MUST both: after a gap\n": "rules.txt:2: ",
	} {
		if rules, err := parseRules("rules.txt", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %s", text, rules, err, want)
		}
	}
}
