package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// The states of a job.
const (
	jobRunning   = "running"
	jobDone      = "done"
	jobFailed    = "failed"
	jobCancelled = "cancelled"
)

// jobSpec is what a client submits.
type jobSpec struct {
	Parts int       `json:"parts"`
	Until time.Time `json:"until"` // the job ends then at the latest
}

// job is a job as clients see it.
type job struct {
	jobSpec
	State string `json:"state"`
	Done  int    `json:"done"`
	Error string `json:"error,omitempty"`
}

// batch is a small batch system: it runs jobs, which their clients name. It keeps them in memory, and prints their begins
// and ends.
type batch struct {
	ctx  context.Context // of all jobs
	work func(context.Context) error
	http.ServeMux

	mu      sync.Mutex
	out     io.Writer
	jobs    map[string]*job
	cancels map[string]context.CancelFunc
}

// newBatch returns a batch system without jobs. work does one part of a job.
func newBatch(ctx context.Context, out io.Writer, work func(context.Context) error) *batch {
	b := &batch{ctx: ctx, work: work, out: out, jobs: map[string]*job{}, cancels: map[string]context.CancelFunc{}}
	b.HandleFunc("PUT /jobs/{key}", b.put)
	b.HandleFunc("GET /jobs/{key}", b.get)
	b.HandleFunc("DELETE /jobs/{key}", b.delete)
	return b
}

// put begins a job, unless there is one with this key.
func (b *batch) put(w http.ResponseWriter, r *http.Request) {
	var spec jobSpec
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&spec); err != nil {
		http.Error(w, "the body is no job: "+err.Error(), http.StatusBadRequest)
		return
	}
	key := r.PathValue("key")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[key] == nil {
		ctx, cancel := context.WithDeadlineCause(b.ctx, spec.Until, errors.New("its time is over"))
		b.jobs[key], b.cancels[key] = &job{jobSpec: spec, State: jobRunning}, cancel
		fmt.Fprintln(b.out, "begin", key)
		go b.run(ctx, key)
	}
	b.answer(w, key)
}

// run does the work of a job.
func (b *batch) run(ctx context.Context, key string) {
	for {
		err := b.work(ctx)
		b.mu.Lock()
		j := b.jobs[key]
		switch {
		case ctx.Err() != nil || err != nil:
			if j.State == jobRunning { // not cancelled
				j.State, j.Error = jobFailed, errors.Join(err, context.Cause(ctx)).Error()
			}
		default:
			if j.Done++; j.Done == j.Parts {
				j.State = jobDone
			}
		}
		ended := j.State != jobRunning
		if ended {
			fmt.Fprintln(b.out, "end", key, j.State)
			b.cancels[key]()
		}
		b.mu.Unlock()
		if ended {
			return
		}
	}
}

func (b *batch) get(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer(w, r.PathValue("key"))
}

// delete cancels a job. A job that comes only then does not begin.
func (b *batch) delete(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	b.mu.Lock()
	defer b.mu.Unlock()
	switch j := b.jobs[key]; {
	case j == nil:
		b.jobs[key] = &job{State: jobCancelled, Error: "before it began"}
	case j.State == jobRunning:
		j.State, j.Error = jobCancelled, "while it ran"
		b.cancels[key]()
	}
	b.answer(w, key)
}

// answer writes a job. b.mu is held.
func (b *batch) answer(w http.ResponseWriter, key string) {
	j := b.jobs[key]
	if j == nil {
		http.Error(w, "there is no job "+key, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(j) // the client may have gone
}

// serveBatch serves a batch system until ctx ends.
func serveBatch(ctx context.Context, addr string, b *batch, ready func(url string)) error {
	server, served, url, err := listen(ctx, addr, b)
	if err != nil {
		return err
	}
	ready(url)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}
