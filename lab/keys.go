package lab

import (
	"math"

	"deduplab/gen"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// hasNewKey tells whether a row has another key than the original of its event.
func hasNewKey(w gen.Workload) func(stream.Tag) bool {
	if k, ok := w.(*gen.Keyed); ok {
		return k.HasNewKey
	}
	return func(tag stream.Tag) bool { return w.NewKey(tag.Origin()) }
}

// amountOf returns the number in a column of a row, 0 for NULL.
func amountOf(w gen.Workload, column int) func(stream.Tag) int64 {
	return func(tag stream.Tag) int64 {
		if v := w.Order(tag, column); v != stream.NullOrder {
			return v
		}
		return 0
	}
}

// sums are of amounts in the smallest unit of their column.
type sums struct{ expected, kept, twice, gone int64 }

// amount makes the numbers of results.json of them.
func (s sums) amount(c stream.Column) *results.Amount {
	unit := math.Pow10(c.Scale)
	in := func(n int64) float64 { return float64(n) / unit }
	a := &results.Amount{
		Expected: in(s.expected), Result: in(s.kept + s.twice), Twice: in(s.twice), Gone: in(s.gone),
	}
	if all := float64(s.expected); all != 0 {
		a.TwiceRate, a.GoneRate = float64(s.twice)/all, float64(s.gone)/all
		a.Error = math.Abs(float64(s.kept+s.twice-s.expected) / all)
	}
	return a
}

// summed reports whether the rows of a strategy's result have a column.
func summed(plan strategies.Plan, schema stream.Schema, column int) bool {
	for _, key := range schema.Key {
		if key == column {
			return true
		}
	}
	return plan.Output != strategies.KeyOnly && (plan.Output != strategies.KeyAndColumn || plan.Column == column)
}

// keyCount counts what becomes of the stream if the first row of each key is kept, with perfect memory.
type keyCount struct {
	key      gen.Key
	keyOf    func(*stream.Row) stream.Key
	workload gen.Workload // under this key
	amount   func(stream.Tag) int64

	rows   int64
	first  map[stream.Key]stream.Tag // the row that is kept
	events []eventSeen
	missed []int64 // rows by origin
	sums   sums
	// distinct is the number of keys at each sample of the state.
	distinct []int64

	misses, merges []keyPair
}

// eventSeen says of an event whether a row of it has come, and whether one was kept.
type eventSeen uint8

const (
	eventCame eventSeen = 1 << iota
	eventKept
)

// keyPair is a row that a key gets wrong, and the one that shows it.
type keyPair struct{ row, other stream.Tag }

// How many examples of a fault are shown, and of how many candidates: whether an event is merged shows only at the end.
const (
	shownPairs = 3
	keptPairs  = 256
)

// newKeyCounts makes a count for each key of a scenario, the workload's own first; none where it names no others.
func newKeyCounts(s scenarios.Workload, w gen.Workload) []*keyCount {
	if len(s.Keys) == 0 {
		return nil
	}
	schema := w.Schema()
	own := gen.Key{Name: scenarios.DefaultKey}
	for _, column := range schema.Key {
		own.Columns = append(own.Columns, schema.Columns[column].Name)
	}
	counts := []*keyCount{{key: own, workload: w, keyOf: func(r *stream.Row) stream.Key { return r.Key }}}
	for _, key := range s.Keys {
		keyed := gen.WithKey(w, key)
		counts = append(counts, &keyCount{key: key, workload: keyed,
			keyOf: func(r *stream.Row) stream.Key { return keyed.Key(r.Tag) }})
	}
	for _, k := range counts {
		k.first, k.missed = map[stream.Key]stream.Tag{}, make([]int64, len(w.Origins()))
		if s.Amount != "" {
			k.amount = amountOf(w, schema.Index(s.Amount))
		}
	}
	return counts
}

// read counts a row.
func (k *keyCount) read(r *stream.Row) {
	k.rows++
	event := r.Tag.Event()
	for event >= uint64(len(k.events)) {
		k.events = append(k.events, make([]eventSeen, max(1024, len(k.events)/2, int(event)+1-len(k.events)))...)
	}
	seen := &k.events[event]
	*seen |= eventCame
	key := k.keyOf(r)
	if first, known := k.first[key]; known {
		if first.Event() != event && *seen&eventKept == 0 && len(k.merges) < keptPairs {
			k.merges = append(k.merges, keyPair{r.Tag, first})
		}
		return
	}
	k.first[key] = r.Tag
	if *seen&eventKept == 0 {
		*seen |= eventKept
		k.sums.kept += k.amountOf(r.Tag)
		return
	}
	k.sums.twice += k.amountOf(r.Tag)
	missed := &k.missed[r.Tag.Origin()]
	if *missed++; *missed == 1 && len(k.misses) < shownPairs { // one of each origin
		k.misses = append(k.misses, keyPair{r.Tag, k.earlier(r.Tag)})
	}
}

func (k *keyCount) amountOf(tag stream.Tag) int64 {
	if k.amount == nil {
		return 0
	}
	return k.amount(tag)
}

// earlier is the first row of a row's event, or the second if it is the first itself.
func (k *keyCount) earlier(tag stream.Tag) stream.Tag {
	for _, other := range k.workload.Rows(nil, tag.Event()) {
		if other != tag {
			return other
		}
	}
	return tag
}

// sample notes the number of keys so far.
func (k *keyCount) sample() { k.distinct = append(k.distinct, int64(len(k.first))) }

// result puts together what was counted, with the sum that is expected of a column.
func (k *keyCount) result(expected int64, column stream.Column) results.Key {
	out := results.Key{
		Name: k.key.Name, Columns: k.key.Columns, Content: k.key.Content, Rows: k.rows, Keys: int64(len(k.first)),
		MissedByOrigin: map[string]int64{},
	}
	for i, origin := range k.workload.Origins() {
		if n := k.missed[i]; n > 0 {
			out.Missed += n
			out.MissedByOrigin[origin] += n
		}
	}
	for event, seen := range k.events {
		if seen == eventCame {
			out.Merged++
			k.sums.gone += k.amountOf(stream.NewTag(uint64(event), 0, 0))
		}
	}
	if k.amount != nil {
		k.sums.expected = expected
		out.Amount = k.sums.amount(column)
	}
	for _, pair := range k.misses {
		out.Examples = append(out.Examples, k.example("missed", pair))
	}
	shown := 0
	for _, pair := range k.merges {
		if shown < shownPairs && k.events[pair.row.Event()]&eventKept == 0 {
			out.Examples = append(out.Examples, k.example("merged", pair))
			shown++
		}
	}
	return out
}

func (k *keyCount) example(fate string, pair keyPair) results.KeyExample {
	return results.KeyExample{
		Row:   sim.ExampleOf(k.workload, fate, pair.row),
		Other: sim.ExampleOf(k.workload, "kept", pair.other),
	}
}
