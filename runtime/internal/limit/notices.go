package limit

import (
	"log/slog"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

const (
	// noticeEvery is the least time between two records of one message.
	noticeEvery = time.Second
	// longestValue bounds the bytes of a value in a notice.
	longestValue = 256
)

// Notices limits log messages that outsiders can cause at any rate. The zero value is ready to
// use. It is safe for concurrent use.
type Notices struct {
	mu   sync.Mutex
	said map[string]*notice // by message
}

type notice struct {
	next    time.Time
	omitted int
}

// Log writes a message at most once a second. The attribute "omitted" of the next record says how
// many were left out. Log cuts long strings and errors. The message must be a constant, since
// Notices remembers each.
func (n *Notices) Log(log func(message string, attrs ...any), message string, attrs ...any) {
	now := time.Now()
	n.mu.Lock()
	last := n.said[message]
	if last == nil {
		if n.said == nil {
			n.said = map[string]*notice{}
		}
		last = &notice{}
		n.said[message] = last
	}
	if now.Before(last.next) {
		last.omitted++
		n.mu.Unlock()
		return
	}
	omitted := last.omitted
	*last = notice{next: now.Add(noticeEvery)}
	n.mu.Unlock()
	cut := make([]any, 0, len(attrs)+2)
	for _, v := range attrs {
		switch value := v.(type) {
		case string:
			v = text.Shorten(value, longestValue)
		case error:
			v = text.Shorten(value.Error(), longestValue)
		}
		cut = append(cut, v)
	}
	if omitted > 0 {
		cut = append(cut, slog.Int("omitted", omitted))
	}
	log(message, cut...)
}
