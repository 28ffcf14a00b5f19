//go:build long && unix

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// inspectorWeb is the page of the MCP Inspector, in a browser. A page calls a tool as a task if its server lets it: in
// 2025-11-25 a person chooses.
var inspectorWeb = host{
	name: "MCP Inspector `--web`", module: "@modelcontextprotocol/inspector",
	routes: []route{
		{over: "HTTP", revision: "2025-11-25", keeps: true, open: openPage("legacy"), cannot: pageCannot},
		{over: "HTTP", revision: "2026-07-28", keeps: true, open: openPage("modern"), cannot: pageCannot},
	},
}

// pageCannot has the cases in which the page fails in both revisions.
var pageCannot = map[string]failing{"restart": givesUp}

// pageScript has the actions of a person in the page.
//
//go:embed inspectorpage.js
var pageScript string

// page is the Inspector's page, connected to a server.
type page struct{ tab context.Context }

func openPage(era string) func(*testing.T, *server) driver {
	return func(t *testing.T, s *server) driver {
		t.Helper()
		return connectPage(t, era, s.url)
	}
}

// connecting is held while a page connects.
var connecting sync.Mutex

// connectPage starts an Inspector, opens its page in a browser and connects it to a server.
func connectPage(t *testing.T, era, url string) *page {
	t.Helper()
	// A page gives up on a server after some seconds. If all pages connected at once, a busy machine would need longer.
	connecting.Lock()
	defer connecting.Unlock()
	p := &page{chromium.open(t)}
	if err := chromedp.Do(p.tab, chromedp.Navigate(startInspector(t, era, url)), chromedp.Evaluate[chromedp.Void](pageScript)); err != nil {
		t.Fatal(err)
	}
	p.until(t, "connect")
	p.click(t, "Tools")
	p.click(t, "Tasks")
	return p
}

// startInspector starts an Inspector for a server and returns the URL of its page. Its port has to be known beforehand.
func startInspector(t *testing.T, era, url string) string {
	t.Helper()
	terminal := newTerminal(t)
	terminal.env = append(terminal.env, "CLIENT_PORT="+freePort(t), "MCP_SANDBOX_PORT=0", "MCP_APP_ORIGIN_PORT=0",
		"MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_SECRET_STORE=memory")
	inspector := terminal.start(t, program(t, "mcp-inspector"), "--web", "--protocol-era", era, "--transport", "http", "--server-url", url)
	return inspector.out.wait(t, `http://\S+MCP_INSPECTOR_API_TOKEN=\w+`)
}

// chromium is the browser that all pages are open in, while there are any.
var chromium browser

// browser is a headless Chromium.
type browser struct {
	mu    sync.Mutex
	pages int
	// window is the context that tabs are opened in. stop ends it, and the browser with it.
	window context.Context
	stop   func()
}

// open opens a tab, which is closed at the end of the test.
func (b *browser) open(t *testing.T) context.Context {
	t.Helper()
	peer.Need(t, "chromium", "install chromium")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pages == 0 {
		b.start(t)
	}
	b.pages++
	// A window each: a page that is not in front does less.
	tab, closeTab := chromedp.NewContext(b.window, chromedp.WithNewBrowserContext())
	t.Cleanup(func() {
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.pages--; b.pages == 0 {
			b.stop()
		}
	})
	if err := chromedp.Do(tab, chromedp.EmulateViewport(1280, 720)); err != nil {
		t.Fatal(err)
	}
	return tab
}

// start starts the browser.
func (b *browser) start(t *testing.T) {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	// Do not use the test's context: the browser may outlive the test.
	allocator, free := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	window, closeWindow := chromedp.NewContext(allocator)
	b.window, b.stop = window, func() { closeWindow(); free() }
	if err := chromedp.Do(window); err != nil {
		b.stop()
		t.Fatal(err)
	}
}

// until calls a function of pageScript until it returns that it is done.
func (p *page) until(t *testing.T, function string, args ...any) {
	t.Helper()
	p.within(t, time.Minute, function, args...)
}

// within calls a function of pageScript until it returns that it is done, for some time.
func (p *page) within(t *testing.T, limit time.Duration, function string, args ...any) {
	t.Helper()
	var values []string
	for _, arg := range args {
		data, err := json.Marshal(arg)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, string(data))
	}
	call := fmt.Sprintf("inspector.%s(%s)", function, strings.Join(values, ", "))
	if err := chromedp.Do(p.tab, chromedp.Poll[chromedp.Void](call, chromedp.WithPollingInterval(100*time.Millisecond),
		chromedp.WithPollingTimeout(limit))); err != nil {
		t.Fatalf("%s: %v: the page shows\n%s", call, err, p.text(t))
	}
}

func (p *page) click(t *testing.T, name string) { p.until(t, "click", name) }

func (p *page) list(t *testing.T) reply {
	p.until(t, "shows", `^Tools \([0-9]+\)$`)
	return reply{p.text(t)}
}

func (p *page) call(t *testing.T, tool string, args object) reply {
	p.execute(t, tool, args, false)
	return p.outcome(t)
}

// execute calls a tool. In 2026-07-28 the server decides whether it is a task.
func (p *page) execute(t *testing.T, tool string, args object, task bool) {
	t.Helper()
	p.until(t, "choose", tool)
	for _, name := range slices.Sorted(maps.Keys(args)) {
		p.until(t, "fill", name, fmt.Sprint(args[name]))
	}
	if p.value(t, `has("Run as task")`) == "true" {
		p.until(t, "set", "Run as task", task)
	}
	p.click(t, "Execute Tool")
}

// outcome waits for the outcome of a call.
func (p *page) outcome(t *testing.T) reply {
	t.Helper()
	p.within(t, bound, "ended")
	return reply{p.value(t, "outcome()")}
}

func (p *page) startTask(t *testing.T, tool string, args object) (string, reply) {
	p.execute(t, tool, args, true)
	p.until(t, "task")
	return p.value(t, "task()"), reply{}
}

func (p *page) hasEnded(t *testing.T) bool { return p.value(t, "ended()") == "true" }

func (p *page) result(t *testing.T, _ string) reply { return p.outcome(t) }

func (p *page) cancel(t *testing.T, _ string) reply {
	p.click(t, "Cancel Task")
	p.until(t, "shows", "^CANCELLED$")
	return reply{p.text(t)}
}

func (p *page) ask(t *testing.T, tool string, args, answer object) reply {
	p.execute(t, tool, args, false)
	p.answer(t, answer)
	return p.outcome(t)
}

// answer fills in a form of switches.
func (p *page) answer(t *testing.T, answer object) {
	t.Helper()
	p.until(t, "asked", "Elicitation Request")
	for name, value := range answer {
		p.until(t, "set", name, value)
	}
	p.click(t, "Submit")
}

func (p *page) sample(t *testing.T, tool string, args object, line string) reply {
	p.execute(t, tool, args, false)
	p.until(t, "asked", "Sampling Request")
	p.until(t, "fill", "Response", line)
	p.click(t, "Send Response")
	return p.outcome(t)
}

// value returns the result of a function of pageScript, as text.
func (p *page) value(t *testing.T, call string) string {
	t.Helper()
	text, err := chromedp.Run(p.tab, chromedp.Evaluate[string]("String(inspector."+call+")"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// text returns the text of the page.
func (p *page) text(t *testing.T) string { return p.value(t, "text()") }

// TestInspectorPage acts as a person does in the page, in ways that the table does not have.
func TestInspectorPage(t *testing.T) {
	findPackages(t)
	binary := peer.Build(t, ".")
	for era, progress := range map[string]struct{ plain, task string }{
		"legacy": {`^baking — [1-9] / 10 \([1-9]0%\)$`, `^[1-9]0%$`}, // a message, and beside a bar
		"modern": {`^baking \([1-9]/10\)$`, `^baking \([1-9]/10\)$`}, // both are tasks
	} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			p := connectPage(t, era, newServer(t, binary, false).url)

			for task, pattern := range map[bool]string{false: progress.plain, true: progress.task} {
				p.execute(t, "bake", object{"loaves": 3, "seconds": 5}, task)
				p.until(t, "shows", pattern)
				if said := p.outcome(t); !said.has("3 loaves are baked") {
					t.Errorf("baking ended with:\n%s", said.text)
				}
			}

			order := object{"bread": "rye", "loaves": 2}
			p.execute(t, "order", order, true)
			p.answer(t, object{"agreed": true})
			if said := p.outcome(t); !said.has("2 loaves of rye are ordered") {
				t.Errorf("the order ended with:\n%s", said.text)
			}
			for _, task := range []bool{false, true} {
				p.execute(t, "order", order, task)
				p.until(t, "asked", "Elicitation Request")
				p.click(t, "Decline")
				if said := p.outcome(t); !said.has("nothing was ordered: the person refused") {
					t.Errorf("the declined order ended with:\n%s", said.text)
				}
			}
		})
	}
}

var picture = flag.String("picture", "", "write the picture that TestInspectorPicture takes into this `file`")

// TestInspectorPicture brings the page into the state that the README shows: a task makes progress, and a call asks a person.
func TestInspectorPicture(t *testing.T) {
	findPackages(t)
	p := connectPage(t, "legacy", peer.Serve(t, "../pipeline"))
	p.execute(t, "run_pipeline", object{"repository": "shop", "branch": "slow"}, true)
	p.until(t, "shows", "^50%$") // checkout and build are done
	p.click(t, "Collapse all")
	if err := chromedp.Do(p.tab, chromedp.EmulateViewport(1400, 770)); err != nil {
		t.Fatal(err)
	}
	p.execute(t, "deploy_service", object{"service": "api", "environment": "production"}, false)
	p.until(t, "asked", "Elicitation Request")
	p.until(t, "shows", "Ship api to production?")
	p.until(t, "set", "approve", true)
	p.until(t, "tidy")
	data, err := chromedp.Run(p.tab, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if *picture != "" {
		if err := os.WriteFile(*picture, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.click(t, "Decline")
	if said := p.outcome(t); !said.has("api was not shipped: the person refused") {
		t.Errorf("the deployment ended with:\n%s", said.text)
	}
	p.cancel(t, "")
}
