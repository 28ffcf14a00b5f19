package serve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/workflows"
	"github.com/mcptaskgen/mcptaskgen/golden/workflows/apart"
	"github.com/mcptaskgen/mcptaskgen/golden/workflows/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// workflowsEngine has workflows by the names of their types. Their input and output go through JSON, as in an engine.
type workflowsEngine map[string]func(ctx context.Context, task *mcptask.Task, args []json.RawMessage) (any, error)

// RunWorkflow implements mcptask.WorkflowRunner.
func (e workflowsEngine) RunWorkflow(ctx context.Context, task *mcptask.Task, workflow string, out any, args ...any) error {
	run, ok := e[workflow]
	if !ok {
		return fmt.Errorf("there is no workflow %s", workflow)
	}
	var encoded []json.RawMessage
	for _, arg := range args {
		text, err := json.Marshal(arg)
		if err != nil {
			return err
		}
		encoded = append(encoded, text)
	}
	result, err := run(ctx, task, encoded)
	if err != nil {
		return err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// workflowsDecode decodes the arguments of a workflow. There must be as many as it takes.
func workflowsDecode(args []json.RawMessage, into ...any) error {
	if len(args) != len(into) {
		return fmt.Errorf("%d arguments, want %d", len(args), len(into))
	}
	for i, arg := range args {
		if err := json.Unmarshal(arg, into[i]); err != nil {
			return err
		}
	}
	return nil
}

var workflowsOf = workflowsEngine{
	"RunPipeline": func(_ context.Context, _ *mcptask.Task, args []json.RawMessage) (any, error) {
		var in workflows.BuildInput
		err := workflowsDecode(args, &in)
		return workflows.BuildReport{Version: in.Version, Passed: true}, err
	},
	"releases.Ship": func(ctx context.Context, task *mcptask.Task, args []json.RawMessage) (any, error) {
		var in workflows.BuildInput
		var sure workflows.Approval
		var where workflows.Place
		if err := workflowsDecode(args, &in, &sure, &where); err != nil {
			return nil, err
		}
		again, err := mcptask.Ask[workflows.Approval](ctx, task, workflows.ApprovalInput(), "ship", "Ship it to "+where.Name+"?")
		return &workflows.BuildReport{Version: in.Version + " in " + where.Name, Passed: sure.Approve && again.Approve}, err
	},
	"explain a version": func(_ context.Context, _ *mcptask.Task, args []json.RawMessage) (any, error) {
		var in workflows.BuildInput
		err := workflowsDecode(args, &in)
		return "what " + in.Version + " brings", err
	},
	"Withdraw": func(_ context.Context, _ *mcptask.Task, args []json.RawMessage) (any, error) {
		var sure workflows.Approval
		if err := workflowsDecode(args, &sure); err != nil || !sure.Approve {
			return nil, fmt.Errorf("not approved: %w", err)
		}
		return nil, nil
	},
	"Sweep": func(_ context.Context, _ *mcptask.Task, args []json.RawMessage) (any, error) {
		return nil, workflowsDecode(args)
	},
}

type workflowsImpl struct{ workflows.ReleasesWorkflows }

func (workflowsImpl) Check(_ context.Context, _ *mcptask.Task, in workflows.BuildInput) (workflows.BuildReport, error) {
	return workflows.BuildReport{Version: in.Version}, nil
}

// TestWorkflows calls the tools that are workflows, on an engine that runs them in this process.
func TestWorkflows(t *testing.T) {
	answer := func(s *serve.Session) mcptask.Answerer {
		return mcptask.Answers(
			workflows.AnswerApproval(serve.Answers(s, workflows.Approval{Approve: true})),
			workflows.AnswerPlace(serve.Answers(s, workflows.Place{Name: "staging"})))
	}
	serve.Each(t, answer, []string{"Approval", "Place"}, func(s *serve.Session) {
		client, upkeep := workflows.NewReleasesClient(s), workflows.NewUpkeepClient(s)
		in := workflows.BuildInput{Version: "1.2.3"}
		serve.Returns(s, "build", client.Build, in, workflows.BuildReport{Version: "1.2.3", Passed: true})
		serve.Returns(s, "ship", client.Ship, &in, &workflows.BuildReport{Version: "1.2.3 in staging", Passed: true})
		serve.Returns(s, "explain", client.Explain, in, "what 1.2.3 brings")
		serve.Wants(s, "withdraw", struct{}{}, func() (struct{}, error) { return struct{}{}, client.Withdraw(s.Context()) })
		serve.Returns(s, "check", client.Check, in, workflows.BuildReport{Version: "1.2.3"})
		serve.Wants(s, "upkeep_sweep", struct{}{}, func() (struct{}, error) { return struct{}{}, upkeep.Sweep(s.Context()) })
	}, workflows.ReleasesTools(workflowsImpl{workflows.ReleasesWorkflows{Runner: workflowsOf}}),
		workflows.UpkeepTools(workflows.UpkeepWorkflows{Runner: workflowsOf}))
}

// TestWorkflowsApart lets a workflow ask a client that has neither tasks nor elicitation. Its question is declared in
// another package than its tool.
func TestWorkflowsApart(t *testing.T) {
	engine := workflowsEngine{"Release": func(ctx context.Context, task *mcptask.Task, args []json.RawMessage) (any, error) {
		var in apart.Version
		if err := workflowsDecode(args, &in); err != nil {
			return nil, err
		}
		approval, err := questions.AskApproval(ctx, task, "release", "")
		if err == nil && approval.Approve {
			in.Name += " is out"
		}
		return in, err
	}}
	url := serve.HTTP(t, apart.NightlyTools(apart.NightlyWorkflows{Runner: engine}))
	client := mcp.NewClient(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	call := func(tool string, arguments any) string {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(result)
		return string(text)
	}
	asked := call("release", apart.Version{Name: "1.2.3"})
	found := regexp.MustCompile(`"arguments":\{"question":"([^"]+)","task":"([^"]+)"\}`).FindStringSubmatch(asked)
	if found == nil {
		t.Fatalf("the model does not learn how to answer: %s", asked)
	}
	call("task_answer", map[string]any{"question": found[1], "task": found[2], "answer": questions.Approval{Approve: true}})
	if got := call("task_result", map[string]any{"task": found[2]}); !strings.Contains(got, "1.2.3 is out") {
		t.Errorf("task_result: %s", got)
	}
}
