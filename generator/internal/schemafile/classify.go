package schemafile

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Finding is a difference between a schema and the nearest known revision.
type Finding struct {
	Kind  *Kind
	Place string // such as "Task.priority"
	// Also lists other places with the same difference.
	Also []string
	// Was and Is describe the old and the new content.
	Was, Is string
	Pos     token.Position

	definition, property string
}

// Level returns the importance of the finding.
func (f Finding) Level() Level { return f.Kind.level }

// String describes the finding in a sentence.
func (f Finding) String() string {
	text := strings.NewReplacer("{place}", f.Place, "{was}", f.Was, "{is}", f.Is).Replace(f.Kind.what)
	if len(f.Also) > 0 {
		text += "; also in " + strings.Join(f.Also, ", ")
	}
	return text
}

// Cause says what the finding means for generated code.
func (f Finding) Cause() string { return f.Kind.cause }

// compareFindings sorts by importance, then by place.
func compareFindings(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(b.Level(), a.Level()),
		cmp.Compare(a.Place, b.Place),
		cmp.Compare(a.Kind.what, b.Kind.what),
		cmp.Compare(a.Was, b.Was),
		cmp.Compare(a.Is, b.Is),
	)
}

// classifier turns structural differences into findings.
type classifier struct {
	surface  *schema.Surface
	presence map[string]schema.Difference // changes of whether a member is required, by path
	found    []Finding
}

func classify(surface *schema.Surface, differences []schema.Difference) []Finding {
	c := &classifier{surface: surface, presence: map[string]schema.Difference{}}
	var gone, members, rest []schema.Difference
	for _, d := range differences {
		switch {
		case d.Aspect == schema.AspectPresence:
			c.presence[d.Path] = d
		case d.Member != "":
			members = append(members, d)
		case d.Aspect == schema.AspectDefinition && d.Kind == schema.Removed:
			gone = append(gone, d)
		default:
			rest = append(rest, d)
		}
	}
	rest = c.pairMessages(gone, rest)
	c.pairMembers(members)
	for _, d := range rest {
		c.classifyOther(d)
	}
	c.dropInner()
	for path, d := range c.presence { // members that exist before and after
		kind := MemberOptional
		if d.Official == `"required"` {
			kind = MemberRequired
		}
		c.addFinding(d, Finding{Kind: kind, Place: path})
	}
	return mergeFindings(c.found)
}

// dropInner drops findings inside a value whose type has changed.
func (c *classifier) dropInner() {
	for _, f := range slices.Clone(c.found) {
		if f.Kind != TypeChanged {
			continue
		}
		inside := func(path string) bool {
			return len(path) > len(f.Place) && strings.HasPrefix(path, f.Place) && strings.ContainsRune(".[{(", rune(path[len(f.Place)]))
		}
		c.found = slices.DeleteFunc(c.found, func(g Finding) bool { return inside(g.Place) })
		maps.DeleteFunc(c.presence, func(path string, _ schema.Difference) bool { return inside(path) })
	}
}

func (c *classifier) addFinding(d schema.Difference, f Finding) {
	f.definition, f.property = d.Definition, d.Member
	if f.Place == "" {
		f.Place = d.Path
	}
	c.found = append(c.found, f)
}

// mergeFindings merges findings that are equal in several definitions. It keeps the one with the
// shortest name, because the other definitions are composed of that one.
func mergeFindings(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(a.Place), len(b.Place)), compareFindings(a, b))
	})
	var joined []Finding
	for _, f := range found {
		i := slices.IndexFunc(joined, func(g Finding) bool {
			return g.Kind == f.Kind && g.Was == f.Was && g.Is == f.Is && placeSuffix(g) == placeSuffix(f) && !aboutDefinitions(f.Kind)
		})
		if i < 0 {
			joined = append(joined, f)
			continue
		}
		at := strings.TrimSuffix(f.Place, placeSuffix(f))
		if at != strings.TrimSuffix(joined[i].Place, placeSuffix(f)) && !slices.Contains(joined[i].Also, at) {
			joined[i].Also = append(joined[i].Also, at)
			slices.Sort(joined[i].Also)
		}
	}
	return joined
}

// placeSuffix returns the end of a place that equal members elsewhere share.
func placeSuffix(f Finding) string {
	switch {
	case f.Kind == VariantNew || f.Kind == VariantGone:
		return ""
	case f.property != "":
		return "." + f.property
	}
	if i := strings.LastIndexAny(f.Place, ".({["); i >= 0 {
		return f.Place[i:]
	}
	return ""
}

// aboutDefinitions reports whether findings of a kind are never merged, because each is about its
// own definition.
func aboutDefinitions(k *Kind) bool {
	switch k {
	case MethodNew, MethodGone, MethodRenamed, NotificationNew, NotificationGone, NotificationRenamed, ErrorNew, ErrorMoved,
		DefinitionNew, DefinitionGone, DefinitionInlined, DefinitionRenamed:
		return true
	}
	return false
}

// pairMessages pairs removed methods with new ones of the same content. It returns the remaining
// differences.
func (c *classifier) pairMessages(gone, rest []schema.Difference) []schema.Difference {
	for _, was := range gone {
		method := methodOf(was.Ours)
		i := slices.IndexFunc(rest, func(is schema.Difference) bool {
			other := methodOf(is.Official)
			return method != "" && other != "" && is.Aspect == schema.AspectDefinition &&
				removeMethod(was.Ours, method) == removeMethod(is.Official, other)
		})
		switch {
		case i >= 0:
			c.addFinding(rest[i], Finding{Kind: pickKind(method, MethodRenamed, NotificationRenamed), Was: method, Is: methodOf(rest[i].Official)})
			rest = slices.Delete(rest, i, i+1)
		case method != "":
			c.addFinding(was, Finding{Kind: pickKind(method, MethodGone, NotificationGone), Was: method})
		default:
			kind := DefinitionGone
			if c.isReferenced(was.Definition) {
				kind = DefinitionInlined
			}
			c.addFinding(was, Finding{Kind: kind})
		}
	}
	return rest
}

// isReferenced reports whether other definitions of the known revision refer to a definition.
func (c *classifier) isReferenced(name string) bool {
	return slices.ContainsFunc(c.surface.Definitions, func(d schema.Definition) bool {
		return strings.Contains(string(d.Schema), `"#/$defs/`+name+`"`)
	})
}

// pickKind picks the kind for a request or a notification.
func pickKind(method string, request, notification *Kind) *Kind {
	if strings.HasPrefix(method, "notifications/") {
		return notification
	}
	return request
}

// pairMembers pairs removed members with new ones of the same content in the same object.
func (c *classifier) pairMembers(differences []schema.Difference) {
	var added []schema.Difference
	for _, d := range differences {
		if d.Kind == schema.Added {
			added = append(added, d)
		}
	}
	for _, d := range differences {
		switch d.Kind {
		case schema.Removed:
			i := slices.IndexFunc(added, func(a schema.Difference) bool {
				return a.Definition == d.Definition && a.Official == d.Ours &&
					strings.TrimSuffix(a.Path, a.Member) == strings.TrimSuffix(d.Path, d.Member) &&
					(c.presence[a.Path].Official == "") == (c.presence[d.Path].Ours == "")
			})
			kind, is := pickCapability(d, MemberGone, CapabilityGone), ""
			if i >= 0 {
				kind, is = MemberRenamed, added[i].Member
				delete(c.presence, added[i].Path)
				added = slices.Delete(added, i, i+1)
			}
			delete(c.presence, d.Path)
			c.addFinding(d, Finding{Kind: kind, Was: describeSchema(d.Ours), Is: is})
		case schema.Changed: // from true or false to a schema, or back
			c.addRuleChange(d)
		}
	}
	for _, d := range added {
		kind := pickCapability(d, MemberNew, CapabilityNew)
		if c.presence[d.Path].Official == `"required"` {
			kind = MemberNewRequired
		}
		delete(c.presence, d.Path)
		c.addFinding(d, Finding{Kind: kind, Is: describeSchema(d.Official)})
	}
}

func pickCapability(d schema.Difference, member, capability *Kind) *Kind {
	if strings.HasSuffix(d.Definition, "Capabilities") || strings.HasSuffix(d.Definition, "Capability") {
		return capability
	}
	return member
}

// classifyOther classifies a difference that is neither a member nor a removed definition.
func (c *classifier) classifyOther(d schema.Difference) {
	switch {
	case d.Aspect == schema.AspectDefinition:
		method, code := methodOf(d.Official), codeOf(d.Official)
		switch {
		case method != "":
			c.addFinding(d, Finding{Kind: pickKind(method, MethodNew, NotificationNew), Is: method})
		case code != "":
			c.addFinding(d, Finding{Kind: ErrorNew, Is: code})
		default:
			c.addFinding(d, Finding{Kind: DefinitionNew, Is: describeSchema(d.Official)})
		}
	case d.Aspect == schema.AspectAlternative:
		c.classifyAlternative(d)
	case d.Aspect == schema.AspectEnum && d.Kind == schema.Changed:
		c.classifyValues(d, strings.TrimSuffix(d.Path, " enum"))
	case d.Aspect == schema.AspectType && d.Kind == schema.Changed:
		c.classifyTypes(d, strings.TrimSuffix(d.Path, " type"))
	case d.Aspect == schema.AspectMember && strings.HasSuffix(d.Path, "{}"):
		c.classifyAdditional(d, strings.TrimSuffix(d.Path, "{}"))
	default:
		c.addRuleChange(d)
	}
}

// addRuleChange adds a difference without a kind of its own.
func (c *classifier) addRuleChange(d schema.Difference) {
	show := func(text string) string {
		const longest = 120
		if text == "" {
			return "nothing"
		}
		if d.Aspect != schema.AspectMember {
			text = string(d.Aspect) + " " + text
		}
		if len(text) > longest {
			text = text[:longest] + "..."
		}
		return text
	}
	place := strings.TrimSuffix(d.Path, " "+string(d.Aspect))
	c.addFinding(d, Finding{Kind: RuleChanged, Place: place, Was: show(d.Ours), Is: show(d.Official)})
}

func (c *classifier) classifyAlternative(d schema.Difference) {
	place, words := strings.TrimSuffix(d.Path, " alternative"), describeSchema
	if i := strings.LastIndexByte(place, '('); i >= 0 {
		if name, closed := strings.CutSuffix(place[i+1:], ")"); closed {
			words = func(string) string { return name }
		}
		place = place[:i]
	}
	if d.Kind == schema.Removed {
		c.addFinding(d, Finding{Kind: VariantGone, Place: place, Was: words(d.Ours)})
	} else {
		c.addFinding(d, Finding{Kind: VariantNew, Place: place, Is: words(d.Official)})
	}
}

// classifyValues compares the allowed values.
func (c *classifier) classifyValues(d schema.Difference, place string) {
	was, is := parseList(d.Ours), parseList(d.Official)
	gone, added := subtractValues(was, is), subtractValues(is, was)
	one := len(was) == 1 && len(is) == 1
	switch {
	case one && strings.HasSuffix(place, ".method"):
		c.addFinding(d, Finding{Kind: pickKind(fmt.Sprint(is[0]), MethodRenamed, NotificationRenamed), Place: d.Definition, Was: fmt.Sprint(was[0]), Is: fmt.Sprint(is[0])})
		return
	case one && strings.HasSuffix(place, ".code"):
		c.addFinding(d, Finding{Kind: ErrorMoved, Place: d.Definition, Was: fmt.Sprint(was[0]), Is: fmt.Sprint(is[0])})
		return
	case one:
		c.addFinding(d, Finding{Kind: ConstChanged, Place: place, Was: quoteValue(was[0]), Is: quoteValue(is[0])})
		return
	}
	isNew, isGone, isRenamed := ValueNew, ValueGone, ValueRenamed
	if d.Definition == "TaskStatus" || strings.HasSuffix(place, ".status") {
		isNew, isGone, isRenamed = StateNew, StateGone, StateRenamed
	}
	if len(gone) == 1 && len(added) == 1 {
		c.addFinding(d, Finding{Kind: isRenamed, Place: place, Was: quoteValue(gone[0]), Is: quoteValue(added[0])})
		return
	}
	for _, value := range gone {
		c.addFinding(d, Finding{Kind: isGone, Place: place, Was: quoteValue(value)})
	}
	for _, value := range added {
		c.addFinding(d, Finding{Kind: isNew, Place: place, Is: quoteValue(value)})
	}
}

func quoteValue(value any) string {
	if text, ok := value.(string); ok {
		return `"` + text + `"`
	}
	return fmt.Sprint(value)
}

// classifyTypes compares JSON types. null has its own kinds.
func (c *classifier) classifyTypes(d schema.Difference, place string) {
	was, is := parseList(d.Ours), parseList(d.Official)
	f := Finding{Kind: TypeChanged, Place: place, Was: describeTypes(was), Is: describeTypes(is)}
	isNull := func(types []any) bool { return len(types) == 1 && types[0] == "null" }
	switch gone, added := subtractValues(was, is), subtractValues(is, was); {
	case len(gone) == 0 && isNull(added):
		f.Kind = NullNew
	case len(added) == 0 && isNull(gone):
		f.Kind = NullGone
	}
	c.addFinding(d, f)
}

// classifyAdditional compares the additional properties of an object.
func (c *classifier) classifyAdditional(d schema.Difference, place string) {
	const nothing = `{"not":{}}`
	switch {
	case d.Official == nothing:
		c.addFinding(d, Finding{Kind: ObjectClosed, Place: place})
	case d.Ours == nothing && d.Official == "":
		c.addFinding(d, Finding{Kind: ObjectOpened, Place: place})
	default:
		c.addRuleChange(d)
	}
}
