package validate

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// BaseSteps and StepsPerByte bound the work of a check. A step is one value against one
	// schema, or as much work on a longer string or number. Most values take a few steps, and one
	// more for each alternative of anyOf. Nested alternatives can take any number of steps.
	BaseSteps = 100_000
	// StepsPerByte is how many steps each byte of the value adds.
	StepsPerByte = 16
)

// pollEvery is how many steps pass between two looks at the caller's context.
const pollEvery = 4096

var errSteps = errors.New("it takes too many steps to check against its schema: send less, or less deeply nested values")

// checker walks a document and the rules that it must fit. It stops when it has more faults than it
// reports, when the steps are used up, and when the caller leaves.
type checker struct {
	*document
	ctx    context.Context // a checker lives for one call
	steps  int
	budget int
	poll   int // the step for the next look at the budget and the context
	err    error

	faults   []fault
	more     bool // there are more faults than are kept
	silent   int  // how many surrounding schemas do not report their faults
	branches int  // how many surrounding schemas may fail while the value fits
	naming   bool // the value is the name of a member
	exact    bool // names that differ from a property only in case are refused
	isEdited bool // the document is not the value as it was given
	around   []frame
	key      []byte // scratch
}

// frame is one schema that is being checked against a value.
type frame struct {
	rule *rule
	node int32
}

// spend counts steps. It reports whether the check may go on.
func (c *checker) spend(steps int) bool {
	c.steps += steps
	if c.steps < c.poll {
		return true
	}
	switch {
	case c.err != nil:
	case c.steps > c.budget:
		c.err = errSteps
	case c.ctx.Err() != nil:
		c.err = context.Cause(c.ctx)
	default:
		c.poll = c.steps + pollEvery
		return true
	}
	c.poll = 0
	return false
}

// check reports whether a value fits a rule. It marks in seen, unless that is nil, which of the
// value's children the rule has evaluated. After a failure the marks mean nothing.
func (c *checker) check(r *rule, i int32, seen marks) bool {
	if !c.spend(1) {
		return false
	}
	if r.Bool != nil {
		if *r.Bool {
			return true
		}
		return c.add(i, func() string { return "no value is allowed here" })
	}
	for above := len(c.around) - 1; above >= 0 && c.around[above].node == i; above-- {
		if c.around[above].rule == r {
			return c.add(i, func() string { return "its schema refers to itself without end" })
		}
	}
	c.around = append(c.around, frame{r, i})
	ok := c.checkValue(r, i, seen)
	c.around = c.around[:len(c.around)-1]
	return ok && c.err == nil
}

func (c *checker) checkValue(r *rule, i int32, seen marks) bool {
	n := c.nodes[i]
	if !c.isKind(r, i) || !c.isConstant(r, i) || !c.isFormat(r, i) {
		return false
	}
	if seen == nil && (n.kind == kindObject && r.unevaluatedMembers != nil || n.kind == kindArray && r.unevaluatedItems != nil) {
		seen = c.newMarks(i)
	}
	ok := r.ref == nil || c.checkInPlace(r.ref, i, seen)
	if !ok && c.brief() {
		return false
	}
	switch n.kind {
	case kindObject:
		ok = c.checkObject(r, i, seen) && ok
	case kindArray:
		ok = c.checkArray(r, i, seen) && ok
	case kindText:
		ok = c.checkString(r, i) && ok
	case kindNumber:
		ok = c.checkNumber(r, i) && ok
	}
	if !ok && (c.brief() || c.branches > 0) {
		return false // nested alternatives are cheap for values that clearly do not fit
	}
	ok = c.checkCombined(r, i, seen) && ok
	if ok || !c.brief() {
		ok = c.checkUnevaluated(r, i, seen) && ok
	}
	return ok
}

func (c *checker) isKind(r *rule, i int32) bool {
	k := c.nodes[i].kind
	if r.kinds == 0 || r.kinds&k != 0 {
		return true
	}
	if k == kindNumber && r.kinds&kindInteger != 0 && parseDecimal(c.literal(i)).isInteger() {
		return true
	}
	got := k.String()
	if k == kindNumber && r.kinds&kindInteger != 0 {
		got = c.show(i)
	}
	return c.addWanted(i, got, true, r.Types.ToStrings)
}

func (c *checker) isConstant(r *rule, i int32) bool {
	if r.constant != nil && !c.isOneOf(r.constant, i) {
		return c.addConstants(i, r.constant, *r.Const)
	}
	if r.enum != nil && !c.isOneOf(r.enum, i) {
		return c.addConstants(i, r.enum, r.Enum.Values...)
	}
	return true
}

func (c *checker) isOneOf(set *constants, i int32) bool {
	if set.kinds&c.nodes[i].kind == 0 {
		return false
	}
	c.key = c.appendKey(c.key[:0], i)
	_, ok := set.keys[string(c.key)]
	return ok
}

// appendKey appends a key that exactly the equal values share.
func (c *checker) appendKey(key []byte, i int32) []byte {
	n := c.nodes[i]
	if !c.spend(1 + int(n.size)/16) {
		return key
	}
	switch key = append(key, byte(n.kind)); n.kind {
	case kindBoolean:
		key = append(key, c.text[n.start])
	case kindNumber:
		key = append(parseDecimal(c.literal(i)).appendKey(key), ';')
	case kindText:
		s := c.string(i)
		key = append(append(strconv.AppendInt(key, int64(len(s)), 10), ':'), s...)
	case kindArray:
		key = append(strconv.AppendInt(key, int64(n.size), 10), '[')
		for child := i + 1; child < n.next; child = c.nodes[child].next {
			key = c.appendKey(key, child)
		}
	case kindObject:
		key = append(strconv.AppendInt(key, int64(n.size), 10), '{')
		type named struct {
			name  string
			value int32
		}
		members := make([]named, 0, n.size)
		for name := i + 1; name < n.next; name = c.nodes[name+1].next {
			members = append(members, named{c.string(name), name + 1})
		}
		slices.SortFunc(members, func(a, b named) int { return strings.Compare(a.name, b.name) })
		for _, m := range members {
			key = append(append(strconv.AppendInt(key, int64(len(m.name)), 10), ':'), m.name...)
			key = c.appendKey(key, m.value)
		}
	}
	return key
}

// formatExamples has a value of each format.
var formatExamples = map[string]string{
	"date": "2026-01-31", "date-time": "2026-01-31T15:04:05Z", "duration": "PT1H30M", "email": "ann@example.com", "hostname": "www.example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "iri": "https://example.com/a", "iri-reference": "/a?b=c", "json-pointer": "/a/0",
	"period": "2026-01-31T15:04:05Z/PT1H", "relative-json-pointer": "1/a", "semver": "1.2.3", "time": "15:04:05Z",
	"uri": "https://example.com/a", "uri-reference": "/a?b=c", "uri-template": "/a/{name}", "uuid": "123e4567-e89b-12d3-a456-426614174000",
}

func (c *checker) isFormat(r *rule, i int32) bool {
	if r.Format == nil || c.nodes[i].kind != kindText || !c.spend(int(c.nodes[i].size)/16) {
		return c.err == nil
	}
	value := c.string(i)
	var err error
	if r.Format.Name == "regex" {
		_, err = syntax.Parse(value, syntax.Perl) // compiling a pattern can take a hundred megabytes
	} else {
		err = r.Format.Validate(value)
	}
	if err == nil {
		return true
	}
	return c.add(i, func() string {
		var syntaxError *syntax.Error
		if errors.As(err, &syntaxError) {
			return fmt.Sprintf("%s is not a valid regex: %s", c.show(i), syntaxError.Code)
		}
		return fmt.Sprintf("%s is not a valid %s: write one such as %s", c.show(i), r.Format.Name, formatExamples[r.Format.Name])
	})
}

// checkInPlace checks the same value against another schema. If the value fits, the children that
// the schema has evaluated count.
func (c *checker) checkInPlace(r *rule, i int32, seen marks) bool {
	if seen == nil {
		return c.check(r, i, nil)
	}
	own := c.newMarks(i)
	if !c.check(r, i, own) {
		return false
	}
	for word := range own {
		seen[word] |= own[word]
	}
	return true
}

func (c *checker) checkObject(r *rule, i int32, seen marks) bool {
	size, ok := int(c.nodes[i].size), true
	if r.MinProperties != nil && size < *r.MinProperties {
		ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at least %d", count(size, "member"), *r.MinProperties) })
	}
	if r.MaxProperties != nil && size > *r.MaxProperties {
		ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at most %d", count(size, "member"), *r.MaxProperties) })
	}
	if len(r.members)+len(r.patterns) > 0 || r.countsMembers {
		if ok || !c.brief() {
			ok = c.checkMembers(r, i, seen) && ok
		}
	}
	if r.names != nil {
		c.naming = true
		for name := i + 1; name < c.nodes[i].next && (ok || !c.brief()); name = c.nodes[name+1].next {
			ok = c.check(r.names, name, nil) && ok
		}
		c.naming = false
	}
	for _, d := range r.dependents {
		if !ok && c.brief() {
			return false
		}
		if !c.has(i, d.name) {
			continue
		}
		if d.rule != nil {
			ok = c.checkInPlace(d.rule, i, seen) && ok
		}
		if missing := c.findMissing(i, d.required); missing != nil {
			ok = c.addMissing(i, func() []string { return missing }, fmt.Sprintf(", which %s needs", quote(d.name)))
		}
	}
	return ok
}

// checkMembers checks the values of an object's members. It begins with those that take one step,
// because they often rule out an alternative early.
func (c *checker) checkMembers(r *rule, i int32, seen marks) bool {
	required := 0
	var other []string
	ok, nested, ordinal := true, false, 0
	for name := i + 1; name < c.nodes[i].next && (ok || !c.brief()); name = c.nodes[name+1].next {
		value := name + 1
		known := r.members[c.string(name)] // works for a nil map
		if known.required {
			required++
		}
		if c.nodes[value].kind&(kindObject|kindArray) != 0 {
			nested = true
		} else {
			ok = c.checkMember(r, known.rule, name, seen, ordinal, &other) && ok
		}
		ordinal++
	}
	if required < r.required && (ok || !c.brief()) {
		ok = c.addMissing(i, func() []string { return c.findMissing(i, r.Required) }, "")
	}
	if nested && (ok || c.branches == 0) {
		ordinal = 0
		for name := i + 1; name < c.nodes[i].next && (ok || !c.brief()); name = c.nodes[name+1].next {
			if c.nodes[name+1].kind&(kindObject|kindArray) != 0 {
				ok = c.checkMember(r, r.members[c.string(name)].rule, name, seen, ordinal, &other) && ok
			}
			ordinal++
		}
	}
	if other != nil {
		ok = c.add(i, func() string {
			c.more = c.more || len(other) > MaxFaults
			return describeAdditional(r, other[:min(len(other), MaxFaults)])
		})
	}
	return ok
}

// checkMember checks one member against its object's schema. It adds a name that the schema does
// not allow to other.
func (c *checker) checkMember(r *rule, known *rule, name int32, seen marks, ordinal int, other *[]string) bool {
	ok, evaluated := c.spend(1), false
	if known != nil {
		ok, evaluated = c.check(known, name+1, nil) && ok, true
	}
	for _, p := range r.patterns {
		if !c.spend(1 + int(c.nodes[name].size)/16) {
			return false
		}
		if p.match.MatchString(c.string(name)) {
			ok, evaluated = c.check(p.rule, name+1, nil) && ok, true
		}
	}
	if c.exact && known == nil && (evaluated || !r.closed) {
		if twin := c.findTwin(r, c.string(name)); twin != "" {
			ok = c.add(name+1, func() string { return fmt.Sprintf("the name differs from %s only in case", quote(twin)) })
		}
	}
	if !evaluated {
		switch {
		case r.closed && len(*other) <= MaxFaults:
			*other = append(*other, shorten(c.string(name)))
			return ok && !c.brief()
		case r.closed:
			return ok && !c.brief()
		case r.otherMembers != nil:
			ok = c.check(r.otherMembers, name+1, nil) && ok
		}
	}
	if seen != nil && (evaluated || r.countsMembers) {
		seen.set(ordinal)
	}
	return ok
}

// findTwin returns the property whose name differs from another name only in case, or "".
func (c *checker) findTwin(r *rule, name string) string {
	if !c.spend(len(r.members)) {
		return ""
	}
	for property := range r.members {
		if property != name && strings.EqualFold(property, name) { // a schema may require a name that only another one describes
			return property
		}
	}
	return ""
}

// has reports whether an object has a member.
func (c *checker) has(i int32, member string) bool {
	if !c.spend(1 + int(c.nodes[i].size)) {
		return false
	}
	for name := i + 1; name < c.nodes[i].next; name = c.nodes[name+1].next {
		if c.string(name) == member {
			return true
		}
	}
	return false
}

func (c *checker) findMissing(i int32, required []string) []string {
	var missing []string
	for _, member := range required {
		if !c.has(i, member) {
			missing = append(missing, member)
		}
	}
	return missing
}

func (c *checker) checkArray(r *rule, i int32, seen marks) bool {
	size, ok := int(c.nodes[i].size), true
	if r.MinItems != nil && size < *r.MinItems {
		ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at least %d", count(size, "item"), *r.MinItems) })
	}
	if r.MaxItems != nil && size > *r.MaxItems {
		ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at most %d", count(size, "item"), *r.MaxItems) })
	}
	if r.UniqueItems && size > 1 && (ok || !c.brief()) {
		ok = c.isUnique(i) && ok
	}
	index, known := 0, size
	if !r.countsItems {
		known = min(size, len(r.prefix)) // the schema does not restrict the rest
	}
	for child := i + 1; index < known && (ok || !c.brief()); child = c.nodes[child].next {
		switch {
		case index < len(r.prefix):
			ok = c.check(r.prefix[index], child, nil) && ok
		case r.items != nil:
			ok = c.check(r.items, child, nil) && ok
		}
		if seen != nil {
			seen.set(index)
		}
		index++
	}
	if r.ends && size > len(r.prefix) {
		ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at most %d", count(size, "item"), len(r.prefix)) })
	}
	if r.contains != nil && (ok || !c.brief()) {
		ok = c.checkContains(r, i, seen) && ok
	}
	return ok
}

// isUnique reports whether all items are different.
func (c *checker) isUnique(i int32) bool {
	keys := make(map[string]int, c.nodes[i].size)
	index := 0
	for child := i + 1; child < c.nodes[i].next; child = c.nodes[child].next {
		c.key = c.appendKey(c.key[:0], child)
		if c.err != nil {
			return false
		}
		if former, ok := keys[string(c.key)]; ok {
			return c.add(i, func() string { return fmt.Sprintf("items %d and %d are equal, want all different", former, index) })
		}
		keys[string(c.key)] = index
		index++
	}
	return true
}

func (c *checker) checkContains(r *rule, i int32, seen marks) bool {
	if r.DraftVersion < 2020 {
		seen = nil // before 2020-12, contains evaluates no items
	}
	least, most := 1, int(c.nodes[i].size)
	if r.MinContains != nil {
		least = *r.MinContains
	}
	if r.MaxContains != nil {
		most = *r.MaxContains
	}
	mark, found, index := c.mark(), 0, 0
	c.branches++
	for child := i + 1; child < c.nodes[i].next && c.err == nil; child = c.nodes[child].next {
		if seen == nil && found >= least && r.MaxContains == nil || found > most {
			break
		}
		if c.check(r.contains, child, nil) {
			if found++; seen != nil {
				seen.set(index)
			}
		}
		index++
	}
	c.branches--
	switch {
	case c.err != nil:
		return false
	case found < least && r.MinContains == nil:
		if c.silent > 0 || mark.isBehind(c) {
			return false // the faults of the items say it
		}
		return c.add(i, func() string { return "got 0 fitting items, want at least 1" })
	case found < least:
		c.rewind(mark)
		return c.add(i, func() string {
			return fmt.Sprintf("got %s, want at least %d", count(found, "fitting item"), least)
		})
	case found > most:
		c.rewind(mark)
		return c.add(i, func() string {
			return fmt.Sprintf("got more fitting items, want at most %d", most)
		})
	}
	c.rewind(mark)
	return true
}

func (c *checker) checkString(r *rule, i int32) bool {
	if r.MinLength == nil && r.MaxLength == nil && r.Pattern == nil {
		return true
	}
	if !c.spend(int(c.nodes[i].size) / 16) {
		return false
	}
	ok, value := true, c.string(i)
	if r.MinLength != nil || r.MaxLength != nil {
		length := utf8.RuneCountInString(value)
		if r.MinLength != nil && length < *r.MinLength {
			ok = c.add(i, func() string {
				return fmt.Sprintf("got %s, want at least %d", count(length, "character"), *r.MinLength)
			})
		}
		if r.MaxLength != nil && length > *r.MaxLength {
			ok = c.add(i, func() string { return fmt.Sprintf("got %s, want at most %d", count(length, "character"), *r.MaxLength) })
		}
	}
	if r.Pattern != nil && (ok || !c.brief()) && !r.Pattern.MatchString(value) {
		ok = c.add(i, func() string {
			return fmt.Sprintf("%s does not match the pattern %s", c.show(i), showPattern(r.Pattern))
		})
	}
	return ok
}

func (c *checker) checkNumber(r *rule, i int32) bool {
	if r.min == nil && r.max == nil && r.above == nil && r.below == nil && r.MultipleOf == nil {
		return true
	}
	if !c.spend(int(c.nodes[i].size) / 16) {
		return false
	}
	literal := c.literal(i)
	v, ok := parseDecimal(literal), true
	for _, bound := range []struct {
		limit  *decimal
		broken bool
		words  string
	}{
		{r.min, r.min != nil && v.compare(*r.min) < 0, "at least"},
		{r.max, r.max != nil && v.compare(*r.max) > 0, "at most"},
		{r.above, r.above != nil && v.compare(*r.above) <= 0, "more than"},
		{r.below, r.below != nil && v.compare(*r.below) >= 0, "less than"},
	} {
		if bound.broken {
			ok = c.add(i, func() string { return fmt.Sprintf("got %s, want %s %v", c.show(i), bound.words, bound.limit) })
		}
	}
	if r.MultipleOf != nil && (ok || !c.brief()) {
		// The division needs a power of ten as long as the exponent.
		if !c.spend((len(v.digits) + max(v.exponent, -v.exponent)) / 8) {
			return false
		}
		fraction, _ := new(big.Rat).SetString(literal) // within the bounds this never fails
		if !fraction.Quo(fraction, r.MultipleOf).IsInt() {
			ok = c.add(i, func() string { return fmt.Sprintf("got %s, want a multiple of %v", c.show(i), toDecimal(r.MultipleOf)) })
		}
	}
	return ok
}

// checkUnevaluated checks the children that no other schema has evaluated.
func (c *checker) checkUnevaluated(r *rule, i int32, seen marks) bool {
	n, ok, rest, step := c.nodes[i], true, r.unevaluatedItems, int32(0)
	switch {
	case n.kind == kindObject && r.unevaluatedMembers != nil:
		rest, step = r.unevaluatedMembers, 1
	case n.kind != kindArray || rest == nil:
		return true
	}
	index := 0
	for child := i + 1 + step; child < n.next && (ok || !c.brief()); child = c.nodes[child].next + step {
		if !seen.has(index) {
			ok = c.check(rest, child, nil) && ok
			seen.set(index)
		}
		index++
	}
	return ok
}
