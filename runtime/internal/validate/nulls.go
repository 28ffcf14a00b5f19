package validate

import (
	"context"
	"encoding/json"
	"slices"
)

// nulls takes the nulls of a document for what encoding/json means by them, where the schema has no null: a list, map or
// byte slice that is nil, or a value that is left out.
type nulls struct {
	*document
	// leaves says that a null is left out if its object does not require the member.
	leaves bool
	edited []byte
	copied int // bytes of the text that are in edited, or are left out
	admits map[*rule]bool
}

// plainNulls returns a document in which no null stands for an empty list, map or byte slice. If leaves is set, it also
// leaves out each null of a member that the schemas of its object do not require. A null that a schema admits stays, and
// so does one that stands for nothing else, which the check then refuses.
func plainNulls(ctx context.Context, r *rule, d *document, leaves bool) (*document, error) {
	if len(d.nulls) == 0 {
		return d, nil
	}
	n := &nulls{document: d, leaves: leaves, admits: map[*rule]bool{}}
	n.walk(r.inPlace, 0)
	if n.copied == 0 {
		return d, nil
	}
	return read(ctx, append(n.edited, d.text[n.copied:]...))
}

// walk edits the nulls within the value of a node, to which all of some rules apply.
func (n *nulls) walk(rules []*rule, i int32) {
	of := n.nodes[i]
	if next, _ := slices.BinarySearch(n.nulls, i); next == len(n.nulls) || n.nulls[next] >= of.next {
		return
	}
	switch of.kind {
	case kindArray:
		index := 0
		for child := i + 1; child < of.next; child = n.nodes[child].next {
			if inner := itemRules(rules, index); n.nodes[child].kind == kindNull {
				n.replace(child, n.emptyValue(inner))
			} else {
				n.walk(inner, child)
			}
			index++
		}
	case kindObject:
		kept := false // a member before this one
		for name := i + 1; name < of.next; name = n.nodes[name+1].next {
			inner := memberRules(rules, n.string(name))
			if n.nodes[name+1].kind == kindNull && n.editMember(rules, inner, name, kept) {
				continue
			}
			kept = true
			n.walk(inner, name+1)
		}
	}
}

// editMember edits a member that is null. It reports whether it has left it out.
func (n *nulls) editMember(rules, inner []*rule, name int32, kept bool) bool {
	if len(inner) == 0 || n.admitsNull(inner) {
		return false
	}
	isDeclared, isRequired := false, false
	for _, r := range rules {
		m, ok := r.members[n.string(name)]
		isDeclared, isRequired = isDeclared || ok, isRequired || m.required
	}
	empty := n.emptyValue(inner)
	if n.leaves && !isRequired && (isDeclared || empty == "") {
		n.leaveOut(name, kept)
		return true
	}
	n.replace(name+1, empty)
	return false
}

// leaveOut leaves out a member with one of the commas around it: that before it if a member before it is kept.
func (n *nulls) leaveOut(name int32, kept bool) {
	isSpace := func(at int) bool { return slices.Contains([]byte(" \t\r\n"), n.text[at]) }
	from, to := int(n.nodes[name].start)-1, int(n.nodes[name+1].start+n.nodes[name+1].size)
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
		n.edit(int(n.nodes[i].start), int(n.nodes[i].start+n.nodes[i].size), text)
	}
}

func (n *nulls) edit(from, to int, text string) {
	n.edited = append(append(n.edited, n.text[n.copied:from]...), text...)
	n.copied = to
}

// emptyValue returns the value that a nil list, map or byte slice stands for, or "" if the rules are of something else.
func (n *nulls) emptyValue(rules []*rule) string {
	if n.admitsNull(rules) {
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

// admitsNull reports whether null fits all of some rules.
func (n *nulls) admitsNull(rules []*rule) bool {
	for _, r := range rules {
		admits, known := n.admits[r]
		if !known {
			admits = (&Schema{rule: r}).Check(context.Background(), json.RawMessage("null")) == nil
			n.admits[r] = admits
		}
		if !admits {
			return false
		}
	}
	return true
}
