package model_test

import (
	"go/token"
	"go/types"
	"slices"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

var (
	own   = types.NewPackage("example.com/p", "p")
	other = types.NewPackage("example.com/other", "other")
	again = types.NewPackage("example.com/v2/other", "other")
)

func named(pkg *types.Package, name string) *types.Named {
	return types.NewNamed(types.NewTypeName(token.NoPos, pkg, name, nil), types.NewStruct(nil, nil), nil)
}

// page returns an instance of a generic type.
func page(t *testing.T, args ...types.Type) types.Type {
	t.Helper()
	generic := named(own, "Page")
	var params []*types.TypeParam
	for range args {
		params = append(params, types.NewTypeParam(types.NewTypeName(token.NoPos, own, "T", nil), types.Universe.Lookup("any").Type()))
	}
	generic.SetTypeParams(params)
	instance, err := types.Instantiate(nil, generic, args, false)
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

func TestNameSchemas(t *testing.T) {
	run, report, unnamed := named(own, "RunInput"), named(own, "HTTPReport"), types.NewStruct(nil, nil)
	tool := func(method string, in types.Type, input string, out types.Type, output string) *model.Tool {
		return &model.Tool{Method: method, In: in, InputSchema: input, Out: out, OutputSchema: output}
	}
	written := tool("Written", run, "by hand", report, "report")
	written.InputWritten = true
	for name, test := range map[string]struct {
		tools []*model.Tool
		taken []string
		want  []string // of each tool, "" for none
	}{
		"by type": {
			tools: []*model.Tool{
				tool("A", run, "run", report, "report"), tool("B", types.NewPointer(run), "run", nil, ""), tool("C", nil, "", run, "open run"),
			},
			want: []string{"runInputArguments", "httpReportResult", "runInputArguments", "", "", "runInputResult"},
		},
		"of other packages": {
			tools: []*model.Tool{tool("A", named(other, "RunInput"), "1", page(t, run, named(other, "Item")), "2")},
			want:  []string{"otherRunInputArguments", "pageOfRunInputAndOtherItemResult"},
		},
		"generic": {
			tools: []*model.Tool{tool("A", page(t, types.NewSlice(types.Typ[types.String])), "1", page(t, unnamed), "2")},
			want:  []string{"pageOfStringListArguments", "ciAResult"},
		},
		"of packages with the same name": {
			tools: []*model.Tool{tool("A", named(other, "X"), "1", nil, ""), tool("B", named(again, "X"), "2", nil, "")},
			want:  []string{"ciAArguments", "", "ciBArguments", ""},
		},
		"without a name": {
			tools: []*model.Tool{tool("A", unnamed, "1", unnamed, "1"), tool("B", unnamed, "1", unnamed, "2")},
			want:  []string{"ciAArguments", "ciAResult", "ciAArguments", "ciBResult"},
		},
		"written by hand": {
			tools: []*model.Tool{written, tool("B", run, "run", nil, "")},
			want:  []string{"ciWrittenArguments", "httpReportResult", "runInputArguments", ""},
		},
		"taken": {
			tools: []*model.Tool{tool("A", run, "run", report, "report"), tool("B", run, "run", unnamed, "2")},
			taken: []string{"runInputArguments", "ciAArguments", "ciBResult", "ciBResult2"},
			want:  []string{"ciAArguments2", "httpReportResult", "ciAArguments2", "ciBResult3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pkg := &model.Package{Path: own.Path(), Services: []*model.Service{{Name: "CI", Tools: test.tools}}}
			pkg.NameSchemas(func(name string) bool { return slices.Contains(test.taken, name) })
			var got []string
			for _, tool := range test.tools {
				got = append(got, tool.InputConst, tool.OutputConst)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// TestNamesStay checks that the names do not depend on other tools and on the order.
func TestNamesStay(t *testing.T) {
	run, report := named(own, "RunInput"), named(own, "Report")
	tool := func(method string) *model.Tool {
		return &model.Tool{Method: method, In: run, InputSchema: "run", Out: report, OutputSchema: "report"}
	}
	input := &model.Input{Name: "Approval", Type: named(own, "Approval"), Schema: "approval"}
	a := tool("A")
	for _, tools := range [][]*model.Tool{{a}, {a, tool("B")}, {tool("New"), tool("B"), a}, {tool("B"), a}} {
		pkg := &model.Package{Path: own.Path(), Services: []*model.Service{{Name: "CI", Tools: tools}}, Inputs: []*model.Input{input}}
		a.InputConst, a.OutputConst, input.SchemaConst = "", "", ""
		pkg.NameSchemas(func(string) bool { return false })
		if a.InputConst != "runInputArguments" || a.OutputConst != "reportResult" || input.SchemaConst != "approvalAnswer" {
			t.Errorf("%d tools: %q, %q, %q", len(tools), a.InputConst, a.OutputConst, input.SchemaConst)
		}
	}
}
