package export

import (
	"deduplab/gen"
)

// Rate is how many rows of an origin are to be expected.
type Rate struct {
	Origin string
	Rows   float64
	Share  float64 // of the originals
}

// Expected lists what a generated workload makes in the mean: the originals, then the copies of each rule, of which a
// partition that is finished cuts some off.
func Expected(spec *gen.Spec) []Rate {
	originals := spec.Originals()
	all := []Rate{{"original", originals, 1}}
	for _, d := range spec.Duplicates {
		share := d.Rate
		if d.Where != nil {
			share *= probability(spec, *d.Where)
		}
		if d.Flood != nil {
			within := min(d.Flood.To, spec.Duration) - min(d.Flood.From, spec.Duration)
			share *= float64(within) / float64(spec.Duration)
		}
		share *= d.Copies.Mean()
		all = append(all, Rate{d.Origin, originals * share, share})
	}
	return all
}

// probability is that of a comparison with a uniform field.
func probability(spec *gen.Spec, w gen.Where) float64 {
	for _, f := range spec.Fields {
		bounds := f.Int
		if f.Decimal != nil {
			bounds = f.Decimal
		}
		if f.Name != w.Field || bounds == nil {
			continue
		}
		low, high := float64(bounds[0]), float64(bounds[1])
		at, width := float64(w.Value), high-low+1
		below := min(max(at-low, 0), width)  // values under at
		upTo := min(max(at-low+1, 0), width) // and at itself
		shares := map[string]float64{"<": below, "<=": upTo, ">": width - upTo, ">=": width - below,
			"==": upTo - below, "!=": width - upTo + below}
		return shares[w.Op] / width
	}
	return 1
}

// Total is the sum of the rows.
func Total(rates []Rate) float64 {
	sum := 0.0
	for _, r := range rates {
		sum += r.Rows
	}
	return sum
}
