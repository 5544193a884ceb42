package sim

import "deduplab/stream"

// index finds numbered entries by the hash of their key. It is one array of slots, a slot being a 32-bit fragment of
// the hash above the 32-bit number of the entry, and 0 when empty.
//
// Its law: leaving out the empty ones, the slots are in ascending order of their fragments, and no slot stands before
// its home nor behind a hole that is not before its home. The home is the fragment scaled to the capacity, so a search
// ends at the first greater fragment, and growing is one pass over both arrays.
type index struct {
	slots    []uint64 // the last one is always empty
	capacity uint64   // homes are below it; runs may reach beyond
	used     int
	limit    int // used may not exceed it
}

const (
	fullest  = 0.82 // share of slots in use at which an index grows
	emptiest = 0.55 // share of slots in use after it has grown
)

// fragment is the part of a key's hash that an index keeps. It is never 0, and it depends on all bits of the hash, so
// that keys which share some of them (as all keys of a key group do) still spread.
func fragment(key stream.Key) uint32 {
	return max(1, uint32(key.Hash()*0x9e3779b97f4a7c15>>32))
}

func (x *index) home(fragment uint32) int { return int(uint64(fragment) * x.capacity >> 32) }

// seek returns the first position at which a slot of the fragment stands or would have to be inserted.
func (x *index) seek(fragment uint32) int {
	p := x.home(fragment)
	for least := uint64(fragment)<<32 - 1; x.slots[p]-1 < least; p++ {
	}
	return p
}

// insert puts a slot where seek said, moving the rest of the run up by one.
func (x *index) insert(p int, fragment, number uint32) {
	for slot := uint64(fragment)<<32 | uint64(number); slot != 0; p++ {
		x.slots[p], slot = slot, x.slots[p]
	}
	if p == len(x.slots) {
		x.slots = append(x.slots, 0)
	}
	x.used++
}

// remove takes out the slot at p, moving up to it what stands behind its home.
func (x *index) remove(p int) {
	for {
		next := x.slots[p+1]
		if next == 0 || x.home(uint32(next>>32)) > p {
			break
		}
		x.slots[p] = next
		p++
	}
	x.slots[p] = 0
	x.used--
}

// renumber changes the number in the slot at p.
func (x *index) renumber(p int, number uint32) { x.slots[p] = x.slots[p]>>32<<32 | uint64(number) }

// reserve makes room for n more slots, and reports whether all slots moved for it.
func (x *index) reserve(n int) bool {
	if x.used+n <= x.limit {
		return false
	}
	old := x.slots
	x.capacity = uint64(float64(x.used+n)/emptiest) + 1
	x.limit = int(float64(x.capacity) * fullest)
	x.slots = make([]uint64, x.capacity+64)
	x.fill(old, func(uint32) bool { return true })
	return true
}

// retain removes all slots but those whose number is to be kept.
func (x *index) retain(keep func(number uint32) bool) { x.fill(x.slots, keep) }

// fill places the slots of old, which may be the index's own array, and counts them anew.
func (x *index) fill(old []uint64, keep func(number uint32) bool) {
	x.used = 0
	free := 0
	for i, slot := range old {
		if slot == 0 {
			continue
		}
		old[i] = 0
		if !keep(uint32(slot)) {
			continue
		}
		p := max(free, x.home(uint32(slot>>32)))
		for p+1 >= len(x.slots) {
			x.slots = append(x.slots, 0)
		}
		x.slots[p] = slot
		free = p + 1
		x.used++
	}
}
