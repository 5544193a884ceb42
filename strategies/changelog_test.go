package strategies_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// oracle is what a query over a table must hold, by the simplest reading of its SQL. The table's rows stand in the
// order in which they came.
type oracle func(rows []stream.Record) []stream.Record

// overChangelog are the strategies that take a changelog, each with its parameters and what it must hold.
var overChangelog = []struct {
	strategy string
	params   map[string]string
	holds    oracle
}{
	{"nontime", map[string]string{"order_by": "quantity asc"}, firstRows(1, quantity)},
	{"nontime", map[string]string{"order_by": "quantity desc", "top": "2"}, firstRows(2, descending(quantity))},
	{"nontime", map[string]string{"order_by": "quantity asc", "top": "3"}, firstRows(3, quantity)},
	{"rowtime-asc", nil, firstRows(1, createdAt)},
	{"rowtime-desc", nil, firstRows(1, descending(createdAt))},
	{"proctime-desc", nil, firstRows(1, nothing)},
	{"select-distinct", nil, distinct},
	{"group-by-min", map[string]string{"column": "quantity"}, minimum},
	{"pass-through", nil, func(rows []stream.Record) []stream.Record { return rows }},
}

type order func(a, b stream.Record) int

func quantity(a, b stream.Record) int  { return a[1].Compare(b[1], stream.Int) }
func createdAt(a, b stream.Record) int { return a[3].Compare(b[3], stream.Timestamp) }
func nothing(_, _ stream.Record) int   { return 0 }
func descending(o order) order         { return func(a, b stream.Record) int { return o(b, a) } }

// firstRows are the first n rows of each key; rows that tie stand in the order in which they came.
func firstRows(n int, o order) oracle {
	return func(rows []stream.Record) []stream.Record {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, o)
		count := map[string]int{}
		return slices.DeleteFunc(rows, func(r stream.Record) bool {
			count[r[0].Text]++
			return count[r[0].Text] > n
		})
	}
}

func distinct(rows []stream.Record) []stream.Record {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b stream.Record) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return slices.CompactFunc(rows, slices.Equal)
}

// minimum is the key and the smallest quantity that is not NULL.
func minimum(rows []stream.Record) []stream.Record {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b stream.Record) int {
		if a[1].Null != b[1].Null {
			return quantity(b, a)
		}
		return quantity(a, b)
	})
	firsts := firstRows(1, nothing)(rows)
	for i, r := range firsts {
		firsts[i] = r[:2]
	}
	return firsts
}

// TestChangelogInput feeds a source that inserts, updates and deletes rows at random. After every change, what has been
// sent must make up the table that the query stands for, and nothing may be taken back that is not there.
func TestChangelogInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := overChangelog[rapid.IntRange(0, len(overChangelog)-1).Draw(t, "query")]
		h, err := harness.New(harness.Config{Strategy: c.strategy, Params: c.params, Job: changelog})
		if err != nil {
			t.Fatal(err)
		}
		input, result := table{}, table{}
		change := func(kind stream.Kind, row stream.Record) {
			input.apply(t, kind, row)
			if err := h.Record(kind, row); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "changes") {
			if len(input) > 0 && rapid.Bool().Draw(t, "retract") {
				row := input[rapid.IntRange(0, len(input)-1).Draw(t, "row")]
				if rapid.Bool().Draw(t, "delete") {
					change(stream.Delete, row)
				} else {
					change(stream.UpdateBefore, row)
					updated := drawRow(t)
					updated[0] = row[0]
					change(stream.UpdateAfter, updated)
				}
			} else {
				change(stream.Insert, drawRow(t))
			}
			for _, out := range h.Take() {
				result.apply(t, out.Kind, out.Values)
			}
			if want := table(c.holds(input)); result.String() != want.String() {
				t.Fatalf("%s %v holds\n%s, want\n%s\nover\n%s", c.strategy, c.params, result, want, input)
			}
		}
	})
}

func drawRow(t *rapid.T) stream.Record {
	row := stream.Record{
		{Text: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "key")},
		{Int: rapid.Int64Range(1, 3).Draw(t, "quantity")}, {Int: 100}, {Int: rapid.Int64Range(1, 3).Draw(t, "time")},
	}
	if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
		row[1] = stream.Value{Null: true}
	}
	return row
}

// table is a multiset of rows in the order in which they came.
type table []stream.Record

func (rows *table) apply(t *rapid.T, kind stream.Kind, row stream.Record) {
	if kind == stream.Insert || kind == stream.UpdateAfter {
		*rows = append(*rows, row)
		return
	}
	i := slices.IndexFunc(*rows, func(r stream.Record) bool { return slices.Equal(r, row) })
	if i < 0 {
		t.Fatalf("%s of %v, which is not there", kind, row)
	}
	*rows = slices.Delete(*rows, i, i+1)
}

func (rows table) String() string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = fmt.Sprint(r)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestNormalise feeds change events with repeats, and with updates of rows that were never inserted. What has been sent
// must make up the last row of each key, and be a changelog in which each change fits the one before.
func TestNormalise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, err := harness.New(harness.Config{Strategy: "changelog-normalize", Job: changelog})
		if err != nil {
			t.Fatal(err)
		}
		last, result := map[string]stream.Record{}, table{}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			row := drawRow(t)
			kind := rapid.SampledFrom([]stream.Kind{stream.Insert, stream.UpdateBefore, stream.UpdateAfter, stream.Delete}).
				Draw(t, "kind")
			switch kind {
			case stream.Delete:
				delete(last, row[0].Text)
			case stream.Insert, stream.UpdateAfter:
				last[row[0].Text] = row
			}
			if err := h.Record(kind, row); err != nil {
				t.Fatal(err)
			}
			for _, out := range h.Take() {
				result.apply(t, out.Kind, out.Values)
			}
			var want table
			for _, row := range last {
				want = append(want, row)
			}
			if result.String() != want.String() {
				t.Fatalf("holds\n%s, want\n%s", result, want)
			}
		}
	})
}

// TestSnapshotsOfChangelogs restarts a job at random, also on changes that fit nothing: that must change nothing.
func TestSnapshotsOfChangelogs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := overChangelog[rapid.IntRange(0, len(overChangelog)-1).Draw(t, "query")]
		config := harness.Config{Strategy: c.strategy, Params: c.params, Job: changelog}
		plain, err := harness.New(config)
		if err != nil {
			t.Fatal(err)
		}
		restored, _ := harness.New(config)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			kind, row := stream.Kind(rapid.IntRange(0, 3).Draw(t, "kind")), drawRow(t)
			if err := plain.Record(kind, row); err != nil {
				t.Fatal(err)
			}
			if err := restored.Record(kind, row); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "restart") {
				if restored.Checkpoint() != nil || restored.Restore() != nil {
					t.Fatal("no restart")
				}
			}
			if want, got := fmt.Sprint(plain.Take()), fmt.Sprint(restored.Take()); got != want {
				t.Fatalf("%s: sent %s after restarts, else %s", c.strategy, got, want)
			}
		}
	})
}

// TestEveryChangeIsAccountedFor gives strategies changes that fit nothing: each row must have one disposition still,
// also with a TTL and in batches.
func TestEveryChangeIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"changelog-normalize", "keyed-process", "nontime", "pass-through", "rowtime-asc",
			"select-distinct"}
		name := rapid.SampledFrom(names).Draw(t, "strategy")
		params, job := map[string]string{}, changelog
		job.Schema = harness.Orders()
		if name == "nontime" {
			params["order_by"], params["top"] = "quantity asc", fmt.Sprint(rapid.IntRange(1, 3).Draw(t, "top"))
		}
		if name != "pass-through" {
			params["ttl"] = rapid.SampledFrom([]string{"0s", "2s"}).Draw(t, "ttl")
		}
		if name == "changelog-normalize" && rapid.Bool().Draw(t, "batches") {
			job.MiniBatch = strategies.MiniBatch{Latency: 1000, Size: 3}
		}
		strategy, _ := strategies.Lookup(name)
		args, faults := strategy.Resolve(params, job.Schema)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		plan, records := strategy.Plan(args, job), harness.NewRecords(job.Schema)
		task := sim.NewTask(sim.TaskSpec{Parallelism: 1, Readers: 1, Records: records, Prepare: plan.Prepare(records),
			New: plan.New, UpdateBefore: rapid.Bool().Draw(t, "update before")})
		rows, settled := 0, 0
		at := stream.Time(0)
		for range rapid.IntRange(1, 40).Draw(t, "rows") {
			at += stream.Time(rapid.IntRange(0, 900).Draw(t, "after"))
			row := records.Add(stream.Kind(rapid.IntRange(0, 3).Draw(t, "kind")), drawRow(t))
			row.Arrival = at
			task.Row(&row)
			rows++
		}
		task.Checkpoint(at)
		task.Drain(func(c *sim.Change, _ stream.Key, _ []stream.Tag) {
			switch c.Op {
			case sim.OpEmit, sim.OpDrop, sim.OpHold:
				settled++
			}
		})
		if settled != rows {
			t.Fatalf("%s: %d rows went in, %d have a disposition", name, rows, settled)
		}
	})
}

// TestWhoTakesAChangelog says which strategies a source of changes leaves: the others are refused.
func TestWhoTakesAChangelog(t *testing.T) {
	takes := map[string]bool{"changelog-normalize": true, "keyed-process": true, "select-distinct-key": true,
		"proctime-asc": true, "nontime-to-changelog": true, "pk-not-enforced": true}
	for _, c := range overChangelog {
		takes[c.strategy] = true
	}
	for _, name := range strategies.Names() {
		params := map[string]string{}
		switch name {
		case "nontime", "nontime-to-changelog", "window-topn":
			params["order_by"] = "quantity asc"
		case "group-by-min":
			params["column"] = "quantity"
		}
		_, err := harness.New(harness.Config{Strategy: name, Params: params, Job: changelog})
		if (err == nil) != takes[name] {
			t.Errorf("%s takes a changelog: %v", name, err)
		}
	}
}
