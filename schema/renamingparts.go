package schema

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// part is a schema of the base beside the revision's: what is called what in it,
// what has kept its name too.
type part struct {
	names    map[string]string
	values   map[string]string
	members  map[string]*part
	each     *part
	refs     []string // definitions of the base that belong to it
	parts    []*part
	constant string // of a number
}

// definitions pairs the definitions, and compares what is left when each name is
// the base's again.
func (r *renamer) definitions() {
	var back Document
	for _, was := range r.base.Definitions {
		is, ok := r.own.Definition(was.Name)
		if !ok {
			r.fault("the definition %s is gone; its name is never sent: keep it", was.Name)
			continue
		}
		base, _ := was.value.(map[string]any)
		own, _ := is.value.(map[string]any)
		p, mended := r.pair(was.Name, base, own)
		r.parts[was.Name] = p
		is.value = mended
		back.Definitions = append(back.Definitions, is)
	}
	for _, is := range r.own.Definitions {
		if _, ok := r.base.Definition(is.Name); !ok { // of an optional member, or there is more that differs
			back.Definitions = append(back.Definitions, is)
		}
	}
	whole := *r.base // the parts that concern tasks, and all others
	whole.Compared, whole.Patched = nil, nil
	differences := Compare(&whole, &back)
	for _, d := range differences {
		if d.Kind == Added && !strings.HasSuffix(d.Path, "}") && !strings.HasSuffix(d.Path, "]") && !strings.Contains(d.Path, " ") {
			continue // a member, or a definition; a member that has to be there is one more difference
		}
		if d.Kind == Changed && d.Ours == `"optional"` && d.Official == `"required"` {
			r.fault("%s has to be there", d.Path)
			continue
		}
		r.fault("%s", strings.ReplaceAll(d.String(), "the official schema", r.own.Revision))
	}
	r.declared("ServerCapabilities", r.base.Capabilities.Server, r.own.Capabilities.Server)
	r.declared("ClientCapabilities", r.base.Capabilities.Client, r.own.Capabilities.Client)
}

// declared adds the names that capabilities have, which no schema says.
func (r *renamer) declared(definition string, base, own map[string]string) {
	p := r.parts[definition]
	if p == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(base)) {
		from, to := pointerSteps(base[name]), pointerSteps(own[name])
		in := p
		for i := range min(len(from), len(to)) {
			next := &part{}
			in.parts = append(in.parts, &part{names: map[string]string{from[i]: to[i]}, members: map[string]*part{from[i]: next}})
			in = next
		}
	}
}

// pair walks two schemas, and returns the second with the names of the first.
func (r *renamer) pair(at string, base, own map[string]any) (*part, map[string]any) {
	p, back := &part{}, maps.Clone(own)
	for _, keyword := range sortedKeys(own) {
		was, is := base[keyword], own[keyword]
		switch keyword {
		case "$ref":
			if ref, _ := is.(string); ref != "" && was == is {
				name, _ := refName(ref)
				p.refs = append(p.refs, name)
			}
		case "allOf", "anyOf", "oneOf":
			before, _ := was.([]any)
			now, _ := is.([]any)
			list := slices.Clone(now)
			for i := range min(len(before), len(now)) {
				one, ok := before[i].(map[string]any)
				other, ok2 := now[i].(map[string]any)
				if ok && ok2 {
					inner, mended := r.pair(at, one, other)
					p.parts, list[i] = append(p.parts, inner), mended
				}
			}
			back[keyword] = list
		case "items", "additionalProperties":
			one, ok := was.(map[string]any)
			other, ok2 := is.(map[string]any)
			if ok && ok2 {
				p.each, back[keyword] = r.pairOf(at+map[string]string{"items": "[]"}[keyword], one, other)
			}
		case "const":
			back[keyword] = r.value(p, was, is)
		case "enum":
			before, _ := was.([]any)
			now, _ := is.([]any)
			list := slices.Clone(now)
			for i, value := range now {
				for _, candidate := range before {
					if mended := r.value(p, candidate, value); mended != value {
						list[i] = mended
					}
				}
			}
			back[keyword] = list
		case "properties":
			before, _ := was.(map[string]any)
			now, _ := is.(map[string]any)
			back[keyword] = r.properties(at, p, before, now)
		case "required":
			now, _ := stringList(is)
			pairs := p.names // of the properties, which were before
			if base["properties"] == nil {
				before, _ := stringList(was)
				pairs = r.pairNames(at, before, now)
			}
			from := inverse(pairs)
			var list []any
			for _, name := range now {
				if to := orSame(pairs, name); to != name && from[name] == "" {
					r.fault("%s requires %s, which is called %s there", at, name, to)
				}
				list = append(list, orSame(from, name))
			}
			back[keyword] = list
		}
	}
	return p, back
}

func inverse(names map[string]string) map[string]string {
	back := map[string]string{}
	for from, to := range names {
		back[to] = from
	}
	return back
}

func (r *renamer) pairOf(at string, base, own map[string]any) (*part, any) {
	p, back := r.pair(at, base, own)
	r.known(at, p)
	return p, back
}

// value returns a fixed value by the base's name, and notes its kind.
func (r *renamer) value(p *part, was, is any) any {
	if number, ok := was.(json.Number); ok {
		p.constant = number.String()
		if now, ok := is.(json.Number); ok && r.codes[p.constant] == now.String() {
			return was
		}
		return is
	}
	text, _ := was.(string)
	for _, names := range []map[string]string{r.statuses, r.methods} {
		if to, ok := names[text]; ok && to == is {
			p.values = names
			return was
		}
	}
	return is
}

// properties pairs the members of an object.
func (r *renamer) properties(at string, p *part, base, own map[string]any) map[string]any {
	p.names, p.members = r.pairNames(at, sortedKeys(base), sortedKeys(own)), map[string]*part{}
	back := map[string]any{}
	paired := map[string]bool{}
	for _, name := range sortedKeys(base) {
		called, ok := p.names[name]
		if !ok {
			continue
		}
		paired[called] = true
		was, _ := base[name].(map[string]any)
		is, _ := own[called].(map[string]any)
		p.members[name], back[name] = r.pairOf(at+"/"+name, was, is)
	}
	for _, name := range sortedKeys(own) {
		if paired[name] {
			continue
		}
		if _, taken := base[name]; taken {
			r.fault("the names collide: %s/%s is new, and %s has something else by that name there", at, name, r.base.Revision)
			continue
		}
		back[name] = own[name]
	}
	return back
}

// pairNames finds what each of some names of the base has become.
func (r *renamer) pairNames(at string, base, own []string) map[string]string {
	becomes := func(name string) (now []string) {
		for _, to := range r.members[name] {
			if slices.Contains(own, to) {
				now = append(now, to)
			}
		}
		return now
	}
	pairs := map[string]string{}
	for _, name := range base {
		now := slices.DeleteFunc(becomes(name), func(to string) bool { // what stays is not this
			return slices.Contains(base, to) && len(becomes(to)) == 0
		})
		stays := slices.Contains(own, name)
		taken := slices.ContainsFunc(base, func(other string) bool { return other != name && slices.Contains(becomes(other), name) })
		switch {
		case len(now) == 1 && (!stays || taken):
			pairs[name] = now[0]
		case len(now) > 0 && stays || len(now) > 1:
			r.fault("the names collide: in %s, %s could be %s", at, name, orList(append(now, name)))
		case stays:
			pairs[name] = name
		}
	}
	return pairs
}

// known adds the kinds of values that no schema says: protocol versions and error
// codes, and the result of a call in a task, which is like any result.
func (r *renamer) known(at string, p *part) {
	steps := strings.Split(at, "/")
	definition := steps[0]
	version, _ := r.base.field("protocol-version")
	result, _ := r.base.field("result")
	place := pointerSteps(version.At)
	switch {
	case strings.HasSuffix(at, "/"+place[len(place)-1]), definition == unsupported && len(steps) > 2 && slices.Contains([]string{"requested", "supported[]"}, steps[len(steps)-1]):
		p.values = r.version()
	case strings.HasSuffix(definition, "Error") && steps[len(steps)-1] == "code":
		p.values = r.codes
	case at == result.At:
		p.refs = append(p.refs, "Result")
	}
}

// unsupported is the definition whose data has protocol versions.
const unsupported = "UnsupportedProtocolVersionError"

func (r *renamer) version() map[string]string {
	return map[string]string{r.base.ProtocolVersion: r.own.ProtocolVersion}
}

// renaming puts together what the messages are made of.
func (r *renamer) renaming() *Renaming {
	n := &Renaming{
		Base: r.base, Own: r.own, Methods: r.methods, Params: map[string]*Shape{}, Results: map[string]*Shape{},
		Request: r.shape("RequestParams"), Notice: r.shape("NotificationParams"), Result: r.shape("Result"),
	}
	n.Failure = &Shape{By: "code", Of: map[string]*Shape{}}
	if common := r.shape("Error"); common != nil {
		*n.Failure = *common
		n.Failure.By, n.Failure.Of = "code", map[string]*Shape{}
	}
	for _, d := range r.base.Definitions {
		if failure := r.flat(&part{refs: []string{d.Name}}, nil).members["error"]; failure != nil && strings.HasSuffix(d.Name, "Error") {
			whole := r.flat(failure, nil)
			if code := whole.members["code"]; code != nil {
				n.Failure.Of[r.flat(code, nil).constant] = r.shaped(whole)
			}
		}
	}
	for _, m := range r.base.Methods {
		n.Params[m.Name] = r.params("RequestParams", m.Params)
		switch {
		case m.Creates:
			kind, _ := r.base.field("result-type")
			created := Shape{}
			if n.Result != nil {
				created = *n.Result
			}
			place := pointerSteps(kind.At)
			created.By = place[len(place)-1]
			created.Of = map[string]*Shape{"task": r.shape("CreateTaskResult"), "input_required": r.shape("Result", "InputRequiredResult")}
			n.Results[m.Name] = &created
		case m.Result != "":
			n.Results[m.Name] = r.shape("Result", m.Result)
		}
	}
	for _, m := range r.base.Notifications {
		n.Params[m.Name] = r.params("NotificationParams", m.Params)
	}
	// What is like any other needs no entry.
	maps.DeleteFunc(n.Results, func(_ string, s *Shape) bool { return reflect.DeepEqual(s, n.Result) })
	maps.DeleteFunc(n.Params, func(name string, s *Shape) bool {
		_, request := r.base.method(name)
		return reflect.DeepEqual(s, map[bool]*Shape{true: n.Request, false: n.Notice}[request])
	})
	versions := &part{each: &part{values: r.version()}}
	n.Results["server/discover"] = r.shaped(&part{
		refs: []string{"Result"}, names: map[string]string{"supportedVersions": "supportedVersions", "capabilities": "capabilities"},
		members: map[string]*part{"supportedVersions": versions, "capabilities": {refs: []string{"ServerCapabilities"}}},
	})
	return n
}

// params is what the params of a method hold. A definition may be that of the
// whole request.
func (r *renamer) params(common, definition string) *Shape {
	if definition == "" {
		return r.shape(common)
	}
	whole := &part{refs: []string{definition}}
	if flat := r.flat(whole, nil); flat.members["method"] != nil && flat.members["params"] != nil {
		whole = flat.members["params"]
	}
	return r.shaped(&part{refs: []string{common}, parts: []*part{whole}})
}

func (r *renamer) shape(definitions ...string) *Shape { return r.shaped(&part{refs: definitions}) }

// flat is a part with all that belongs to it.
func (r *renamer) flat(p *part, within []string) *part {
	out := &part{names: map[string]string{}, members: map[string]*part{}, values: p.values, constant: p.constant, each: p.each}
	join := func(other *part) {
		for _, name := range sortedKeys(other.names) {
			to := other.names[name]
			if now, ok := out.names[name]; ok && now != to {
				r.fault("the names collide: %s is called %s in one place and %s in another of the same message", name, min(now, to), max(now, to))
			}
			out.names[name] = to
		}
		for _, name := range sortedKeys(other.members) {
			if both := out.members[name]; both != nil {
				out.members[name] = &part{parts: []*part{both, other.members[name]}}
			} else {
				out.members[name] = other.members[name]
			}
		}
		if out.values == nil {
			out.values = other.values
		}
		if out.each == nil {
			out.each = other.each
		}
		if other.constant != "" {
			out.constant = other.constant
		}
	}
	join(&part{names: p.names, members: p.members})
	for _, name := range p.refs {
		if target := r.parts[name]; target != nil && !slices.Contains(within, name) {
			join(r.flat(target, append(slices.Clone(within), name)))
		}
	}
	for _, other := range p.parts {
		join(r.flat(other, within))
	}
	return out
}

// shaped is a part as data, without what is called as ever.
func (r *renamer) shaped(p *part) *Shape { return r.pruned(p, 0) }

func (r *renamer) pruned(p *part, depth int) *Shape {
	const deepest = 20 // definitions in a circle
	if p == nil || depth > deepest {
		return nil
	}
	flat := r.flat(p, nil)
	s := &Shape{Names: map[string]string{}, Values: flat.values, Members: map[string]*Shape{}, Each: r.pruned(flat.each, depth+1)}
	for name, to := range flat.names {
		if name != to {
			s.Names[name] = to
		}
	}
	for _, name := range sortedKeys(flat.members) { // for the order of faults
		if inner := r.pruned(flat.members[name], depth+1); inner != nil {
			s.Members[name] = inner
		}
	}
	if len(s.Names) == 0 && len(s.Values) == 0 && len(s.Members) == 0 && s.Each == nil {
		return nil
	}
	return s
}
