package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	wire "github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
)

// PeerTask is a task of any revision as peers write it. It is read leniently, so that a task is not
// lost for a member that is missing or malformed and that is not needed.
type PeerTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	StatusMessage string `json:"statusMessage"`
	CreatedAt     string `json:"createdAt"`
	LastUpdatedAt string `json:"lastUpdatedAt"`
	// Meta is the _meta. It may have the progress under MetaProgress.
	Meta json.RawMessage `json:"_meta"`

	// Until 2025-11-25.
	TTL          Millis `json:"ttl"`
	PollInterval Millis `json:"pollInterval"`

	// Since 2026-07-28.
	TTLMs          Millis             `json:"ttlMs"`
	PollIntervalMs Millis             `json:"pollIntervalMs"`
	InputRequests  wire.InputRequests `json:"inputRequests"`
	Result         json.RawMessage    `json:"result"`
	Error          *wire.Error        `json:"error"`
}

// Millis is a number of milliseconds. Some peers write it with a fraction or as text. Anything that
// is not a number counts as missing.
type Millis struct {
	N   int64
	set bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Millis) UnmarshalJSON(data []byte) error {
	*m = Millis{}
	f, err := strconv.ParseFloat(string(bytes.Trim(data, `"`)), 64)
	if err != nil || math.IsNaN(f) {
		return nil
	}
	const most = 1 << 53 // a double tells integers apart up to this
	m.N, m.set = int64(math.Ceil(max(min(f, most), -most))), true
	return nil
}

// ResultKind refuses a result whose resultType its method does not have: a task in answer to a
// request that cannot become one (E-07), or an unknown type (E-14). A result without a type is
// complete.
func (Client20260728) ResultKind(method string, result json.RawMessage) error {
	var r struct {
		ResultType string `json:"resultType"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return NewMalformedError(method, err)
	}
	switch {
	case r.ResultType == "" || r.ResultType == wire.ResultTypeComplete:
		return nil
	case method == wire.MethodToolsCall && (r.ResultType == wire.ResultTypeTask || r.ResultType == resultTypeInputRequired):
		return nil
	}
	return NewMalformedError(method, fmt.Errorf("a result of type %q", r.ResultType))
}

// ResultKind implements Client: results have no type here.
func (Client20251125) ResultKind(string, json.RawMessage) error { return nil }

// resultTypeInputRequired is the resultType of InputRequiredResult.
const resultTypeInputRequired = "input_required"

// missingCapability is the code that drafts of 2026-07-28 had for
// CodeMissingClientCapability.
const missingCapability = -32003

// NormalizeCode gives an error of a peer the code that the revision has for it. The code of the
// drafts counts only with its data, since it may mean anything without.
func NormalizeCode(e *mcptask.Error) *mcptask.Error {
	var data struct {
		Required *object `json:"requiredCapabilities"`
	}
	if e.Code == missingCapability && json.Unmarshal(e.Data, &data) == nil && data.Required != nil {
		known := *e
		known.Code = spec.CodeMissingClientCapability
		return &known
	}
	return e
}
