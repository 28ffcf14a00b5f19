package pool

import "container/list"

// ratio is how many slots a group may have for each slot that stays free. So a single group
// has at most three quarters of them, and the next group finds a slot at once. The share is
// rounded up, so a pool with fewer than four slots keeps none free.
const ratio = 3

// Share is a step on the path to a group of work, such as the work of one account.
//
// Groups with work in line take turns, and within a group the first comes first. A group gets
// no further slot while it has ratio times the free slots, or more. So another group need not
// wait for its work, however much there is and however long it takes. The same holds among the
// groups within a group.
type Share struct {
	Key string
	// All lets the group have every slot that is free.
	All bool
}

// group has slots, or groups that have slots. The pool's lock guards its fields.
type group struct {
	Share
	parent *group
	held   int // slots, with those of its groups; may exceed all slots if some are taken in advance
	groups map[string]*group
	// waiting has the waiters in line for a slot, and turns the groups with waiters, the next first.
	waiting list.List // of *waiter
	turns   list.List
	place   *list.Element // among the parent's turns
}

// find returns the group at the end of a path. It makes groups that do not exist.
func (g *group) find(shares []Share) *group {
	for _, s := range shares {
		child := g.groups[s.Key]
		if child == nil {
			if g.groups == nil {
				g.groups = map[string]*group{}
			}
			child = &group{Share: s, parent: g}
			g.groups[s.Key] = child
		}
		g = child
	}
	return g
}

// turn returns the group whose first waiter gets the next slot, or nil, and moves it behind the
// others. room is how many slots g may still take. turn passes over groups that have all they may
// have. Each of those has slots, so there are no more of them than slots.
func (g *group) turn(room int) *group {
	if room <= 0 {
		return nil
	}
	if g.waiting.Len() > 0 {
		return g
	}
	for e := g.turns.Front(); e != nil; e = e.Next() {
		child, its := e.Value.(*group), room
		if !child.All {
			// After it takes this many, it has ratio times the slots that stay free.
			its = (ratio*room - child.held + ratio) / (ratio + 1)
		}
		if found := child.turn(its); found != nil {
			g.turns.MoveToBack(e)
			return found
		}
	}
	return nil
}

// enlist enters a group that has a waiter, and the groups around it, into the turns.
func (g *group) enlist() {
	for ; g.parent != nil && g.place == nil; g = g.parent {
		g.place = g.parent.turns.PushBack(g)
	}
}

// drop removes a waiter, and after the last one the group's turn. The caller calls hold next.
func (g *group) drop(place *list.Element) {
	g.waiting.Remove(place)
	for ; g.place != nil && g.waiting.Len() == 0 && g.turns.Len() == 0; g = g.parent {
		g.parent.turns.Remove(g.place)
		g.place = nil
	}
}

// hold adds n to the slots that the group has. It deletes groups that have nothing left.
func (g *group) hold(n int) {
	for ; g != nil; g = g.parent {
		g.held += n
		if g.parent != nil && g.held == 0 && g.place == nil && len(g.groups) == 0 {
			delete(g.parent.groups, g.Key)
		}
	}
}
