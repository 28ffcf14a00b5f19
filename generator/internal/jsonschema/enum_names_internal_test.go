package jsonschema

import "testing"

func TestConstantName(t *testing.T) {
	for _, test := range []struct{ typeName, name, want string }{
		{"Priority", "PriorityHigh", "high"},
		{"Priority", "HighPriority", "high"},
		{"Priority", "HTTPPriority", "http"},
		{"Priority", "PriorityHTTPOnly", "http_only"},
		{"Priority", "Priority_High", "high"},
		{"Priority", "PRIORITY_HIGH", "high"},
		{"Priority", "Priority1", "1"},
		{"Priority", "High", "high"},
		{"Priority", "VeryHigh", "very_high"},
		{"Priority", "Prioritys", "prioritys"},
		{"Priority", "PriorityX", "x"},
		{"Priority", "Priority_", "priority_"},
		{"priority", "priorityHigh", "high"},
		{"priority", "PriorityHigh", "high"},
		{"Job", "JobsDone", "jobs_done"}, // Job does not end a word
		{"ED", "RED", "red"},
		{"HTTP", "HTTPSOnly", "https_only"},
		{"Größe", "GrößeÜbergroß", "übergroß"},
	} {
		if got := constantName(test.typeName, test.name); got != test.want {
			t.Errorf("%s of %s is %q, want %q", test.name, test.typeName, got, test.want)
		}
	}
}
