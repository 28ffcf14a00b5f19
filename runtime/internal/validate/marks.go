package validate

// marks says which children of a value have been evaluated.
type marks []uint64

// newMarks returns marks for the children of a value.
func (c *checker) newMarks(i int32) marks {
	words := int(c.nodes[i].size)/64 + 1
	c.spend(words / 4)
	return make(marks, words)
}

func (m marks) set(child int)      { m[child/64] |= 1 << (child % 64) }
func (m marks) has(child int) bool { return m[child/64]&(1<<(child%64)) != 0 }
