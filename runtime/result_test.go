package mcptask

import (
	"encoding/json"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// TestContent checks the wire form of each kind of content block.
func TestContent(t *testing.T) {
	for want, c := range map[string]Content{
		`{"text":"a \u003c b","type":"text"}`:                     TextContent("a < b"),
		`{"data":"AQI=","mimeType":"image/png","type":"image"}`:   ImageContent([]byte{1, 2}, "image/png"),
		`{"data":"AQI=","mimeType":"audio/wav","type":"audio"}`:   AudioContent([]byte{1, 2}, "audio/wav"),
		`{"name":"log","type":"resource_link","uri":"file:///l"}`: LinkContent("file:///l", "log"),
	} {
		if data, err := value.Marshal(Result{Content: []Content{c}}); err != nil || string(data) != `{"content":[`+want+`]}` {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
	}
	for text, c := range map[string]Content{"a < b": TextContent("a < b"), "": LinkContent("file:///l", "log")} {
		if got := c.Text(); got != text {
			t.Errorf("the text of %s is %q", c, got)
		}
	}
	for _, c := range []Content{nil, Content(`[]`), Content(`{"type":"audio","text":"no"}`)} {
		if got := c.Text(); got != "" {
			t.Errorf("the text of %s is %q", c, got)
		}
	}
	for _, c := range []Content{nil, Content(`[{"type":"text","text":"a"}]`), Content(`"a"`)} {
		if _, err := json.Marshal(Result{Content: []Content{c}}); err == nil {
			t.Errorf("%s was encoded as a block", c)
		}
	}
}
