package console

import (
	"bytes"
	"context"
	"net/http"
	"time"
)

// page is the data for each template of a whole page.
type page struct {
	Title string
	Path  string
	// View is the view that the page shows, for the stream of its changes. "" means that it has none.
	View   string
	Viewer Viewer
	Server serverName
	Data   any
}

// The bounds of a page.
const (
	pageSize     = 50
	mostOpen     = 10       // questions on the overview
	scanAsking   = 200      // the oldest tasks that ask; see Console.readOpen
	mostShown    = 64 << 10 // bytes of a revealed text
	mostSteps    = 200      // on the page of a task
	unfolded     = 10       // steps that it shows at once
	mostMessage  = 300      // bytes of a message in a list
	mostAsked    = 120      // bytes of a question in a list of tasks
	maxReads     = 2        // overviews and lists at once
	readsWithin  = 10 * time.Second
	waitsWithin  = 30 * time.Second // for a place among maxReads
	answerLength = 1 << 20
)

// beginRead waits for one of maxReads places, and returns a context that ends after readsWithin. done frees the place.
// So pages cannot keep the store from those who call tools. The page of one task needs no place.
func (c *Console) beginRead(ctx context.Context) (_ context.Context, done func(), err error) {
	select {
	case c.reads <- struct{}{}:
	case <-ctx.Done():
		return ctx, nil, ctx.Err()
	case <-time.After(waitsWithin):
		return ctx, nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, readsWithin)
	return ctx, func() { <-c.reads; cancel() }, nil
}

// errBusy says that other pages have kept a page from reading the store.
var errBusy = failure{http.StatusServiceUnavailable, "other pages search the store: try again later"}

// write writes a page. If it returns an error, nothing is written.
func (c *Console) write(w http.ResponseWriter, status int, name string, p page) error {
	var b bytes.Buffer
	p.Path, p.Server = c.options.Path, c.name
	if err := c.templates.ExecuteTemplate(&b, name, p); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who has left needs no answer
	return nil
}

// fragments are parts of a page, by the IDs of their elements.
type fragments map[string]string

// render returns parts of a page.
func (c *Console) render(data any, names ...string) (fragments, error) {
	parts := fragments{}
	for _, name := range names {
		var b bytes.Buffer
		if err := c.templates.ExecuteTemplate(&b, name, data); err != nil {
			return nil, err
		}
		parts[name] = b.String()
	}
	return parts, nil
}
