package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// TestBatch submits jobs to the batch system that -batch runs.
func TestBatch(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read, printed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, nil, printed, mode{batchAddr: "127.0.0.1:0", pace: time.Millisecond})
	}()
	lines := bufio.NewReader(read)
	line, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	client := batchClient{url: strings.TrimSpace(strings.TrimPrefix(line, "serving "))}
	if err := client.cancel(ctx, "early"); err != nil {
		t.Fatal(err)
	}
	for key, test := range map[string]struct {
		spec jobSpec
		want job
	}{
		"whole": {jobSpec{Parts: 2, Until: time.Now().Add(time.Hour)}, job{State: jobDone, Done: 2}},
		"late":  {jobSpec{Parts: 2, Until: time.Now()}, job{State: jobFailed, Error: "its time is over"}},
		"early": {jobSpec{Parts: 2, Until: time.Now().Add(time.Hour)}, job{State: jobCancelled}},
	} {
		if _, err := client.submit(ctx, key, test.spec); err != nil {
			t.Error(err)
		}
		got, err := client.follow(ctx, key, func(job) {})
		if err != nil || got.State != test.want.State || got.Done != test.want.Done || !strings.Contains(got.Error, test.want.Error) {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
	if _, err := client.follow(ctx, "none", func(job) {}); err == nil || !strings.Contains(err.Error(), "404 Not Found: there is no job none") {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNoRole(t *testing.T) {
	if err := run(t.Context(), nil, io.Discard, mode{}); err == nil || !strings.Contains(err.Error(), "-http ADDRESS") {
		t.Error(err)
	}
}
