// Package changed meets each changed version of the service with a client, tasks and questions of the first one.
package changed

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"

	media "example.com/changed/v0"
)

var written = flag.String("report", "", "the `file` to write")

// outcome is what a version means to those who know the first one.
type outcome struct {
	// Client is what a client of the first version meets.
	Client []string
	// Stored, Open and Answered are the ends of its tasks: one that worked, one whose question was open, and one whose
	// question was answered.
	Stored, Open, Answered string
}

func TestVersions(t *testing.T) {
	outcomes := map[string]*outcome{}
	t.Run("all", func(t *testing.T) {
		for name, tools := range versions {
			o := &outcome{}
			outcomes[name] = o
			t.Run(name, func(t *testing.T) {
				bubble.Run(t, "client", func(t *testing.T) { o.Client = callAll(t, tools("", nil)) })
				o.Stored = restart(t, "transcode", tools("", nil))
				o.Open = restart(t, "open", tools("", nil))
				o.Answered = restart(t, "answered", tools("", nil))
			})
		}
	})
	text, err := json.Marshal(outcomes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*written, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// film is a call of the first version.
var film = media.TranscodeInput{Film: "ant", Codec: media.H264, Rate: 30, Crop: &media.Crop{Width: 3}, Tracks: []string{"en"}}

// callAll calls each tool with the first client, and returns what does not go as it did.
func callAll(t *testing.T, tools mcptask.Tools) (news []string) {
	agree := media.AnswerApproval(func(context.Context, mcptask.Question) (media.Approval, error) {
		return media.Approval{Agreed: true}, nil
	})
	client := media.NewMediaClient(mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{Answer: agree}, tools))
	note := func(tool string, got any, err error, want any) {
		if end := describe(got, err, want); end != "as before" {
			news = append(news, tool+": "+end)
		}
	}
	transcoded, err := client.Transcode(t.Context(), film)
	note("transcode", transcoded, err, media.TranscodeReport{Path: "ant.h264", State: media.Done, Frames: 24})
	published, err := client.Publish(t.Context(), media.PublishInput{Film: "ant"})
	note("publish", published, err, media.PublishReport{Published: true})
	probed, err := client.Probe(t.Context(), media.ProbeInput{Film: "ant"})
	note("probe", probed, err, media.ProbeReport{Frames: 24})
	_, err = client.Probe(t.Context(), media.ProbeInput{Film: "none"})
	if none := (*media.NoFilm)(nil); !errors.As(err, &none) || none.Film != "none" {
		note("probe of no film", nil, err, nil)
	}
	return news
}

// describe says how a call ended.
func describe(got any, err error, want any) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "still waits"
	case err != nil:
		return err.Error()
	case got != want:
		return fmt.Sprintf("returns %+v", got)
	}
	return "as before"
}

// restart brings a task of the first version to a point, ends its server, and returns how another version ends the task.
func restart(t *testing.T, point string, tools mcptask.Tools) (end string) {
	store := taskstore.NewMemory()
	var token mcptask.Token
	bubble.Run(t, "before "+point, func(t *testing.T) {
		reached := make(chan struct{}, 9)
		answer := func(ctx context.Context, q mcptask.Question) (json.RawMessage, error) {
			if point == "open" {
				reached <- struct{}{}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return json.RawMessage(`{"agreed":true,"note":"fine","seats":60}`), nil
		}
		conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{
			Answer: mcptask.AnswerAny(answer), Server: taskserver.Options{Store: store},
		}, media.Tools(point, func() { reached <- struct{}{} }))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		client := media.NewMediaClient(conn)
		var ok bool
		if point == "transcode" {
			call, err := client.StartTranscode(ctx, film)
			if err != nil {
				t.Fatal(err)
			}
			token, ok = call.Token()
		} else {
			call, err := client.StartPublish(ctx, media.PublishInput{Film: "ant"})
			if err != nil {
				t.Fatal(err)
			}
			token, ok = call.Token()
			go call.Wait(ctx)
		}
		if !ok {
			t.Fatal("the call is no task")
		}
		<-reached
	})
	bubble.Run(t, "after "+point, func(t *testing.T) {
		var asked []string
		answer := func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
			asked = append(asked, q.Message)
			return fill(q.Schema), nil
		}
		conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{
			Answer: mcptask.AnswerAny(answer), Server: taskserver.Options{Store: store},
		}, tools)
		time.Sleep(time.Second) // until the version has asked again
		client := media.NewMediaClient(conn)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble
		defer cancel()
		if point == "transcode" {
			call, err := client.ResumeTranscode(token)
			if err != nil {
				t.Fatal(err)
			}
			got, err := call.Wait(ctx)
			end = describe(got, err, media.TranscodeReport{Path: "ant.h264", State: media.Done, Frames: 24})
			return
		}
		call, err := client.ResumePublish(token)
		if err != nil {
			t.Fatal(err)
		}
		got, err := call.Wait(ctx)
		end = describe(got, err, media.PublishReport{Published: true})
		if len(asked) > 0 {
			end = fmt.Sprintf("asks %q, then %s", asked, end)
			if point == "open" && len(asked) == 1 && asked[0] == "Publish it?" && strings.HasSuffix(end, "as before") {
				end = "as before"
			}
		}
	})
	return end
}

// fill answers a form as a person would: agreed, and every required member.
func fill(schema json.RawMessage) json.RawMessage {
	var form struct {
		Properties map[string]struct {
			Type    any
			Enum    []any
			Default any
		}
		Required []string
	}
	if err := json.Unmarshal(schema, &form); err != nil {
		panic(err)
	}
	answer := map[string]any{}
	for name, p := range form.Properties {
		switch {
		case p.Default != nil:
			answer[name] = p.Default
		case name == "agreed" || !slices.Contains(form.Required, name) && name != "agreed":
		case len(p.Enum) > 0:
			answer[name] = p.Enum[0]
		case p.Type == "string":
			answer[name] = "text"
		case p.Type == "boolean":
			answer[name] = true
		default:
			answer[name] = 1
		}
		if name == "agreed" {
			answer[name] = map[bool]any{true: "yes", false: true}[p.Type == "string"]
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return text
}
