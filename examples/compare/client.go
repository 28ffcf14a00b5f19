package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// clients is the number of clients that send requests at the same time, each on a connection of its own.
const clients = 16

// client sends requests of one revision to one server. It is safe for concurrent use.
type client struct {
	http     *http.Client
	url      string
	revision string
	session  string // of 2025-11-25
	lastID   atomic.Int64
}

// newClient makes a client. In 2025-11-25 it opens a session.
func newClient(ctx context.Context, url, revision string) (*client, error) {
	c := &client{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}, url: url, revision: revision}
	if revision != mcptask.Revision20251125 {
		return c, nil
	}
	header, _, err := c.post(ctx, "initialize", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",
		"capabilities":{},"clientInfo":{"name":"compare","version":"1"}}}`)
	if err != nil {
		return nil, err
	}
	c.session = header.Get("Mcp-Session-Id")
	_, _, err = c.post(ctx, "notifications/initialized", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, err
}

// close closes the connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// post posts a message and reads the answer.
func (c *client) post(ctx context.Context, method, name, body string) (header http.Header, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method != "initialize" {
		r.Header.Set("Mcp-Protocol-Version", c.revision)
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.revision == mcptask.Revision20260728 {
		r.Header.Set("Mcp-Method", method)
		r.Header.Set("Mcp-Name", name)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err == nil && (response.StatusCode >= 300 || bytes.Contains(answer, []byte(`"error"`)) || bytes.Contains(answer, []byte(`"isError":true`))) {
		err = fmt.Errorf("%s in %s: HTTP %d: %s", method, c.revision, response.StatusCode, answer)
	}
	return response.Header, answer, err
}

// request sends a request and returns the answer. name is the tool or the task that it is for.
func (c *client) request(ctx context.Context, method, name, params string) ([]byte, error) {
	if c.revision == mcptask.Revision20260728 {
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"compare","version":"1"},` +
			`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, c.lastID.Add(1), method, params)
	_, answer, err := c.post(ctx, method, name, body)
	return answer, err
}

// create makes a task of a tool and returns its ID.
func (c *client) create(ctx context.Context, tool, arguments string) (id string, err error) {
	params := fmt.Sprintf(`"name":%q,"arguments":%s`, tool, arguments)
	if c.revision == mcptask.Revision20251125 {
		params += `,"task":{}`
	}
	answer, err := c.request(ctx, "tools/call", tool, params)
	if err != nil {
		return "", err
	}
	_, rest, _ := bytes.Cut(answer, []byte(`"taskId":"`))
	found, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return "", fmt.Errorf("there is no task in %s", answer)
	}
	return string(found), nil
}

// runArguments are the arguments of the tool run.
const runArguments = `{"repository":"https://example.com/repository","branch":"main"}`

// createRun makes a task that ends at once.
func (c *client) createRun(ctx context.Context) error {
	_, err := c.create(ctx, "run", runArguments)
	return err
}

// live makes a task that ends at once, and gets its result.
func (c *client) live(ctx context.Context) error {
	id, err := c.create(ctx, "run", runArguments)
	if err != nil {
		return err
	}
	method := "tasks/result" // waits for the end
	if c.revision == mcptask.Revision20260728 {
		method = "tasks/get"
	}
	for {
		answer, err := c.request(ctx, method, id, fmt.Sprintf(`"taskId":%q`, id))
		switch {
		case err != nil:
			return err
		case bytes.Contains(answer, []byte(`"it ran"`)):
			return nil
		case !bytes.Contains(answer, []byte(`"status":"working"`)):
			return fmt.Errorf("%s: there is no result in %s", method, answer)
		}
	}
}

// poll gets a task that runs.
func (c *client) poll(ctx context.Context, id string) error {
	answer, err := c.request(ctx, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
	if err == nil && !bytes.Contains(answer, []byte(`"status":"working"`)) {
		err = fmt.Errorf("tasks/get: the task does not run: %s", answer)
	}
	return err
}

// turns is the number of turns that each of several works gets in one measurement.
const turns = 4

// measure lets all clients do each of several things for a while, and returns how often each was done in a second. The
// things take turns, so that a slow moment of the machine affects all of them.
func measure(ctx context.Context, while time.Duration, works ...func(context.Context) error) (rates []float64, err error) {
	rates = make([]float64, len(works))
	took := make([]time.Duration, len(works))
	for turn := range turns + 1 {
		for i, do := range works {
			var done atomic.Int64
			began := time.Now()
			if err := together(func() error {
				for first := true; first || time.Since(began) < while/turns; first = false {
					if err := do(ctx); err != nil {
						return err
					}
					done.Add(1)
				}
				return nil
			}); err != nil {
				return nil, err
			}
			if turn > 0 { // the first turn opens connections
				rates[i] += float64(done.Load())
				took[i] += time.Since(began)
			}
		}
	}
	for i := range rates {
		rates[i] /= took[i].Seconds()
	}
	return rates, nil
}

// repeat lets all clients together do something n times.
func repeat(ctx context.Context, n int64, do func(context.Context) error) error {
	var begun atomic.Int64
	return together(func() error {
		for begun.Add(1) <= n {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// together runs a function once for each client, and returns their errors.
func together(do func() error) error {
	var all sync.WaitGroup
	var failed [clients]error
	for i := range failed {
		all.Go(func() { failed[i] = do() })
	}
	all.Wait()
	return errors.Join(failed[:]...)
}
