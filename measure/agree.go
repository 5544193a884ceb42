package measure

import (
	"slices"
	"strings"
)

// Agreement compares two candidate keys. Two rows are the same by both keys if they are equal in all columns of both.
type Agreement struct {
	A []string `json:"a"`
	B []string `json:"b"`
	// Both counts the rows that both keys take for a copy of one earlier row.
	Both int `json:"both"`
	// OnlyA counts the rows that A merges into an earlier one from which B keeps them apart: different events if B is
	// right, copies that B misses if A is. OnlyB is the reverse.
	OnlyA int `json:"only_a"`
	OnlyB int `json:"only_b"`
}

// Unions returns candidate keys followed by the union of each two, which Compare needs: each is one more key to
// measure.
func Unions(keys [][]string) [][]string {
	all := slices.Clone(keys)
	for i := range keys {
		for j := range i {
			if u := union(keys[j], keys[i]); !slices.ContainsFunc(all, func(k []string) bool { return set(k) == set(u) }) {
				all = append(all, u)
			}
		}
	}
	return all
}

func union(a, b []string) []string {
	u := slices.Clone(a)
	for _, column := range b {
		if !slices.Contains(u, column) {
			u = append(u, column)
		}
	}
	return u
}

// set is equal for keys of the same columns, in any order.
func set(key []string) string {
	columns := slices.Clone(key)
	slices.Sort(columns)
	return strings.Join(slices.Compact(columns), "\x00")
}

// Compare compares the first n keys of a report that was measured with Unions of n keys, and leaves out the rest.
func (r *Report) Compare(n int) {
	distinct := map[string]int{}
	for _, k := range r.Keys {
		distinct[set(k.Key)] = k.Distinct
	}
	r.Keys, r.Columns.Keys = r.Keys[:n], r.Columns.Keys[:n]
	for j := range r.Keys {
		for i := range j {
			a, b := r.Keys[i], r.Keys[j]
			together := distinct[set(union(a.Key, b.Key))]
			r.Agreements = append(r.Agreements, Agreement{A: a.Key, B: b.Key, Both: r.Rows - together,
				OnlyA: together - a.Distinct, OnlyB: together - b.Distinct})
		}
	}
}

// Share is the part of the copies by either key that both take for one.
func (a Agreement) Share() float64 {
	if all := a.Both + a.OnlyA + a.OnlyB; all > 0 {
		return float64(a.Both) / float64(all)
	}
	return 1
}
