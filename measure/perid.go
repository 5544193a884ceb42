package measure

import (
	"cmp"
	"slices"
	"strings"
)

// PerID says how the rows are spread over the ids.
type PerID struct {
	Mean      float64    `json:"mean"` // rows an id
	Max       int        `json:"max"`
	Histogram []IDBucket `json:"histogram"`
	Worst     []ID       `json:"worst"` // those with the most rows, at most 10, where there are copies
	// WorstShare is the part of all copies that the worst ids make.
	WorstShare float64 `json:"worst_share"`
}

// IDBucket counts the ids with more rows than the bucket before it, up to and including its own.
type IDBucket struct {
	UpTo int `json:"up_to"`
	IDs  int `json:"ids"`
	Rows int `json:"rows"`
}

// ID is an id and how many rows have it.
type ID struct {
	ID   string `json:"id"`
	Rows int    `json:"rows"`
}

const worstIDs = 10

func perID(g groups, names []string) PerID {
	p := PerID{Mean: float64(len(g.rows)) / float64(len(names))}
	type count struct{ id, rows int }
	var counts []count
	for id := range names {
		n := len(g.of(id))
		p.Max = max(p.Max, n)
		if n > 1 {
			counts = append(counts, count{id, n})
		}
	}
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.rows, a.rows), cmp.Compare(names[a.id], names[b.id]))
	})
	alone := len(names) - len(counts)
	p.Histogram = []IDBucket{{UpTo: 1, IDs: alone, Rows: alone}}
	for _, upTo := range []int{2, 3, 5, 10, 100, 1000, 10_000, 100_000, 1 << 40} {
		if last := p.Histogram[len(p.Histogram)-1].UpTo; last >= p.Max {
			break
		}
		bucket := IDBucket{UpTo: upTo}
		last := p.Histogram[len(p.Histogram)-1].UpTo
		for _, c := range counts {
			if c.rows > last && c.rows <= upTo {
				bucket.IDs++
				bucket.Rows += c.rows
			}
		}
		p.Histogram = append(p.Histogram, bucket)
	}
	worst := 0
	for _, c := range counts[:min(worstIDs, len(counts))] {
		p.Worst = append(p.Worst, ID{strings.Join(keyParts(names[c.id]), " | "), c.rows})
		worst += c.rows - 1
	}
	if copies := len(g.rows) - len(names); copies > 0 {
		p.WorstShare = float64(worst) / float64(copies)
	}
	return p
}
