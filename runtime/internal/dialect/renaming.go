package dialect

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// Renaming is a revision that is spoken by translation: it differs from its base
// in names and optional members alone. Maps lead from the base's name to the
// revision's, and lack what has kept its name. The generator writes them, from
// schema/.
type Renaming struct {
	Revision, Protocol string
	// Base is the name of the base, BaseProtocol its protocol version.
	Base, BaseProtocol string
	// VersionKey is the key of a request's _meta that has the protocol version, as
	// the revision calls it.
	VersionKey string
	// Methods are those of requests and of notifications.
	Methods map[string]string
	// Params and Results are those of a method, by the base's name of it; Request,
	// Notice and Result are those of any other.
	Params, Results         map[string]*Shape
	Request, Notice, Result *Shape
	// Failure is a JSON-RPC error.
	Failure *Shape
}

// Shape is a place in messages where names differ; nil is one where none do. All
// else there stays as it is, byte for byte: it may be a user's.
type Shape struct {
	// Names are those of members, Values those of a string, or of a number as JSON
	// has it.
	Names, Values map[string]string
	// Members are what members hold, by the base's name; Each is what every element
	// holds, and every member that Members lacks.
	Members map[string]*Shape
	Each    *Shape
	// Of stands in its place where the member By has such a value.
	By string
	Of map[string]*Shape
}

// Translation speaks a Renaming. It is safe for concurrent use.
type Translation struct {
	Revision, Protocol string
	Base, BaseProtocol string
	versionKey         string
	in, out            names
}

// names leads one way, and each of its maps does so one to one: a name that has
// another meaning on the other side gets a name that has none there. So nothing is
// lost, and nobody is understood who says it in the other revision.
type names struct {
	methods, versions       map[string]string
	params, results         map[string]*Shape
	request, notice, result *Shape
	failure                 *Shape
}

// Translations are those of the revisions that have a base.
func Translations(revisions []string) (list []*Translation) {
	for _, r := range Renamings() {
		if slices.Contains(revisions, r.Revision) {
			list = append(list, NewTranslation(r))
		}
	}
	return list
}

// NewTranslation speaks a revision.
func NewTranslation(r Renaming) *Translation {
	t := &Translation{Revision: r.Revision, Protocol: r.Protocol, Base: r.Base, BaseProtocol: r.BaseProtocol, versionKey: r.VersionKey}
	for _, way := range []struct {
		names *names
		turn  func(map[string]string) map[string]string
		shape func(*Shape) *Shape
	}{
		{&t.out, closed, (*Shape).outward},
		{&t.in, func(m map[string]string) map[string]string { return inverse(closed(m)) }, (*Shape).inward},
	} {
		each := func(shapes map[string]*Shape) map[string]*Shape {
			turned := map[string]*Shape{}
			for name, s := range shapes {
				turned[name] = way.shape(s)
			}
			return turned
		}
		*way.names = names{
			methods: way.turn(r.Methods), versions: way.turn(map[string]string{r.BaseProtocol: r.Protocol}),
			params: each(r.Params), results: each(r.Results),
			request: way.shape(r.Request), notice: way.shape(r.Notice), result: way.shape(r.Result), failure: way.shape(r.Failure),
		}
	}
	return t
}

// closed makes a map one to one on all names: a chain of names that ends at one
// which leads nowhere goes back to where it begins.
func closed(names map[string]string) map[string]string {
	back, all := inverse(names), maps.Clone(names)
	for _, last := range names {
		if _, ok := names[last]; ok {
			continue
		}
		first := last
		for before, ok := back[first]; ok; before, ok = back[first] {
			first = before
		}
		all[last] = first
	}
	return all
}

func inverse(names map[string]string) map[string]string {
	back := make(map[string]string, len(names))
	for from, to := range names {
		back[to] = from
	}
	return back
}

func orSame(names map[string]string, name string) string {
	if to, ok := names[name]; ok {
		return to
	}
	return name
}

// outward is a shape whose names lead from the base's on all names.
func (s *Shape) outward() *Shape {
	return s.turned(closed, func(_ map[string]string, name string) string { return name })
}

// inward is a shape whose names lead to the base's.
func (s *Shape) inward() *Shape {
	return s.turned(func(m map[string]string) map[string]string { return inverse(closed(m)) }, orSame)
}

// turned is a shape with its names turned; called says under which name what is
// in it is found then.
func (s *Shape) turned(turn func(map[string]string) map[string]string, called func(map[string]string, string) string) *Shape {
	if s == nil {
		return nil
	}
	t := &Shape{Names: turn(s.Names), Values: turn(s.Values), Each: s.Each.turned(turn, called), By: called(s.Names, s.By), Members: map[string]*Shape{}}
	for name, member := range s.Members {
		t.Members[called(s.Names, name)] = member.turned(turn, called)
	}
	if s.Of == nil {
		return t
	}
	var values map[string]string
	if member := s.Members[s.By]; member != nil {
		values = member.Values
	}
	t.Of = map[string]*Shape{}
	for value, of := range s.Of {
		t.Of[called(values, value)] = of.turned(turn, called)
	}
	return t
}

// Names says whether the params of a message name the revision's protocol version,
// and what they name.
func (t *Translation) Names(params json.RawMessage) (version *string, own bool) {
	var p struct {
		Meta object `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Meta[t.versionKey], &version) != nil || version == nil {
		return nil, false
	}
	return version, *version == t.Protocol
}

// In is a message of the revision in the base's words; answers is the method that a
// response answers, as the base calls it.
func (t *Translation) In(message []byte, answers string) []byte {
	return t.in.message(message, answers, t.InMethod)
}

// Out is a message of the base in the revision's words.
func (t *Translation) Out(message []byte, answers string) []byte {
	return t.out.message(message, answers, func(method string) string { return method })
}

// InMethod is a method of the revision as the base calls it.
func (t *Translation) InMethod(name string) string { return orSame(t.in.methods, name) }

// OutMethod is a method of the base as the revision calls it.
func (t *Translation) OutMethod(name string) string { return orSame(t.out.methods, name) }

// InVersion is a protocol version that was named, for the base.
func (t *Translation) InVersion(version string) string { return orSame(t.in.versions, version) }

// OutVersion is a protocol version of the base's side, for the peer.
func (t *Translation) OutVersion(version string) string { return orSame(t.out.versions, version) }

// Declared is what a server declares, in the base's words.
func (t *Translation) Declared(capabilities json.RawMessage) json.RawMessage {
	return t.in.results["server/discover"].member("capabilities").renamed(capabilities)
}

// message renames a message; base is the base's name of its method.
func (n *names) message(message []byte, answers string, base func(string) string) []byte {
	// By exact names, as what is renamed is found by.
	var m object
	if json.Unmarshal(message, &m) != nil { // a batch, or no message
		return message
	}
	var method string
	_ = json.Unmarshal(m["method"], &method) // what is no string is no method
	params, ok := n.params[base(method)]
	switch {
	case ok:
	case m["id"] == nil:
		params = n.notice
	default:
		params = n.request
	}
	result, ok := n.results[answers]
	if !ok {
		result = n.result
	}
	whole := Shape{Members: map[string]*Shape{"method": {Values: n.methods}, "params": params, "result": result, "error": n.failure}}
	return whole.renamed(message)
}

func (s *Shape) member(name string) *Shape {
	if s == nil {
		return nil
	}
	if inner, ok := s.Members[name]; ok {
		return inner
	}
	return s.Each
}

// renamed is a value with the names of a shape; what is no JSON stays as it is.
func (s *Shape) renamed(data []byte) []byte {
	text := bytes.TrimLeft(data, " \t\r\n")
	if s == nil || len(text) == 0 {
		return data
	}
	switch text[0] {
	case '{':
		return s.object(data)
	case '[':
		var list []json.RawMessage
		if s.Each == nil || json.Unmarshal(data, &list) != nil {
			return data
		}
		parts := make([][]byte, len(list))
		for i, element := range list {
			parts[i] = s.Each.renamed(element)
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	}
	return s.value(data)
}

// value renames a string or a number.
func (s *Shape) value(data []byte) []byte {
	if len(s.Values) == 0 {
		return data
	}
	to, ok := s.Values[spelt(data)]
	switch {
	case !ok:
		return data
	case bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)):
		quoted, _ := json.Marshal(to) // a string always marshals
		return quoted
	}
	return []byte(to)
}

// spelt is a string, or a number as it is written.
func spelt(data []byte) string {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return string(bytes.TrimSpace(data))
	}
	return text
}

// object renames the members of an object, which keep their order.
func (s *Shape) object(data []byte) []byte {
	type member struct {
		name  string
		value json.RawMessage
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return data
	}
	var all []member
	of := s
	for decoder.More() {
		key, err := decoder.Token()
		name, ok := key.(string)
		var value json.RawMessage
		if err != nil || !ok || decoder.Decode(&value) != nil {
			return data
		}
		all = append(all, member{name, value})
		if chosen, ok := s.Of[spelt(value)]; ok && name == s.By {
			of = chosen
		}
	}
	if of == nil {
		return data
	}
	out := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(orSame(of.Names, m.name)) // a string always marshals
		out = append(append(append(out, quoted...), ':'), of.member(m.name).renamed(m.value)...)
	}
	return append(out, '}')
}
