package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
)

const (
	// refreshEvery is how often a view is made again for each open page.
	refreshEvery = time.Second
	// pauseFactor is how many times as long as the making of a view has taken the next one waits: a search that reads
	// the whole store must not keep it busy as long as a page is open.
	pauseFactor = 10
	// keepAliveEvery is how often a stream sends a comment, so that proxies keep it open, and asks whether its viewer
	// still may look.
	keepAliveEvery = 15 * time.Second
	// failsFor is how long a view may fail until its stream ends, so that the viewer sees that the page is not live.
	failsFor = 10 * time.Second
	// sendWithin bounds how long a viewer may take to read a message.
	sendWithin = 10 * time.Second
	// maxStreamsPerViewer bounds the open streams of a viewer, and maxStreams those of all.
	maxStreamsPerViewer = 16
	maxStreams          = 64
)

// liveView is the part of an open page that follows the store.
type liveView struct {
	console *Console
	name    string
	viewer  Viewer
	last    fragments
	version int64  // of the task that last shows
	danger  danger // of its worker
}

// stream sends the parts of a page that change. The first message has all parts: the page may be older than the
// stream.
func (c *Console) stream(w http.ResponseWriter, r request) error {
	release, _ := c.streams.Take(1, limit.Bound[string]{Key: "viewer " + r.viewer.Name, Most: maxStreamsPerViewer}, limit.Bound[string]{Key: "all", Most: maxStreams})
	if release == nil {
		return failure{http.StatusServiceUnavailable, "too many pages are open: this one does not change by itself"}
	}
	defer release()
	v := &liveView{console: c, name: r.URL.Query().Get("view"), viewer: r.viewer}
	changed, err := v.remake(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the server's would end the stream; not every writer has one
	send := func(message []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(sendWithin))
		_, err := w.Write(message)
		return err == nil && control.Flush() == nil
	}
	identified, pause := time.Now(), refreshEvery
	var failing time.Time // since when, or zero
	for {
		if len(changed) > 0 {
			data, err := json.Marshal(changed) // one line
			if err != nil || !send(fmt.Appendf(nil, "data: %s\n\n", data)) {
				return nil
			}
		}
		if time.Since(identified) >= keepAliveEvery {
			identified = time.Now()
			if viewer, err := c.identify(r.Request); err != nil || viewer != r.viewer || !send([]byte(": \n\n")) {
				return nil // identify has logged it; the browser asks again, and is refused or gets another view
			}
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-c.server.Closing().Done():
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		changed, err = v.remake(r.Context())
		switch {
		case err == nil, errors.Is(err, errNoTask), errors.Is(err, errBusy): // it has expired, or has to wait: it stays as it was
			failing, pause = time.Time{}, max(refreshEvery, pauseFactor*time.Since(began))
		case failing.IsZero():
			failing, pause = began, refreshEvery
		case time.Since(failing) >= failsFor:
			return nil
		}
		if err != nil && !failing.IsZero() && r.Context().Err() == nil {
			c.server.Backend().Notice(slog.LevelError, "console failed", "error", err)
		}
	}
}

// remake makes a view once more, and returns the parts that have changed.
func (v *liveView) remake(ctx context.Context) (changed fragments, err error) {
	defer guard.Then(v.console.server.Backend().Logger(), "a live view of the console", func() { err = errors.New("the view panicked: see the log") })
	parts, err := v.console.makeView(ctx, v)
	changed = maps.Clone(parts)
	maps.DeleteFunc(changed, func(name, part string) bool { return v.last[name] == part })
	if parts != nil {
		v.last = parts
	}
	return changed, err
}

// makeView makes the parts of a view. Those of a task are nil if it still has the version that was seen last.
func (c *Console) makeView(ctx context.Context, v *liveView) (fragments, error) {
	name, rest, _ := strings.Cut(v.name, "?")
	reference, isTask := strings.CutPrefix(name, "tasks/")
	switch {
	case name == "overview":
		o, err := c.readOverview(ctx)
		if err != nil {
			return nil, err
		}
		return c.render(o, overviewParts...)
	case name == "tasks":
		values, _ := url.ParseQuery(rest) // an unreadable part is left out, as on the page
		l, err := c.readList(ctx, newQuery(values), v.viewer)
		if err != nil {
			return nil, err
		}
		return c.render(l, "list")
	case isTask:
		record, err := c.seekTask(ctx, reference)
		if err != nil || record.Version == v.version && c.findDanger(ctx, &record) == v.danger {
			return nil, err
		}
		if record, err = c.readTask(ctx, record.ID); err != nil {
			return nil, err
		}
		d := c.newDetail(ctx, record, v.viewer, nil)
		parts, err := c.render(d, detailParts...)
		if err == nil && !d.StepsFailed {
			v.version, v.danger = record.Version, d.Danger
		}
		return parts, err
	}
	return nil, failure{http.StatusNotFound, "there is no such view"}
}
