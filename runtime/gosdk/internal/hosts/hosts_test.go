// Package hosts has models of programs that call tools: what they send, how long they wait, and
// what their language models do with an answer. The models run in virtual time.
package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestMain lets the tests reach servers in memory.
func TestMain(m *testing.M) { wiretest.Main(m) }

// host is a model of a program that calls tools.
type host struct {
	name string
	// client and version are the clientInfo that it sends.
	client, version string
	// http and pipe are its timers. A host with noPipe uses HTTP only.
	http, pipe []timer
	noPipe     bool
	tasks      taskSupport
	// textTokens says that its progress tokens are texts. Most are the number of the request.
	textTokens bool
	// meta is what it adds to the _meta of a call.
	meta map[string]any
	// givesUp is after how long a call fails if the server sends nothing, only the headers of the
	// response, a comment every 15 seconds as well, or progress. 0 means longer than tools work here.
	givesUp [4]time.Duration
	// blocks is how long the server lets a plain call block, without and with a progress token. 0
	// means that the host does not call plainly.
	blocks [2]time.Duration
	// profile is what the operator says of the host; nil leaves it to the server.
	profile *taskserver.ClientProfile
}

// always returns givesUp of a host that waits so long in all.
func always(all time.Duration) [4]time.Duration { return [4]time.Duration{all, all, all, all} }

// waiting returns a host that waits so long in all, whatever comes, and how long the server lets a
// plain call block for it.
func waiting(name, client string, all, blocks time.Duration) host {
	timers := []timer{{after: all}}
	return host{name: name, client: client, version: "1.0.0", http: timers, pipe: timers, givesUp: always(all), blocks: both(blocks)}
}

// both returns blocks of a host to which progress makes no difference.
func both(d time.Duration) [2]time.Duration { return [2]time.Duration{d, d} }

// hosts are the models. docs/connect-clients.md has the sources of what is known of each host.
var hosts = []host{
	{
		name: "Claude Code", client: "claude-code", version: "2.1.319",
		http:    []timer{{after: time.Minute, endedBy: sawBytes}, {after: 5 * time.Minute, resetBy: sawBytes}, {after: 28 * time.Hour}},
		pipe:    []timer{{after: 30 * time.Minute, resetBy: sawProgress}, {after: 28 * time.Hour}},
		meta:    map[string]any{"claudecode/toolUseId": "toolu_01"},
		givesUp: [4]time.Duration{time.Minute, 5 * time.Minute, 0, 0}, blocks: both(90 * time.Second),
	},
	{
		name: "Claude Code that only progress keeps waiting", client: "claude-code", version: "2.1.319",
		http:    []timer{{after: time.Minute, endedBy: sawBytes}, {after: 5 * time.Minute, resetBy: sawProgress}, {after: 28 * time.Hour}},
		pipe:    []timer{{after: 30 * time.Minute, resetBy: sawProgress}, {after: 28 * time.Hour}},
		givesUp: [4]time.Duration{time.Minute, 5 * time.Minute, 5 * time.Minute, 0}, blocks: both(90 * time.Second),
	},
	{
		name: "Claude Code with tasks", client: "claude-code", version: "2.1.319", tasks: modernTasks,
		http:    []timer{{after: time.Minute, endedBy: sawBytes}, {after: 5 * time.Minute, resetBy: sawBytes}, {after: 28 * time.Hour}},
		pipe:    []timer{{after: 30 * time.Minute, resetBy: sawProgress}, {after: 28 * time.Hour}},
		givesUp: [4]time.Duration{time.Minute, 5 * time.Minute, 0, 0},
	},
	waiting("claude.ai", "claude-ai", time.Minute, 45*time.Second),
	waiting("Claude Desktop through mcp-remote", "claude-ai (via mcp-remote 0.1.37)", time.Minute, 45*time.Second),
	{
		name: "Copilot CLI", client: "copilot-cli", version: "1.0.57",
		http:    []timer{{after: 3 * time.Minute, resetBy: sawProgress}},
		pipe:    []timer{{after: 3 * time.Minute, resetBy: sawProgress}},
		givesUp: [4]time.Duration{3 * time.Minute, 3 * time.Minute, 3 * time.Minute, 0}, blocks: [2]time.Duration{135 * time.Second, 450 * time.Second},
	},
	waiting("Copilot elsewhere", "github-copilot-developer", 30*time.Second, 22500*time.Millisecond),
	waiting("LibreChat", "@librechat/api-client", 30*time.Second, 22500*time.Millisecond),
	waiting("Spring AI", "spring-ai-mcp-client - site", 20*time.Second, 15*time.Second),
	waiting("goose", "goose-desktop", 5*time.Minute, 225*time.Second),
	waiting("Antigravity", "antigravity-client", 3*time.Minute, 135*time.Second),
	waiting("Gemini CLI", "gemini-cli-mcp-client", 10*time.Minute, 450*time.Second),
	waiting("an agent on the TypeScript SDK", "my-agent", time.Minute, taskserver.DefaultWait),
	{
		name: "an agent on the TypeScript SDK that progress keeps waiting", client: "my-agent", version: "1.0.0",
		http:    []timer{{after: time.Minute, resetBy: sawProgress}},
		pipe:    []timer{{after: time.Minute, resetBy: sawProgress}},
		givesUp: [4]time.Duration{time.Minute, time.Minute, time.Minute, 0}, blocks: both(taskserver.DefaultWait),
	},
	{
		name: "opencode", client: "opencode", version: "1.0.0",
		http:    []timer{{after: time.Minute, resetBy: sawProgress}},
		pipe:    []timer{{after: time.Minute, resetBy: sawProgress}},
		givesUp: [4]time.Duration{time.Minute, time.Minute, time.Minute, 0}, blocks: [2]time.Duration{45 * time.Second, 450 * time.Second},
	},
	{
		name: "an agent on undici", client: "fetching-agent", version: "1.0.0", noPipe: true, // the limits of headers and of a pause in the body
		http:    []timer{{after: 5 * time.Minute, endedBy: sawHeaders}, {after: 5 * time.Minute, resetBy: sawBytes}},
		givesUp: [4]time.Duration{5 * time.Minute, 5 * time.Minute, 0, 0}, blocks: both(taskserver.DefaultWait),
	},
	{
		name: "Codex CLI", client: "codex-mcp-client", version: "0.157.0",
		http:    []timer{{after: 5 * time.Minute, pauses: true}},
		pipe:    []timer{{after: 5 * time.Minute, pauses: true}},
		givesUp: always(5 * time.Minute), blocks: both(225 * time.Second),
	},
	{
		name: "a host of 30 seconds that the operator knows", client: "house-agent", version: "3",
		profile: &taskserver.ClientProfile{Patience: 30 * time.Second},
		http:    []timer{{after: 30 * time.Second}},
		pipe:    []timer{{after: 30 * time.Second}},
		givesUp: always(30 * time.Second), blocks: both(22500 * time.Millisecond),
	},
	{
		name: "VS Code", client: "Visual Studio Code", version: "1.125.0", tasks: legacyTasks, textTokens: true,
		blocks: both(450 * time.Second), // the server tells it that optional tools take no tasks
		meta: map[string]any{
			"vscode.conversationId": "c1", "vscode.requestId": "r1", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	},
	{name: "a host with tasks of 2025-11-25 that nobody knows", client: "task-agent", version: "1", tasks: legacyTasks},
}

// info returns the clientInfo of the host.
func (h host) info() map[string]any { return map[string]any{"name": h.client, "version": h.version} }

// declare returns the capabilities that the host declares.
func (h host) declare(w way) string {
	var all []string
	if w.elicits {
		all = append(all, `"elicitation":{"form":{}}`)
	}
	switch {
	case h.tasks == legacyTasks && !w.modern() && w.elicits:
		all = append(all, `"roots":{"listChanged":true}`, `"tasks":{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}}}}`)
	case h.tasks == modernTasks && w.modern():
		all = append(all, `"extensions":{"io.modelcontextprotocol/tasks":{}}`)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// timers returns the host's timers on a connection.
func (h host) timers(w way) []timer {
	if w.pipe {
		return h.pipe
	}
	return h.http
}

// ways lists the connections on which the host is tested. Under the race detector, these are fewer.
func (h host) ways() (all []way) {
	raced := wiretest.ScaleForRace(0, 1) == 1
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		for _, progress := range []bool{false, true} {
			for _, elicits := range []bool{false, true} {
				if raced && !(progress && elicits) {
					continue
				}
				w := way{revision: revision, progress: progress, elicits: elicits}
				all = append(all, w)
				if progress {
					w.replicas = true
					all = append(all, w)
				}
				if w.pipe, w.replicas = true, false; !h.noPipe {
					all = append(all, w)
				}
			}
		}
	}
	return all
}

// TestPatience checks the timers of the models against what is known of their hosts.
func TestPatience(t *testing.T) {
	t.Parallel()
	feeds := [...]struct {
		name        string
		once, often signal
	}{{"nothing", 0, 0}, {"headers", sawHeaders | sawBytes, 0}, {"comments", sawHeaders | sawBytes, sawBytes}, {"progress", sawHeaders | sawBytes, sawBytes | sawProgress}}
	for _, h := range hosts {
		for i, feed := range feeds {
			bubble.Run(t, h.name+"/"+feed.name, func(t *testing.T) {
				began := time.Now()
				clock := startClock(h.http)
				clock.notice(feed.once)
				var gone time.Duration
				for gone == 0 && time.Since(began) < 15*time.Minute {
					select {
					case <-clock.alarm():
						gone = time.Since(began)
					case <-time.After(quiet - time.Nanosecond): // not at the same time as a timer
						clock.notice(feed.often)
					}
				}
				if want := h.givesUp[i]; gone != want {
					t.Errorf("gives up after %v, want %v", gone, want)
				}
			})
		}
	}
}

// site has the tools of the tests.
type site struct {
	runs, stopped atomic.Int32
}

// approval is the answer to the question of a renovation.
type approval struct {
	Approve bool `json:"approve"`
}

// renovated is the result of a renovation.
type renovated struct {
	Report string `json:"report"`
}

var approvalSpec = mcptask.InputSpec{Name: "Approval", Message: "Paint it blue?",
	Schema: `{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`}

const renovatedSchema = `{"type":"object","properties":{"report":{"type":"string"}},"required":["report"],"additionalProperties":false}`

// The tools of a site.
const (
	renovate         = "renovate"          // is optional as a task
	renovateRequired = "renovate_required" // is a task for all that know tasks
	survey           = "survey"            // has a result with a link
	endless          = "endless"           // ends when it is cancelled
)

// tools returns the tools. A plain call of them blocks for wait; 0 means the default.
func (s *site) tools(wait time.Duration) mcptask.Tools {
	policy := func(support mcptask.TaskSupport) mcptask.Policy {
		return mcptask.Policy{Task: support, Poll: 5 * time.Second, Wait: wait}
	}
	spec := func(name string, support mcptask.TaskSupport) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, OutputSchema: renovatedSchema, Policy: policy(support)}
	}
	untyped := func(name string) mcptask.ToolSpec {
		return mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: policy(mcptask.TaskOptional)}
	}
	return mcptask.Tools{Service: "Site", Impl: s, Fallback: mcptask.FallbackTools, Asks: true, Tools: []mcptask.Tool{
		mcptask.NewTool(spec(renovate, mcptask.TaskOptional), s.renovate),
		mcptask.NewTool(spec(renovateRequired, mcptask.TaskRequired), s.renovate),
		mcptask.NewTool(untyped(survey), s.survey),
		mcptask.NewTool(untyped(endless), func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}),
	}}
}

// renovate works for ten minutes, reports progress now and then, and asks in the middle.
func (s *site) renovate(ctx context.Context, task *mcptask.Task, _ struct{}) (renovated, error) {
	s.runs.Add(1)
	work := func(minutes float64) bool {
		select {
		case <-time.After(time.Duration(minutes * float64(time.Minute))):
			return true
		case <-ctx.Done():
			s.stopped.Add(1)
			return false
		}
	}
	task.Progress(ctx, 1, 4, "stripping")
	if !work(2) {
		return renovated{}, ctx.Err()
	}
	task.Progress(ctx, 2, 4, "filling")
	if !work(3) {
		return renovated{}, ctx.Err()
	}
	answer, err := mcptask.Ask[approval](ctx, task, approvalSpec, "color", "Paint it blue?")
	if err != nil {
		return renovated{}, err
	}
	task.Progress(ctx, 3, 4, "painting")
	if !work(5) {
		return renovated{}, ctx.Err()
	}
	return renovated{fmt.Sprintf("painted blue: %v", answer.Approve)}, nil
}

// surveyLink and surveyText are a survey's result.
const surveyLink, surveyText = "https://example.com/surveys/1", "The survey has 2,000,000 points."

// survey works for three minutes. Its result is big, so it only links to it.
func (s *site) survey(ctx context.Context, _ *mcptask.Task, _ struct{}) (*mcptask.Result, error) {
	select {
	case <-time.After(3 * time.Minute):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &mcptask.Result{Content: []mcptask.Content{
		mcptask.TextContent(surveyText), mcptask.LinkContent(surveyLink, "survey"),
	}}, nil
}

// serve starts a server of the tools, or two that share their tasks, and connects a host to it.
func serve(t *testing.T, h host, w way, u *user, tools mcptask.Tools) *client {
	t.Helper()
	options := taskserver.Options{Limits: wiretest.NoPollLimits, Logger: slog.New(slog.DiscardHandler)}
	if h.profile != nil {
		options.ClientProfile = func(client taskserver.ClientInfo) (known taskserver.ClientProfile) {
			if client == (taskserver.ClientInfo{Name: h.client, Version: h.version}) {
				known = *h.profile
			}
			return known
		}
	}
	var c *client
	switch {
	case w.pipe:
		tasks, err := taskserver.New(options, tools)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tasks.Close() })
		c = dial(t, h, w, u, wiretest.PipeTo(t, tasks, 100))
	case w.replicas:
		store := taskstore.NewMemory()
		t.Cleanup(func() { _ = store.Close() })
		options.Store, options.SessionKey = store, bytes.Repeat([]byte("k"), taskstore.MinSessionKey)
		var urls [2]string
		for i := range urls {
			urls[i], _ = wiretest.ServeWith(t, wiretest.Setup{Options: options, Tools: []mcptask.Tools{tools}})
		}
		c = dial(t, h, w, u, nil, urls[:]...)
	default:
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Tools: []mcptask.Tools{tools}})
		c = dial(t, h, w, u, nil, url)
	}
	if err := c.connect(); err != nil {
		t.Fatal(err)
	}
	return c
}

// oneIn is how many of the connections there are for each that is tested.
var oneIn = 5

// eachWay runs a test for each host on its connections that suit the test, in bubbles. Of those it takes one in oneIn.
func eachWay(t *testing.T, suits func(h host, w way) bool, test func(t *testing.T, h host, w way)) {
	t.Helper()
	t.Parallel()
	suitable := 0
	for _, h := range hosts {
		for _, w := range h.ways() {
			if !suits(h, w) {
				continue
			}
			if suitable++; (suitable-1)%oneIn != 0 {
				continue
			}
			t.Run(h.name+"/"+w.String(), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) { test(t, h, w) })
			})
		}
	}
}

// TestTenMinutes checks that a tool that works for ten minutes and asks a question succeeds in
// every host.
func TestTenMinutes(t *testing.T) {
	all := func(host, way) bool { return true }
	eachWay(t, all, func(t *testing.T, h host, w way) {
		s, u := &site{}, &user{thinks: 20 * time.Second}
		c := serve(t, h, w, u, s.tools(0))
		c.renovate(s, renovate, seesText)
		c.renovate(s, renovateRequired, seesStructured)
	})
}

// TestSlowUser is TestTenMinutes with a user who takes longer to answer than most hosts wait for a
// call.
func TestSlowUser(t *testing.T) {
	// Without elicitation no call waits for the user.
	waitsForUser := func(_ host, w way) bool { return w.elicits && w.progress }
	eachWay(t, waitsForUser, func(t *testing.T, h host, w way) {
		s, u := &site{}, &user{thinks: 4 * time.Minute}
		c := serve(t, h, w, u, s.tools(0))
		c.renovate(s, renovate, seesText)
	})
}

// TestBlindUser checks that the model asks its user if the host fails to show a question.
func TestBlindUser(t *testing.T) {
	showsQuestions := func(h host, w way) bool {
		return w.elicits && !w.modern() && h.tasks == noTasks
	}
	eachWay(t, showsQuestions, func(t *testing.T, h host, w way) {
		s, u := &site{}, &user{blind: true}
		c := serve(t, h, w, u, s.tools(0))
		c.renovate(s, renovate, seesText)
	})
}

// renovate has the model call a tool of the site that renovates, and checks the result.
func (c *client) renovate(s *site, tool string, sees sight) {
	c.t.Helper()
	runs, answers := s.runs.Load(), c.user.answers
	a, err := c.converse(tool, map[string]any{}, sees)
	if err != nil {
		c.t.Fatal(err)
	}
	if !strings.Contains(a.text(), "painted blue: true") || a.IsError {
		c.t.Errorf("%s: %s", tool, a.raw)
	}
	if runs, answers = s.runs.Load()-runs, c.user.answers-answers; runs != 1 || answers != 1 {
		c.t.Errorf("%s: ran %d times, was answered %d times", tool, runs, answers)
	}
}

// TestSurvey checks that each host gets a link to a big result as the handler made it.
func TestSurvey(t *testing.T) {
	asksNothing := func(_ host, w way) bool { return !w.elicits && !w.replicas }
	eachWay(t, asksNothing, func(t *testing.T, h host, w way) {
		c := serve(t, h, w, &user{}, (&site{}).tools(0))
		a, err := c.converse(survey, map[string]any{}, seesText)
		if err != nil {
			t.Fatal(err)
		}
		want := []content{{Type: "text", Text: surveyText}, {Type: "resource_link", URI: surveyLink}}
		if !slices.Equal(a.Content, want) || a.IsError {
			t.Errorf("%s, want %v", a.raw, want)
		}
	})
}

// TestOperatorKnows checks that what the operator says of a host decides how long a plain call
// blocks.
func TestOperatorKnows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		client   string
		profile  taskserver.ClientProfile
		wait     time.Duration // of the tool
		progress bool
		want     time.Duration
	}{
		"nothing":                  {client: "my-agent", want: taskserver.DefaultWait},
		"nothing of a known host":  {client: "gemini-cli-mcp-client", want: taskserver.DefaultWait},
		"less than the default":    {client: "my-agent", profile: taskserver.ClientProfile{Patience: 20 * time.Second}, want: 15 * time.Second},
		"less of a known host":     {client: "gemini-cli-mcp-client", profile: taskserver.ClientProfile{Patience: 20 * time.Second}, want: 15 * time.Second},
		"more":                     {client: "my-agent", profile: taskserver.ClientProfile{Patience: 4 * time.Minute}, want: 3 * time.Minute},
		"more with progress":       {client: "my-agent", profile: taskserver.ClientProfile{Patience: time.Minute, PatienceWithProgress: 8 * time.Minute}, progress: true, want: 6 * time.Minute},
		"more only with progress":  {client: "my-agent", profile: taskserver.ClientProfile{Patience: time.Minute, PatienceWithProgress: 8 * time.Minute}, want: 45 * time.Second},
		"more than the tool waits": {client: "my-agent", profile: taskserver.ClientProfile{Patience: 4 * time.Minute}, wait: time.Minute, want: time.Minute},
		"less than the tool waits": {client: "my-agent", profile: taskserver.ClientProfile{Patience: time.Minute}, wait: time.Hour, want: 45 * time.Second},
	} {
		for _, w := range (host{}).ways() {
			if w.elicits || w.progress != test.progress {
				continue
			}
			bubble.Run(t, name+"/"+w.String(), func(t *testing.T) {
				h := host{client: test.client, version: "1", profile: &test.profile}
				c := serve(t, h, w, &user{}, (&site{}).tools(test.wait))
				c.checkBlocks(test.want)
			})
		}
	}
}

// TestKnownHosts checks how long a plain call blocks in hosts that the server knows by name, and in
// others.
func TestKnownHosts(t *testing.T) {
	blocks := func(h host, w way) time.Duration {
		if w.progress {
			return h.blocks[1]
		}
		return h.blocks[0]
	}
	callsPlainly := func(h host, w way) bool { return blocks(h, w) > 0 && (!w.elicits || w.replicas) }
	eachWay(t, callsPlainly, func(t *testing.T, h host, w way) {
		c := serve(t, h, w, &user{}, (&site{}).tools(0))
		c.checkBlocks(blocks(h, w))
	})
}

// checkBlocks checks how long a plain call blocks, and a call of the fallback tool after it.
func (c *client) checkBlocks(want time.Duration) {
	c.t.Helper()
	a, err := c.callTool(endless, map[string]any{})
	if err != nil {
		c.t.Fatal(err)
	}
	next, err := (&model{c: c}).readNext(a)
	if err != nil || next == nil {
		c.t.Fatalf("%s: %v", a.raw, err)
	}
	if _, err = c.callTool(next.tool, next.arguments); err != nil {
		c.t.Fatal(err)
	}
	for _, call := range c.calls {
		if call.took != want {
			c.t.Errorf("%s blocked for %v, want %v", call.tool, call.took, want)
		}
	}
}

// TestGivesUp checks that a model gives a call up when its host does, and that this stops the work.
func TestGivesUp(t *testing.T) {
	t.Parallel()
	h := waiting("impatient", "impatient-agent", time.Minute, 0)
	h.profile = &taskserver.ClientProfile{Patience: time.Hour} // the operator is wrong
	for _, w := range h.ways() {
		if w.replicas && !w.modern() {
			continue // the cancellation reaches the server that does not have the call
		}
		bubble.Run(t, w.String(), func(t *testing.T) {
			s := &site{}
			c := serve(t, h, w, &user{}, s.tools(time.Hour))
			_, err := c.converse(renovate, map[string]any{}, seesText)
			var impatient *impatientError
			if !errors.As(err, &impatient) || impatient.after != time.Minute {
				t.Errorf("%v, want a call that is given up after a minute", err)
			}
			wiretest.Eventually(t, "the work has stopped", func() bool { return s.stopped.Load() == 1 })
		})
	}
}
