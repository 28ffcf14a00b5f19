package pool

// ratio is how many slots a group may have for each slot that stays free. So a single group has at most seven eighths of
// them, and the next group finds a slot at once. The share is rounded up, so a pool with fewer than eight slots keeps
// none free.
const ratio = 7

// Share is a step on the path to a group of work, such as the work of one account.
//
// A group gets no further slot while it has ratio times the free slots, or more. So another group need not wait for its
// work, however much there is and however long it takes. The same holds among the groups within a group.
type Share struct {
	Key string
	// All lets the group have every slot that is free.
	All bool
}

// group has slots, or groups that have slots. The pool's lock guards its fields.
type group struct {
	key    string
	parent *group
	held   int // slots, with those of its groups; may exceed all slots if some are taken in advance
	groups map[string]*group
}

// find returns the group at the end of a path. It makes groups that do not exist.
func (g *group) find(shares []Share) *group {
	for _, s := range shares {
		child := g.groups[s.Key]
		if child == nil {
			if g.groups == nil {
				g.groups = map[string]*group{}
			}
			child = &group{key: s.Key, parent: g}
			g.groups[s.Key] = child
		}
		g = child
	}
	return g
}

// admits reports whether the group at the end of a path may take one more slot. room is how many slots g may still take.
func (g *group) admits(shares []Share, room int) bool {
	for _, s := range shares {
		held := 0
		if g != nil {
			if g = g.groups[s.Key]; g != nil {
				held = g.held
			}
		}
		if !s.All {
			// After it takes this many, it has ratio times the slots that stay free.
			room = (ratio*room - held + ratio) / (ratio + 1)
		}
	}
	return room > 0
}

// hold adds n to the slots that the group has. It deletes groups that have nothing left.
func (g *group) hold(n int) {
	for ; g != nil; g = g.parent {
		g.held += n
		if g.parent != nil && g.held == 0 && len(g.groups) == 0 {
			delete(g.parent.groups, g.key)
		}
	}
}
