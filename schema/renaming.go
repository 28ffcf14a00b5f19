package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Renaming is how a revision calls what its base has: a revision that differs
// from another in names and optional members alone is spoken by translation, and
// needs no code of its own. Maps lead from the base's name to the revision's, and
// lack what has kept its name.
type Renaming struct {
	Base, Own *Surface
	// Methods are those of requests and of notifications.
	Methods map[string]string
	// Params and Results are those of a method, by the base's name of it.
	Params, Results map[string]*Shape
	// Request, Notice and Result are those of any other method.
	Request, Notice, Result *Shape
	// Failure is a JSON-RPC error.
	Failure *Shape
}

// Shape is a place in messages where names differ; nil is one where none do.
type Shape struct {
	// Names are those of members.
	Names map[string]string
	// Values are strings, or numbers as JSON has them.
	Values map[string]string
	// Members are what members hold, by the base's name; Each is what every member
	// or element holds.
	Members map[string]*Shape
	Each    *Shape
	// Of stands in its place where the member By, a name of the base's, has such a value.
	By string
	Of map[string]*Shape
}

// Rename compares a revision with its base, which is one of all. The error names
// everything that no other name explains, and what to do about it.
func Rename(own *Surface, all []*Surface) (*Renaming, error) {
	i := slices.IndexFunc(all, func(s *Surface) bool { return s.Revision == own.Base })
	if i < 0 {
		var known []string
		for _, s := range all {
			if s.Base == "" {
				known = append(known, s.Revision)
			}
		}
		return nil, fmt.Errorf("schema/%s/surface.json: there is no revision %q to be the base: use one of %s", own.Revision, own.Base, strings.Join(known, ", "))
	}
	base := all[i]
	r := &renamer{base: base, own: own, parts: map[string]*part{}}
	r.versions(all)
	r.names()
	r.lists()
	r.meanings()
	r.definitions()
	renaming := r.renaming()
	if len(r.faults) > 0 {
		return nil, fmt.Errorf("schema/%[1]s: %[1]s differs from its base %[2]s in more than names and optional members:\n\t%[3]s\n"+
			"mend it where it should not; else take \"base\" out of schema/%[1]s/surface.json and write the revision by hand, in runtime/internal/dialect/ (CONTRIBUTING.md, \"How to add a revision\")",
			own.Revision, base.Revision, strings.Join(r.faults, "\n\t"))
	}
	return renaming, nil
}

// renamer compares two surfaces.
type renamer struct {
	base, own *Surface
	// members are the new names that a member may have, by its old one: what the
	// fields and the keys of _meta are called that are called so.
	members map[string][]string
	// statuses, methods, codes and keys are those that have another name.
	statuses, methods, codes, keys map[string]string
	// parts are the definitions of the base.
	parts  map[string]*part
	faults []string
}

func (r *renamer) fault(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.faults, text) {
		r.faults = append(r.faults, text)
	}
}

// versions checks that a request can tell the revision, and the base what it is
// asked for.
func (r *renamer) versions(all []*Surface) {
	if r.base.Base != "" {
		r.fault("%s has a base itself: use %s", r.base.Revision, r.base.Base)
	}
	if !slices.ContainsFunc(r.base.MetaKeys, func(k MetaKey) bool { return k.Means == "protocol-version" }) {
		r.fault("the requests of %s do not name their protocol version in _meta, so those of another cannot be told from them", r.base.Revision)
	}
	if r.own.ProtocolVersion == "" {
		r.fault("it has no protocolVersion")
	}
	for _, s := range all {
		if s.Revision != r.own.Revision && s.ProtocolVersion == r.own.ProtocolVersion && s.ProtocolVersion != "" {
			r.fault("%s has the protocol version %s too", s.Revision, s.ProtocolVersion)
		}
	}
}

// names pairs what both call something.
func (r *renamer) names() {
	r.members, r.statuses, r.methods, r.codes = map[string][]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	r.keys = map[string]string{}
	for _, f := range r.base.Fields {
		own, ok := r.own.field(f.Means)
		if !ok {
			r.fault("%s is gone, or no field of surface.json means %s", f.Place(), f.Means)
			continue
		}
		r.member(f, own)
	}
	for _, key := range r.base.MetaKeys {
		i := slices.IndexFunc(r.own.MetaKeys, func(k MetaKey) bool { return k.Means == key.Means && k.Means != "" || k.Name == key.Name })
		if i < 0 {
			r.fault("the _meta key %s is gone", key.Key)
			continue
		}
		r.called(r.keys, "the _meta keys", key.Key, r.own.MetaKeys[i].Key)
	}
	for from, to := range r.keys {
		r.mayBe(from, to)
	}
	for _, status := range r.base.Statuses {
		own, ok := r.own.shows(status.means())
		if !ok || !slices.Equal(own.Means, status.Means) {
			r.fault("the status %s is gone, or no status means %s alone", status.Name, andList(status.Means))
			continue
		}
		r.called(r.statuses, "the statuses", status.Name, own.Name)
	}
	for _, m := range r.base.Methods {
		own, ok := r.own.method(m.Name)
		if !ok {
			own, ok = r.successor(m.Serves)
		}
		if !ok {
			r.fault("the method %s is gone", m.Name)
			continue
		}
		r.called(r.methods, "the methods", m.Name, own.Name)
		if own.Direction != m.Direction || own.Params != m.Params || own.Result != m.Result || own.Creates != m.Creates || !sameSet(own.Serves, m.Serves) {
			r.fault("the method %s has another direction, other params, another result or another purpose than %s", own.Name, m.Name)
		}
	}
	for _, n := range r.base.Notifications {
		i := slices.IndexFunc(r.own.Notifications, func(o Notification) bool { return o.Name == n.Name })
		if i < 0 {
			i = slices.IndexFunc(r.own.Notifications, func(o Notification) bool { return len(n.Serves) > 0 && sameSet(o.Serves, n.Serves) })
		}
		if i < 0 {
			r.fault("the notification %s is gone", n.Name)
			continue
		}
		own := r.own.Notifications[i]
		r.called(r.methods, "the methods", n.Name, own.Name)
		if own.Direction != n.Direction || own.Params != n.Params || !sameSet(own.Serves, n.Serves) {
			r.fault("the notification %s has another direction, other params or another purpose than %s", own.Name, n.Name)
		}
	}
	for _, c := range r.base.ErrorCodes {
		own := r.own.code(c.Name)
		switch {
		case own.Code == 0:
			r.fault("the error code %s is gone", c.Name)
		case own.HTTPStatus != c.HTTPStatus:
			r.fault("the error code %s goes with HTTP %d (before: %d)", c.Name, own.HTTPStatus, c.HTTPStatus)
		default:
			r.called(r.codes, "the error codes", strconv.Itoa(c.Code), strconv.Itoa(own.Code))
		}
	}
	if len(r.base.Fields) > 0 && r.base.Extension.Key != "" {
		r.called(r.keys, "the keys", r.base.Extension.Key, r.own.Extension.Key)
	}
	for _, one := range []map[string]string{r.keys, r.statuses, r.methods, r.codes} {
		maps.DeleteFunc(one, func(from, to string) bool { return from == to })
	}
}

// successor is the method that serves for the same as one that is gone.
func (r *renamer) successor(serves []string) (Method, bool) {
	i := slices.IndexFunc(r.own.Methods, func(m Method) bool { return len(serves) > 0 && sameSet(m.Serves, serves) })
	if i < 0 {
		return Method{}, false
	}
	return r.own.Methods[i], true
}

// called notes what is called what; no two may be called the same.
func (r *renamer) called(names map[string]string, what, from, to string) {
	for other, taken := range names {
		if taken == to && other != from {
			r.fault("%s collide: %s and %s would both be %s", what, min(other, from), max(other, from), to)
		}
	}
	names[from] = to
}

// member notes what a field may be called where it stands.
func (r *renamer) member(was, is Field) {
	from, to := pointerSteps(was.At), pointerSteps(is.At)
	if len(from) != len(to) || was.In != is.In {
		r.fault("%s has become %s, which is another place", was.Place(), is.Place())
		return
	}
	if was.Unit != is.Unit || was.Clock != is.Clock || !maps.Equal(was.Values, is.Values) {
		r.fault("%s holds %s and %s another unit, clock or other values", was.Place(), was.quantity(), is.Place())
	}
	for i := range from {
		if i == 0 && from[i] != to[i] {
			r.fault("%s is in the definition %s (before: %s): keep the definition's name, which is never sent", is.Place(), to[0], from[0])
		}
		r.mayBe(from[i], to[i])
	}
	for _, other := range r.base.Fields {
		if taken, ok := r.own.field(other.Means); ok && other.Means < was.Means && taken.At == is.At && other.At != was.At {
			r.fault("the fields collide: %s and %s would both be %s", other.Place(), was.Place(), is.Place())
		}
	}
}

func (r *renamer) mayBe(from, to string) {
	if from != to && !slices.Contains(r.members[from], to) {
		r.members[from] = append(r.members[from], to)
	}
}

// lists compares what has to be there in the same number.
func (r *renamer) lists() {
	extra := func(what string, base, own int) {
		if own > base {
			r.fault("it has %d %s more than its base", own-base, what)
		}
	}
	extra("statuses", len(r.base.Statuses), len(r.own.Statuses))
	extra("methods", len(r.base.Methods), len(r.own.Methods))
	extra("notifications", len(r.base.Notifications), len(r.own.Notifications))
	extra("error codes", len(r.base.ErrorCodes), len(r.own.ErrorCodes))
	for _, status := range r.base.Statuses {
		own, _ := r.own.shows(status.means())
		var next []string
		for _, name := range status.Next {
			next = append(next, orSame(r.statuses, name))
		}
		if own.Terminal != status.Terminal || !sameSet(next, own.Next) {
			r.fault("the status %s is followed by other statuses than %s", own.Name, status.Name)
		}
	}
	var was, is []string
	for _, h := range r.base.Headers {
		was = append(was, strings.ToLower(h.Name))
	}
	for _, h := range r.own.Headers {
		is = append(is, strings.ToLower(h.Name))
	}
	if !sameSet(was, is) {
		r.fault("its HTTP headers are others")
	}
	if !sameSet(r.base.TaskParams, r.own.TaskParams) {
		r.fault("other params may ask for a task")
	}
	r.places("server", r.base.Capabilities.Server, r.own.Capabilities.Server)
	r.places("client", r.base.Capabilities.Client, r.own.Capabilities.Client)
}

// places compares where capabilities are declared.
func (r *renamer) places(party string, base, own map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(base)) {
		from, to := pointerSteps(base[name]), pointerSteps(own[name])
		if len(from) != len(to) {
			r.fault("the %s declares %s in another place", party, name)
		}
	}
	if len(own) > len(base) {
		r.fault("the %s declares more than before", party)
	}
}

// meanings compares what is said of the revisions in words. Where a sentence names
// what has another name now, either name will do.
func (r *renamer) meanings() {
	words := map[string]string{}
	for from, to := range r.members {
		words[from] = slices.Min(to)
	}
	for _, names := range []map[string]string{r.keys, r.statuses, r.methods, r.codes} {
		maps.Copy(words, names)
	}
	for _, aspect := range sortedKeys(r.base.Aspects) {
		was, is := r.base.Aspects[aspect], r.own.Aspects[aspect]
		if reworded(was, words) != reworded(is, words) {
			r.fault("%s: %s (before: %s)", aspect, cmp.Or(is, "not said"), was)
		}
	}
	for _, was := range r.base.Refusals {
		i := slices.IndexFunc(r.own.Refusals, func(f Refusal) bool { return f.Case == was.Case })
		if i < 0 || r.own.Refusals[i].Code != was.Code || reworded(r.own.Refusals[i].Answer, words) != reworded(was.Answer, words) {
			r.fault("the case %s is refused otherwise", was.Case)
		}
	}
	declares := func(party string, was, is []byte) {
		if reworded(string(was), words) != reworded(string(is), words) {
			r.fault("the %s declares other capabilities: %s (before: %s)", party, is, was)
		}
	}
	declares("server", r.base.ServerCapabilities, r.own.ServerCapabilities)
	declares("client", r.base.ClientCapabilities, r.own.ClientCapabilities)
}

// reworded is a text with some of its words replaced.
func reworded(text string, words map[string]string) string {
	var out strings.Builder
	for len(text) > 0 {
		end := strings.IndexFunc(text, func(c rune) bool { return !partOfName(c) })
		if end < 0 {
			end = len(text)
		}
		word := strings.TrimRight(text[:end], ".-/")
		out.WriteString(orSame(words, word))
		if text = text[len(word):]; text != "" {
			out.WriteByte(text[0])
			text = text[1:]
		}
	}
	return out.String()
}

func partOfName(c rune) bool {
	return c == '_' || c == '.' || c == '-' || c == '/' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func orSame(names map[string]string, name string) string {
	if to, ok := names[name]; ok {
		return to
	}
	return name
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
