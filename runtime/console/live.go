package console

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// The page of a viewer opens one stream, which has the parts of the page that have changed. After its first message,
// all streams of the same view share the reading of the store and the making of the parts.

const (
	// refreshEvery is how often a view is made again while somebody looks at it.
	refreshEvery = time.Second
	// pauseFactor is how many times as long as the making of a view has taken the next one waits: a search that reads
	// the whole store must not keep it busy as long as somebody looks.
	pauseFactor = 10
	// keepAliveEvery is how often a stream sends a comment, so that proxies keep it open, and asks whether its viewer
	// still may look.
	keepAliveEvery = 15 * time.Second
	// failsFor is how long a view may fail until its streams end, so that its viewers see that the page is not live.
	failsFor = 10 * time.Second
	// sendWithin bounds how long a viewer may take to read a message.
	sendWithin = 10 * time.Second
	// maxStreamsPerViewer bounds the open streams of a viewer, and maxStreams those of all.
	maxStreamsPerViewer = 16
	maxStreams          = 64
)

// viewKey tells views apart, by their content and by whether their viewers may act.
type viewKey struct {
	view string
	act  bool
}

// liveView is a view that somebody looks at. Console.mu guards it.
type liveView struct {
	// viewers maps the channel of each stream to whether it was sent all parts since it joined.
	viewers map[chan fragments]bool
	last    fragments
	stop    context.CancelFunc
	version int64 // of the task that last shows; only refresh uses it
}

// stream sends the changes of a view. The first message has all parts: the page may be older than the stream.
func (c *Console) stream(w http.ResponseWriter, r request) error {
	release, ok := c.reserve(r.viewer)
	if !ok {
		return failure{http.StatusServiceUnavailable, "too many pages are open: this one does not change by itself"}
	}
	defer release()
	key := viewKey{r.URL.Query().Get("view"), r.viewer.Act}
	parts, err := c.makeView(r.Context(), key, new(int64))
	if err != nil {
		return err
	}
	news, leave := c.join(key, parts)
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // the server's would end the stream; not every writer has one
	send := func(message []byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(sendWithin))
		_, err := w.Write(message)
		return err == nil && control.Flush() == nil
	}
	if !send([]byte(": open\n\n")) {
		return nil
	}
	keepAlive := time.NewTicker(keepAliveEvery)
	defer keepAlive.Stop()
	for {
		message := []byte(": \n\n")
		select {
		case <-r.Context().Done():
			return nil
		case <-c.server.Closing().Done():
			return nil
		case parts, ok := <-news:
			if !ok {
				return nil // the view fails
			}
			data, err := json.Marshal(parts) // one line
			if err != nil {
				return nil // cannot happen: they are strings
			}
			message = append(append([]byte("data: "), data...), "\n\n"...)
		case <-keepAlive.C:
			if viewer, err := c.identify(r.Request); err != nil || viewer != r.viewer {
				return nil // identify has logged it; the browser asks again, and is refused or gets another view
			}
		}
		if !send(message) {
			return nil
		}
	}
}

// makeView makes the parts of a view. Those of a task are nil if it still has the version that was seen last.
func (c *Console) makeView(ctx context.Context, key viewKey, seen *int64) (fragments, error) {
	name, rest, _ := strings.Cut(key.view, "?")
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
		l, err := c.readList(ctx, newQuery(values))
		if err != nil {
			return nil, err
		}
		return c.render(l, "list")
	case isTask:
		record, err := c.seekTask(ctx, reference)
		if err != nil || record.Version == *seen {
			return nil, err
		}
		if record, err = c.readTask(ctx, record.ID); err != nil {
			return nil, err
		}
		parts, err := c.render(c.newDetail(record, Viewer{Act: key.act}, nil), detailParts...)
		if err == nil {
			*seen = record.Version
		}
		return parts, err
	}
	return nil, failure{http.StatusNotFound, "there is no such view"}
}

// reserve takes the place of a stream, until release is called. It returns false if there are too many.
func (c *Console) reserve(viewer Viewer) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams >= maxStreams || c.streamsOf[viewer.Name] >= maxStreamsPerViewer {
		return nil, false
	}
	c.streams++
	c.streamsOf[viewer.Name]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.streams--
		if c.streamsOf[viewer.Name]--; c.streamsOf[viewer.Name] == 0 {
			delete(c.streamsOf, viewer.Name)
		}
	}, true
}

// join adds a viewer, who gets these parts, to a view until leave is called. The first one starts it.
func (c *Console) join(key viewKey, parts fragments) (news chan fragments, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news = make(chan fragments, 1)
	news <- maps.Clone(parts)
	v := c.views[key]
	isNew := v == nil
	if isNew {
		ctx, stop := context.WithCancel(c.server.Closing())
		v = &liveView{viewers: map[chan fragments]bool{}, last: parts, stop: stop}
		c.views[key] = v
		go c.refresh(ctx, key, v)
	}
	v.viewers[news] = isNew
	return news, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(v.viewers, news); len(v.viewers) == 0 {
			c.end(key, v)
		}
	}
}

// end ends a view and its streams. c.mu is held.
func (c *Console) end(key viewKey, v *liveView) {
	v.stop()
	if c.views[key] == v {
		delete(c.views, key)
	}
	for news := range v.viewers {
		close(news)
	}
	clear(v.viewers)
}

// refresh makes a view again and again, and gives its viewers the changed parts.
func (c *Console) refresh(ctx context.Context, key viewKey, v *liveView) {
	defer guard.Recover(c.server.Backend().Logger(), "a live view of the console")
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.end(key, v)
	}()
	pause := refreshEvery
	var failing time.Time // since when, or zero
	for failing.IsZero() || time.Since(failing) < failsFor {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		began := time.Now()
		switch isMade := c.remake(ctx, key, v); {
		case isMade:
			failing, pause = time.Time{}, max(refreshEvery, pauseFactor*time.Since(began))
		case failing.IsZero():
			failing, pause = began, refreshEvery
		}
	}
}

// remake makes a view once more. It returns false if that fails.
func (c *Console) remake(ctx context.Context, key viewKey, v *liveView) bool {
	defer guard.Recover(c.server.Backend().Logger(), "a live view of the console") // the next one may do better
	parts, err := c.makeView(ctx, key, &v.version)
	switch {
	case errors.Is(err, errNoTask), errors.Is(err, errBusy): // it has expired, or has to wait: it stays as it was
		return true
	case err != nil:
		if ctx.Err() == nil {
			c.server.Backend().Notice(slog.LevelError, "console failed", "error", err)
		}
		return false
	}
	c.publish(v, parts)
	return true
}

// publish sends each viewer the parts that have changed. A viewer who has joined since the last call gets all parts,
// because its first ones may be of another version. nil parts say that nothing has changed. A slow viewer gets the
// parts that it has missed and the new ones in one message.
func (c *Console) publish(v *liveView, parts fragments) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if parts == nil {
		parts = v.last
	}
	changed := fragments{}
	for name, part := range parts {
		if v.last[name] != part {
			changed[name] = part
		}
	}
	v.last = parts
	for news, hasAll := range v.viewers {
		next := maps.Clone(changed)
		if !hasAll {
			next, v.viewers[news] = maps.Clone(parts), true
		}
		if len(next) == 0 {
			continue
		}
		select {
		case missed := <-news:
			maps.Copy(missed, next)
			next = missed
		default:
		}
		news <- next
	}
}
