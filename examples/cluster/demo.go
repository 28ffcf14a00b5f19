package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/examples/cluster/films"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/replicas"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// rendered is how many films each client renders. It publishes one more.
	rendered = 4
	// steps is how many steps a film takes, of a tenth of a second each.
	steps = 80
)

// demo runs clients against a cluster.
type demo struct {
	out        io.Writer
	url, token string
	// replicas are the replicas, one of which is killed; nil means that they run elsewhere.
	replicas *replicas.Set
	// store is that of the replicas, or nil.
	store taskstore.Store
}

// film is one call: a film that is rendered or published.
type film struct {
	name, revision, taskID string
	call                   *mcptask.Call[films.FilmReport]

	// The fields below have one reader at a time: first the goroutine that follows the call, and
	// after its end the demo.
	report films.FilmReport
	err    error
}

// news is a change of a film that its follower has seen.
type news struct {
	film    *film
	message string // of the status
	done    bool
}

// people answer the questions of all clients.
type people struct {
	mu    sync.Mutex
	asked []string
}

// answer returns the answerer of one client.
func (p *people) answer() mcptask.Answerer {
	return films.AnswerConsent(func(_ context.Context, q mcptask.Question) (films.Consent, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked = append(p.asked, q.Message)
		return films.Consent{Agree: true}, nil
	})
}

// run starts films with a client of each revision, kills a replica that is at work, and checks the
// outcome of the films.
func (d demo) run(ctx context.Context) error {
	var all []*film
	var asked people
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		conn, err := gosdk.Connect(ctx, d.url, gosdk.ClientOptions{
			Revision: revision, Answer: asked.answer(),
			Bearer: func(context.Context) (string, error) { return d.token, nil },
		})
		if err != nil {
			return fmt.Errorf("connect to %s: %w", d.url, err)
		}
		defer conn.Close()
		started, err := startFilms(ctx, conn)
		if err != nil {
			return fmt.Errorf("%s: %w", revision, err)
		}
		all = append(all, started...)
	}
	fmt.Fprintf(d.out, "started %d tasks, half of them in each revision\n", len(all))
	if err := d.follow(ctx, all); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	return errors.Join(d.checkFilms(ctx, all), d.checkQuestions(&asked), d.checkSessions())
}

// startFilms starts all films of one client.
func startFilms(ctx context.Context, conn mcptask.Conn) ([]*film, error) {
	client := films.NewStudioClient(conn)
	var started []*film
	for number := 1; number <= rendered+1; number++ {
		f := &film{name: fmt.Sprintf("film %d", number), revision: conn.Revision()}
		var err error
		if number <= rendered {
			f.call, err = client.StartRenderFilm(ctx, films.RenderInput{Film: f.name, Frames: steps})
		} else {
			f.call, err = client.StartPublishFilm(ctx, films.PublishInput{Film: f.name, Copies: steps})
		}
		if err != nil {
			return nil, err
		}
		started = append(started, f)
	}
	return started, nil
}

// follow follows all films to their end. It kills the busiest replica once all films are in work.
func (d demo) follow(ctx context.Context, all []*film) error {
	seen := make(chan news)
	for _, f := range all {
		go f.follow(ctx, seen)
	}
	places := map[*film]int{} // which replica is at work
	killed := d.replicas == nil
	for left := len(all); left > 0; {
		var n news
		select {
		case n = <-seen:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if n.done {
			left--
		}
		var replica int
		if _, err := fmt.Sscanf(n.message, atReplica, &replica); err == nil {
			places[n.film] = replica
		}
		if !killed && len(places) == len(all) {
			killed = true
			if err := d.killBusiest(places); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow reports the changes of a film until its end.
func (f *film) follow(ctx context.Context, seen chan<- news) {
	for s, err := range f.call.Updates(ctx) {
		if err != nil {
			break // Wait returns it too
		}
		f.taskID = s.TaskID
		tell(ctx, seen, news{film: f, message: s.Message})
	}
	f.report, f.err = f.call.Wait(ctx)
	tell(ctx, seen, news{film: f, done: true})
}

// tell sends news, unless the demo is over.
func tell(ctx context.Context, seen chan<- news, n news) {
	select {
	case seen <- n:
	case <-ctx.Done():
	}
}

// killBusiest kills the replica that has most films in work.
func (d demo) killBusiest(places map[*film]int) error {
	busiest, most := 0, 0
	for number := 1; number <= count; number++ {
		here := 0
		for _, place := range places {
			if place == number {
				here++
			}
		}
		if here > most {
			busiest, most = number, here
		}
	}
	if err := d.replicas.Kill(busiest); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "killed replica %d with %d films in work; the others take them in about a second\n", busiest, most)
	return nil
}

// checkFilms prints the outcome of each film, and compares it with the store.
func (d demo) checkFilms(ctx context.Context, all []*film) error {
	var faults []error
	completed, again := 0, 0
	for _, f := range all {
		if f.err != nil {
			fmt.Fprintf(d.out, "%s  %s  %v\n", f.revision, f.name, f.err)
			faults = append(faults, fmt.Errorf("%s of %s: %w", f.name, f.revision, f.err))
			continue
		}
		completed++
		remark := ""
		if f.report.Run > 1 {
			again++
			remark = ": it ran again"
		}
		fmt.Fprintf(d.out, "%s  %s  completed on replica %d in run %d%s\n", f.revision, f.name, f.report.Replica, f.report.Run, remark)
		faults = append(faults, d.checkStored(ctx, f))
	}
	fmt.Fprintf(d.out, "\n%d of %d tasks completed, %d of them in a second run\n", completed, len(all), again)
	if d.replicas != nil && again == 0 {
		faults = append(faults, errors.New("no task ran again after the crash"))
	}
	return errors.Join(faults...)
}

// checkStored checks that the store has the outcome that the client got.
func (d demo) checkStored(ctx context.Context, f *film) error {
	if d.store == nil {
		return nil
	}
	r, err := d.store.Get(ctx, f.taskID)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", f.name, f.revision, err)
	}
	if r.Principal != principal || r.Outcome == nil || r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != f.report.Run {
		return fmt.Errorf("%s of %s: the client got %+v, and the store has %+v", f.name, f.revision, f.report, r.Outcome)
	}
	return nil
}

// checkQuestions checks that each person was asked once.
func (d demo) checkQuestions(asked *people) error {
	asked.mu.Lock()
	defer asked.mu.Unlock()
	fmt.Fprintf(d.out, "%d questions asked, one for each film to publish\n", len(asked.asked))
	if len(asked.asked) != 2 {
		return fmt.Errorf("the people were asked %q, want one question in each revision", asked.asked)
	}
	return nil
}

// checkSessions checks that the session of 2025-11-25 went over all replicas.
func (d demo) checkSessions() error {
	if d.replicas == nil {
		return nil
	}
	sessions := d.replicas.Proxy.Sessions()
	if len(sessions) != 1 || len(sessions[0]) != count {
		return fmt.Errorf("the sessions of 2025-11-25 were answered by the replicas %v, want one session on all %d", sessions, count)
	}
	fmt.Fprintf(d.out, "1 session of %s, answered by the replicas %v\n", mcptask.Revision20251125, sessions[0])
	return nil
}
