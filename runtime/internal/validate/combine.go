package validate

import "fmt"

// checkCombined checks a value against a schema's subschemas.
func (c *checker) checkCombined(r *rule, i int32, seen marks) bool {
	ok := true
	if r.not != nil {
		c.silent++
		fits := c.checkInPlace(r.not, i, nil)
		if c.silent--; fits {
			ok = c.add(i, func() string { return "its schema excludes this value" })
		}
	}
	for _, all := range r.allOf {
		if !ok && c.brief() {
			return false
		}
		ok = c.checkInPlace(all, i, seen) && ok
	}
	if len(r.anyOf) > 0 && (ok || !c.brief()) {
		ok = c.checkAnyOf(r, i, seen) && ok
	}
	if len(r.oneOf) > 0 && (ok || !c.brief()) {
		ok = c.checkOneOf(r, i, seen) && ok
	}
	if r.when != nil && (ok || !c.brief()) {
		c.silent++
		fits := c.checkInPlace(r.when, i, seen)
		c.silent--
		if fits && r.whenTrue != nil {
			ok = c.checkInPlace(r.whenTrue, i, seen) && ok
		} else if !fits && r.whenElse != nil {
			ok = c.checkInPlace(r.whenElse, i, seen) && ok
		}
	}
	return ok
}

func (c *checker) checkAnyOf(r *rule, i int32, seen marks) bool {
	mark, fits := c.mark(), false
	c.branches++
	for _, alternative := range r.anyOf {
		if c.checkInPlace(alternative, i, seen) {
			if fits = true; seen == nil { // else every alternative that fits marks the members that it has evaluated
				break
			}
		}
	}
	c.branches--
	if fits {
		c.rewind(mark)
	} else {
		c.mergeAlternatives(mark, i)
	}
	return fits
}

func (c *checker) checkOneOf(r *rule, i int32, seen marks) bool {
	mark, first := c.mark(), -1
	for index, alternative := range r.oneOf {
		if first < 0 {
			c.branches++
			fits := c.checkInPlace(alternative, i, seen)
			c.branches--
			if fits {
				first = index
				c.rewind(mark)
			}
			continue
		}
		c.silent++
		fits := c.checkInPlace(alternative, i, nil)
		c.silent--
		if fits {
			return c.add(i, func() string {
				return fmt.Sprintf("it fits alternatives %d and %d of its schema, want only one", first+1, index+1)
			})
		}
	}
	if first < 0 {
		c.mergeAlternatives(mark, i)
	}
	return first >= 0
}
