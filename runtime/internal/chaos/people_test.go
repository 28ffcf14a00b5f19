package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crowd is the clients of a test.
type crowd struct {
	record *recorder
	// urls are those of all replicas.
	urls []string
	// sticky says that sessions live in one process.
	sticky bool
	seed   uint64
	// hurry says that clients hardly wait between polls, and that tools take a tenth of their time.
	hurry bool

	people []*person
	tasks  atomic.Int64
}

// person is a client with a task at a time. It makes its tasks in one revision and sometimes uses the other one.
type person struct {
	crowd  *crowd
	random *rand.Rand
	name   string
	links  [2]*link // the first one is of the person's revision
	era    int      // counts the principals of the person
	calls  int
	// known are the tasks of the principal that have been acknowledged.
	known map[string][]string
}

// tasksOfPrincipal is how many tasks a principal has, more or less, so that the last lists are not long.
const tasksOfPrincipal = 120

// newCrowd makes people of both revisions.
func newCrowd(record *recorder, urls []string, sticky bool, people int, seed uint64) *crowd {
	c := &crowd{record: record, urls: urls, sticky: sticky, seed: seed}
	for i := range people {
		p := &person{crowd: c, random: rand.New(rand.NewPCG(seed, uint64(i))), name: fmt.Sprint("p", i), known: map[string][]string{}}
		revisions := [2]string{legacy, modern}
		if i%2 == 1 {
			slices.Reverse(revisions[:])
		}
		for j, revision := range revisions {
			p.links[j] = &link{name: p.name, revision: revision, sticky: sticky, record: record,
				http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
				choose: func() string { return urls[p.random.IntN(len(urls))] },
			}
		}
		p.become()
		c.people = append(c.people, p)
	}
	return c
}

// become makes the person a new principal.
func (p *person) become() {
	p.era++
	p.calls = 0
	for _, l := range p.links {
		l.principal, l.sessions = fmt.Sprint(p.name, ".", p.era), map[string]string{}
	}
}

// run lets the people work until ctx ends.
func (c *crowd) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range c.people {
		all.Go(func() {
			for ctx.Err() == nil {
				p.live()
				if p.calls >= tasksOfPrincipal {
					p.become()
				}
			}
		})
	}
	all.Wait()
}

// chance is true in so many of a hundred cases.
func (p *person) chance(percent int) bool { return p.random.IntN(100) < percent }

// link returns the link for the next request: mostly that of the person's revision.
func (p *person) link() *link {
	if p.chance(15) {
		return p.links[1]
	}
	return p.links[0]
}

// pause waits a little, as clients do between polls.
func (p *person) pause() {
	if p.crowd.hurry {
		time.Sleep(time.Millisecond)
		return
	}
	time.Sleep(time.Duration(5+p.random.IntN(25)) * time.Millisecond)
}

// live makes a task and follows it for a while.
func (p *person) live() {
	ctx := context.Background()
	tool := []Tool{ToolRestart, ToolRestart, ToolFail, ToolFail, ToolAsk, ToolWatch}[p.random.IntN(6)]
	in := workInput{MS: []int{0, 10, 60, 400}[p.random.IntN(4)]}
	if tool == ToolWatch {
		in.MS = 4000 // longer than a cancellation may take
	}
	if p.crowd.hurry {
		in.MS /= 10
	}
	task := p.create(ctx, tool, in)
	if task == "" {
		p.pause()
		return
	}
	cancels := -1
	if tool == ToolWatch || p.chance(10) {
		cancels = p.random.IntN(6)
	}
	for poll := range 60 {
		if poll == cancels {
			p.link().cancel(ctx, task)
			if p.chance(60) {
				return // so that no request reminds a server of the task
			}
		}
		if p.look(ctx, task) && !p.chance(20) {
			return
		}
		p.pause()
	}
}

// create makes a task, and returns "" if it does not know its ID.
func (p *person) create(ctx context.Context, tool Tool, in workInput) (task string) {
	p.calls++
	principal := p.links[0].principal
	in.Nonce = fmt.Sprintf("n%d.%s.%d", p.crowd.seed, principal, p.calls)
	key := ""
	if p.chance(50) {
		key = "key of " + in.Nonce
	}
	o := p.links[0].create(ctx, tool, in, key, "")
	for try := 0; o.Reply != ReplyOK && key != "" && try < 100 && !strings.HasPrefix(o.Error, errAtOnce.Error()); try++ {
		p.pause()
		o = p.links[0].create(ctx, tool, in, key, "")
	}
	if o.Reply != ReplyOK {
		return ""
	}
	p.crowd.tasks.Add(1)
	p.known[principal] = append(p.known[principal], o.Task)
	if key != "" && p.chance(20) {
		p.links[0].create(ctx, tool, in, key, o.Task)
	}
	if key != "" && p.chance(10) {
		in.Nonce += ".other"
		p.links[0].create(ctx, tool, in, key, "")
	}
	return o.Task
}

// look reads a task in some way, and answers its questions. It reports whether the task has ended.
func (p *person) look(ctx context.Context, task string) (ended bool) {
	l := p.link()
	if l.revision == legacy && p.chance(40) {
		ctx, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
		defer cancel()
		o := l.await(ctx, task, func(step string) string { return p.say(step) })
		return o.View != nil
	}
	o := l.get(ctx, task)
	if o.View == nil {
		return false
	}
	for _, step := range o.View.Open {
		if p.chance(80) {
			l.update(ctx, task, step, p.say(step))
		}
	}
	return o.View.Status.isFinal()
}

// say returns an answer that nobody gives twice.
func (p *person) say(step string) string {
	return fmt.Sprintf("%s to %s %d", p.name, step, p.random.Uint64())
}

// audit reads every task that is known until it has ended, in both revisions, and all lists. It reports the tasks that
// are missing after a while; the checker says why that is a fault.
func (c *crowd) audit(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range c.people {
		all.Go(func() {
			for principal, tasks := range p.known {
				for _, l := range p.links {
					l.principal, l.sessions = principal, map[string]string{}
				}
				listed := false
				for _, l := range p.links {
					for try := 0; l.revision == legacy && !listed && try < 100 && ctx.Err() == nil; try++ {
						o := l.list(ctx)
						if listed = o.Reply == ReplyOK; !listed {
							p.pause()
							continue
						}
						for _, id := range o.Listed {
							if !slices.Contains(tasks, id) {
								tasks = append(tasks, id)
							}
						}
					}
				}
				for left := tasks; len(left) > 0 && ctx.Err() == nil; p.pause() {
					left = slices.DeleteFunc(slices.Clone(left), func(task string) bool { return p.settle(ctx, task) })
				}
			}
		})
	}
	all.Wait()
}

// settle reads a task in both revisions, and its outcome. It answers the questions of a task that has not ended, and
// returns false.
func (p *person) settle(ctx context.Context, task string) (ended bool) {
	ended = true
	for _, l := range p.links {
		o := l.get(ctx, task)
		if o.Reply == ReplyMissing {
			continue
		}
		if o.View == nil || !o.View.Status.isFinal() {
			ended = false
		}
		if o.View == nil {
			continue
		}
		for _, step := range o.View.Open {
			l.update(ctx, task, step, p.say(step))
		}
		if l.revision == legacy && o.View.Status != StatusWorking && l.await(ctx, task, p.say).View == nil {
			ended = false
		}
	}
	return ended
}
