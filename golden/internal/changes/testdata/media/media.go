// Package media is a small service whose declaration the tests change.
package media

import (
	"context"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Media works on films.
//
//mcptask:service poll=5ms
type Media interface {
	// Transcode converts a film.
	//
	//mcptask:tool onlost=restart
	Transcode(ctx context.Context, task *mcptask.Task, in TranscodeInput) (TranscodeReport, error)

	// Publish puts a film on a page, once a person agrees.
	//
	//mcptask:tool task=required onlost=restart
	Publish(ctx context.Context, task *mcptask.Task, in PublishInput) (PublishReport, error)

	// Probe reads the data of a film at once.
	Probe(ctx context.Context, in ProbeInput) (ProbeReport, error)
}

// Approval is what a person says to a publication.
//
//mcptask:input message="Publish it?"
type Approval struct {
	// Agreed says whether the film may go out.
	Agreed bool `json:"agreed"`
	// Note is for the archive.
	Note string `json:"note,omitempty"`
	// Seats is how many may see it.
	Seats int `json:"seats,omitempty" jsonschema:"minimum=0,maximum=100"`
}

// NoFilm says that there is no such film.
//
//mcptask:error code=no_film
type NoFilm struct {
	Film string `json:"film"`
}

func (e *NoFilm) Error() string { return "there is no film " + e.Film }

// Codec is how a film is coded.
type Codec string

// The codecs.
const (
	AV1  Codec = "av1"
	H264 Codec = "h264"
)

// TranscodeInput says what to convert.
type TranscodeInput struct {
	// Film is the name of the film.
	Film string `json:"film"`
	// Codec is the codec to write.
	Codec Codec `json:"codec"`
	// Rate is the bit rate in megabits a second.
	Rate int `json:"rate,omitempty" jsonschema:"minimum=1,maximum=40,default=8"`
	// Label is for the archive.
	Label string `json:"label,omitempty"`
	// Crop says what to cut off.
	Crop *Crop `json:"crop,omitempty"`
	// Tracks are the sound tracks to keep.
	Tracks []string `json:"tracks,omitempty"`
}

// Crop is a part of a picture.
type Crop struct {
	Width  int `json:"width"`
	Height int `json:"height,omitempty"`
}

// TranscodeReport is what came of it.
type TranscodeReport struct {
	// Path is where the film is.
	Path string `json:"path"`
	// State is how it went.
	State State `json:"state"`
	// Frames is how many pictures it has.
	Frames int `json:"frames"`
}

// State is how a conversion went.
type State string

// The states.
const (
	Done    State = "done"
	Partial State = "partial"
)

// PublishInput names the film to publish.
type PublishInput struct {
	Film string `json:"film"`
}

// PublishReport says what was published.
type PublishReport struct {
	Published bool `json:"published"`
}

// ProbeInput names the film to read.
type ProbeInput struct {
	Film string `json:"film"`
}

// ProbeReport is what the film says.
type ProbeReport struct {
	Frames int `json:"frames"`
}

// studio implements Media. Its handlers wait at the named point until their context ends, and say so.
type studio struct {
	at      string
	reached func()
}

// Tools serves a studio.
func Tools(at string, reached func()) mcptask.Tools { return MediaTools(studio{at, reached}) }

func (s studio) reach(ctx context.Context, point string) error {
	if s.at != point {
		return nil
	}
	s.reached()
	<-ctx.Done()
	return ctx.Err()
}

func (s studio) Transcode(ctx context.Context, _ *mcptask.Task, in TranscodeInput) (TranscodeReport, error) {
	if err := s.reach(ctx, "transcode"); err != nil {
		return TranscodeReport{}, err
	}
	select {
	case <-time.After(100 * time.Millisecond): // of work
	case <-ctx.Done():
		return TranscodeReport{}, ctx.Err()
	}
	return TranscodeReport{Path: fmt.Sprint(in.Film, ".", in.Codec), State: Done, Frames: 24}, nil
}

func (s studio) Publish(ctx context.Context, task *mcptask.Task, in PublishInput) (PublishReport, error) {
	answer, err := AskApproval(ctx, task, "approve", "")
	if err != nil {
		return PublishReport{}, err
	}
	if err := s.reach(ctx, "answered"); err != nil {
		return PublishReport{}, err
	}
	return PublishReport{Published: answer.Agreed}, nil
}

func (s studio) Probe(_ context.Context, in ProbeInput) (ProbeReport, error) {
	if in.Film == "none" {
		return ProbeReport{}, fmt.Errorf("probe: %w", &NoFilm{Film: in.Film})
	}
	return ProbeReport{Frames: 24}, nil
}
