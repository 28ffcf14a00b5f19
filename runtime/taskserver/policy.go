package taskserver

import (
	"errors"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// maxAttempts bounds Policy.Attempts, because each attempt may cost a process its life.
const maxAttempts = 1000

// maxConcurrency bounds Policy.Concurrency.
const maxConcurrency = 1_000_000

// maxDuration bounds every duration. The wire ends at 2^53-1 milliseconds (schema of
// 2026-07-28), and time.Duration ends earlier.
const maxDuration = 100 * 365 * 24 * time.Hour

// normalizePolicy fills in defaults and refuses values that are invalid for a tool of the service.
func normalizePolicy(service *mcptask.Tools, p mcptask.Policy) (mcptask.Policy, error) {
	if p.Task == "" {
		p.Task = mcptask.TaskForbidden
	}
	if p.TTL == 0 {
		p.TTL = mcptask.DefaultTTL
	}
	if p.Poll == 0 {
		p.Poll = mcptask.DefaultPoll
	}
	if p.OnLost == "" {
		p.OnLost = mcptask.FailWhenLost
	}
	if p.OnChange == "" {
		p.OnChange = mcptask.FailOnChange
	}
	if p.OnLeave == "" {
		p.OnLeave = mcptask.StopOnLeave
	}
	if p.Attempts == 0 && p.OnLost == mcptask.RestartWhenLost {
		p.Attempts = mcptask.DefaultAttempts
	}
	switch p.Task {
	case mcptask.TaskForbidden, mcptask.TaskOptional, mcptask.TaskRequired:
	default:
		return p, fmt.Errorf("task support %q is not forbidden, optional or required", p.Task)
	}
	switch p.OnLost {
	case mcptask.FailWhenLost, mcptask.RestartWhenLost:
	default:
		return p, fmt.Errorf("lost policy %q is not fail or restart", p.OnLost)
	}
	switch p.OnChange {
	case mcptask.FailOnChange, mcptask.RunOnChange:
	default:
		return p, fmt.Errorf("change policy %q is not fail or run", p.OnChange)
	}
	switch p.OnLeave {
	case mcptask.StopOnLeave:
	case mcptask.KeepOnLeave:
		if p.Task == mcptask.TaskForbidden {
			return p, errors.New("onleave=keep needs a task that can go on: set Task to TaskOptional or TaskRequired")
		}
		if service.Fallback != mcptask.FallbackTools {
			return p, errors.New("onleave=keep needs the fallback tools, which find the task again: set the Fallback of the service to FallbackTools")
		}
	default:
		return p, fmt.Errorf("leave policy %q is not stop or keep", p.OnLeave)
	}
	switch {
	case p.Attempts < 0 || p.Attempts > maxAttempts:
		return p, fmt.Errorf("attempts %d is not between 1 and %d, nor 0 for the default of %d", p.Attempts, maxAttempts, mcptask.DefaultAttempts)
	case p.Attempts > 0 && p.OnLost != mcptask.RestartWhenLost:
		return p, fmt.Errorf("attempts %d has no effect on a tool that does not restart: set OnLost to RestartWhenLost, or leave Attempts 0", p.Attempts)
	}
	switch {
	case p.Concurrency < 0 || p.Concurrency > maxConcurrency:
		return p, fmt.Errorf("concurrency %d is not between 1 and %d: leave it 0 for no bound", p.Concurrency, maxConcurrency)
	case p.Concurrency > 0 && p.Task == mcptask.TaskForbidden:
		return p, fmt.Errorf("concurrency %d needs a tool whose calls can wait in line: set Task to TaskOptional or TaskRequired, or leave Concurrency 0", p.Concurrency)
	}
	for _, key := range []struct {
		name  string
		value time.Duration
	}{
		{"ttl", p.TTL},
		{"poll", p.Poll},
		{"grace", p.Grace},
		{"wait", p.Wait},
		{"deadline", p.Deadline},
	} {
		if key.value < 0 || key.value > maxDuration {
			return p, fmt.Errorf("%s %v is not between 0 and %v", key.name, key.value, maxDuration)
		}
	}
	if p.Poll < time.Millisecond || p.TTL < time.Millisecond {
		return p, fmt.Errorf("ttl %v or poll %v is below a millisecond, the wire's unit", p.TTL, p.Poll)
	}
	if p.Deadline > p.TTL {
		return p, fmt.Errorf("deadline %v is longer than ttl %v: the task would be gone before it", p.Deadline, p.TTL)
	}
	return p, nil
}
