package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// subscriber opens subscriptions over HTTP.
type subscriber struct {
	client *http.Client // without a time limit
	url    string
	max    int // of a message; the client enforces it
}

// listen posts the request and hears the stream that answers it.
func (s subscriber) listen(ctx context.Context, params map[string]any, hear notificationFunc) error {
	const id = "mcptaskgen-watch"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": protocol.Listen, "params": params})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", mcptask.Revision20260728)
	r.Header.Set("Mcp-Method", protocol.Listen)
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if !isStream(response) || response.StatusCode != http.StatusOK {
		data, err := io.ReadAll(io.LimitReader(response.Body, captureLimit))
		if err != nil {
			return err
		}
		if _, err := deliverMessage(data, hear); err != nil {
			return err
		}
		return fmt.Errorf("the server answered with HTTP status %d instead of a stream", response.StatusCode)
	}
	return wire.ReadEvents(response.Body, s.max, func(data []byte) (bool, error) { return deliverMessage(data, hear) })
}

// deliverMessage passes on one message of a subscription's stream. It returns true for the
// response, which ends the stream.
func deliverMessage(data []byte, hear notificationFunc) (end bool, err error) {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *mcptask.Error  `json:"error"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return true, fmt.Errorf("the server sent a malformed message: %w", err)
	}
	switch {
	case m.Error != nil:
		return true, protocol.NormalizeCode(m.Error)
	case m.Result != nil:
		return true, nil
	}
	hear(m.Method, m.Params)
	return false, nil
}
