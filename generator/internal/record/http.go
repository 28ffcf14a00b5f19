package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

const (
	sessionHeader  = "Mcp-Session-Id"
	revisionHeader = "Mcp-Protocol-Version"
	methodHeader   = "Mcp-Method"
)

// httpLink is a server over streamable HTTP.
type httpLink struct {
	url    string
	header http.Header // of each request
	client *http.Client
	left   int           // the bytes that the server may still send
	body   io.ReadCloser // of the response to the last request
	events *bufio.Reader // of body, if that is a stream
	whole  []byte        // the response, if it is not a stream and was not received yet
}

func newHTTPLink(cfg Config) *httpLink {
	// Following a redirect would take the token in the header to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(header, cfg.Header)
	return &httpLink{url: cfg.URL, header: header, client: &http.Client{CheckRedirect: stay}, left: maxBytes, body: http.NoBody}
}

func (l *httpLink) do(ctx context.Context, httpMethod string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, httpMethod, l.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = l.header.Clone()
	return l.client.Do(r)
}

// send keeps the response to a request for receive.
func (l *httpLink) send(ctx context.Context, m message, revision string) error {
	if revision != "" {
		l.header.Set(revisionHeader, revision)
	}
	if revision == stateless {
		l.header.Set(methodHeader, m.Method)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	response, err := l.do(ctx, http.MethodPost, data)
	if err != nil {
		return err
	}
	if m.ID == nil || m.Method == "" {
		return errors.Join(checkStatus(response, nil), response.Body.Close())
	}
	_ = l.body.Close()
	l.body, l.events = response.Body, nil
	if id := response.Header.Get(sessionHeader); id != "" {
		l.header.Set(sessionHeader, id)
	}
	in := bounded{response.Body, &l.left}
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media == "text/event-stream" && response.StatusCode == http.StatusOK {
		l.events = bufio.NewReader(in)
		return nil
	}
	l.whole, err = io.ReadAll(in)
	return errors.Join(err, checkStatus(response, l.whole))
}

// checkStatus returns an error for a status that is not success, unless the body is a JSON-RPC
// message, which has more details.
func checkStatus(response *http.Response, body []byte) error {
	var m message
	switch code := response.StatusCode; {
	case code < 300, json.Unmarshal(body, &m) == nil && m.JSONRPC != "":
		return nil
	case code < 400:
		return fmt.Errorf("the server redirects to %s: if you trust that server, give its URL", words.QuoteJSON(response.Header.Get("Location")))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("the server answers %s: give a token with --token-env, or what it asks for with --header", response.Status)
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return fmt.Errorf("the server answers %s: the URL is not that of an MCP server over streamable HTTP; it often ends in /mcp", response.Status)
	default:
		text := strings.TrimSpace(string(body[:min(len(body), 200)]))
		return fmt.Errorf("the server answers %s: %s", response.Status, words.QuoteJSON(text))
	}
}

func (l *httpLink) receive() (m message, err error) {
	data := l.whole
	l.whole = nil
	if l.events != nil {
		if data, err = readEvent(l.events); err != nil {
			return m, err
		}
	}
	if len(data) == 0 {
		return m, errors.New("the response ended")
	}
	if err := decode(data, &m); err != nil {
		return m, fmt.Errorf("the server sent a message that is not JSON-RPC: %w", err)
	}
	return m, nil
}

// readEvent returns the data of the next server-sent event that has some.
func readEvent(events *bufio.Reader) (data []byte, err error) {
	for {
		line, err := events.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			err = errors.New("the stream ended")
		}
		if err != nil {
			return nil, err
		}
		if text, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, text...)
		} else if len(bytes.TrimSpace(line)) == 0 && len(bytes.TrimSpace(data)) > 0 {
			return data, nil
		}
	}
}

// close ends the session, if the server allows it.
func (l *httpLink) close() {
	_ = l.body.Close()
	if l.header.Get(sessionHeader) != "" {
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		if response, err := l.do(ctx, http.MethodDelete, nil); err == nil {
			_ = response.Body.Close()
		}
	}
	l.client.CloseIdleConnections()
}
