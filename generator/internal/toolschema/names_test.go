package toolschema

import "testing"

// TestIdentifiers checks that names read as Go programmers write them.
func TestIdentifiers(t *testing.T) {
	for text, want := range map[string]string{
		"get-sum": "GetSum", "user_id": "UserID", "userIds": "UserIds", "HTTPServerURL": "HTTPServerURL", "github/create.issue": "GithubCreateIssue",
		"NEW_YORK": "NewYork", "c++": "CPlusPlus", "c#": "CSharp", "1.5": "X1Point5", "2025-11-25": "X20251125", "-1": "Minus1",
		"": "Empty", " ": "Space", "...": "DotDotDot", "天気": "X天気", "größe": "Größe", "🎉": "U1F389", "func": "Func", "db2_id8": "DB2ID8",
		"$ref": "DollarRef", "@type": "AtType", "XMLHttpRequest": "XMLHTTPRequest", "a b\tc": "ABC", "__": "UnderscoreUnderscore",
		"a_name_with_more_words_than_fit": "ANameWithMoreWords",
	} {
		if got := exportedName(text, 20); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestUniqueNames checks that a number distinguishes equal names and cannot be taken for a part
// of them.
func TestUniqueNames(t *testing.T) {
	taken := takenNames{}
	for _, c := range [][2]string{{"A", "A"}, {"A", "A2"}, {"A", "A3"}, {"A2", "A2N2"}, {"V1", "V1"}, {"V1", "V1N2"}} {
		if got := taken.takeUnique(c[0]); got != c[1] {
			t.Errorf("%s is %s, want %s", c[0], got, c[1])
		}
	}
}
