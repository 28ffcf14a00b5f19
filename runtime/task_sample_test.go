package mcptask

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"
)

// TestSampleContent checks that content has the form that every client reads, and that both forms are read.
func TestSampleContent(t *testing.T) {
	const a, b = `{"text":"a","type":"text"}`, `{"data":"AQI=","mimeType":"image/png","type":"image"}`
	one := SampleContent{TextContent("a")}
	two := append(one, ImageContent([]byte{1, 2}, "image/png"), TextContent("c"))
	for text, content := range map[string]SampleContent{a: one, "[" + a + "," + b + `,{"text":"c","type":"text"}]`: two} {
		got, err := value.Marshal(SampleMessage{Role: "user", Content: content})
		if want := `{"role":"user","content":` + text + "}"; err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if text := two.Text(); text != "a\nc" {
		t.Errorf("the text is %q", text)
	}
	for _, text := range []string{a, "[" + a + "]", " [ " + a + " ] "} {
		var m SampleMessage
		if err := json.Unmarshal([]byte(`{"content":`+text+`}`), &m); err != nil || len(m.Content) != 1 || m.Content.Text() != "a" {
			t.Errorf("%s was read as %q, %v", text, m.Content, err)
		}
	}
	var several SampleResult
	if err := json.Unmarshal([]byte(`{"content":[`+a+`,`+b+`]}`), &several); err != nil || len(several.Content) != 2 || string(several.Content[1]) != b {
		t.Errorf("several blocks were read as %q, %v", several.Content, err)
	}
}

// TestSampleAnswers checks that an answer without content that a handler can read is refused, with the reason.
func TestSampleAnswers(t *testing.T) {
	for content, want := range map[string]string{
		`{"type":"text","text":""}`:                          "",
		`{"type":"tool_use","id":"1","name":"n","input":{}}`: "",
		`[{"type":"text","text":"a"}]`:                       "",
		`[]`:                                                 "no blocks",
		`null`:                                               "block 1 of the content of a message is not a content block",
		`"a"`:                                                "block 1 of the content of a message is not a content block",
		`[{"type":"text","text":"a"},"b"]`:                   "block 2 of the content of a message is not a content block",
		`[{"type":"text","text":"a"},null]`:                  "block 2 of the content of a message is not a content block",
		`[[{"type":"text","text":"a"}]]`:                     "block 1 of the content of a message is not a content block",
		`{"text":"a"}`:                                       `has the type ""`,
		`{"type":"resource_link","uri":"u","name":"n"}`: `has the type "resource_link"`,
		`{"type":"text"}`:          "no text",
		`{"type":"text","text":1}`: "is not a content block",
	} {
		answer := json.RawMessage(`{"role":"assistant","model":"m","content":` + content + `}`)
		err := CheckAnswer(t.Context(), Request{Method: "sampling/createMessage"}, answer)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", content, err)
		case want != "" && (!errors.Is(err, ErrInvalidAnswer) || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	err := CheckAnswer(t.Context(), Request{Method: "sampling/createMessage"}, json.RawMessage(`{"role":"assistant","model":"m"}`))
	if !errors.Is(err, ErrInvalidAnswer) || !strings.Contains(err.Error(), "needs a role, a model and content") {
		t.Errorf("without content: %v", err)
	}
	if err := CheckAnswer(t.Context(), Request{Method: "roots/list"}, json.RawMessage(`{"roots":[],"content":"a"}`)); err != nil {
		t.Errorf("roots with another member: %v", err)
	}
}

// TestSampleWithoutContent checks that a message that no client could read is not sent.
func TestSampleWithoutContent(t *testing.T) {
	messages := []SampleMessage{{Role: "user", Content: []Content{TextContent("a")}}, {Role: "user"}}
	_, err := new(Task).Sample(t.Context(), "sum", SampleRequest{Messages: messages})
	if err == nil || !strings.HasPrefix(err.Error(), "sum: message 2: the content of a message has no blocks") {
		t.Error(err)
	}
}
