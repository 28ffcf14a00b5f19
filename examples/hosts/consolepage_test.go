//go:build long && unix

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// operated is a process of the pipeline example with the operator's page, and a client that makes tasks there.
type operated struct {
	terminal terminal
	binary   string
	// address is that of the operator's page.
	address string
	process *process
	// page is the URL of the operator's page.
	page   string
	client *pipeline.CIClient
}

// serveOperated starts the example. It keeps its tasks in a file.
func serveOperated(t *testing.T, binary string) *operated {
	t.Helper()
	s := &operated{terminal: newTerminal(t), binary: binary, address: net.JoinHostPort("127.0.0.1", freePort(t))}
	s.start(t)
	s.page = "http://" + s.address + "/console/"
	_, url, _ := strings.Cut(s.process.out.wait(t, `^serving \S+`), " ")
	approve := pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		return pipeline.Approval{Approve: true}, nil
	})
	conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: mcptask.Revision20260728, Answer: approve})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.client = pipeline.NewCIClient(conn)
	return s
}

// start starts the process.
func (s *operated) start(t *testing.T) {
	t.Helper()
	s.process = s.terminal.start(t, s.binary, "-http", "127.0.0.1:0", "-console", s.address, "-store", "sqlite:"+filepath.Join(s.terminal.dir, "tasks.db"))
	s.process.out.wait(t, `^the operator's page: http://`+regexp.QuoteMeta(s.address)+`/console/$`)
}

// run starts a pipeline as a task. That of the branch "slow" runs until it is cancelled: ten minutes are longer than
// any test.
func (s *operated) run(t *testing.T, repository, branch string) *mcptask.Call[pipeline.RunReport] {
	t.Helper()
	call, err := s.client.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: repository, Branch: branch})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// deploy starts a task that asks.
func (s *operated) deploy(t *testing.T, service string) *mcptask.Call[pipeline.DeployReport] {
	t.Helper()
	call, err := s.client.StartDeployService(t.Context(), pipeline.DeployInput{Service: service, Environment: "production"})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// cancel cancels a task as its requestor.
func cancel[Out any](t *testing.T, call *mcptask.Call[Out]) {
	t.Helper()
	if err := call.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// look is how an operator sees the page.
type look struct {
	width  int64
	scheme string
}

func (l look) String() string { return fmt.Sprintf("%s at %d pixels", l.scheme, l.width) }

// looks are those that every page has to be good for.
var looks = []look{{1280, "light"}, {1280, "dark"}, {360, "light"}, {360, "dark"}}

// operatorPage is a tab with the operator's page.
type operatorPage struct {
	tab context.Context
	// next returns the next message of the browser's console: the output of the script, exceptions, and the browser's
	// refusals.
	next func() (chromedp.ConsoleMessage, error, bool)
}

// openOperatorPage opens a tab.
func openOperatorPage(t *testing.T, l look) *operatorPage {
	t.Helper()
	p := &operatorPage{tab: chromium.open(t)}
	hearing, stopHearing := context.WithTimeout(p.tab, bound)
	next, stop := iter.Pull2(chromedp.Console(hearing))
	p.next = next
	t.Cleanup(func() { stopHearing(); stop() })
	p.show(t, l)
	return p
}

// show changes how the page looks.
func (p *operatorPage) show(t *testing.T, l look) {
	t.Helper()
	emulateScheme := chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		media := object{"features": []object{{"name": "prefers-color-scheme", "value": l.scheme}}}
		return tab.Call(ctx, "Emulation.setEmulatedMedia", media, nil)
	})
	if err := chromedp.Do(p.tab, chromedp.EmulateViewport(l.width, 800), emulateScheme); err != nil {
		t.Fatal(err)
	}
}

// visit opens a page and waits until it is live.
func (p *operatorPage) visit(t *testing.T, url string) {
	t.Helper()
	if err := chromedp.Do(p.tab, chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	p.until(t, `document.getElementById("live").dataset.state === "live"`)
}

// until waits until an expression is true. The page may be left for another one meanwhile.
func (p *operatorPage) until(t *testing.T, expression string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		is, err := chromedp.Run(p.tab, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if err == nil && is {
			return
		}
		select {
		case <-timeout:
			t.Fatalf("%s: never (%v): the page shows\n%s", expression, err, evaluate[string](p.tab, t, "document.body.innerText"))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// is checks that an expression is true.
func (p *operatorPage) is(t *testing.T, expression string) {
	t.Helper()
	if !evaluate[bool](p.tab, t, "Boolean("+expression+")") {
		t.Errorf("not so: %s: the page shows\n%s", expression, evaluate[string](p.tab, t, "document.body.innerText"))
	}
}

// shows waits until an element shows a text.
func (p *operatorPage) shows(t *testing.T, selector, text string) {
	t.Helper()
	p.until(t, fmt.Sprintf("document.querySelector(%s)?.innerText.includes(%s)", quote(t, selector), quote(t, text)))
}

// click clicks on the element of a selector that has a text.
func (p *operatorPage) click(t *testing.T, selector, text string) {
	t.Helper()
	path := fmt.Sprintf("[...document.querySelectorAll(%s)].filter(element => element.innerText.includes(%s))", quote(t, selector), quote(t, text))
	within, stop := context.WithTimeout(p.tab, time.Minute)
	defer stop()
	if err := chromedp.Do(within, chromedp.Click(chromedp.JSPath(path))); err != nil {
		t.Fatalf("click on %s %q: %v: the page shows\n%s", selector, text, err, evaluate[string](p.tab, t, "document.body.innerText"))
	}
}

// set chooses or types a value.
func (p *operatorPage) set(t *testing.T, selector, value string) {
	t.Helper()
	if err := chromedp.Do(p.tab, chromedp.SetValue(chromedp.CSS(selector), value)); err != nil {
		t.Fatalf("%s: %v", selector, err)
	}
}

// press presses keys.
func (p *operatorPage) press(t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(p.tab, chromedp.KeyEvent(keys)); err != nil {
		t.Fatal(err)
	}
}

// tabTo presses the key Tab until an element has the focus.
func (p *operatorPage) tabTo(t *testing.T, selector string) {
	t.Helper()
	for range 200 {
		p.press(t, kb.Tab)
		if evaluate[bool](p.tab, t, "document.activeElement.matches("+quote(t, selector)+")") {
			return
		}
	}
	t.Fatalf("the key Tab does not reach %s", selector)
}

// visitNewest opens the page of the task that was made last.
func (p *operatorPage) visitNewest(t *testing.T, s *operated) {
	t.Helper()
	p.visit(t, s.page+"tasks")
	p.visit(t, evaluate[string](p.tab, t, `document.querySelector("tbody a").href`))
}

// quote returns a text as JavaScript has it.
func quote(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkConsole checks that the browser has said nothing about the page, and that the page's policy is in force. It spoils
// the page.
func (p *operatorPage) checkConsole(t *testing.T) {
	t.Helper()
	hear := func() chromedp.ConsoleMessage {
		message, err, ok := p.next()
		if err != nil || !ok {
			t.Fatalf("the console is gone: %v", err)
		}
		return message
	}
	const end = "that is all"
	evaluate[any](p.tab, t, "console.log("+quote(t, end)+"), null")
	for message := hear(); message.Text != end; message = hear() {
		t.Errorf("the browser says: %v (%s:%d)", message, message.URL, message.Line)
	}
	evaluate[any](p.tab, t, `document.body.setAttribute("style", "color: red"), null`)
	for message := hear(); !strings.Contains(message.Text, "Content Security Policy"); message = hear() {
		t.Errorf("the browser says: %v instead of refusing a style", message)
	}
}

// violation is a rule of axe that a page breaks.
type violation struct {
	ID, Help string
	Nodes    []string
}

// checkAccess checks a page with axe, with all its details open.
func (p *operatorPage) checkAccess(t *testing.T) {
	t.Helper()
	axe, err := os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js"))
	if err != nil {
		peer.Missing(t, "axe-core is missing: run npm ci in examples/hosts")
	}
	evaluate[any](p.tab, t, string(axe)+`; document.querySelectorAll("details").forEach(d => { d.open = true }), null`)
	found := evaluate[struct {
		Passed int
		Broken []violation
	}](p.tab, t, `axe.run().then(result => ({Passed: result.passes.length, Broken: result.violations.map(rule =>
		({ID: rule.id, Help: rule.help, Nodes: rule.nodes.map(node => node.html + "\n" + node.failureSummary)}))}))`)
	for _, v := range found.Broken {
		t.Errorf("%s: %s:\n%s", v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
	if found.Passed < 15 {
		t.Errorf("axe has checked only %d rules", found.Passed)
	}
}

// checkWidth checks that the page is not wider than the window.
func (p *operatorPage) checkWidth(t *testing.T) {
	t.Helper()
	p.is(t, "document.documentElement.scrollWidth <= innerWidth")
}

func TestConsolePage(t *testing.T) {
	peer.Need(t, "chromium", "install chromium")
	binary := peer.Build(t, "../pipeline")
	for name, test := range map[string]func(*testing.T, *operated){
		"looks": testConsoleLooks, "live": testConsoleLive, "restart": testConsoleRestart, "list": testConsoleList, "bulk": testConsoleBulk, "late": testConsoleLate, "actions": testConsoleActions, "keyboard": testConsoleKeyboard,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, serveOperated(t, binary))
		})
	}
}

// consolePages makes tasks, and returns the URLs of the pages that show them, by name.
func consolePages(t *testing.T, s *operated) map[string]string {
	t.Helper()
	p := openOperatorPage(t, looks[0])
	pages := map[string]string{"the overview": s.page, "the tasks": s.page + "tasks", "what is not there": s.page + "tasks?tool=none"}
	add := func(name string) {
		p.visitNewest(t, s)
		pages[name] = evaluate[string](p.tab, t, "location.href")
	}
	if _, err := s.run(t, "shop", "main").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	add("a task that has ended")
	p.shows(t, "#steps", "checkout")
	if _, err := s.run(t, "shop", "broken").Wait(t.Context()); err == nil {
		t.Fatal("the pipeline did not break")
	}
	add("a task that has failed")
	pages["the tasks that failed"] = s.page + "tasks?state=failed&ended=last+hour"
	pages["the tasks after an action on several"] = s.page + "tasks?did=cancel&count=2"
	s.deploy(t, "payments")
	add("a task that asks")
	s.run(t, "shop", "slow")
	add("a task that runs")
	return pages
}

// testConsoleLooks looks at each page in each way.
func testConsoleLooks(t *testing.T, s *operated) {
	pages := consolePages(t, s)
	for _, l := range looks {
		p := openOperatorPage(t, l)
		for name, url := range pages {
			t.Run(name+", "+l.String(), func(t *testing.T) {
				p.visit(t, url)
				p.checkWidth(t)
				p.checkConsole(t)
				p.visit(t, url)
				p.checkAccess(t)
				p.checkWidth(t) // with all details open
			})
		}
	}
}

// testConsoleBulk acts on several tasks.
func testConsoleBulk(t *testing.T, s *operated) {
	for range 2 {
		s.run(t, "shop", "slow")
	}
	if _, err := s.run(t, "shop", "locked").Wait(t.Context()); err == nil {
		t.Fatal("the repository is not locked")
	}
	const bar = `document.querySelector(".bulk .bar").checkVisibility()`
	for _, l := range looks {
		p := openOperatorPage(t, l)
		p.visit(t, s.page+"tasks")
		p.is(t, "!"+bar+` && !document.getElementById("all").hidden`)
		p.click(t, "tbody tr:first-of-type input", "")
		p.until(t, bar+` && document.getElementById("chosen").value === "1 chosen:" && document.getElementById("all").indeterminate`)
		p.checkWidth(t)
		p.checkAccess(t)
		p.checkWidth(t) // with all details open
	}
	p := openOperatorPage(t, looks[0])
	p.visit(t, s.page+"tasks")
	p.click(t, "#all", "")
	p.until(t, `document.getElementById("chosen").value === "3 chosen:"`)
	another := s.run(t, "shop", "slow")
	p.until(t, `document.querySelectorAll("tbody tr").length === 4`)
	p.until(t, `document.getElementById("chosen").value === "3 chosen:" && document.querySelectorAll("tbody input:checked").length === 3`) // the new one is not chosen
	p.click(t, "#bulk-cancel summary", "Cancel")
	p.click(t, "#bulk-cancel button", "Cancel the chosen tasks")
	p.shows(t, ".problem", "the task has already ended")
	p.shows(t, ".done", "2 of 3 tasks cancelled.")
	p.until(t, `document.getElementById("live").dataset.state === "live"`)
	p.checkAccess(t)
	p.is(t, `[...document.querySelectorAll("tbody .is")].filter(cell => cell.innerText === "cancelled").length === 2`)
	s.audited(t, "cancel", "tool=run_pipeline")
	cancel(t, another)

	p = openOperatorPage(t, looks[0]) // the browser has told of the refusal
	p.visit(t, s.page+"tasks?state=failed&ended=last+hour")
	p.click(t, "tbody input", "")
	p.press(t, kb.Tab) // the keyboard goes on to the bar
	p.tabTo(t, "#bulk-again summary")
	p.press(t, kb.Enter)
	p.tabTo(t, "#bulk-again button")
	p.press(t, kb.Enter)
	p.shows(t, ".done", "1 task run again")
	p.until(t, `document.querySelectorAll("tbody tr").length === 2`) // it fails once more
	s.audited(t, `"run again"`, "tool=run_pipeline .*former=")
	p.visit(t, s.page)
	p.until(t, `document.querySelector(".alarm a").innerText === "2" && document.querySelector("#tool-run_pipeline a.failures").innerText === "2"`)
	p.click(t, ".alarm a", "2")
	p.until(t, `document.querySelectorAll("tbody tr").length === 2`)
	p.checkConsole(t)
}

// testConsoleLate stops a process without ending it, and looks at its task through another one.
func testConsoleLate(t *testing.T, s *operated) {
	s.run(t, "shop", "slow")
	other := &operated{terminal: s.terminal, binary: s.binary, address: net.JoinHostPort("127.0.0.1", freePort(t))}
	other.start(t)
	other.page = "http://" + other.address + "/console/"
	overview, task := openOperatorPage(t, looks[0]), openOperatorPage(t, looks[3])
	overview.visit(t, other.page)
	task.visitNewest(t, other)
	name := fmt.Sprint(", pid ", s.process.cmd.Process.Pid)
	overview.shows(t, "#workers", name)
	send := func(signal syscall.Signal) {
		if err := syscall.Kill(-s.process.cmd.Process.Pid, signal); err != nil {
			t.Error(err)
		}
	}
	send(syscall.SIGSTOP)
	t.Cleanup(func() { send(syscall.SIGCONT) })
	overview.shows(t, "#workers", name+" late")
	overview.checkAccess(t)
	task.shows(t, "#status", "Its worker is late: ")
	task.checkAccess(t)
	task.checkWidth(t)
	task.shows(t, "#status", "another worker starts it again, as run 2 of at most 5")
	task.shows(t, "#timeline", name+" died or was cut off; run 2 has followed")
	task.shows(t, "#status", fmt.Sprint(", pid ", other.process.cmd.Process.Pid))
	task.checkAccess(t)
	task.checkConsole(t)
}

// stay marks the page and the element that has the focus, and returns a function that checks that both are still there.
func (p *operatorPage) stay(t *testing.T) func() {
	t.Helper()
	p.is(t, "document.activeElement !== document.body")
	evaluate[any](p.tab, t, "window.before = document.activeElement, null")
	return func() {
		t.Helper()
		p.is(t, "window.before === document.activeElement && window.before.isConnected")
	}
}

// testConsoleLive looks at pages while tasks change.
func testConsoleLive(t *testing.T, s *operated) {
	if _, err := s.run(t, "shop", "main").Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("overview", func(t *testing.T) {
		p := openOperatorPage(t, looks[0])
		p.visit(t, s.page)
		p.tabTo(t, "#tool-run_pipeline a")
		stays := p.stay(t)
		running := s.run(t, "shop", "slow")
		p.until(t, `document.querySelector("#tool-run_pipeline td:nth-of-type(2)").innerText === "1"`)
		stays()
		p.is(t, `document.querySelector("#totals div:nth-of-type(2) dd").innerText === "1"`)
		asking := s.deploy(t, "api")
		p.shows(t, "#open", "ship")
		p.until(t, `document.querySelector("#tool-deploy_service td:nth-of-type(3)").innerText === "1"`)
		stays()
		p.is(t, `document.querySelector("#workers tbody td").innerText === "2"`)
		cancel(t, running)
		p.until(t, `document.querySelector("#tool-run_pipeline td:nth-of-type(2)").innerText === "0"`)
		if _, err := asking.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.shows(t, "#open", "No open questions.")
		stays()
		p.until(t, `[...document.querySelectorAll("#totals rect")].reduce((sum, bar) => sum + parseInt(bar.textContent), 0) === 3`)
		stays()
		p.checkConsole(t)
	})
	t.Run("tasks", func(t *testing.T) {
		p := openOperatorPage(t, looks[0])
		p.visit(t, s.page+"tasks")
		p.tabTo(t, "tbody a")
		stays := p.stay(t)
		running := s.run(t, "shop", "slow")
		p.shows(t, "tbody tr:first-of-type", "running")
		stays()
		p.shows(t, "tbody tr:first-of-type", "2/4")
		p.shows(t, "tbody tr:first-of-type", "test")
		stays()
		cancel(t, running)
		p.shows(t, "tbody tr:first-of-type", "cancelled")
		stays()
		p.checkConsole(t)
	})
	t.Run("task", func(t *testing.T) {
		p := openOperatorPage(t, looks[0])
		var running *mcptask.Call[pipeline.RunReport]
		for try := 1; ; try++ { // until the page is there before the last report is, which a busy machine may never be
			running = s.run(t, "shop", "slow")
			p.visitNewest(t, s) // at once: an open list would show the task up to a second later
			if try == 10 || evaluate[bool](p.tab, t, `!document.getElementById("status").innerText.includes("2/4")`) {
				break
			}
			cancel(t, running)
		}
		p.tabTo(t, "#again summary")
		stays := p.stay(t)
		p.shows(t, "#status", "2/4")
		p.shows(t, "#timeline", "reported test")
		stays()
		p.is(t, `document.getElementById("cancel")`)
		cancel(t, running)
		p.shows(t, "#status", "cancelled")
		p.shows(t, "#timeline", "ended cancelled")
		p.until(t, `!document.getElementById("cancel")`)
		stays()
		p.checkConsole(t)
	})
	t.Run("question", func(t *testing.T) {
		p := openOperatorPage(t, looks[0])
		asking := s.deploy(t, "search")
		p.visitNewest(t, s)
		p.is(t, `document.querySelector(".question form")`)
		p.tabTo(t, ".question summary")
		p.press(t, kb.Enter)
		p.until(t, `document.querySelector(".question details").open`)
		if _, err := asking.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.shows(t, ".question h2", "answered")
		p.until(t, `!document.querySelector(".question form")`)
		p.shows(t, "#timeline", "answered ship")
		p.checkConsole(t)
	})
}

// testConsoleRestart looks at a page while its server is away, and while nobody sees the page.
func testConsoleRestart(t *testing.T, s *operated) {
	const isLive = `document.getElementById("live").dataset.state === "live"`
	s.deploy(t, "api")
	p := openOperatorPage(t, looks[0])
	p.visit(t, s.page+"tasks")
	see := func(state string) {
		evaluate[any](p.tab, t, `Object.defineProperty(document, "visibilityState", {value: "`+state+`", configurable: true}),
			document.dispatchEvent(new Event("visibilitychange")), null`)
	}
	see("hidden")
	p.is(t, "!("+isLive+") && events.readyState === EventSource.CLOSED")
	s.deploy(t, "search")
	see("visible")
	p.until(t, isLive+` && document.querySelectorAll("tbody tr").length === 2`)

	s.process.interrupt(t)
	s.process.wait(t)
	p.shows(t, "#live", "not live")
	// A proxy reports that the server is away.
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 100)
	proxy := &http.Server{ReadHeaderTimeout: bound, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		asked <- struct{}{}
	})}
	go func() { _ = proxy.Serve(listener) }()
	select {
	case <-asked:
	case <-time.After(bound):
		t.Error("the page does not ask for the server that is away")
	}
	if err := proxy.Close(); err != nil {
		t.Error(err)
	}
	s.start(t)
	p.until(t, isLive+` && [...document.querySelectorAll("tbody tr")].every(row => row.innerText.includes("failed"))`) // they were lost
	p.click(t, "tbody a", "")
	p.shows(t, "#timeline", "ended failed")
	p.click(t, "#again summary", "Run it again")
	p.click(t, "#again button", "Run it again")
	p.shows(t, ".question h2", "open")
}

// testConsoleList filters a list and goes to its next page.
func testConsoleList(t *testing.T, s *operated) {
	for range 60 {
		if _, err := s.run(t, "shop", "locked").Wait(t.Context()); err == nil {
			t.Fatal("the repository is not locked")
		}
	}
	s.deploy(t, "api")
	const rows = `[...document.querySelectorAll("tbody tr")]`
	p := openOperatorPage(t, looks[0])
	p.visit(t, s.page+"tasks")
	p.is(t, rows+`.length === 50 && `+rows+`[0].innerText.includes("deploy_service")`)
	first := evaluate[[]string](p.tab, t, rows+".map(row => row.id)")
	p.click(t, "a[rel=next]", "Older")
	p.until(t, rows+".length === 11")
	for _, id := range first {
		p.is(t, "!document.getElementById("+quote(t, id)+")")
	}
	p.until(t, `document.getElementById("live").dataset.state === "live"`)

	p.set(t, "select[name=tool]", "deploy_service")
	p.set(t, "select[name=state]", "asking")
	p.set(t, "select[name=age]", "last hour")
	p.click(t, ".filter button", "Filter")
	p.until(t, rows+`.length === 1 && `+rows+`[0].innerText.includes("deploy_service")`)
	p.is(t, `document.querySelector("select[name=state]").value === "asking" && document.querySelector("select[name=age]").value === "last hour"`)
	p.set(t, "select[name=tool]", "run_pipeline")
	p.click(t, ".filter button", "Filter")
	p.shows(t, "#list", "No tasks match.")
	p.click(t, ".filter a", "Clear")
	p.until(t, rows+".length === 50")
	p.set(t, "input[name=text]", "nothing says that")
	p.click(t, ".filter button", "Filter")
	p.shows(t, "#list", "No tasks match.")
	p.checkConsole(t)
}

// audited waits for a line of the server's audit trail.
func (s *operated) audited(t *testing.T, action, more string) {
	t.Helper()
	s.process.out.wait(t, `audit=operator action=`+action+` operator=local .*`+more)
}

// testConsoleActions steps in.
func testConsoleActions(t *testing.T, s *operated) {
	p := openOperatorPage(t, looks[0])
	asking := s.deploy(t, "api")
	p.visitNewest(t, s)
	p.shows(t, ".question blockquote", "Ship api to production?")
	p.is(t, `document.querySelector(".question select").value === "false"`) // the default
	p.set(t, ".question select", "")
	p.click(t, ".question button", "Answer") // which the browser refuses
	p.is(t, `document.querySelector(".question select:invalid") && !document.querySelector("[role=alert]")`)
	p.is(t, `!(document.querySelector(".question select").required = false)`)
	p.click(t, ".question button", "Answer")
	p.shows(t, "[role=alert]", "Not done")
	p.set(t, ".question select", "true")
	p.click(t, ".question button", "Answer")
	p.shows(t, ".question h2", "answered")
	p.shows(t, "#timeline", "answered ship by local")
	p.shows(t, "#status", "completed")
	s.audited(t, "answer", "tool=deploy_service .*key=ship")
	if report, err := asking.Wait(t.Context()); err != nil || report.Version == "" {
		t.Errorf("the requestor got %v: %v", report, err)
	}

	declined := s.deploy(t, "search")
	p.visitNewest(t, s)
	p.click(t, ".question button", "Decline")
	p.shows(t, "#status", "failed")
	if _, err := declined.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("the requestor of what was declined got: %v", err)
	}

	running := s.run(t, "shop", "slow")
	p.visitNewest(t, s)
	p.shows(t, "#arguments", `"branch": "slow"`)
	s.audited(t, "reveal", `what="arguments and principal"`)
	p.is(t, `!document.querySelector("#cancel button").checkVisibility()`)
	p.click(t, "#cancel summary", "Cancel")
	p.click(t, "#cancel button", "Cancel")
	p.shows(t, "#timeline", "ended cancelled by local")
	p.is(t, `!document.getElementById("cancel")`)
	s.audited(t, "cancel", "tool=run_pipeline")
	if _, err := running.Wait(t.Context()); err == nil {
		t.Error("the requestor of a cancelled task got a result")
	}
	former := evaluate[string](p.tab, t, "location.pathname")
	p.click(t, "#again summary", "Run it again")
	p.click(t, "#again button", "Run it again")
	p.until(t, `location.pathname !== `+quote(t, former)+` && document.getElementById("cancel")`)
	p.shows(t, "#status", "running")
	p.shows(t, "#timeline", "created again")
	s.audited(t, `"run again"`, "tool=run_pipeline .*former=")
}

// reachable are the elements that the key Tab has to reach, in this order.
const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")]
	.filter(element => element.checkVisibility())`

// testConsoleKeyboard uses only the keyboard.
func testConsoleKeyboard(t *testing.T, s *operated) {
	pages := consolePages(t, s)
	for _, l := range looks {
		p := openOperatorPage(t, l)
		for name, url := range pages {
			t.Run(name+", "+l.String(), func(t *testing.T) {
				p.visit(t, url)
				count := evaluate[int](p.tab, t, "(window.reachable = "+reachable+").length")
				for i := range count {
					p.press(t, kb.Tab)
					problem := evaluate[string](p.tab, t, fmt.Sprintf("(%s)(%d)", `want => {
						const element = document.activeElement;
						if (element !== window.reachable[want]) return "is not " + window.reachable[want].outerHTML + " but " + element.outerHTML;
						const style = getComputedStyle(element), box = element.getBoundingClientRect();
						if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) return "has no outline: " + element.outerHTML;
						const outside = box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth;
						return outside || box.width < 1 || box.height < 1 ? "is not in the window: " + element.outerHTML : "";
					}`, i))
					if problem != "" {
						t.Errorf("element %d, which has the focus, %s", i, problem)
					}
				}
				p.visit(t, url)
				p.press(t, kb.Tab)
				p.is(t, `document.activeElement.matches(".skip")`)
				p.press(t, kb.Enter)
				p.until(t, `location.hash === "#main"`)
				p.press(t, kb.Tab)
				p.is(t, `document.activeElement === document.querySelector("main :is(a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex])")`)
			})
		}
	}
	p := openOperatorPage(t, looks[0])
	p.visit(t, pages["a task that runs"])
	p.tabTo(t, "#cancel summary")
	p.press(t, kb.Enter)
	p.tabTo(t, "#cancel button")
	p.press(t, kb.Enter)
	p.shows(t, "#timeline", "ended cancelled by local")
}

var consolePictures = flag.String("console-pictures", "", "write the pictures that TestConsolePictures takes into this `directory`")

// TestConsolePictures brings the page into the states that the documentation shows: an overview of a server at work, and a
// task that asks.
func TestConsolePictures(t *testing.T) {
	peer.Need(t, "chromium", "install chromium")
	s := serveOperated(t, peer.Build(t, "../pipeline"))
	for i, repository := range []string{"shop", "search", "billing", "shop", "mobile", "search", "shop", "billing"} {
		_, err := s.run(t, repository, []string{"main", "main", "broken", "locked"}[i%4]).Wait(t.Context())
		if (err == nil) != (i%4 < 2) {
			t.Fatal(err)
		}
	}
	for _, service := range []string{"payments", "api", "search"} {
		s.deploy(t, service)
	}
	for _, repository := range []string{"shop", "search", "mobile", "billing"} {
		s.run(t, repository, "slow")
	}
	p := openOperatorPage(t, looks[0])
	p.visit(t, s.page)
	p.until(t, `document.querySelector("#tool-run_pipeline td:nth-of-type(2)").innerText === "4"`)
	p.picture(t, "overview")
	p.visit(t, s.page+"tasks")
	p.picture(t, "tasks")
	p.click(t, "tbody tr:nth-of-type(5) a", "") // the last of those that ask
	p.shows(t, ".question blockquote", "Ship search to production?")
	p.set(t, ".question select", "true")
	p.picture(t, "task")
}

// picture takes pictures of the page in both schemes and widths, and writes them if they are wanted.
func (p *operatorPage) picture(t *testing.T, name string) {
	t.Helper()
	for suffix, l := range map[string]look{"": looks[0], "-dark": looks[1], "-phone": looks[2], "-phone-dark": looks[3]} {
		p.show(t, l)
		shot, err := chromedp.Run(p.tab, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if *consolePictures == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(*consolePictures, "console-"+name+suffix+".png"), shot, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
