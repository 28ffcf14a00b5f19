//go:build long && unix

package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// hosts are the clients. Each has a file of its own.
var hosts = []host{
	inspectorCLI, inspectorDo, mcporter, wong2,
	mcpRemote, supergatewayToHTTP, supergatewayToStdio, mcpProxy,
	inspectorWeb,
	typeScript1,
	typeScript2,
	goSDK,
	mcpGo,
}

// host is a published program that speaks MCP to our server.
type host struct {
	// name is its name in the table. module is its npm package.
	name, module string
	// version finds the version of a program that is not in an npm package. It may be nil.
	version func(t *testing.T) string
	// routes are the ways in which it reaches our server.
	routes []route
}

// route is one transport and one revision of a host.
type route struct {
	// over and revision are their names in the table.
	over, revision string
	// stdio means that the client starts the server as a command. Otherwise it gets a URL.
	stdio bool
	// polls means that the client accepts a task in answer to a call, and waits for it.
	polls bool
	// keeps means that the client keeps its connection between calls. Short cases then share it.
	keeps bool
	// once means that each call is a process of its own. Over stdio each has a server of its own.
	once bool
	// open makes the driver of one case. It may also implement tasker, asker, sampler and caller.
	open func(t *testing.T, s *server) driver
	// cannot has the cases in which the client fails. A client that was mended fails the test, because the row differs.
	cannot map[string]failing
}

// failing is how a client fails.
type failing struct {
	// words is the pattern of the client's own words.
	words string
	// note is the text of the table. If it is "", the table has the words of the client.
	note string
}

// driver uses a client as a person or a model does.
type driver interface {
	// list lists the tools.
	list(t *testing.T) reply
	// call calls a tool and waits for as long as the client waits.
	call(t *testing.T, tool string, args object) reply
}

// tasker is a driver of a client that can call a tool as a task.
type tasker interface {
	// startTask starts a task and returns its ID.
	startTask(t *testing.T, tool string, args object) (id string, said reply)
	// result waits for the task's result.
	result(t *testing.T, id string) reply
	// cancel cancels the task.
	cancel(t *testing.T, id string) reply
}

// poller is a tasker of a client that polls a task from its start.
type poller interface {
	// hasEnded reports whether it does not poll any more.
	hasEnded(t *testing.T) bool
}

// asker is a driver of a client that asks its user.
type asker interface {
	// ask calls a tool, gives the answer when the client asks for it, and waits for the result.
	ask(t *testing.T, tool string, args, answer object) reply
}

// sampler is a driver of a client that has a model.
type sampler interface {
	// sample calls a tool, lets the model say the line, and waits for the result.
	sample(t *testing.T, tool string, args object, line string) reply
}

// caller is a driver that can do something during a call.
type caller interface {
	// during calls a tool and runs meanwhile, which may interrupt the client as a person does. It returns when the call
	// has ended.
	during(t *testing.T, tool string, args object, meanwhile func(interrupt func())) reply
}

// object is a JSON object.
type object = map[string]any

// toJSON encodes an object.
func toJSON(o object) string {
	data, err := json.Marshal(o)
	if err != nil {
		panic(err) // made of strings and numbers
	}
	return string(data)
}

// reply is the output of a client.
type reply struct{ text string }

// has reports whether the client showed a text.
func (r reply) has(text string) bool { return strings.Contains(r.plain(), text) }

// plain returns the text without the escapes of JSON in JSON.
func (r reply) plain() string {
	return strings.NewReplacer(`\\\"`, `"`, `\"`, `"`, `\n`, "\n").Replace(r.text)
}

// nextStep finds the fallback tool that the server tells the model to call next, in structured content or in the text.
var nextStep = []*regexp.Regexp{
	regexp.MustCompile(`"next":\s*\{\s*"tool":\s*"(\w+)",\s*"arguments":\s*(\{[^{}]*\})`),
	regexp.MustCompile(`\b(task_answer|task_result) with (\{[^{}]*\})`),
}

// next returns that tool with its arguments. A question is answered with yes.
func (r reply) next() (tool string, args object, ok bool) {
	for _, step := range nextStep {
		match := step.FindStringSubmatch(r.plain())
		if match == nil || json.Unmarshal([]byte(match[2]), &args) != nil {
			continue
		}
		if match[1] == "task_answer" {
			args["answer"] = object{"agreed": true}
		}
		return match[1], args, true
	}
	return "", nil, false
}

// outcome is how a case ended.
type outcome struct{ kind, note string }

// stage is one case of one route.
type stage struct {
	host   host
	route  route
	name   string
	server *server
	driver driver
}

// steps runs each case.
var steps = map[string]func(*stage, *testing.T) outcome{
	"list": (*stage).list, "quick": (*stage).quick, "long": (*stage).long, "task": (*stage).task,
	"question": (*stage).question, "sampling": (*stage).sampling, "cancel": (*stage).cancel, "restart": (*stage).restart,
}

// list lists the tools.
func (c *stage) list(t *testing.T) outcome {
	said := c.driver.list(t)
	for _, tool := range []string{"price", "bake", "order", "advertise"} {
		if !said.has(tool) {
			return c.failed(t, said)
		}
	}
	return outcome{works, ""}
}

// quick calls a tool that answers at once.
func (c *stage) quick(t *testing.T) outcome {
	return c.finish(t, c.driver.call(t, "price", object{"bread": "pumpernickel"}), "1200")
}

// long calls a tool that takes three minutes, and knows nothing of tasks.
func (c *stage) long(t *testing.T) outcome {
	return c.finish(t, c.driver.call(t, "bake", object{"loaves": 7}), "7 loaves are baked")
}

// quietly are the arguments of a tool that runs as a task. It says nothing for so long that a client polls that hears of
// changes without polls: after five seconds.
var quietly = object{"loaves": 8, "seconds": 15, "quiet": true}

// task runs a tool as a task.
func (c *stage) task(t *testing.T) outcome {
	tasks, ok := c.driver.(tasker)
	if !ok {
		return c.noTasks(t)
	}
	id, said := tasks.startTask(t, "bake", quietly)
	if id == "" {
		return c.noTask(t, said, "8 loaves are baked")
	}
	return c.finish(t, tasks.result(t, id), "8 loaves are baked")
}

// noTask is the outcome of a call that should have become a task.
func (c *stage) noTask(t *testing.T, said reply, result string) outcome {
	t.Helper()
	if said.has(result) {
		return outcome{cannot, "The call is answered when the work is done: there is no task to the client."}
	}
	return c.failed(t, said)
}

// noTasks runs a tool with a client that has no command for tasks. It may wait for a task by itself.
func (c *stage) noTasks(t *testing.T) outcome {
	said := c.driver.call(t, "bake", quietly)
	if c.route.polls && said.has("8 loaves are baked") {
		return outcome{works, ""}
	}
	if said.has("8 loaves are baked") {
		return outcome{cannot, "It does not use tasks."}
	}
	return c.failed(t, said)
}

// question calls a tool that asks the person.
func (c *stage) question(t *testing.T) outcome {
	args := object{"bread": "rye", "loaves": 9}
	var said reply
	if person, ok := c.driver.(asker); ok {
		said = person.ask(t, "order", args, object{"agreed": true})
	} else {
		said = c.driver.call(t, "order", args)
	}
	return c.finish(t, said, "9 loaves of rye are ordered")
}

// praise is the model's line.
const praise = "Rye is the king of breads."

// sampling calls a tool that asks the client's model.
func (c *stage) sampling(t *testing.T) outcome {
	var said reply
	if model, ok := c.driver.(sampler); ok {
		said = model.sample(t, "advertise", object{"bread": "rye"}, praise)
	} else {
		said = c.driver.call(t, "advertise", object{"bread": "rye"})
	}
	return c.finish(t, said, praise)
}

// cancel stops the work: the task, or the call, or the task that goes on behind the call.
func (c *stage) cancel(t *testing.T) outcome {
	begun := func() { c.server.log.wait(t, `msg=baking loaves=10$`) }
	if tasks, ok := c.driver.(tasker); ok {
		id, said := tasks.startTask(t, "bake", object{"loaves": 10, "seconds": 30})
		if id == "" {
			return c.noTask(t, said, "10 loaves are baked")
		}
		begun()
		said = tasks.cancel(t, id)
		if !strings.Contains(c.server.log.wait(t, `msg=(baked|"stopped baking") loaves=10\b`), "stopped") {
			if end, ok := c.known(said); ok {
				return end
			}
			return outcome{cannot, goesOn}
		}
		return outcome{works, ""}
	}
	if client, ok := c.driver.(caller); ok {
		client.during(t, "bake", object{"loaves": 10, "seconds": 30}, func(interrupt func()) { begun(); interrupt() })
		if strings.Contains(c.server.log.wait(t, `msg=(baked|"stopped baking") loaves=10\b`), "stopped") {
			return outcome{works, ""}
		}
	}
	// The client was left, and the work went on. A model can still stop it if the call goes on as a task.
	said := c.driver.call(t, "bake", object{"loaves": 11, "seconds": 75})
	_, args, ok := said.next()
	if !ok && said.has("11 loaves are baked") {
		return outcome{cannot, goesOn}
	}
	if !ok {
		return c.failed(t, said)
	}
	said = c.driver.call(t, "task_cancel", args)
	if !strings.Contains(c.server.log.wait(t, `msg=(baked|"stopped baking") loaves=11\b`), "stopped") {
		return c.failed(t, said)
	}
	return outcome{fallback, ""}
}

// restart restarts the server in the middle of the work.
func (c *stage) restart(t *testing.T) outcome {
	const done = "12 loaves are baked"
	begun := func() { c.server.log.wait(t, `msg=baking loaves=12$`) }
	if tasks, ok := c.driver.(tasker); ok {
		id, said := tasks.startTask(t, "bake", object{"loaves": 12, "seconds": 20})
		if id == "" {
			return c.noTask(t, said, "12 loaves are baked")
		}
		begun()
		client, _ := tasks.(poller)
		c.server.restart(t, client)
		return c.finish(t, tasks.result(t, id), done)
	}
	said := c.driver.call(t, "bake", object{"loaves": 12, "seconds": 60})
	switch _, _, ok := said.next(); {
	case ok:
		c.server.restart(t, nil)
	case said.has(done):
		// The client waits for a task by itself.
		client, ok := c.driver.(caller)
		if !ok {
			return c.failed(t, said)
		}
		said = client.during(t, "bake", object{"loaves": 13, "seconds": 20}, func(func()) {
			c.server.log.wait(t, `msg=baking loaves=13$`)
			c.server.restart(t, nil)
		})
		return c.finish(t, said, "13 loaves are baked")
	}
	return c.finish(t, said, done)
}

// goesOn is the reason why work is not stopped.
const goesOn = "If it is interrupted, it does not tell the server, and the work goes on."

// anew is the reason why long work never ends.
const anew = "Each call starts the server anew, and with it the work: what takes longer than `wait` never ends."

// finish follows the server's answers until the result is there, as a model does.
func (c *stage) finish(t *testing.T, said reply, result string) outcome {
	t.Helper()
	kind := works
	for range 20 { // a model would despair earlier
		if said.has(result) {
			return outcome{kind, ""}
		}
		tool, args, ok := said.next()
		if !ok {
			break
		}
		kind = fallback
		if c.route.once && c.route.stdio && strings.Count(c.server.log.String(), "msg=baking") == 3 {
			return outcome{cannot, anew}
		}
		said = c.driver.call(t, tool, args)
	}
	return c.failed(t, said)
}

// known is the outcome if the client shows the words that are known.
func (c *stage) known(said reply) (outcome, bool) {
	end, ok := c.route.cannot[c.name]
	if !ok {
		return outcome{}, false
	}
	words := regexp.MustCompile(end.words).FindString(said.plain())
	return outcome{cannot, cmp.Or(end.note, strings.Join(strings.Fields(words), " "))}, words != ""
}

// failed finds the client's own words for why a case failed. If they are not the known ones, the test fails.
func (c *stage) failed(t *testing.T, said reply) outcome {
	t.Helper()
	if end, ok := c.known(said); ok {
		return end
	}
	t.Errorf("%s showed:\n%s", c.host.name, said.text)
	return outcome{fails, "See the test's output."}
}

// group is the cases of a route that have a server and a driver in common.
type group struct {
	host  host
	route route
	cases []string
}

// name is the case, or stands for several.
func (g group) name() string {
	if len(g.cases) == 1 {
		return g.cases[0]
	}
	return "short"
}

// sampled are the cases that a short run keeps.
var sampled = []string{"quick", "task"}

// groups are all groups, or those of a short run. Those that take long come first, since programs start in this order.
func groups() []group {
	var long, short []group
	for _, h := range hosts {
		for _, r := range h.routes {
			together := group{host: h, route: r}
			for _, name := range cases {
				one := group{h, r, []string{name}}
				switch {
				case testing.Short() && !slices.Contains(sampled, name):
				case slices.Contains([]string{"long", "cancel", "restart"}, name):
					long = append(long, one)
				case r.keeps:
					together.cases = append(together.cases, name)
				default:
					short = append(short, one)
				}
			}
			if r.keeps {
				short = append(short, together)
			}
		}
	}
	return append(long, short...)
}

// TestHosts runs every case of every client, all at once, because most of them only wait. It compares how they end with
// the committed rows. With -short it runs two cases of each.
func TestHosts(t *testing.T) {
	findPackages(t)
	binary := peer.Build(t, ".")
	var (
		mu  sync.Mutex
		got []row
	)
	t.Run("clients", func(t *testing.T) {
		for _, g := range groups() {
			version := g.host.findVersion(t)
			t.Run(strings.Join([]string{g.host.name, g.route.over, g.route.revision, g.name()}, "/"), func(t *testing.T) {
				t.Parallel()
				s := newServer(t, binary, g.route.stdio)
				d := g.route.open(t, s)
				for _, name := range g.cases {
					run := func(t *testing.T) {
						c := &stage{host: g.host, route: g.route, name: name, server: s, driver: d}
						end := steps[name](c, t)
						mu.Lock()
						defer mu.Unlock()
						got = append(got, row{g.host.name, version, g.route.over, g.route.revision, name, end.kind, end.note})
					}
					if len(g.cases) == 1 {
						run(t)
					} else {
						t.Run(name, run)
					}
				}
			})
		}
	})
	compareResults(t, got)
}

// compareResults compares the rows of the cases that ran with the committed rows, or with -update writes them there.
func compareResults(t *testing.T, got []row) {
	t.Helper()
	key := func(r row) [4]string { return [4]string{r.client, r.over, r.revision, r.name} }
	ran := map[[4]string]row{}
	for _, r := range got {
		ran[key(r)] = r
	}
	rows := readResults(t)
	known := map[[4]string]bool{}
	for _, h := range hosts {
		for _, r := range h.routes {
			for _, name := range cases {
				known[[4]string{h.name, r.over, r.revision, name}] = true
			}
		}
	}
	if *update {
		maps.DeleteFunc(ran, func(_ [4]string, r row) bool { return r.outcome == fails })
		rows = slices.DeleteFunc(rows, func(r row) bool { _, again := ran[key(r)]; return again || !known[key(r)] })
		rows = append(rows, slices.Collect(maps.Values(ran))...)
		sortRows(rows)
		writeResults(t, rows)
		return
	}
	for _, want := range rows {
		switch r, again := ran[key(want)]; {
		case !known[key(want)]:
			t.Errorf("%+v: no test does this any more: %s", want, hint)
		case again && r != want:
			t.Errorf("%v: the outcome is %+v, the table has %+v: if that is right, %s", key(want), r, want, hint)
		}
		delete(ran, key(want))
	}
	for _, r := range ran {
		t.Errorf("%+v is not in the table: %s", r, hint)
	}
}

// findVersion finds the version of the program.
func (h host) findVersion(t *testing.T) string {
	t.Helper()
	if h.version != nil {
		return h.version(t)
	}
	return packageVersion(t, filepath.Join(modules, h.module))
}

// packageVersion is the version of the npm package in a directory.
func packageVersion(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var about struct{ Version string }
	if err := json.Unmarshal(data, &about); err != nil {
		t.Fatal(err)
	}
	return about.Version
}
