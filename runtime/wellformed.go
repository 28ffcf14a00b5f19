package mcptask

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
)

// wellFormed is a handler's outcome as it may be stored and sent: JSON in UTF-8, of one line. What
// a handler has made wrong costs its caller no more than that.
func (s *Server) repairOutcome(tool string, task *Task, o *Outcome) *Outcome {
	fault := func(what string) {
		s.Notice(slog.LevelError, what, "tool", tool, "task", LogID(task.principal, task.id))
	}
	switch {
	case o.Error != nil:
		e := *o.Error
		if len(e.Data) > 0 && !json.Valid(e.Data) {
			fault("the data of a handler's error is not JSON")
			e.Data = nil
		}
		e.Message, e.Data = strings.ToValidUTF8(e.Message, "\uFFFD"), repairUTF8(e.Data)
		return &Outcome{Kind: o.Kind, Error: &e}
	case o.Kind == OutcomeResult:
		result := *o
		result.Result = repairUTF8(o.Result)
		return &result
	}
	return o
}

// validUTF8 mends valid JSON, in whose strings alone there can be anything else.
func repairUTF8(data json.RawMessage) json.RawMessage {
	if utf8.Valid(data) {
		return data
	}
	return bytes.ToValidUTF8(data, []byte("\uFFFD"))
}

// encodeResult makes the JSON of a result; that of a raw tool is its structured content.
func encodeResult(raw bool, result *Result) (json.RawMessage, error) {
	if !raw {
		return plain.Marshal(result)
	}
	if len(result.Structured) == 0 {
		return nil, errNoResult
	}
	return plain.Marshal(result.Structured) // checked, and of one line
}
