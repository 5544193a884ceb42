package gen

import (
	"fmt"
	"slices"

	"deduplab/stream"
)

// rule is a Duplicate made ready.
type rule struct {
	where  *Where
	field  int // that where compares
	chance chance
	picks  source
	// The number of copies is fixed, or drawn if there is a table.
	count  int
	table  *weights
	counts source

	delay  sampler
	delays source
	flood  *flood // nil: whatever was created, at once

	other bool // copies go to another partition
	moves source
	again bool // the original is read again
	same  bool // copies have the transport delay of their original

	restamp bool
	newKey  bool
	redrawn []bool // by field: drawn anew
	changes []int  // the fields that are
	// constants has the source of the one value that a redrawn field has in all copies.
	constants []*source
}

func newRule(spec Spec, i int, seed uint64, columns []column) rule {
	d, purpose := spec.Duplicates[i], fmt.Sprintf("duplicate %d: ", i)
	r := rule{
		where: d.Where, chance: newChance(d.Rate), picks: newSource(seed, purpose+"rate"),
		count: max(d.Copies.Count, 1), table: d.Copies.table(), counts: newSource(seed, purpose+"copies"),
		delay: newSampler(d.Delay), delays: newSource(seed, purpose+"delay"),
		other: d.OtherPartition, moves: newSource(seed, purpose+"partition"), again: d.SameOffset,
		same:    d.SameTransport,
		restamp: d.Restamp, newKey: d.NewID || d.ConstantID,
		redrawn: make([]bool, len(spec.Fields)), constants: make([]*source, len(spec.Fields)),
	}
	if d.Flood != nil {
		r.flood = newFlood(*d.Flood, spec)
	}
	for f, field := range spec.Fields {
		inKey := slices.Contains(spec.Key, field.Name)
		newID := (d.NewID || d.ConstantID) && field.UUID && inKey
		if d.ConstantID && newID {
			r.constants[f] = &columns[f].constant
		}
		if newID || slices.Contains(d.Change, field.Name) {
			r.redrawn[f] = true
			r.changes = append(r.changes, f)
		}
		if d.Where != nil && field.Name == d.Where.Field {
			r.field = f
		}
		r.newKey = r.newKey || inKey && field.made() && !r.again
	}
	return r
}

// plural reports whether the rule can make more than one copy of an event.
func (r *rule) plural() bool { return r.count > 1 || r.table != nil }

// hits reports whether the rate picks an event.
func (r *rule) hits(draw uint64) bool { return r.chance.hits(r.picks.at(draw)) }

// copies is how many copies a rule makes of an event.
func (g *generator) copies(r *rule, e event) int {
	if !r.hits(e.draw) {
		return 0
	}
	return g.copiesIfHit(r, e)
}

// copiesIfHit is copies for an event that the rate picks.
func (g *generator) copiesIfHit(r *rule, e event) int {
	switch {
	case r.flood != nil && !r.flood.holds(e), r.where != nil && !g.concerns(r, e.draw):
		return 0
	case r.table != nil:
		return int(r.table.pick(r.counts.at(e.draw)))
	}
	return r.count
}

// concerns reports whether an event is one of those that a rule copies its share of.
func (g *generator) concerns(r *rule, draw uint64) bool {
	n := g.columns[r.field].number(g.sources[0][r.field], draw)
	return n != stream.NullOrder && r.where.holds(n)
}

// row is what the columns and times of a row are made of.
type row struct {
	event
	origin, copy int
	// own is the place of the row in the random streams that are not its event's: that of the event for the first copy
	// of a rule.
	own uint64
}

// tag is that of the row of an event.
func (s *sending) tag(number uint64) stream.Tag {
	return stream.NewTag(number, int(s.origin), int(s.copy))
}

// ownDraw is the place of the n-th copy of a rule, from 0 on.
func ownDraw(draw uint64, n int) uint64 {
	if n == 0 {
		return draw
	}
	return stream.Mix(stream.Mix(draw) + uint64(n))
}

// find finds a row of an event.
func (g *generator) find(e event, tag stream.Tag) row {
	r := row{event: e, origin: tag.Origin(), copy: tag.Copy(), own: e.draw}
	if g.plural && r.origin > 0 {
		nth := r.copy - 1
		for i := range g.rules[:r.origin-1] {
			nth -= g.copies(&g.rules[i], e)
		}
		r.own = ownDraw(e.draw, nth)
	}
	return r
}

// row finds a row with the moment at which its event was created.
func (g *generator) row(tag stream.Tag) row { return g.find(g.timeline.event(tag.Event()), tag) }

// undated finds a row without the moment at which its event was created, which takes less time.
func (g *generator) undated(tag stream.Tag) row {
	if g.plural && g.floods { // then that decides how many copies there are
		return g.row(tag)
	}
	return g.find(event{number: tag.Event(), draw: g.timeline.draw(tag.Event())}, tag)
}

// redraws reports whether rows of an origin have a value of their own in a field.
func (g *generator) redraws(origin, f int) bool { return origin > 0 && g.rules[origin-1].redrawn[f] }

// draws is where the value of a drawn field comes from: the random stream, and the place in it.
func (g *generator) draws(r *row, f int) (source, uint64) {
	if g.redraws(r.origin, f) {
		if constant := g.rules[r.origin-1].constants[f]; constant != nil {
			return *constant, 0
		}
		return g.sources[r.origin][f], r.own
	}
	if c := &g.columns[f]; c.Reuse != nil {
		return g.reused(c, g.sources[0][f], r.draw)
	}
	return g.sources[0][f], r.draw
}

// reused is where an original's id comes from if ids are used again.
func (g *generator) reused(c *column, own source, draw uint64) (source, uint64) {
	for number := draw % stream.MaxEvents; c.reuses.hits(c.reusePicks.at(draw)); {
		if c.Reuse.Constant {
			return c.constant, 0
		}
		if number == 0 {
			break
		}
		back := times(uint64(c.after.draw(c.reuseAfter.at(draw))), g.perMs)
		number -= 1 + back%number
		draw = g.timeline.draw(number)
	}
	return own, draw
}

// integer is the value of a field that is made of what the row is: which copy, and read from where.
func (g *generator) integer(r *row, f int) int64 {
	copied := r.copy
	if r.origin > 0 && g.rules[r.origin-1].again {
		copied = 0
	}
	if g.columns[f].Retry {
		return int64(copied)
	}
	return int64(r.number*stream.MaxCopies) + int64(copied)
}
