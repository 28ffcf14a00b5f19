package pool

import (
	"container/list"
)

// ratio is how many slots a group may have for each that stays free: a group alone has at
// most three quarters, and the next one finds a slot at once.
const ratio = 3

// Share leads to a group that work belongs to, such as one account's. Groups that have work
// in line take turns, and in each the first comes first. A group that has the ratio of what
// is free, or more, gets no further slot: however much work it brings, and however long that
// takes, another group need not wait for its end. The same holds among the groups of a group.
type Share struct {
	Key string
	// All lets the group have every slot that is free.
	All bool
}

// group is what has slots, or groups that have. Its fields are under the pool's lock.
type group struct {
	Share
	parent *group
	ratio  int // of its groups
	held   int // slots, those of its groups too; more than there are if some are taken in advance
	groups map[string]*group
	// waiting is in line for a slot; turns are the groups in which somebody is, the next one first.
	waiting list.List // of *waiter
	turns   list.List
	place   *list.Element // among the parent's turns
}

// find is the group that shares lead to, made if it is not there.
func (g *group) find(shares []Share) *group {
	for _, s := range shares {
		child := g.groups[s.Key]
		if child == nil {
			if g.groups == nil {
				g.groups = map[string]*group{}
			}
			child = &group{Share: s, parent: g, ratio: g.ratio}
			g.groups[s.Key] = child
		}
		g = child
	}
	return g
}

// turn is the group whose first waiter gets the next slot, and puts it behind the others. room is
// how many slots g may still take. It passes over groups that have what they may have: each of
// them has slots, so that there are no more of them than slots.
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
			// The most that it can take with what it has then at the ratio of what is left.
			its = (g.ratio*room - child.held + g.ratio) / (g.ratio + 1)
		}
		if found := child.turn(its); found != nil {
			g.turns.MoveToBack(e)
			return found
		}
	}
	return nil
}

// enlist gives the group, in which somebody waits, its turn.
func (g *group) enlist() {
	for ; g.parent != nil && g.place == nil; g = g.parent {
		g.place = g.parent.turns.PushBack(g)
	}
}

// drop takes a waiter out, and with the last one the group's turn. hold follows.
func (g *group) drop(place *list.Element) {
	g.waiting.Remove(place)
	for ; g.place != nil && g.waiting.Len() == 0 && g.turns.Len() == 0; g = g.parent {
		g.parent.turns.Remove(g.place)
		g.place = nil
	}
}

// hold adds to the slots that the group has. Groups that have nothing any longer are forgotten.
func (g *group) hold(n int) {
	for ; g != nil; g = g.parent {
		g.held += n
		if g.parent != nil && g.held == 0 && g.place == nil && len(g.groups) == 0 {
			delete(g.parent.groups, g.Key)
		}
	}
}
