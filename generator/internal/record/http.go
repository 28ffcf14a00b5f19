package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	url     string
	header  http.Header
	client  *http.Client
	session string
	body    io.ReadCloser // of the response to the last request; nil if it was read
	events  *bufio.Reader // of body, if that is a stream
	whole   []byte        // the response, if it is no stream
}

func newHTTPLink(cfg Config) *httpLink {
	// Following a redirect would take the token in the header to another server.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &httpLink{url: cfg.URL, header: cfg.Header.Clone(), client: &http.Client{CheckRedirect: stay}}
}

func (l *httpLink) setRevision(revision string) {
	if l.header == nil {
		l.header = http.Header{}
	}
	l.header.Set(revisionHeader, revision)
}

func (l *httpLink) newRequest(ctx context.Context, httpMethod string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, httpMethod, l.url, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if l.session != "" {
		r.Header.Set(sessionHeader, l.session)
	}
	for name, values := range l.header {
		r.Header[name] = values
	}
	return r, nil
}

// send keeps the response to a request for receive.
func (l *httpLink) send(ctx context.Context, method string, data []byte) error {
	r, err := l.newRequest(ctx, http.MethodPost, bytes.NewReader(data))
	if err != nil {
		return err
	}
	if l.header.Get(revisionHeader) == stateless {
		r.Header.Set(methodHeader, method)
	}
	response, err := l.client.Do(r)
	if err != nil {
		return err
	}
	var sent message
	if err := json.Unmarshal(data, &sent); err != nil || sent.ID == nil || sent.Method == "" {
		return errors.Join(checkStatus(response, nil), response.Body.Close())
	}
	l.closeBody()
	if id := response.Header.Get(sessionHeader); id != "" {
		l.session = id
	}
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && media == "text/event-stream" && response.StatusCode == http.StatusOK {
		l.body, l.events = response.Body, bufio.NewReaderSize(response.Body, 64<<10)
		return nil
	}
	l.whole, err = readBounded(response.Body)
	return errors.Join(err, response.Body.Close(), checkStatus(response, l.whole))
}

func readBounded(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxMessage+1))
	if len(data) > maxMessage {
		return nil, errTooLong
	}
	return data, err
}

// checkStatus returns an error for a status that is not success, unless the body is a JSON-RPC
// message, which says more.
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

func (l *httpLink) receive() ([]byte, error) {
	if l.events == nil {
		whole := l.whole
		l.whole = nil
		if len(whole) == 0 {
			return nil, errors.New("the response ended")
		}
		return whole, nil
	}
	var data [][]byte
	for size := 0; ; {
		line, err := readLine(l.events, maxMessage-size)
		if errors.Is(err, io.EOF) {
			err = errors.New("the stream ended")
		}
		if err != nil {
			return nil, err
		}
		size += len(line)
		line = bytes.TrimRight(line, "\r\n")
		switch text, isData := bytes.CutPrefix(line, []byte("data:")); {
		case isData:
			data = append(data, bytes.TrimPrefix(text, []byte(" ")))
		case len(line) == 0 && len(bytes.Join(data, nil)) > 0:
			return bytes.Join(data, []byte("\n")), nil
		case len(line) == 0:
			size, data = 0, nil
		}
	}
}

func (l *httpLink) closeBody() {
	if l.body != nil {
		_ = l.body.Close()
	}
	l.body, l.events, l.whole = nil, nil, nil
}

// close ends the session, as far as the server lets it.
func (l *httpLink) close() {
	l.closeBody()
	if l.session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		if r, err := l.newRequest(ctx, http.MethodDelete, http.NoBody); err == nil {
			if response, err := l.client.Do(r); err == nil {
				_ = response.Body.Close()
			}
		}
	}
	l.client.CloseIdleConnections()
}
