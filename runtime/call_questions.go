package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pace"
)

// Bounds on the questions of a task. The bounds of this package's servers are lower.
const (
	// answersAtOnce is how many of a task's questions are answered at once.
	answersAtOnce = 16
	// maxAnsweredQuestions is how many are answered in all.
	maxAnsweredQuestions = 1000
	// maxQuestionKey is how many bytes a question's key may have: it is remembered.
	maxQuestionKey = 1 << 10
)

// updateQuestions takes the questions of a new state and starts answers to the new
// ones (E-41, E-49, E-96). It cancels an answer that the server no longer asks for.
// p.mu is held.
func (p *pendingCall) updateQuestions(questions []Question) {
	asked := make(map[string]bool, len(questions))
	for _, q := range questions {
		asked[q.Key] = true
	}
	for key, cancel := range p.answers {
		if !asked[key] {
			cancel()
		}
	}
	p.waitingQuestions = questions
	p.startAnswers()
}

// startAnswers answers as many questions as there is room for, each in its own
// goroutine, so that a person who thinks does not hold up the news of the task. The
// answers are cancelled when no one waits any longer. p.mu is held.
func (p *pendingCall) startAnswers() {
	if p.attended == nil || p.attended.Err() != nil {
		return
	}
	for len(p.waitingQuestions) > 0 && p.answersUnderWay < answersAtOnce {
		q := p.waitingQuestions[0]
		p.waitingQuestions = p.waitingQuestions[1:]
		if p.answers[q.Key] != nil {
			continue
		}
		if err := p.checkQuestion(q); err != nil {
			p.waitingQuestions = nil
			p.refuseQuestions(err)
			return
		}
		ctx, cancel := context.WithCancel(p.attended)
		p.answers[q.Key] = cancel
		p.answersUnderWay++
		go p.answerQuestion(ctx, q)
	}
}

// checkQuestion checks the bounds on questions. p.mu is held.
func (p *pendingCall) checkQuestion(q Question) error {
	switch {
	case len(q.Key) > maxQuestionKey:
		return fmt.Errorf("the server sent a question whose key has %d bytes: at most %d are taken", len(q.Key), maxQuestionKey)
	case len(p.answers) >= maxAnsweredQuestions:
		return fmt.Errorf("the server sent more than %d questions: no more are answered", maxAnsweredQuestions)
	}
	return nil
}

// refuseQuestions reports unanswered questions to the next caller that waits. p.mu is
// held.
func (p *pendingCall) refuseQuestions(err error) {
	p.refusal = fmt.Errorf("%s: %w", p.subject(), err)
	p.bell.Ring()
}

// answerQuestion answers one question and makes room for the next.
func (p *pendingCall) answerQuestion(ctx context.Context, q Question) {
	defer guard.Recover(nil, "the answer to a question")
	cancelled, err := p.giveAnswer(ctx, q)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answersUnderWay--
	p.answers[q.Key]()
	if err != nil || cancelled {
		delete(p.answers, q.Key) // the next caller that waits may try again
	}
	if err != nil && !cancelled {
		if !strings.Contains(err.Error(), strconv.Quote(q.Key)) { // a server may name it
			err = fmt.Errorf("answer to question %q: %w", q.Key, err)
		}
		p.refuseQuestions(err)
	}
	p.startAnswers()
}

// giveAnswer gets the answer to a question and sends it. It sends an answer even if it
// is cancelled meanwhile, since a key gets one response.
func (p *pendingCall) giveAnswer(ctx context.Context, q Question) (cancelled bool, err error) {
	defer guard.Then(nil, "an answer", func() {
		err = errors.New("mcptask: answering it panicked")
	}, "tool", p.spec.Tool, "key", q.Key)
	response, ok, err := p.conn.Answer(ctx, q)
	if err == nil && !ok {
		response, err = q.Unanswered()
	}
	if ctx.Err() != nil || err != nil {
		return ctx.Err() != nil, err
	}
	sending, stop := context.WithTimeout(context.WithoutCancel(ctx), pace.Margin)
	defer stop()
	return false, pace.Retry(sending, DefaultPoll, isLimited, func() error {
		return p.conn.Respond(sending, p.taskID, map[string]json.RawMessage{q.Key: response})
	})
}
