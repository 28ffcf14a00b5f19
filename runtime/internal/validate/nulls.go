package validate

import (
	"context"
	"slices"
)

// origin says who has written a value. It decides which nulls stand for something else.
type origin int

const (
	// asGiven means that every null is a null.
	asGiven origin = iota
	// fromHandler is a result. A null may be an empty list, map or byte slice.
	fromHandler
	// fromCaller has arguments. A null may also be a member that is left out, unless its object requires it.
	fromCaller
	// fromForm is an answer of a person. "" in place of a choice is left out too, because some programs send it for no
	// choice.
	fromForm
)

// nulls replaces the nulls of a document that the schema does not have by what their writer means: an empty list, map or
// byte slice, or a value that is left out.
type nulls struct {
	*document
	from   origin
	edited []byte
	copied int // bytes of the text that are in edited, or are left out
	admits map[*rule]bool
}

// plainNulls returns a document without the nulls that stand for an empty list, map or byte slice, or for a value that is
// left out. A null that the schema admits stays. So does one that stands for nothing else, and the check refuses it.
func plainNulls(ctx context.Context, r *rule, d *document, from origin) (*document, error) {
	if from == asGiven || len(d.nulls) == 0 && from != fromForm {
		return d, nil
	}
	n := &nulls{document: d, from: from, admits: map[*rule]bool{}}
	n.walk(r.inPlace, 0)
	if n.copied == 0 {
		return d, nil
	}
	return read(ctx, append(n.edited, d.text[n.copied:]...))
}

// walk edits the nulls within the value of a node, to which all of some rules apply.
func (n *nulls) walk(rules []*rule, i int32) {
	of := n.nodes[i]
	isForm := n.from == fromForm && i == 0
	if next, _ := slices.BinarySearch(n.nulls, i); !isForm && (next == len(n.nulls) || n.nulls[next] >= of.next) {
		return
	}
	switch of.kind {
	case kindArray:
		index := 0
		for child := i + 1; child < of.next; child = n.nodes[child].next {
			if inner := itemRules(rules, index); n.nodes[child].kind == kindNull {
				n.replace(child, n.emptyValue(inner, child))
			} else {
				n.walk(inner, child)
			}
			index++
		}
	case kindObject:
		kept := false // a member before this one
		for name := i + 1; name < of.next; name = n.nodes[name+1].next {
			inner := memberRules(rules, n.string(name))
			value := n.nodes[name+1]
			isUnchosen := isForm && value.kind == kindText && value.size == 0 && slices.ContainsFunc(inner, (*rule).isChoice)
			if (value.kind == kindNull || isUnchosen) && n.editMember(rules, inner, name, kept) {
				continue
			}
			kept = true
			n.walk(inner, name+1)
		}
	}
}

// editMember edits a member that is null, or "" for no choice. It reports whether it has left it out.
func (n *nulls) editMember(rules, inner []*rule, name int32, kept bool) bool {
	if len(inner) == 0 || n.admit(inner, name+1) {
		return false
	}
	isDeclared, isRequired := false, false
	for _, r := range rules {
		m, ok := r.members[n.string(name)]
		isDeclared, isRequired = isDeclared || ok, isRequired || m.required
	}
	empty := n.emptyValue(inner, name+1)
	if n.from != fromHandler && !isRequired && (isDeclared || empty == "") {
		n.leaveOut(name, kept)
		return true
	}
	n.replace(name+1, empty)
	return false
}

// leaveOut removes a member, with the comma before it if a member before it is kept, and otherwise the one after it.
func (n *nulls) leaveOut(name int32, kept bool) {
	isSpace := func(at int) bool { return slices.Contains([]byte(" \t\r\n"), n.text[at]) }
	from, to := int(n.nodes[name].start)-1, n.end(name+1)
	if kept {
		for from--; isSpace(from); from-- {
		}
	} else {
		for isSpace(to) {
			to++
		}
		if n.text[to] == ',' {
			to++
		}
	}
	n.edit(from, to, "")
}

// replace replaces a null, unless the text is empty.
func (n *nulls) replace(i int32, text string) {
	if text != "" {
		n.edit(int(n.nodes[i].start), n.end(i), text)
	}
}

// end returns the index of the text after a scalar.
func (n *nulls) end(i int32) int {
	end := int(n.nodes[i].start + n.nodes[i].size)
	if n.nodes[i].kind == kindText {
		end++ // the quote
	}
	return end
}

func (n *nulls) edit(from, to int, text string) {
	n.edited = append(append(n.edited, n.text[n.copied:from]...), text...)
	n.copied = to
}

// emptyValue returns the value that a null stands for, if it is that of a nil list, map or byte slice, or "".
func (n *nulls) emptyValue(rules []*rule, null int32) string {
	if n.nodes[null].kind != kindNull || n.admit(rules, null) {
		return ""
	}
	for _, r := range rules {
		switch {
		case r.kinds == kindArray:
			return "[]"
		case r.kinds == kindObject && len(r.members) == 0:
			return "{}"
		case r.kinds == kindText && r.ContentEncoding != nil && r.ContentEncoding.Name == "base64":
			return `""`
		}
	}
	return ""
}

// admit reports whether a value, which is null or "", fits all of some rules.
func (n *nulls) admit(rules []*rule, i int32) bool {
	for _, r := range rules {
		admits, known := n.admits[r]
		if isNull := n.nodes[i].kind == kindNull; !known || !isNull {
			c := &checker{document: n.document, ctx: context.Background(), budget: BaseSteps, poll: pollEvery}
			admits = c.check(r, i, nil) && c.err == nil
			if isNull {
				n.admits[r] = admits
			}
		}
		if !admits {
			return false
		}
	}
	return true
}

// isChoice reports whether a schema lists the values that it takes.
func (r *rule) isChoice() bool {
	return r.enum != nil || r.constant != nil || len(r.anyOf)+len(r.oneOf) > 0
}
