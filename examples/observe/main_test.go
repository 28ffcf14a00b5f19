package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/observe/lab"
)

func TestMain(m *testing.M) { peer.Main(m, main) }

// open starts the lab, without customers.
func open(t *testing.T) *program {
	t.Helper()
	p, err := start(t.Context(), mode{addr: "127.0.0.1:0", probes: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// openLoaded starts the lab with its customers, whose server stands behind the tap.
func openLoaded(t *testing.T) *program {
	t.Helper()
	p := open(t)
	url := peer.Tap(t, p.url)
	loading, leave := context.WithCancel(t.Context())
	loaded := make(chan error, 1)
	go func() { loaded <- p.runLoad(loading, url, orders) }()
	t.Cleanup(func() {
		leave()
		if err := <-loaded; err != nil {
			t.Errorf("the customers: %v", err)
		}
	})
	return p
}

// TestBrokenOrder checks that an order that fails is told of, also if it fails because a context has ended, such as that of
// its session.
func TestBrokenOrder(t *testing.T) {
	t.Parallel()
	p := open(t)
	broken := fmt.Errorf("the session has ended: %w", context.Canceled)
	err := p.runLoad(t.Context(), p.url, []order{func(context.Context, *lab.LabClient) error { return broken }})
	if !errors.Is(err, broken) {
		t.Errorf("runLoad returns %v, want %v", err, broken)
	}
}

// eventually waits until check returns "". Otherwise check describes the part that is missing.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for missing := check(); missing != ""; missing = check() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-timeout:
			t.Fatal(missing)
		}
	}
}

// fetch returns the status and the body of an answer.
func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// rule is an alert of rules.yml.
type rule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

// readRules reads the alerts.
func readRules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile("rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("rules.yml has no rules")
	}
	return all
}

// dashboard is dashboard.json, as far as tests read it.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// readDashboard reads the dashboard.
func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// queries returns the queries of a dashboard.
func (d dashboard) queries() []string {
	var all []string
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

var (
	literals  = regexp.MustCompile(`"[^"]*"`)
	selectors = regexp.MustCompile(`\{[^}]*\}`)
	matchers  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	groupings = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	windows   = regexp.MustCompile(`\[[^\]]*\]`)
	names     = regexp.MustCompile(`[a-zA-Z_]\w*\s*\(?`)
	operators = []string{"or", "unless", "group_left"}
	ofScraper = []string{"up", "job", "instance", ""} // Prometheus makes these names; "" is that of an empty list
)

// findNames returns the metrics and the labels in an expression.
func findNames(expression string) (metrics, labels []string) {
	expression = literals.ReplaceAllString(expression, "")
	for _, selector := range selectors.FindAllString(expression, -1) {
		for _, match := range matchers.FindAllStringSubmatch(selector, -1) {
			labels = append(labels, match[1])
		}
	}
	for _, grouping := range groupings.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(grouping[1], ",") {
			labels = append(labels, strings.TrimSpace(label))
		}
	}
	for _, pattern := range []*regexp.Regexp{selectors, groupings, windows} {
		expression = pattern.ReplaceAllString(expression, "")
	}
	for _, name := range names.FindAllString(expression, -1) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "(") && !slices.Contains(operators, name) {
			metrics = append(metrics, name)
		}
	}
	return metrics, labels
}

func TestFindNames(t *testing.T) {
	metrics, labels := findNames(`sum by (le, a_b) (rate(one_total{c="d e",f=~"$g"}[5m])) / on (h) group_left two > 0 or vector(0) unless three`)
	if got, want := fmt.Sprint(metrics, labels), "[one_total two three] [c f le a_b h]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestScrape checks that the lab has all metrics and labels that the alerts and the dashboard ask for.
func TestScrape(t *testing.T) {
	t.Parallel()
	var metrics, labels []string
	expressions := readDashboard(t).queries()
	for _, r := range readRules(t) {
		expressions = append(expressions, r.Expr)
	}
	for _, expression := range expressions {
		m, l := findNames(expression)
		if len(m) == 0 {
			t.Errorf("no metric in %s", expression)
		}
		metrics, labels = append(metrics, m...), append(labels, l...)
	}
	p := openLoaded(t)
	eventually(t, func() string {
		code, body := fetch(t, p.probesURL+"/metrics")
		if code != http.StatusOK {
			t.Fatalf("status %d: %s", code, body)
		}
		for _, metric := range metrics {
			if !slices.Contains(ofScraper, metric) && !strings.Contains(body, "\n"+metric+"{") && !strings.Contains(body, "\n"+metric+" ") {
				return "no metric " + metric + " in\n" + body
			}
		}
		for _, label := range labels {
			if !slices.Contains(ofScraper, label) && !strings.Contains(body, "{"+label+`="`) && !strings.Contains(body, ","+label+`="`) {
				return "no label " + label + " in\n" + body
			}
		}
		return ""
	})
}

func TestProbes(t *testing.T) {
	t.Parallel()
	p := open(t)
	eventually(t, func() string { return checkProbes(t, p, http.StatusOK) })
	if err := p.tasks.Close(); err != nil {
		t.Error(err)
	}
	if fault := checkProbes(t, p, http.StatusServiceUnavailable); fault != "" {
		t.Errorf("after the end: %s", fault)
	}
}

// checkProbes returns the fault of the probes or of the metric of readiness, or "".
func checkProbes(t *testing.T, p *program, wantReady int) string {
	t.Helper()
	if code, body := fetch(t, p.probesURL+"/readyz"); code != wantReady {
		return fmt.Sprintf("/readyz: %d %s", code, body)
	}
	if code, body := fetch(t, p.probesURL+"/livez"); code != http.StatusOK {
		return fmt.Sprintf("/livez: %d %s", code, body)
	}
	value := "0"
	if wantReady == http.StatusOK {
		value = "1"
	}
	if _, body := fetch(t, p.probesURL+"/metrics"); !regexp.MustCompile(`(?m)^server_ready(\{.*\})? ` + value + "$").MatchString(body) {
		return "server_ready is not " + value + " in\n" + body
	}
	return ""
}

// TestFiles checks rules that neither Prometheus nor Grafana checks.
func TestFiles(t *testing.T) {
	t.Parallel()
	alerts := map[string]bool{}
	for _, r := range readRules(t) {
		if alerts[r.Alert] || r.Alert == "" || r.Expr == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("the alert %q comes twice, or has no expression, severity, summary or description", r.Alert)
		}
		alerts[r.Alert] = true
	}
	d := readDashboard(t)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, panel := range d.Panels {
		if ids[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 {
			t.Errorf("the panel %d %q comes twice, or has no title or query", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		at := panel.GridPos
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("the panel %q lies over %q, or beyond the edge", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
	scraped, err := os.ReadFile("prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(scraped), `"`+defaultProbes+`"`) {
		t.Errorf("prometheus.yml does not scrape %s", defaultProbes)
	}
}

// TestRun runs the program as a user does, and reads the spans that it writes.
func TestRun(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read, printed := io.Pipe()
	traces := t.TempDir() + "/spans.json"
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, printed, mode{addr: "127.0.0.1:0", probes: "127.0.0.1:0", traces: traces, isLoaded: true})
		_ = printed.Close() // never fails
	}()
	told := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(read) // the pipe has no errors
		told <- string(all)
	}()
	eventually(t, func() string {
		parents := map[spanContext]bool{} // of the steps, which end before their runs
		for _, s := range readSpans(t, traces) {
			if s.Name == "mcptask.step expose" {
				parents[s.Parent] = true
			}
			if s.Name == "mcptask.run print_photo" && parents[s.SpanContext] {
				return ""
			}
		}
		return "no photo was printed in a step of its run"
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	out := <-told
	for _, want := range []string{"serving http://127.0.0.1:", "/metrics\n", "/readyz and http", "10 customers", "prometheus --config.file=", "dashboard.json"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// TestBadFlags checks that errors name the flag that is wrong.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]mode{
		"-http: ":   {addr: "nowhere"},
		"-probes: ": {addr: "127.0.0.1:0", probes: "nowhere"},
		"-store: ":  {addr: "127.0.0.1:0", probes: "127.0.0.1:0", store: t.TempDir()},
		"-traces: ": {traces: t.TempDir()},
	} {
		if err := run(t.Context(), io.Discard, m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", m, err, want)
		}
	}
}
