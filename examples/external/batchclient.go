package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// pollJob is how often the state of a job is read.
	pollJob = 200 * time.Millisecond
	// batchOutage is how long the batch system may be away.
	batchOutage = time.Minute
)

// batchClient calls the batch system.
type batchClient struct{ url string }

// submit begins the job of a key, or finds it.
func (c batchClient) submit(ctx context.Context, key string, spec jobSpec) (job, error) {
	return c.repeat(ctx, http.MethodPut, key, spec)
}

// follow reports the state of a job until the job has ended.
func (c batchClient) follow(ctx context.Context, key string, report func(job)) (job, error) {
	for {
		j, err := c.repeat(ctx, http.MethodGet, key, nil)
		if err != nil || j.State != jobRunning {
			return j, err
		}
		report(j)
		if err := pause(ctx, pollJob); err != nil {
			return j, err
		}
	}
}

// cancel ends a job. A job that is submitted only later does not begin.
func (c batchClient) cancel(ctx context.Context, key string) error {
	_, err := c.repeat(ctx, http.MethodDelete, key, nil)
	return err
}

// repeat makes a request until the batch system answers it. Each request may be made twice.
func (c batchClient) repeat(ctx context.Context, method, key string, body any) (job, error) {
	end := time.Now().Add(batchOutage)
	for {
		j, status, err := c.request(ctx, method, key, body)
		isOutage := err != nil && (status == 0 || status >= http.StatusInternalServerError)
		if !isOutage || time.Now().After(end) {
			return j, err
		}
		if err := pause(ctx, pollJob); err != nil {
			return j, err
		}
	}
}

// request makes a request once. status is 0 if there is no answer.
func (c batchClient) request(ctx context.Context, method, key string, body any) (j job, status int, err error) {
	sent, err := json.Marshal(body)
	if err != nil {
		return job{}, http.StatusBadRequest, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/jobs/"+url.PathEscape(key), bytes.NewReader(sent))
	if err != nil {
		return job{}, http.StatusBadRequest, err
	}
	response, err := new(http.Client).Do(request)
	if err != nil {
		return job{}, 0, err
	}
	defer func() { _ = response.Body.Close() }() // it was read
	received, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	switch {
	case err != nil:
		return job{}, 0, err
	case response.StatusCode != http.StatusOK:
		return job{}, response.StatusCode, fmt.Errorf("the batch system at %s answers %s: %s", c.url, response.Status, bytes.TrimSpace(received))
	}
	err = json.Unmarshal(received, &j)
	return j, response.StatusCode, err
}
