package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kinds of a difference between two revisions.
const (
	// Renamed means that it has another name in the same place.
	Renamed Kind = "renamed"
	// Moved means that it is in another place, perhaps with another name.
	Moved Kind = "moved"
)

// Section is a part of the changes between two revisions.
type Section string

// The sections in their order.
const (
	Aspects       Section = "aspects" // how tasks work
	States        Section = "states"  // statuses and their transitions
	Methods       Section = "methods" // requests
	Notifications Section = "notifications"
	Fields        Section = "fields" // members of messages, including the fields of tools
	MetaKeys      Section = "meta"   // keys of _meta
	Capabilities  Section = "capabilities"
	Errors        Section = "errors" // refused requests and their error codes
	Headers       Section = "headers"
	TaskParams    Section = "params"      // the params that may ask for a task
	Definitions   Section = "definitions" // definitions of the JSON Schema
	Mended        Section = "mended"      // mistakes of an official schema
)

// Change is one difference between two revisions.
type Change struct {
	Section Section `json:"section"`
	Kind    Kind    `json:"kind"`
	// Means is the canonical name of the changed thing. It may be empty.
	Means string `json:"means,omitempty"`
	// From and To are the names, places, codes or phrases in both revisions. Empty means that a
	// revision has none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Text describes the change to a user.
	Text string `json:"text"`
}

// Comparison is the JSON form of the changes between two revisions. Its format is stable: members
// may be added but not removed.
type Comparison struct {
	From    Heading  `json:"from"`
	To      Heading  `json:"to"`
	Changes []Change `json:"changes"`
}

// Heading identifies a revision.
type Heading struct {
	Revision        string   `json:"revision"`
	Standing        Standing `json:"standing"`
	ProtocolVersion string   `json:"protocolVersion"`
	Date            string   `json:"date"`
	About           string   `json:"about"`
}

// Report combines the result of Diff with the headings of the revisions.
func Report(from, to *Surface, changes []Change) Comparison {
	heading := func(s *Surface) Heading {
		return Heading{s.Revision, s.Standing, s.ProtocolVersion, s.Date, s.About}
	}
	if changes == nil {
		changes = []Change{} // encode an empty list, not null
	}
	return Comparison{heading(from), heading(to), changes}
}

// Diff lists what changes for a user from one revision to another, by section. It only reads data:
// canonical names tell which names mean the same thing.
func Diff(from, to *Surface) ([]Change, error) {
	c, err := loadVocabulary()
	if err != nil {
		return nil, err
	}
	d := &diff{canon: c, from: from, to: to}
	d.compareAspects()
	d.compareStates()
	d.compareMethods()
	d.compareNotifications()
	d.compareFields()
	d.compareMetaKeys()
	d.compareCapabilities("server", from.Capabilities.Server, to.Capabilities.Server)
	d.compareCapabilities("client", from.Capabilities.Client, to.Capabilities.Client)
	d.compareErrors()
	d.compareHeaders()
	d.compareTaskParams()
	d.compareDefinitions()
	d.comparePatches()
	return d.changes, nil
}

type diff struct {
	canon    canon
	from, to *Surface
	changes  []Change
}

func (d *diff) addChange(section Section, kind Kind, means, from, to, format string, args ...any) {
	d.changes = append(d.changes, Change{section, kind, means, from, to, fmt.Sprintf(format, args...)})
}

func (d *diff) compareAspects() {
	for _, aspect := range d.canon.Aspects {
		was, is := d.from.Aspects[aspect.name], d.to.Aspects[aspect.name]
		if was != is {
			d.addChange(Aspects, Changed, aspect.name, was, is, "%s: %s (before: %s)", aspect.phrase, cmp.Or(is, "unspecified"), cmp.Or(was, "unspecified"))
		}
	}
}

// statusMeaning returns the status with a canonical meaning.
func (s *Surface) statusMeaning(means string) (Status, bool) {
	return find(s.Statuses, func(status Status) bool { return slices.Contains(status.Means, means) })
}

// mainMeaning returns the first meaning of a status.
func (s Status) mainMeaning() string {
	if len(s.Means) == 0 {
		return ""
	}
	return s.Means[0]
}

func (d *diff) compareStates() {
	for _, was := range d.from.Statuses {
		means := was.mainMeaning()
		is, ok := d.to.statusMeaning(means)
		switch {
		case !ok:
			d.addChange(States, Removed, means, was.Name, "", "%s is gone: %s", was.Name, d.canon.Statuses.phrase(means))
		case is.mainMeaning() != means:
			d.addChange(States, Removed, means, was.Name, is.Name, "%s is gone: a task is %s when %s", was.Name, is.Name, d.canon.Statuses.phrase(means))
		case is.Name != was.Name:
			d.addChange(States, Renamed, means, was.Name, is.Name, "%s is called %s", was.Name, is.Name)
		}
	}
	for _, is := range d.to.Statuses {
		means := is.mainMeaning()
		was, ok := d.from.statusMeaning(means)
		if !ok || was.mainMeaning() != means {
			before := ""
			if ok {
				before = "; before, such a task was " + was.Name
			}
			d.addChange(States, Added, means, was.Name, is.Name, "%s is new: %s%s", is.Name, d.canon.Statuses.phrase(means), before)
			continue
		}
		if was.Terminal != is.Terminal {
			final := map[bool]string{true: "final", false: "not final"}
			d.addChange(States, Changed, means, final[was.Terminal], final[is.Terminal], "%s is %s", is.Name, final[is.Terminal])
		}
		d.compareTransitions(was, is)
	}
}

// compareTransitions compares the transitions between statuses that both revisions have.
func (d *diff) compareTransitions(was, is Status) {
	common := func(s *Surface, other *Surface, next []string) (list []string) {
		for _, name := range next {
			i := slices.IndexFunc(s.Statuses, func(o Status) bool { return o.Name == name })
			means := s.Statuses[i].mainMeaning()
			if o, ok := other.statusMeaning(means); ok && o.mainMeaning() == means {
				list = append(list, means)
			}
		}
		return list
	}
	before, now := common(d.from, d.to, was.Next), common(d.to, d.from, is.Next)
	name := func(means string) string {
		status, _ := d.to.statusMeaning(means)
		return status.Name
	}
	for _, means := range before {
		if !slices.Contains(now, means) {
			d.addChange(States, Removed, is.mainMeaning(), was.Name+" -> "+name(means), "", "%s can no longer become %s", is.Name, name(means))
		}
	}
	for _, means := range now {
		if !slices.Contains(before, means) {
			d.addChange(States, Added, is.mainMeaning(), "", is.Name+" -> "+name(means), "%s can become %s", is.Name, name(means))
		}
	}
}

// namesServing returns the methods and notifications that serve a purpose.
func (s *Surface) namesServing(purpose string) (names []string) {
	for _, m := range s.Methods {
		if slices.Contains(m.Serves, purpose) {
			names = append(names, m.Name)
		}
	}
	for _, n := range s.Notifications {
		if slices.Contains(n.Serves, purpose) {
			names = append(names, n.Name)
		}
	}
	return names
}

// describeCounterparts says for each purpose what serves it in a surface.
func (d *diff) describeCounterparts(serves []string, in *Surface, absent string) (names, text string) {
	var parts, all []string
	for _, purpose := range serves {
		servants := in.namesServing(purpose)
		phrase := d.canon.Purposes.phrase(purpose)
		if len(servants) == 0 {
			parts = append(parts, phrase+": "+absent)
			continue
		}
		for _, name := range servants {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		parts = append(parts, phrase+": "+andList(servants))
	}
	return strings.Join(all, ", "), strings.Join(parts, "; ")
}

// describeRemoval says that a message is gone, or that it no longer concerns tasks.
func describeRemoval(name string) string {
	if strings.Contains(name, "tasks") {
		return name + " is gone"
	}
	return name + " no longer concerns tasks"
}

func (d *diff) compareMethods() {
	for _, was := range d.from.Methods {
		if _, ok := d.to.findMethod(was.Name); !ok {
			names, text := d.describeCounterparts(was.Serves, d.to, "nothing in its place")
			d.addChange(Methods, Removed, firstOrEmpty(was.Serves), was.Name, names, "%s (now, %s)", describeRemoval(was.Name), cmp.Or(text, "nothing in its place"))
		}
	}
	for _, is := range d.to.Methods {
		was, ok := d.from.findMethod(is.Name)
		if !ok {
			names, text := d.describeCounterparts(is.Serves, d.from, "nothing")
			before := ""
			if text != "" {
				before = " (before, " + text + ")"
			}
			d.addChange(Methods, Added, firstOrEmpty(is.Serves), names, is.Name, "%s is new: %s%s", is.Name, phraseFromDoc(is.Doc), before)
			continue
		}
		if was.Direction != is.Direction {
			d.addChange(Methods, Changed, firstOrEmpty(is.Serves), string(was.Direction), string(is.Direction), "%s goes %s (before: %s)", is.Name, is.Direction.describe(), was.Direction.describe())
		}
		if was.Creates && !is.Creates {
			d.addChange(Methods, Changed, firstOrEmpty(was.Serves), "may become a task", "", "%s is never answered with a task", is.Name)
		}
		if is.Creates && !was.Creates {
			d.addChange(Methods, Changed, firstOrEmpty(is.Serves), "", "may become a task", "%s may be answered with a task", is.Name)
		}
		for _, purpose := range is.Serves {
			if !slices.Contains(was.Serves, purpose) {
				d.addChange(Methods, Changed, purpose, "", is.Name, "%s also serves for %s", is.Name, d.canon.Purposes.phrase(purpose))
			}
		}
	}
}

func (s *Surface) findMethod(name string) (Method, bool) {
	return find(s.Methods, func(m Method) bool { return m.Name == name })
}

func (d Direction) describe() string {
	switch d {
	case ClientToServer:
		return "from client to server only"
	case ServerToClient:
		return "from server to client only"
	}
	return "both ways"
}

// phraseFromDoc turns a Doc into a phrase with a lowercase first letter and no final period.
func phraseFromDoc(doc string) string {
	if doc == "" {
		return ""
	}
	return strings.ToLower(doc[:1]) + strings.TrimSuffix(doc[1:], ".")
}

func firstOrEmpty(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (d *diff) compareNotifications() {
	has := func(s *Surface, name string) bool {
		return slices.ContainsFunc(s.Notifications, func(n Notification) bool { return n.Name == name })
	}
	renamed := map[string]bool{}
	for _, was := range d.from.Notifications {
		if has(d.to, was.Name) {
			continue
		}
		is, ok := find(d.to.Notifications, func(n Notification) bool {
			return firstOrEmpty(n.Serves) == firstOrEmpty(was.Serves) && !has(d.from, n.Name)
		})
		if ok {
			renamed[is.Name] = true
			d.addChange(Notifications, Renamed, firstOrEmpty(was.Serves), was.Name, is.Name, "%s is called %s: %s", was.Name, is.Name, phraseFromDoc(is.Doc))
			if was.Direction != is.Direction {
				d.addChange(Notifications, Changed, firstOrEmpty(is.Serves), string(was.Direction), string(is.Direction), "%s goes %s (before: %s)", is.Name, is.Direction.describe(), was.Direction.describe())
			}
			continue
		}
		names, text := d.describeCounterparts(was.Serves, d.to, "nothing in its place")
		d.addChange(Notifications, Removed, firstOrEmpty(was.Serves), was.Name, names, "%s (now, %s)", describeRemoval(was.Name), cmp.Or(text, "nothing in its place"))
	}
	for _, is := range d.to.Notifications {
		if !has(d.from, is.Name) && !renamed[is.Name] {
			names, text := d.describeCounterparts(is.Serves, d.from, "nothing")
			d.addChange(Notifications, Added, firstOrEmpty(is.Serves), names, is.Name, "%s is new: %s (before, %s)", is.Name, phraseFromDoc(is.Doc), cmp.Or(text, "nothing"))
		}
	}
}

func (d *diff) compareHeaders() {
	has := func(s *Surface, name string) bool {
		return slices.ContainsFunc(s.Headers, func(h Header) bool { return strings.EqualFold(h.Name, name) })
	}
	for _, was := range d.from.Headers {
		if !has(d.to, was.Name) {
			d.addChange(Headers, Removed, "", was.Name, "", "%s is gone: it %s", was.Name, phraseFromDoc(was.Doc))
		}
	}
	for _, is := range d.to.Headers {
		if !has(d.from, is.Name) {
			d.addChange(Headers, Added, "", "", is.Name, "%s is new: it %s", is.Name, phraseFromDoc(is.Doc))
		}
	}
}

func (d *diff) compareTaskParams() {
	if len(d.from.TaskParams) == 0 || len(d.to.TaskParams) == 0 {
		return // tasks are requested in another way; a field describes it
	}
	for _, name := range d.from.TaskParams {
		if !slices.Contains(d.to.TaskParams, name) {
			d.addChange(TaskParams, Removed, "asked", name+".task", "", "%s has no member task any more", name)
		}
	}
	for _, name := range d.to.TaskParams {
		if !slices.Contains(d.from.TaskParams, name) {
			d.addChange(TaskParams, Added, "asked", "", name+".task", "%s has a member task", name)
		}
	}
}

func (d *diff) compareDefinitions() {
	for _, was := range d.from.Definitions {
		if _, ok := d.to.Definition(was.Name); !ok && !slices.Contains(d.from.Core, was.Name) {
			d.addChange(Definitions, Removed, "", was.Name, "", "%s is gone", was.Name)
		}
	}
	for _, is := range d.to.Definitions {
		if _, ok := d.from.Definition(is.Name); !ok && !slices.Contains(d.to.Core, is.Name) {
			d.addChange(Definitions, Added, "", "", is.Name, "%s is new", is.Name)
		}
	}
}

// comparePatches compares the mistakes of the official schemas.
func (d *diff) comparePatches() {
	report := func(s, other *Surface) {
		for _, p := range s.Patched {
			if slices.ContainsFunc(other.Patched, func(o Patch) bool { return o.Definition == p.Definition && o.Pointer == p.Pointer }) {
				continue
			}
			own, _ := s.Definition(p.Definition)
			value, _ := valueAt(own.value, p.Pointer)
			d.addChange(Mended, Changed, "", string(p.Official), canonicalJSON(value), "%s is %s in the official schema of %s, but %s is meant. %s",
				p.describePlace(), p.Official, s.Revision, canonicalJSON(value), p.Reason)
		}
	}
	report(d.from, d.to)
	report(d.to, d.from)
}
