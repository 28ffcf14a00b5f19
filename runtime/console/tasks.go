package console

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// query has the filter of the list of tasks, and the place in it.
type query struct {
	Tool, State, Age, Ended, Text string
	// Task is the beginning of the tasks' IDs.
	Task string
	// Owner is the principal, sealed; see Console.seal.
	Owner string
	// After is the place in the list.
	After string
}

// state is a value of query.State, with its filter. The workers of some states come later, see addWorkers.
type state struct {
	Name   string
	Filter taskstore.Filter
}

var states = []state{
	{"unfinished", taskstore.Filter{Unfinished: true}},
	{stateWaiting, taskstore.Filter{Waiting: true}},
	{stateRunning, taskstore.Filter{Phase: taskstore.PhaseRunning}},
	{stateAsking, taskstore.Filter{Phase: taskstore.PhaseInputRequired}},
	{stateLost, taskstore.Filter{Unfinished: true}},
	{"ended", taskstore.Filter{Phase: taskstore.PhaseDone}},
	{stateCompleted, taskstore.Filter{Outcome: taskstore.OutcomeResult, IsError: new(bool)}}, // false
	{stateFailed, taskstore.Filter{Failed: true}},
	{stateCancelled, taskstore.Filter{Outcome: taskstore.OutcomeCancelled}},
}

// age is a value of query.Age or query.Ended, with its duration. A negative one admits older tasks.
type age struct {
	Name string
	For  time.Duration
}

// lastHour is the age of the failures that the overview counts.
const lastHour = "last hour"

var (
	endAges = []age{{"last 5 minutes", 5 * time.Minute}, {lastHour, failuresFor}, {"last day", 24 * time.Hour}}
	ages    = append(endAges[:len(endAges):len(endAges)], age{"last week", 7 * 24 * time.Hour}, age{"older than an hour", -time.Hour}, age{"older than a day", -24 * time.Hour})
)

// findAge returns the duration of an age, and 0 for "".
func findAge(ages []age, name string) (time.Duration, error) {
	if name == "" {
		return 0, nil
	}
	for _, a := range ages {
		if a.Name == name {
			return a.For, nil
		}
	}
	return 0, failure{http.StatusBadRequest, fmt.Sprintf("no task has the age %q", name)}
}

func newQuery(values url.Values) query {
	return query{
		Tool: values.Get("tool"), State: values.Get("state"), Age: values.Get("age"), Ended: values.Get("ended"), Text: values.Get("text"),
		Task: cutID(values.Get("task")), Owner: values.Get("owner"), After: values.Get("after"),
	}
}

// cutID returns as much of an ID as a query has: by a longer one, a viewer could find out the whole ID, which is the
// key to an anonymous task.
func cutID(id string) string { return strings.ToValidUTF8(id[:min(len(id), idPrefix)], "") }

// encode returns the query of a URL.
func (q query) encode() string {
	v := url.Values{}
	for name, value := range map[string]string{
		"tool": q.Tool, "state": q.State, "age": q.Age, "ended": q.Ended, "text": q.Text, "task": q.Task, "owner": q.Owner, "after": q.After,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v.Encode()
}

// filter returns the filter of a query, but for the workers.
func (c *Console) filter(q query) (f taskstore.Filter, err error) {
	if q.State != "" {
		at := slices.IndexFunc(states, func(s state) bool { return s.Name == q.State })
		if at < 0 {
			return f, failure{http.StatusBadRequest, fmt.Sprintf("no task has the state %q", q.State)}
		}
		f = states[at].Filter
	}
	if f.Principal, err = c.unseal(q.Owner); err != nil {
		return f, err
	}
	f.Tool, f.Message, f.IDPrefix = q.Tool, q.Text, q.Task
	created, err := findAge(ages, q.Age)
	if err != nil {
		return f, err
	}
	ended, err := findAge(endAges, q.Ended)
	if err != nil {
		return f, err
	}
	now := c.server.Backend().Now()
	switch {
	case created > 0:
		f.CreatedFrom = now.Add(-created)
	case created < 0:
		f.CreatedUntil = now.Add(created)
	}
	if ended > 0 {
		f.EndedFrom = now.Add(-ended)
	}
	return f, nil
}

// list is the data of the page of tasks.
type list struct {
	Path    string
	Query   query
	Tools   []string
	States  []string
	Ages    []string
	EndAges []string
	Tasks   []row
	// CanAct lets the viewer choose tasks. Encoded is the query, to come back to it.
	CanAct  bool
	Encoded string
	Bulk    bulk
	// Owner is the mark of the principal whose tasks the list has, or "".
	Owner string
	// Older is the query of the next page, or "", and Newest that of the first one, if this is another.
	Older, Newest string
	// Slow says that the store did not find an answer in time.
	Slow bool
}

// row is a task in a list.
type row struct {
	taskstore.Record
	State string
	// Owner is the principal for a viewer who may reveal, and its mark for others.
	Owner string
	// Started is when the first run began, or zero.
	Started time.Time
	// Asks are the texts of the questions that are open.
	Asks []string
}

// newRow makes the row of a task.
func (c *Console) newRow(ctx context.Context, r taskstore.Record, viewer Viewer, workers []worker) row {
	c.server.Backend().ShowPlace(&r)
	made := row{Record: r, State: stateOf(&r, isLost(r.Phase, r.Claim.Worker, workers)), Owner: c.nameOwner(r.Principal, viewer), Asks: c.listAsks(ctx, r)}
	for _, m := range r.Timeline.Moments() {
		if m.Kind == taskstore.EventStarted {
			made.Started = m.At
			break
		}
	}
	return made
}

// listAsks returns the texts of the open questions of a task, cut for a list. It has the key of a question whose text
// cannot be read.
func (c *Console) listAsks(ctx context.Context, r taskstore.Record) (texts []string) {
	if r.Phase != taskstore.PhaseInputRequired {
		return nil
	}
	whole, err := c.readTask(ctx, r.ID) // a scan may leave the questions out
	if err != nil {
		for _, m := range openQuestions(r) {
			texts = append(texts, m.Text)
		}
		return texts
	}
	for _, in := range whole.Outstanding() {
		texts = append(texts, text.Shorten(cmp.Or(messageOf(in), in.Key), mostAsked))
	}
	return texts
}

// readList reads a page of tasks.
func (c *Console) readList(ctx context.Context, q query, viewer Viewer) (list, error) {
	l := list{Path: c.options.Path, Query: q, CanAct: viewer.Act, Encoded: q.encode()}
	for _, state := range states {
		l.States = append(l.States, state.Name)
	}
	for _, tool := range c.server.Backend().Tools() {
		l.Tools = append(l.Tools, tool.Name)
	}
	if q.Tool != "" && !slices.Contains(l.Tools, q.Tool) {
		l.Tools = append(l.Tools, q.Tool) // of another server
	}
	slices.Sort(l.Tools)
	for _, age := range ages {
		l.Ages = append(l.Ages, age.Name)
	}
	for _, age := range endAges {
		l.EndAges = append(l.EndAges, age.Name)
	}
	filter, err := c.filter(q)
	if err != nil {
		return l, err
	}
	if filter.Principal != "" {
		l.Owner = c.nameOwner(filter.Principal, viewer)
	}
	var after taskstore.Position
	if q.After != "" {
		first := q
		first.After = ""
		l.Newest = "?" + first.encode()
		if after.CreatedAt, after.ID, err = parseReference(q.After); err != nil {
			return l, err
		}
	}
	within, done, err := c.beginRead(ctx)
	var workers []worker
	if err == nil {
		defer done()
		workers, err = c.listWorkers(within, refreshEvery)
	}
	var tasks []taskstore.Record
	if err == nil {
		addWorkers(&filter, q.State, workers)
		tasks, err = c.inspector.Scan(within, filter, after, pageSize+1)
	}
	if err == nil {
		workers, err = c.findWorkers(within, tasks...)
	}
	if err != nil {
		if l.Slow = within.Err() != nil && ctx.Err() == nil; l.Slow {
			c.auditOwners(ctx, viewer, nil, filter.Principal)
			return l, nil
		}
		return l, err
	}
	if len(tasks) > pageSize {
		tasks = tasks[:pageSize]
		last := tasks[pageSize-1]
		q.After = newReference(last.CreatedAt, last.ID[:min(len(last.ID), idPrefix)])
		l.Older = "?" + q.encode()
	}
	c.auditOwners(ctx, viewer, tasks, filter.Principal)
	for i := range tasks {
		l.Tasks = append(l.Tasks, c.newRow(within, tasks[i], viewer, workers))
	}
	return l, nil
}

func (c *Console) showTasks(w http.ResponseWriter, r request) error {
	values := r.URL.Query()
	l, err := c.readList(r.Context(), newQuery(values), r.viewer)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(values.Get("count"), 10, 8); err == nil {
		l.Bulk.Done, _ = describeBulk(values.Get("did"), int(n), int(n))
	}
	return c.writeList(w, http.StatusOK, r, l)
}

func (c *Console) writeList(w http.ResponseWriter, status int, r request, l list) error {
	return c.write(w, status, "tasks.html", page{Title: "Tasks", View: "tasks?" + l.Encoded, Viewer: r.viewer, Data: l})
}

// search goes to the list of the tasks that a form asks for. It is a POST: neither a principal nor the ID of an
// anonymous task, which is the key to it, may stand in a URL.
func (c *Console) search(w http.ResponseWriter, r request) error {
	r.Body = http.MaxBytesReader(w, r.Body, answerLength)
	if err := r.ParseForm(); err != nil {
		return failure{http.StatusBadRequest, "the form cannot be read"}
	}
	q := newQuery(r.PostForm)
	if id := r.PostForm.Get("task"); id != "" {
		if q.Task = cutID(strings.TrimRight(strings.TrimSpace(id), ".…")); q.Task == "" {
			return failure{http.StatusNotFound, "no task has such an ID"}
		}
	}
	if principal := r.PostForm.Get("principal"); principal != "" {
		if !r.viewer.Reveal {
			return failure{http.StatusForbidden, "you may not look for principals"}
		}
		if q.Owner = c.seal(principal); q.Owner == "" {
			return failure{http.StatusBadRequest, fmt.Sprintf("a principal of more than %d bytes cannot be looked for", maxSealed)}
		}
		c.server.Operator(r.viewer.Name).Reveal(r.Context(), taskstore.Record{Principal: principal, Tool: q.Tool}, "tasks of the principal")
	}
	c.goTo(w, "tasks?"+q.encode())
	return nil
}

// hash returns a keyed hash.
func (c *Console) hash(use, value string) []byte {
	sum := hmac.New(sha256.New, c.key)
	_, _ = sum.Write([]byte(use + value)) // never fails
	return sum.Sum(nil)
}

// markPrincipal returns a mark by which owners can be told apart. It does not tell who they are.
func (c *Console) markPrincipal(principal string) string {
	if principal == "" {
		return "anonymous"
	}
	return "owner " + hex.EncodeToString(c.hash("mark", principal))[:6]
}

// nameOwner returns a principal for a viewer who may reveal, and its mark for others.
func (c *Console) nameOwner(principal string, viewer Viewer) string {
	if principal == "" || !viewer.Reveal {
		return c.markPrincipal(principal)
	}
	return principal
}

// Principals are sealed in pieces of sealedIn bytes, which hides their length, and only up to maxSealed bytes: a URL
// has no room for more.
const (
	sealedIn  = 64
	maxSealed = 1 << 10
)

// seal encrypts a principal, so that it can stand in a URL. The same principal gives the same text. It returns "" for
// the anonymous one, and for one that is too long.
func (c *Console) seal(principal string) string {
	if principal == "" || len(principal) > maxSealed {
		return ""
	}
	plain := append([]byte(principal), 1)
	plain = append(plain, make([]byte, (sealedIn-len(plain)%sealedIn)%sealedIn)...)
	nonce := c.hash("nonce", principal)[:c.cipher.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(c.cipher.Seal(nonce, nonce, plain, nil))
}

// unseal returns the principal that seal has encrypted.
func (c *Console) unseal(sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	size := min(c.cipher.NonceSize(), len(data))
	if err == nil && size == c.cipher.NonceSize() {
		data, err = c.cipher.Open(nil, data[:size], data[size:], nil)
	}
	if err != nil || size < c.cipher.NonceSize() {
		return "", failure{http.StatusBadRequest, "the owner in the address is of another process of this server, or of one before its restart: look for the owner again"}
	}
	return strings.TrimSuffix(strings.TrimRight(string(data), "\x00"), "\x01"), nil
}
