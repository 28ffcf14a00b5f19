package hosts

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// taskSupport says how a host uses tasks.
type taskSupport int

const (
	noTasks     taskSupport = iota
	legacyTasks             // it asks for tasks in 2025-11-25 if a tool takes them, as VS Code does
	modernTasks             // it declares the extension of 2026-07-28, as Claude Code does
)

// pause is how long a model takes between two calls.
const pause = 3 * time.Second

// maxTokens is how much of an answer Claude Code shows its model. A token has at least one byte.
const maxTokens = 25_000

// tool is a tool as the server lists it.
type tool struct {
	Name      string `json:"name"`
	Execution struct {
		TaskSupport string `json:"taskSupport"`
	} `json:"execution"`
	OutputSchema json.RawMessage `json:"outputSchema"`

	output *jsonschema.Schema // nil if it has none
}

// answer is the result of a tools/call. It may be a task, or questions (2026-07-28).
type answer struct {
	Type       string          `json:"resultType"`
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`

	Task  *task           `json:"task"` // 2025-11-25
	State json.RawMessage `json:"requestState"`

	raw json.RawMessage
}

// content is a content block.
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URI  string `json:"uri"`
}

// task is a task in either revision.
type task struct {
	ID      string          `json:"taskId"`
	Status  string          `json:"status"`
	Message string          `json:"statusMessage"`
	Poll    int64           `json:"pollInterval"`
	PollMs  int64           `json:"pollIntervalMs"`
	Result  json.RawMessage `json:"result"`

	Questions questions `json:"inputRequests"`
}

// questions are the inputRequests of 2026-07-28.
type questions map[string]struct {
	Method string      `json:"method"`
	Params elicitation `json:"params"`
}

func (a *answer) text() string {
	var all []string
	for _, block := range a.Content {
		if block.Type == "text" {
			all = append(all, block.Text)
		}
	}
	return strings.Join(all, "\n")
}

// listTools reads the tools as a host does that checks results against output schemas.
func (c *client) listTools() error {
	data, err := c.request("tools/list", nil)
	if err != nil {
		return err
	}
	var list struct {
		Tools []tool `json:"tools"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	c.tools = map[string]tool{}
	for _, listed := range list.Tools {
		if listed.OutputSchema != nil {
			document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(listed.OutputSchema)))
			if err != nil {
				return err
			}
			compiler := jsonschema.NewCompiler()
			if err := compiler.AddResource("schema:output", document); err != nil {
				return err
			}
			if listed.output, err = compiler.Compile("schema:output"); err != nil {
				return err
			}
		}
		c.tools[listed.Name] = listed
	}
	return nil
}

// checkOutput checks a result against the tool's output schema, as the TypeScript SDK does.
func (c *client) checkOutput(name string, a *answer) error {
	output := c.tools[name].output
	switch {
	case output == nil || a.IsError:
		return nil
	case a.Structured == nil:
		return fmt.Errorf("%s has an output schema and gave no structured content: %s", name, a.raw)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(a.Structured)))
	if err != nil {
		return err
	}
	return output.Validate(value)
}

// converse has the model call a tool and do what the answers say, until one is final.
func (c *client) converse(name string, arguments map[string]any, sees sight) (*answer, error) {
	m := &model{c: c, sees: sees, shown: map[string]int{}}
	c.began, c.ran = time.Now(), 0
	for range 100 {
		a, err := c.callTool(name, arguments)
		if err != nil {
			return nil, err
		}
		next, err := m.readNext(a)
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			return a, nil
		case c.tools[next.tool].Name == "":
			return nil, fmt.Errorf("the model is told to call %s, which is not listed: %s", next.tool, a.raw)
		}
		name, arguments = next.tool, next.arguments
		time.Sleep(pause)
	}
	return nil, errors.New("the model calls on and on")
}

// callTool calls a tool as the host does and returns what its model sees.
func (c *client) callTool(name string, arguments map[string]any) (*answer, error) {
	params := map[string]any{"name": name, "arguments": arguments}
	if c.host.tasks == legacyTasks && !c.way.modern() && c.tools[name].Execution.TaskSupport != "" &&
		c.tools[name].Execution.TaskSupport != "forbidden" {
		params["task"] = map[string]any{}
	}
	for {
		began := time.Now()
		data, err := c.request("tools/call", params)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		c.calls = append(c.calls, callRecord{name, time.Since(began)})
		if len(data) > maxTokens {
			return nil, fmt.Errorf("%s: an answer of %d bytes may be cut off", name, len(data))
		}
		a := &answer{raw: data}
		var asked struct {
			task

			Questions questions `json:"inputRequests"`
		}
		if err := errors.Join(json.Unmarshal(data, a), json.Unmarshal(data, &asked)); err != nil {
			return nil, err
		}
		switch {
		case a.Task != nil:
			return c.followLegacy(*a.Task)
		case a.Type == "task":
			return c.followModern(asked.task)
		case a.Type == "input_required":
			if params["inputResponses"], err = c.answerAll(asked.Questions); err != nil {
				return nil, err
			}
			delete(params, "requestState")
			if a.State != nil {
				params["requestState"] = a.State
			}
		default:
			return a, c.checkOutput(name, a)
		}
	}
}

// answerAll asks the user the questions of an answer.
func (c *client) answerAll(all questions) (map[string]json.RawMessage, error) {
	if len(all) == 0 {
		return nil, errors.New("input is required, but nothing is asked")
	}
	responses := map[string]json.RawMessage{}
	for key, q := range all {
		if q.Method != "elicitation/create" || !c.way.elicits {
			return nil, fmt.Errorf("the host cannot answer %s", q.Method)
		}
		if responses[key] = c.show(c.ended, q.Params); responses[key] == nil {
			return nil, c.ended.Err()
		}
	}
	return responses, nil
}

// followLegacy follows a task of 2025-11-25 as VS Code does: it polls, and gets the result only at
// the end. So a question must come on the session's own stream.
func (c *client) followLegacy(t task) (*answer, error) {
	if err := c.poll(&t, func() error { return nil }); err != nil {
		return nil, err
	}
	data, err := c.request("tasks/result", map[string]any{"taskId": t.ID})
	if err != nil {
		return nil, err
	}
	a := &answer{raw: data}
	return a, json.Unmarshal(data, a)
}

// followModern follows a task of 2026-07-28: it polls, and answers questions with tasks/update.
func (c *client) followModern(t task) (*answer, error) {
	if err := c.poll(&t, func() error {
		if t.Status != "input_required" {
			return nil
		}
		responses, err := c.answerAll(t.Questions)
		if err == nil {
			_, err = c.request("tasks/update", map[string]any{"taskId": t.ID, "inputResponses": responses})
		}
		return err
	}); err != nil {
		return nil, err
	}
	a := &answer{raw: t.Result}
	return a, json.Unmarshal(t.Result, a)
}

// poll polls a task until it is completed. each is called after each poll.
func (c *client) poll(t *task, each func() error) error {
	for end := time.Now().Add(longestTask); t.goesOn(); {
		if time.Now().After(end) {
			return fmt.Errorf("the task goes on and on: %+v", *t)
		}
		time.Sleep(time.Duration(max(t.Poll, t.PollMs, 1000)) * time.Millisecond)
		t.Questions = nil
		data, err := c.request("tasks/get", map[string]any{"taskId": t.ID})
		if err == nil {
			err = json.Unmarshal(data, t)
		}
		if err == nil {
			err = c.readStatus(*t)
		}
		if err == nil {
			err = each()
		}
		if err != nil {
			return err
		}
	}
	if t.Status != "completed" {
		return fmt.Errorf("task %s %s: %s", t.ID, t.Status, t.Message)
	}
	return nil
}

// longestTask is how long the models follow a task.
const longestTask = time.Hour

func (t task) goesOn() bool { return t.Status == "working" || t.Status == "input_required" }

// answerByTool finds in the message of a task how to answer its question with a tool.
var answerByTool = regexp.MustCompile(`call the tool (\w+) with (\{.*\})\.$`)

// readStatus has the model answer the question in a task's message, if it says how. Hosts show the
// message to their user.
func (c *client) readStatus(t task) error {
	found := answerByTool.FindStringSubmatch(t.Message)
	if found == nil || !t.goesOn() {
		return nil
	}
	select {
	case <-time.After(c.user.thinks):
	case <-c.ended.Done():
		return c.ended.Err()
	}
	c.user.count()
	var arguments map[string]any
	filled := strings.NewReplacer("<boolean>", "true", "<string>", `"as planned"`).Replace(found[2])
	if err := json.Unmarshal([]byte(filled), &arguments); err != nil {
		return fmt.Errorf("the model cannot read the arguments in %q: %w", t.Message, err)
	}
	_, err := c.callTool(found[1], arguments)
	return err
}

// sight is what a model sees of an answer. Hosts differ in that.
type sight int

const (
	seesText sight = iota
	seesStructured
)

// model is the language model of a host. It knows what answers say, and nothing else.
type model struct {
	c     *client
	sees  sight
	shown map[string]int // how often the host was to show a question, by its name
}

// bearsForm is how often the model waits for the answer to a question that the host shows, before it
// believes that this does not work.
const bearsForm = 20

// toolCall is a call that the model wants to make.
type toolCall struct {
	tool      string
	arguments map[string]any
}

// readNext returns the call that an answer asks for, or nil if the answer is final.
func (m *model) readNext(a *answer) (*toolCall, error) {
	if m.sees == seesStructured && a.Structured != nil {
		return m.readStructured(a.Structured)
	}
	return m.readText(a.text())
}

// readStructured reads the structured content of an answer.
func (m *model) readStructured(data json.RawMessage) (*toolCall, error) {
	var state struct {
		Task      string `json:"task"`
		Questions []struct {
			Key    string          `json:"key"`
			Text   string          `json:"text"`
			Schema json.RawMessage `json:"schema"`
		} `json:"questions"`
		Next *struct {
			Tool      string         `json:"tool"`
			Arguments map[string]any `json:"arguments"`
		} `json:"next"`
	}
	if err := json.Unmarshal(data, &state); err != nil || state.Task == "" {
		return nil, err
	}
	if state.Next == nil {
		return nil, fmt.Errorf("the structured content does not say how to go on: %s", data)
	}
	for _, q := range state.Questions {
		if q.Key == state.Next.Arguments["question"] && q.Text != "" {
			state.Next.Arguments["answer"] = m.c.user.answer(m.c.ended, q.Schema)
		}
	}
	return &toolCall{state.Next.Tool, state.Next.Arguments}, nil
}

// advice finds in a text the tools that it tells the model to call, with their arguments.
var advice = regexp.MustCompile(`(\w+) with \{`)

// readText reads the text of an answer.
func (m *model) readText(text string) (*toolCall, error) {
	var result, reply *toolCall
	for _, at := range advice.FindAllStringSubmatchIndex(text, -1) {
		call := &toolCall{tool: text[at[2]:at[3]]}
		if err := json.NewDecoder(strings.NewReader(text[at[1]-1:])).Decode(&call.arguments); err != nil {
			return nil, fmt.Errorf("the model cannot read the arguments in %q: %w", text, err)
		}
		switch {
		case strings.HasSuffix(call.tool, "task_answer"):
			reply = call
		case strings.HasSuffix(call.tool, "task_result"):
			result = call
		}
	}
	if reply == nil {
		return result, nil
	}
	if strings.Contains(text, "The user is asked") || strings.Contains(text, "The user is being asked") {
		key := fmt.Sprint(reply.arguments["question"])
		if m.shown[key]++; m.shown[key] <= bearsForm {
			return result, nil
		}
	}
	_, rest, ok := strings.Cut(text, "JSON Schema ")
	if !ok {
		return nil, fmt.Errorf("the model does not know what to ask: %s", text)
	}
	var schema json.RawMessage
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&schema); err != nil {
		return nil, fmt.Errorf("the model cannot read the schema in %q: %w", text, err)
	}
	reply.arguments["answer"] = m.c.user.answer(m.c.ended, schema) // in the conversation
	return reply, nil
}
