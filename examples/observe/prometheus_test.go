package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestPrometheus lets a Prometheus scrape the lab, and asks it for the alerts and for all that the dashboard shows.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"prometheus", "promtool"} {
		peer.Need(t, program, "apt-get install prometheus")
	}
	peer.Client(t, "promtool", "check", "rules", "rules.yml")
	peer.Client(t, "promtool", "check", "config", "prometheus.yml")
	lab := openLoaded(t)
	s := startPrometheus(t, lab)
	t.Run("rules", func(t *testing.T) {
		t.Parallel()
		rules := readRules(t)
		eventually(t, func() string { return s.checkRules(t, rules) })
	})
	d := readDashboard(t)
	for _, panel := range d.Panels {
		for i, target := range panel.Targets {
			t.Run(fmt.Sprint(panel.Title, " ", i), func(t *testing.T) {
				t.Parallel()
				query := strings.NewReplacer("$tool", ".*", "$__rate_interval", "5s", "$__range", "1m").Replace(target.Expr)
				eventually(t, func() string { return s.checkQuery(t, query) })
			})
		}
	}
	for _, variable := range d.Templating.List {
		if variable.Type == "query" {
			t.Run(variable.Name, func(t *testing.T) {
				t.Parallel()
				eventually(t, func() string { return s.checkVariable(t, variable.Definition) })
			})
		}
	}
}

// scraper is a Prometheus.
type scraper struct{ url string }

// startPrometheus starts a Prometheus with the files of the example, but for the address and the intervals.
func startPrometheus(t *testing.T, lab *program) scraper {
	t.Helper()
	directory := t.TempDir()
	for _, file := range []string{"prometheus.yml", "rules.yml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edited := string(text)
		if file == "prometheus.yml" {
			edited = strings.NewReplacer(defaultProbes, strings.TrimPrefix(lab.probesURL, "http://"), " 5s", " 200ms").Replace(edited)
			if strings.Count(edited, "200ms") != 2 {
				t.Fatalf("the intervals are not where they were:\n%s", edited)
			}
		}
		if err := os.WriteFile(filepath.Join(directory, file), []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("prometheus", "--config.file="+filepath.Join(directory, "prometheus.yml"),
		"--storage.tsdb.path="+filepath.Join(directory, "data"), "--web.listen-address=127.0.0.1:0")
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("prometheus: %v", err)
		}
	})
	lines := bufio.NewScanner(said)
	var log strings.Builder
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if address := listening.FindStringSubmatch(lines.Text()); address != nil {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return scraper{"http://" + address[1]}
		}
	}
	t.Fatalf("prometheus did not listen:\n%s", &log)
	return scraper{}
}

// listening matches the line in which Prometheus, version 2 or 3, tells its address.
var listening = regexp.MustCompile(`msg="Listening on" (?:component=web )?address=([\d.]+:\d+)`)

// ask asks Prometheus. missing describes the part that is missing, such as because Prometheus has not read its data
// yet.
func (s scraper) ask(t *testing.T, path string, data any) (missing string) {
	t.Helper()
	code, body := fetch(t, s.url+path)
	if code == http.StatusServiceUnavailable {
		return body
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: status %d, error %q, %v: %s", path, code, answer.Error, err, body)
	}
	return ""
}

// checkRules describes the part that is missing until all alerts were evaluated. An alert that cannot be evaluated
// fails the test.
func (s scraper) checkRules(t *testing.T, want []rule) (missing string) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if missing := s.ask(t, "/api/v1/rules", &data); missing != "" {
		return missing
	}
	evaluated := 0
	for _, group := range data.Groups {
		for _, r := range group.Rules {
			if r.Health == "err" || r.LastError != "" {
				t.Fatalf("%s: %s", r.Name, r.LastError)
			}
			if r.Health == "ok" && slices.ContainsFunc(want, func(w rule) bool { return w.Alert == r.Name }) {
				evaluated++
			}
		}
	}
	if evaluated < len(want) {
		return fmt.Sprintf("%d of %d rules were evaluated: %+v", evaluated, len(want), data)
	}
	return ""
}

// checkQuery describes the part that is missing until a query has a number as its answer.
func (s scraper) checkQuery(t *testing.T, query string) (missing string) {
	t.Helper()
	var data struct{ Result []struct{ Value [2]any } }
	if missing := s.ask(t, "/api/v1/query?query="+url.QueryEscape(query), &data); missing != "" {
		return missing
	}
	for _, series := range data.Result {
		text, _ := series.Value[1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil && value >= 0 { // which NaN is not
			return ""
		}
	}
	return fmt.Sprintf("no data for %s: %v", query, data.Result)
}

// checkVariable describes the part that is missing until a variable has all tools to choose from.
func (s scraper) checkVariable(t *testing.T, definition string) (missing string) {
	t.Helper()
	parts := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(definition)
	if parts == nil {
		t.Fatalf("%s is unknown to this test", definition)
	}
	var values []string
	if missing := s.ask(t, "/api/v1/label/"+parts[2]+"/values?match[]="+parts[1], &values); missing != "" {
		return missing
	}
	if want := []string{"develop_film", "print_photo", "scan_negative"}; !slices.Equal(values, want) {
		return fmt.Sprintf("%s has %v, want %v", definition, values, want)
	}
	return ""
}
