package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

var golden = flag.Bool("golden", false, "write the golden files of the differences between revisions")

const a, b, c, d, e = "sep-1686", "2025-11-25-rc", "2025-11-25", "task-patterns", "2026-07-28"

func changes(t *testing.T, from, to *schema.Surface) []schema.Change {
	t.Helper()
	list, err := schema.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDiffGolden holds what a user reads of neighbouring revisions.
func TestDiffGolden(t *testing.T) {
	var seen []string
	for _, pair := range [][2]string{{a, b}, {b, c}, {c, e}, {c, d}} {
		seen = append(seen, pair[:]...)
		from, to := load(t, pair[0]), load(t, pair[1])
		list := changes(t, from, to)
		text, err := schema.Changes(from, to, list)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(schema.Report(from, to, list)); err != nil {
			t.Fatal(err)
		}
		for ending, got := range map[string]string{".txt": text, ".json": out.String()} {
			name := filepath.Join("testdata", "diff", pair[0]+"_"+pair[1]+ending)
			if *golden {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, name)), got); diff != "" {
				t.Errorf("%s (-want +got); go test ./schema -golden writes it:\n%s", name, diff)
			}
		}
	}
	everyRevision(t, seen)
}

// says is one thing that a difference has to name: the section and kind, what
// stood before and what stands now, each a part of it.
type says struct {
	section  schema.Section
	kind     schema.Kind
	from, to string
}

// TestDiffSays holds, one by one, what the revisions are known to differ in.
func TestDiffSays(t *testing.T) {
	tests := []struct {
		from, to string
		want     []says
	}{{a, b, []says{
		{schema.States, schema.Removed, "submitted", "working"},
		{schema.States, schema.Removed, "unknown", "failed"},
		{schema.Definitions, schema.Removed, "TaskInfo", ""},
		{schema.Definitions, schema.Removed, "TaskCreatedNotification", ""},
		{schema.Definitions, schema.Removed, "DeleteTaskRequest", ""},
		{schema.Definitions, schema.Removed, "DeleteTaskResult", ""},
		{schema.Definitions, schema.Added, "", "Task"},
		{schema.Definitions, schema.Added, "", "CreateTaskResult"},
		{schema.Definitions, schema.Added, "", "CancelTaskRequest"},
		{schema.Definitions, schema.Added, "", "CancelTaskResult"},
		{schema.Definitions, schema.Added, "", "TaskStatusNotification"},
		{schema.Definitions, schema.Added, "", "TaskStatusNotificationParams"},
		{schema.Methods, schema.Removed, "tasks/delete", ""},
		{schema.Methods, schema.Added, "notifications/cancelled", "tasks/cancel"},
		{schema.Notifications, schema.Removed, "notifications/tasks/created", "tools/call"},
		{schema.Notifications, schema.Added, "", "notifications/tasks/status"},
		{schema.Aspects, schema.Changed, "the requestor", "the receiver"},
		{schema.Fields, schema.Moved, `params._meta["modelcontextprotocol.io/task"]`, "params.task"},
		{schema.Fields, schema.Removed, `params._meta["modelcontextprotocol.io/task"].taskId`, ""},
		{schema.Fields, schema.Renamed, "task.keepAlive", "task.ttl"},
		{schema.Fields, schema.Changed, "the task's end", "the task's creation"},
		{schema.Fields, schema.Renamed, "task.pollFrequency", "task.pollInterval"},
		{schema.Fields, schema.Renamed, "task.error", "task.statusMessage"},
		{schema.Fields, schema.Added, "", "task.createdAt"},
		{schema.Capabilities, schema.Changed, "boolean", "object"},
		{schema.Capabilities, schema.Added, "", "capabilities.tasks.list"},
		{schema.Capabilities, schema.Added, "", "capabilities.tasks.cancel"},
		{schema.MetaKeys, schema.Renamed, "modelcontextprotocol.io/related-task", "io.modelcontextprotocol/related-task"},
	}}, {b, c, []says{
		{schema.Fields, schema.Added, "", "task.lastUpdatedAt"},
		{schema.Mended, schema.Changed, `"integer"`, `["integer","null"]`},
		{schema.Definitions, schema.Added, "", "TaskAugmentedRequestParams"},
		{schema.Definitions, schema.Added, "", "ToolExecution"},
		{schema.Fields, schema.Moved, "tool.annotations.taskHint", "tool.execution.taskSupport"},
		{schema.Fields, schema.Renamed, `"never"`, `"forbidden"`},
		{schema.Fields, schema.Renamed, `"always"`, `"required"`},
		{schema.TaskParams, schema.Removed, "RequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "CompleteRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "GetPromptRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "InitializeRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "PaginatedRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "ReadResourceRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "ResourceRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "SetLevelRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "SubscribeRequestParams.task", ""},
		{schema.TaskParams, schema.Removed, "UnsubscribeRequestParams.task", ""},
		{schema.Fields, schema.Removed, "notifications/cancelled.taskId", ""},
		{schema.Aspects, schema.Changed, "may refuse", "must refuse"},
	}}, {c, e, []says{
		// The core has none of it any more.
		{schema.Aspects, schema.Changed, "part of the core", "the core has no task definition any more"},
		{schema.Fields, schema.Added, "", "result.resultType"},
		{schema.Capabilities, schema.Moved, "capabilities.tasks", `capabilities.extensions["io.modelcontextprotocol/tasks"]`},
		{schema.Aspects, schema.Changed, "requests of the receiver", `resultType "input_required"`},
		{schema.Methods, schema.Added, "", "subscriptions/listen"},
		{schema.Notifications, schema.Added, "", "notifications/subscriptions/acknowledged"},
		{schema.Errors, schema.Added, "", "-32020"},
		{schema.Errors, schema.Added, "", "-32021"},
		{schema.Errors, schema.Added, "", "-32022"},
		// The extension.
		{schema.Methods, schema.Removed, "tasks/result", "tasks/get"},
		{schema.Methods, schema.Removed, "tasks/list", ""},
		{schema.Methods, schema.Added, "elicitation/create", "tasks/update"},
		{schema.Fields, schema.Removed, "params.task", ""},
		{schema.Fields, schema.Removed, "tool.execution.taskSupport", ""},
		{schema.MetaKeys, schema.Removed, "io.modelcontextprotocol/related-task", ""},
		{schema.Aspects, schema.Changed, "either side", "a client receives no task requests"},
		{schema.Methods, schema.Changed, "both", "client-to-server"},
		{schema.Definitions, schema.Added, "", "DetailedTask"},
		{schema.Definitions, schema.Added, "", "WorkingTask"},
		{schema.Definitions, schema.Added, "", "InputRequiredTask"},
		{schema.Definitions, schema.Added, "", "CompletedTask"},
		{schema.Definitions, schema.Added, "", "FailedTask"},
		{schema.Definitions, schema.Added, "", "CancelledTask"},
		{schema.Fields, schema.Added, "", "params.notifications.taskIds"},
		{schema.Definitions, schema.Added, "", "TaskSubscriptionNotifications"},
		{schema.Definitions, schema.Added, "", "TaskSubscriptionAcknowledgedNotifications"},
		{schema.Fields, schema.Renamed, "task.ttl", "task.ttlMs"},
		{schema.Fields, schema.Renamed, "task.pollInterval", "task.pollIntervalMs"},
		{schema.Aspects, schema.Changed, "nested, as result.task", "flat"},
		{schema.Aspects, schema.Changed, "answers with the task", "an empty acknowledgement"},
		{schema.Notifications, schema.Renamed, "notifications/tasks/status", "notifications/tasks"},
		// Who decides, who is told what with which code.
		{schema.Aspects, schema.Changed, "the requestor asks", "the server alone"},
		{schema.Aspects, schema.Changed, "failed", "completed"},
		{schema.Errors, schema.Moved, "-32601", "-32021"},
		{schema.Errors, schema.Moved, "-32600", "-32021"},
		{schema.Errors, schema.Moved, "-32602", "no error"},
		{schema.Headers, schema.Added, "", "Mcp-Name"},
		{schema.Headers, schema.Removed, "Mcp-Session-Id", ""},
	}}, {c, d, []says{
		{schema.Aspects, schema.Changed, "the receiver", "the requestor"},
		{schema.Fields, schema.Renamed, "task.taskId", "task.id"},
		{schema.Fields, schema.Renamed, "params.taskId", "params.id"},
		{schema.Fields, schema.Moved, "params.task", "params._meta.taskId"},
		{schema.Fields, schema.Moved, "result.task", "result._meta.task"},
		{schema.Fields, schema.Changed, "milliseconds", "seconds"},
		{schema.States, schema.Removed, "input_required -> completed", ""},
		{schema.Aspects, schema.Changed, "gives the result or the error itself", "wraps it"},
	}}, {e, c, []says{ // and back
		{schema.Methods, schema.Removed, "tasks/update", "elicitation/create"},
		{schema.Methods, schema.Added, "tasks/get", "tasks/result"},
		{schema.Fields, schema.Renamed, "task.ttlMs", "task.ttl"},
	}}, {b, a, []says{
		{schema.States, schema.Added, "working", "submitted"},
		{schema.Fields, schema.Renamed, "task.ttl", "task.keepAlive"},
	}}}
	var seen []string
	for _, test := range tests {
		seen = append(seen, test.from, test.to)
		list := changes(t, load(t, test.from), load(t, test.to))
		for _, want := range test.want {
			if !slices.ContainsFunc(list, func(c schema.Change) bool {
				return c.Section == want.section && c.Kind == want.kind && part(want.from, c.From) && part(want.to, c.To)
			}) {
				t.Errorf("%s to %s: nothing says %v", test.from, test.to, want)
			}
		}
	}
	everyRevision(t, seen)
}

// part says whether want is the beginning, the end or a part of what is there.
// Nothing is a part of everything but of what is exact: an empty want is met by all.
func part(want, got string) bool { return strings.Contains(got, want) }

// TestDiffWhole compares every pair both ways: whatever is there once is new one
// way and gone the other, and each text says something.
func TestDiffWhole(t *testing.T) {
	surfaces := map[string]*schema.Surface{}
	for _, revision := range schema.Revisions() {
		surfaces[revision] = load(t, revision)
	}
	opposite := map[schema.Kind]schema.Kind{schema.Added: schema.Removed, schema.Removed: schema.Added}
	for _, from := range schema.Revisions() {
		for _, to := range schema.Revisions() {
			there, back := changes(t, surfaces[from], surfaces[to]), changes(t, surfaces[to], surfaces[from])
			if from == to && len(there) > 0 {
				t.Errorf("%s differs from itself: %v", from, there)
			}
			count := map[string]int{}
			for _, c := range there {
				count[fmt.Sprint(c.Section, c.Kind)]++
				if c.Text == "" || strings.Contains(c.Text, "%!") || strings.Contains(c.Text, "()") || strings.HasSuffix(c.Text, ": ") {
					t.Errorf("%s to %s: %q", from, to, c.Text)
				}
			}
			for _, c := range back {
				kind := c.Kind
				if o, ok := opposite[kind]; ok {
					kind = o
				}
				if c.Section != schema.Methods { // what it serves beside is said of a new one only
					count[fmt.Sprint(c.Section, kind)]--
				}
			}
			for what, n := range count {
				if n != 0 && !strings.HasPrefix(what, string(schema.Methods)) && !strings.HasPrefix(what, string(schema.Fields)) {
					t.Errorf("%s and %s: %d more of %s one way", from, to, n, what)
				}
			}
		}
	}
}

// TestEverythingMeans holds that each revision says all that canon.json asks.
func TestEverythingMeans(t *testing.T) {
	var canon struct{ Aspects map[string]string }
	if err := json.Unmarshal(read(t, "canon.json"), &canon); err != nil {
		t.Fatal(err)
	}
	for _, revision := range schema.Revisions() {
		s := load(t, revision)
		for aspect := range canon.Aspects {
			if s.Aspects[aspect] == "" {
				t.Errorf("%s: nothing on %s", revision, aspect)
			}
		}
		for _, status := range s.Statuses {
			if len(status.Means) == 0 || status.Terminal != (len(status.Next) == 0) {
				t.Errorf("%s: the status %s means %v, leads to %v", revision, status.Name, status.Means, status.Next)
			}
		}
		seen := map[string]bool{}
		for _, f := range s.Fields {
			if seen[f.Means] || f.Place() == "" {
				t.Errorf("%s: %s is there twice, or nowhere: %q", revision, f.Means, f.Place())
			}
			seen[f.Means] = true
		}
		for _, key := range s.MetaKeys {
			if key.Means == "" {
				t.Errorf("%s: the key %s means nothing", revision, key.Key)
			}
		}
		text, err := schema.Show(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Methods {
			if !strings.Contains(text, "  "+m.Name+", ") {
				t.Errorf("%s: show has no %s", revision, m.Name)
			}
		}
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSpace(line)); n > 100 {
				t.Errorf("%s: a line of %d columns: %s", revision, n, line)
			}
		}
	}
}

// invented is a surface of 2026-07-28 with texts of its files replaced.
func invented(t *testing.T, replace ...string) *schema.Surface {
	t.Helper()
	replacer := strings.NewReplacer(replace...)
	file := func(name string) []byte { return []byte(replacer.Replace(string(read(t, e, name)))) }
	s, err := schema.ParseSurface(file("tasks.schema.json"), file("surface.json"), file("provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDiffOfInvented covers what no two known revisions differ in.
func TestDiffOfInvented(t *testing.T) {
	tests := []struct {
		name    string
		replace []string
		want    []string
	}{
		{"a status of another name", []string{`"working"`, `"busy"`}, []string{"working is called busy"}},
		{"an error code of another number", []string{`-32020`, `-32050`}, []string{"HeaderMismatch has the code -32050 (before: -32020)",
			"an HTTP header that is missing or does not match the body: -32050 HeaderMismatch (HTTP 400) (before: -32020 HeaderMismatch (HTTP 400))"}},
		{"a status that is final", []string{`"name": "working",
      "doc": "Means that the work is going on, or waits for its turn.",
      "terminal": false`, `"name": "working",
      "doc": "Means that the work is going on, or waits for its turn.",
      "terminal": true`}, []string{"working is final"}},
		{"a transition", []string{`"next": ["input_required", "completed", "failed", "cancelled"]`, `"next": ["input_required", "completed", "failed"]`},
			[]string{"working can no longer become cancelled"}},
		{"another unit", []string{`"at": "Task/pollIntervalMs", "unit": "milliseconds"`, `"at": "Task/pollIntervalMs", "unit": "seconds"`},
			[]string{"task.pollIntervalMs is in seconds (before: milliseconds)"}},
		{"a required field", []string{`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`, `"required": ["taskId", "status", "createdAt", "ttlMs"]`},
			[]string{"task.lastUpdatedAt is optional (before: required)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range changes(t, load(t, e), invented(t, test.replace...)) {
				got = append(got, c.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestMeaningsRefused holds that a surface names nothing that is not there.
func TestMeaningsRefused(t *testing.T) {
	for from, to := range map[string]string{
		`"means": ["running", "queued"]`: `"means": ["walking"]`,
		`"next": ["working",`:            `"next": ["resting",`,
		`"serves": ["answer"]`:           `"serves": ["reply"]`,
		`"at": "Task/ttlMs"`:             `"at": "Task/ttl"`,
		`"case": "version"`:              `"case": "vision"`,
		`"code": "HeaderMismatch" }`:     `"code": "HeaderMiss" }`,
		`"means": "subscription"`:        `"means": "abonnement"`,
		`"is-error": "completed"`:        `"is-mistake": "completed"`,
	} {
		text := string(read(t, e, "surface.json"))
		if !strings.Contains(text, from) {
			t.Fatalf("no %s", from)
		}
		_, err := schema.ParseSurface(read(t, e, "tasks.schema.json"), []byte(strings.Replace(text, from, to, 1)), read(t, e, "provenance.json"))
		if err == nil {
			t.Errorf("%s was taken", to)
		}
	}
}
