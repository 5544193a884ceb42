package lab_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/strategies"
	"deduplab/stream"
)

// What "Spark Streaming Deduplication, in depth" says about choosing the key, on payments of which some retries make a
// new id and some people buy the same thing twice.
func TestContentKeyScenario(t *testing.T) {
	s, err := scenarios.Read("../scenarios/content-key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Spec.Rate /= 2
	r := run(t, s, lab.Options{})
	for _, fault := range broken(r) {
		t.Error(fault)
	}
	newIDs, retries := r.Workload.ByOrigin["retry-new-id"], r.Workload.Copies
	replays := r.Workload.ByOrigin["connector-replay"]
	for id, conditions := range map[string]string{
		// "fails only when producers regenerate the ID on retry": all of those and no other
		"by-id": fmt.Sprintf("leaked == %d, leaks_by_cause.regenerated_id == %d, lost == 0, amount.error > 0.004", newIDs,
			newIDs),
		// "merges legitimate repeats: two identical 5-dollar coffee purchases a minute apart become one", "revenue drops
		// slightly after enabling deduplication"
		"by-content": "leaked == 0, losses_by_cause.key_merge > 300, amount.twice == 0, amount.gone_rate > 0.003, " +
			"same_under: fail",
		// the shorter the memory, the fewer are merged, and the first retries come through
		"by-content-1m": "losses_by_cause.key_merge > 0, losses_by_cause.key_merge < 50, leaks_by_cause.ttl > 0",
		// "include a field that distinguishes real repeats, such as the client's own sequence number"
		"by-content-seq": "leaked == 0, lost == 0, amount.error == 0, same_under: pass, all: pass",
		// "exclude fields that change on retry"
		"by-content-sent": fmt.Sprintf("leaked >= %d, lost == 0", retries-replays-9),
		// "catches connector replays exactly but misses producer retries"
		"by-position": fmt.Sprintf("leaked >= %d, leaked <= %d, lost == 0", retries-replays-9, retries-replays),
	} {
		for condition := range strings.SplitSeq(conditions, ", ") {
			if fault := unmet(r, strategyOf(t, r, id), condition); fault != "" {
				t.Errorf("%s: %s", id, fault)
			}
		}
	}
	byName := map[string]results.Key{}
	for _, k := range r.Keys {
		byName[k.Name] = k
	}
	// Where all copies come within the TTL the strategies do to the stream what the keys do.
	for name, id := range map[string]string{"default": "by-id", "content-seq": "by-content-seq",
		"content-sent": "by-content-sent"} {
		k, s := byName[name], strategyOf(t, r, id)
		if k.Missed != s.Leaked || k.Merged != s.Lost || *k.Amount != *s.Amount {
			t.Errorf("the key %s misses %d and merges %d, %+v; the strategy leaks %d and loses %d, %+v", name, k.Missed,
				k.Merged, *k.Amount, s.Leaked, s.Lost, *s.Amount)
		}
	}
	if merged := byName["content"].Merged; merged <= strategyOf(t, r, "by-content").Lost {
		t.Errorf("%d events merged for ever, no more than within the TTL", merged)
	}
	pair := byName["content"].Examples[0]
	if pair.Row.Fate != "merged" || pair.Row.Row["payment_id"] == pair.Other.Row["payment_id"] ||
		pair.Row.Row["amount"] != pair.Other.Row["amount"] || pair.Row.Row["dedup_key"] != pair.Other.Row["dedup_key"] {
		t.Errorf("two coffees: %+v", pair)
	}
	pair = byName["default"].Examples[0]
	if pair.Row.Fate != "missed" || pair.Row.Row["payment_id"] == pair.Other.Row["payment_id"] ||
		pair.Row.Row["client_seq"] != pair.Other.Row["client_seq"] {
		t.Errorf("one payment with two ids: %+v", pair)
	}
	if !strings.Contains(strategyOf(t, r, "by-content").Code, "PARTITION BY dedup_key ORDER BY proc") {
		t.Errorf("the code goes by another key:\n%s", strategyOf(t, r, "by-content").Code)
	}
}

// Spark's operators go by a named key too: dropDuplicates without a watermark keeps the first row of each key for ever,
// and within a watermark that outlives all retries it finds the same.
func TestNamedKeysInMicroBatches(t *testing.T) {
	s, err := scenarios.Read("../scenarios/content-key.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.Workload.Spec.Rate, s.Workload.Spec.Duration = 2, 2*3_600_000
	s.Require, s.Strategies = nil, nil
	for i := range s.Workload.Keys {
		key := &s.Workload.Keys[i]
		for name, params := range map[string]map[string]string{
			"drop-duplicates": {"delay": "none"}, "drop-duplicates-within-watermark": {"delay": "3h"},
		} {
			strategy, err := strategies.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			args, wrong := strategy.Resolve(params, key.Schema(s.Workload.Schema))
			if len(wrong) > 0 {
				t.Fatal(wrong)
			}
			s.Strategies = append(s.Strategies, scenarios.Entry{ID: name + "-" + key.Name, Strategy: strategy, Args: args,
				Key: key})
		}
	}
	r := run(t, s, lab.Options{})
	for _, fault := range broken(r) {
		t.Error(fault)
	}
	for _, k := range r.Keys[1:] {
		if k.Missed+k.Merged == 0 && k.Name != "content-seq" {
			t.Errorf("the key %s is right: a wrong one would not show", k.Name)
		}
		for _, name := range []string{"drop-duplicates", "drop-duplicates-within-watermark"} {
			s := strategyOf(t, r, name+"-"+k.Name)
			if s.Leaked != k.Missed || s.Lost != k.Merged || *s.Amount != *k.Amount {
				t.Errorf("%s leaks %d and loses %d, %+v; the key misses %d and merges %d, %+v", s.ID, s.Leaked, s.Lost,
					*s.Amount, k.Missed, k.Merged, *k.Amount)
			}
		}
	}
}

// A named key with the columns of the workload's own key is the same key: it changes no number but the place of keys in
// subtasks.
func TestNamingTheOwnKeyChangesNothing(t *testing.T) {
	s := small(t)
	s.Require = slices.DeleteFunc(s.Require, func(r scenarios.Requirement) bool { return r.Name == scenarios.SameUnder })
	s.Job.Parallelism = 1
	own := run(t, s, lab.Options{})
	s.Workload.Keys = []gen.Key{{Name: "again", Columns: s.Workload.Spec.Key}}
	for i := range s.Strategies {
		s.Strategies[i].Key = &s.Workload.Keys[0]
	}
	named := run(t, s, lab.Options{})
	for i := range own.Strategies {
		a, b := own.Strategies[i], named.Strategies[i]
		if b.Key != "again" {
			t.Errorf("%s goes by the key %q", b.ID, b.Key)
		}
		b.Key = ""
		for _, s := range []*results.Strategy{&a, &b} {
			s.Determinism = nil // the first difference in a bucket of keys
			for i := range s.State.Series {
				s.State.Series[i].Keys = 0 // of the own key the events are counted
			}
		}
		sameText(t, a.ID, marshalled(t, b), marshalled(t, a))
	}
	d, n := named.Keys[0], named.Keys[1]
	if d.Name != scenarios.DefaultKey || d.Missed != n.Missed || d.Merged != n.Merged || d.Keys != n.Keys ||
		!maps.Equal(d.MissedByOrigin, n.MissedByOrigin) || d.Missed == 0 {
		t.Errorf("two counts of one key: %+v and %+v", d, n)
	}
}

// Without labels the key of the trace is the truth, and other keys are held against it.
func TestKeysOfATrace(t *testing.T) {
	const trace = "id,who,price,ts\n1,ann,5.00,1000\n2,ann,5.00,2000\n2,ann,5.00,3000\n3,bob,1.00,4000\n3,joe,1.00,5000\n"
	s, err := scenarios.Load("x.yaml", []byte(`
scenario: x
workload:
  trace: x.csv
  columns: {key: id, event_time: ts}
  unit: ms
  keys: {person: who, content: {content: [who, price]}}
  amount: price
strategies: [proctime-asc, proctime-asc: {id: by-person, key: person}, select-distinct-key: {id: keys, key: person}]
`), func(paths []string, spec gen.TraceSpec) (*gen.Trace, error) {
		return gen.ReadTrace(paths[0], strings.NewReader(trace), spec)
	})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, s, lab.Options{})
	var got []string
	for _, k := range r.Keys {
		got = append(got, fmt.Sprint(k.Name, " ", k.Keys, " ", k.Missed, " ", k.Merged, " ", *k.Amount))
	}
	want := []string{
		"default 3 0 0 {11 11 0 0 0 0 0}",
		// the 2nd event is ann again and gone; the copy of the 3rd goes by another name and counts twice
		fmt.Sprint("person 3 1 1 ", results.Amount{Expected: 11, Result: 7, Twice: 1, Gone: 5, TwiceRate: 1. / 11,
			GoneRate: 5. / 11, Error: 4. / 11}),
		fmt.Sprint("content 3 1 1 ", results.Amount{Expected: 11, Result: 7, Twice: 1, Gone: 5, TwiceRate: 1. / 11,
			GoneRate: 5. / 11, Error: 4. / 11}),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	own, person := strategyOf(t, r, "proctime-asc"), strategyOf(t, r, "by-person")
	if own.Fates.Swallowed != -1 || person.Fates.Swallowed != 1 || person.LeaksByCause["regenerated_id"] != 1 {
		t.Errorf("swallowed %d by its own key, %+v by another", own.Fates.Swallowed, person.Fates)
	}
	if keys := strategyOf(t, r, "keys"); keys.Amount != nil {
		t.Errorf("a result of keys alone sums up to %+v", keys.Amount)
	}
}

// Whatever the stream and the key: keeping the first row for ever leaks what the key misses and loses what it merges,
// and the sums follow from the rows.
func TestAnyKeyIsWhatPerfectMemoryMakesOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario(t)
		s.Job.Sink, s.Job.Failures, s.Strategies = strategies.Retract, nil, nil
		s.Job.Parallelism = 1 // several subtasks finish one instant in an order of their own
		s.Workload.Amount = "price"
		s.Workload.Keys = anyKeys(t)
		strategy, _ := strategies.Lookup("proctime-asc")
		for i := -1; i < len(s.Workload.Keys); i++ {
			args, _ := strategy.Resolve(nil, s.Workload.Schema)
			e := scenarios.Entry{ID: fmt.Sprint("s", i), Strategy: strategy, Args: args}
			if i >= 0 {
				e.Key = &s.Workload.Keys[i]
			}
			s.Strategies = append(s.Strategies, e)
		}
		r, err := lab.Run(context.Background(), s, lab.Options{
			OpenState: func() (sim.Cold, error) { return pebble.Open("") }})
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range broken(r) {
			t.Error(fault)
		}
		for i, k := range r.Keys {
			s := r.Strategies[i]
			if k.Missed != s.Leaked || k.Merged != s.Lost || k.Keys != s.ResultRows || *k.Amount != *s.Amount ||
				k.Rows != r.Workload.Rows || k.Missed != sum(k.MissedByOrigin) {
				t.Errorf("%+v, %+v; the strategy leaks %d and loses %d of %d rows: %+v", k, *k.Amount, s.Leaked, s.Lost,
					s.ResultRows, *s.Amount)
			}
		}
		checkSums(t, s, r)
	})
}

// checkSums adds the amounts up from the rows of the stream.
func checkSums(t *rapid.T, s *scenarios.Scenario, r *results.Run) {
	w, err := gen.New(*s.Workload.Spec, s.Seed)
	if err != nil {
		t.Fatal(err)
	}
	column := w.Schema().Index(s.Workload.Amount)
	expected, all := int64(0), int64(0)
	buffer := make([]stream.Row, 64)
	for in := w.Stream(); ; {
		n, _ := in.Next(buffer)
		if n == 0 {
			break
		}
		for _, row := range buffer[:n] {
			all += w.Order(row.Tag, column)
			if row.Tag.Copy() == 0 {
				expected += w.Order(row.Tag, column)
			}
		}
	}
	for _, k := range r.Keys {
		if got := int64(math.Round(100 * k.Amount.Expected)); got != expected {
			t.Errorf("%s: %d expected, the originals sum up to %d", k.Name, got, expected)
		}
		if k.Keys == r.Workload.Rows && int64(math.Round(100*k.Amount.Result)) != all {
			t.Errorf("%s keeps every row and sums up to %v, not %d", k.Name, k.Amount.Result, all)
		}
	}
}

// anyKeys are one to three keys of a stream of anySpec.
func anyKeys(t *rapid.T) []gen.Key {
	var keys []gen.Key
	for i := range rapid.IntRange(1, 3).Draw(t, "keys") {
		columns := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"id", "quantity", "price", "ts"}), 1, 3,
			func(s string) string { return s }).Draw(t, "columns of the key")
		keys = append(keys, gen.Key{Name: fmt.Sprint("key-", i), Columns: columns,
			Content: rapid.Bool().Draw(t, "content")})
	}
	return keys
}
