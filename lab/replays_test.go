package lab_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
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

// The article on reviewing Flink SQL names six causes of differing results. The lab takes them apart into causes that
// can be changed one at a time:
//
//	processing time                 interleaving, catch-up; batches in micro-batch queries
//	watermarks                      watermarks
//	idleness                        idleness
//	state TTL                       state-ttl
//	sources that are read again     retention, lookup
//	non-deterministic functions     functions
//
// Restart, batches and parallelism come on top.
//
// causesTold are what the articles say of them. Open are the causes under which the final table differs in some replay.
var causesTold = []struct {
	says      string
	strategy  string
	params    string
	differ    bool // copies have another price
	functions bool // the query adds the time and a lookup
	again     bool // delivery is at least once, else exactly once
	open      string
}{
	{says: "what uses neither time nor TTL is open to its source alone", strategy: "select-distinct", open: "retention"},
	{says: "and stays so where copies differ", strategy: "select-distinct", differ: true, open: "retention"},
	{says: "a key is the same key whichever row brings it", strategy: "select-distinct-key", differ: true,
		open: "retention"},
	{says: "with identical duplicates the order of arrival does not matter", strategy: "proctime-asc", open: "retention"},
	{says: "with others it does", strategy: "proctime-asc", differ: true, open: "interleaving catch-up restart retention"},
	{says: "any solution is non-deterministic if state TTL is used", strategy: "proctime-asc", params: "ttl: 10m",
		open: "state-ttl retention"},
	{says: "be it ordered by a column that is no time", strategy: "nontime", params: "order_by: price asc; ttl: 10m",
		open: "state-ttl retention"},
	{says: "where watermarks are used, late events are dropped", strategy: "rowtime-asc",
		open: "interleaving catch-up watermarks idleness restart retention"},
	{says: "a column from a function makes identical duplicates differ", strategy: "proctime-asc", functions: true,
		open: "interleaving catch-up restart retention lookup functions"},
	{says: "and is in the key of a whole-row DISTINCT", strategy: "select-distinct", functions: true,
		open: "retention lookup functions"},
	{says: "a result that leaves it out is closed to it", strategy: "select-distinct-key", functions: true,
		open: "retention"},
	{says: "a restart writes again what had gone out, unless delivery is exactly once", strategy: "select-distinct",
		again: true, open: "restart retention"},
}

func TestClaimsOfDeterminism(t *testing.T) {
	for _, c := range causesTold {
		s := matrixOf(t, map[bool]int{true: 1}[c.differ])
		if c.functions {
			add(s, stream.Now, stream.Lookup)
		}
		if !c.again {
			s.Job.Checkpoint.Delivery = "exactly-once"
		}
		params := map[string]string{}
		for _, p := range strings.Split(c.params, "; ") {
			if name, value, ok := strings.Cut(p, ": "); ok {
				params[name] = value
			}
		}
		strategy, _ := strategies.Find(c.strategy)
		args, faults := strategy.Resolve(params, s.Workload.Schema)
		if faults != nil {
			t.Fatal(c.strategy, faults)
		}
		s.Strategies = []scenarios.Entry{{ID: c.strategy, Strategy: strategy, Args: args}}
		var open []string
		for _, d := range run(t, s, lab.Options{Causes: scenarios.Causes}).Strategies[0].Determinism {
			if d.SameTable < d.Replays {
				open = append(open, d.Cause)
			}
		}
		if got := strings.Join(open, " "); got != c.open {
			t.Errorf("%s: %s {%s} is open to %s, want %s", c.says, c.strategy, c.params, got, c.open)
		}
	}
}

// Replays that run at the same time share nothing: the race detector listens, and the bytes are those of one after the
// other.
func TestConcurrentReplays(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := matrixOf(t, 1)
	add(s, stream.UUID)
	for _, name := range []string{"rowtime-asc", "nontime", "drop-duplicates-within-watermark"} {
		s.Strategies = append(s.Strategies, withTTL(t, name, s.Workload.Schema))
	}
	s.Job.State = "pebble"
	options := lab.Options{Causes: scenarios.Causes, Replays: 2, SpillAt: 100,
		OpenState: func() (sim.Cold, error) { return pebble.Open("") }}
	if testing.Short() { // as under the race detector
		options.Causes, options.Replays = []string{"interleaving", "restart", "batches", "parallelism"}, 1
	}
	one := marshalled(t, run(t, s, options))
	runtime.GOMAXPROCS(4)
	sameText(t, "on four processors", marshalled(t, run(t, s, options)), one)
	options.AtOnce = 1
	sameText(t, "one replay at a time", marshalled(t, run(t, s, options)), one)
}

// matrix is what is the same under which cause, of two streams of 20 minutes in three partitions. A copy comes at most
// 3 minutes after its original, in another partition; a TTL is 10 minutes. What partition 1 has from 5m to 7m comes at
// 7m. The source keeps rows for 15 minutes. In the first stream all copies are exact, in the second one each has
// another price. In the third one they are exact, and the query adds the time and what a lookup answers.
//
//	table     the final table differs in some replay
//	changes   the table is the same, but not the multiset of changes
//	order     the changes are the same, but not the order of those of some key
//	same      all is the same in all replays
//	-         by construction: the strategy cannot be open to the cause
const matrix = `
exact copies                      interleaving  catch-up  watermarks  idleness  state-ttl  restart  retention  lookup  functions  batches  parallelism
anti-join-backfill                same          same      -           -         -          same     table      -       -          same     -
append-batch-sink                 same          same      -           -         -          same     table      -       -          same     -
audit                             same          same      -           -         -          same     table      -       -          same     -
changelog-normalize               same          same      -           -         same       table    table      -       -          -        -
drop-duplicates                   same          same      -           -         -          same     table      -       -          same     -
drop-duplicates-within-watermark  same          same      -           -         -          same     table      -       -          same     -
flat-map-groups-with-state        same          same      -           -         -          same     table      -       -          same     -
group-by-min                      same          same      -           -         table      table    table      -       -          -        -
idempotent-batch-sink             same          same      -           -         -          same     table      -       -          same     -
keyed-process                     same          same      -           -         table      table    table      -       -          -        -
late-dlq                          table         table     table       table     -          table    table      -       -          table    table
latest-wins                       same          same      -           -         -          same     table      -       -          same     -
merge-insert-only                 table         table     -           -         -          table    table      -       -          table    -
merge-upsert-latest               same          same      -           -         -          same     table      -       -          same     -
nontime                           same          same      -           -         table      table    table      -       -          same     same
nontime-to-changelog              same          same      -           -         table      table    table      -       -          same     same
pass-through                      same          same      -           -         -          table    table      -       -          -        -
pk-not-enforced                   same          same      -           -         -          table    table      -       -          -        -
proctime-asc                      same          same      -           -         table      table    table      -       -          -        -
proctime-desc                     same          same      -           -         table      table    table      -       -          -        -
ptf                               same          same      -           -         table      table    table      -       -          -        -
rowtime-asc                       table         table     table       table     same       table    table      -       -          -        same
rowtime-desc                      same          same      -           -         table      table    table      -       -          -        -
select-distinct                   same          same      -           -         table      table    table      -       -          -        -
select-distinct-key               same          same      -           -         table      table    table      -       -          -        -
tiered                            same          same      -           -         -          same     table      -       -          same     -
transform-with-state              same          same      -           -         table      same     table      -       -          same     -
tumble-agg                        table         table     same        table     -          table    table      -       -          table    same
window-dedup                      table         table     same        table     -          table    table      -       -          -        same
window-topn                       table         table     same        table     -          table    table      -       -          -        same

copies that differ                interleaving  catch-up  watermarks  idleness  state-ttl  restart  retention  lookup  functions  batches  parallelism
anti-join-backfill                table         table     -           -         -          same     table      -       -          same     -
append-batch-sink                 same          same      -           -         -          same     table      -       -          same     -
audit                             same          same      -           -         -          same     table      -       -          same     -
changelog-normalize               same          same      -           -         same       table    table      -       -          -        -
drop-duplicates                   table         table     -           -         -          same     table      -       -          same     -
drop-duplicates-within-watermark  table         table     -           -         -          same     table      -       -          same     -
flat-map-groups-with-state        table         table     -           -         -          same     table      -       -          same     -
group-by-min                      changes       changes   -           -         table      table    table      -       -          -        -
idempotent-batch-sink             same          same      -           -         -          same     table      -       -          same     -
keyed-process                     table         table     -           -         table      table    table      -       -          -        -
late-dlq                          table         table     table       table     -          table    table      -       -          table    table
latest-wins                       table         table     -           -         -          same     table      -       -          same     -
merge-insert-only                 table         table     -           -         -          table    table      -       -          table    -
merge-upsert-latest               table         table     -           -         -          same     table      -       -          same     -
nontime                           table         table     -           -         table      table    table      -       -          same     same
nontime-to-changelog              table         table     -           -         table      table    table      -       -          same     same
pass-through                      same          same      -           -         -          table    table      -       -          -        -
pk-not-enforced                   same          same      -           -         -          table    table      -       -          -        -
proctime-asc                      table         table     -           -         table      table    table      -       -          -        -
proctime-desc                     table         table     -           -         table      table    table      -       -          -        -
ptf                               table         table     -           -         table      table    table      -       -          -        -
rowtime-asc                       table         table     table       table     same       table    table      -       -          -        same
rowtime-desc                      table         table     -           -         table      table    table      -       -          -        -
select-distinct                   same          same      -           -         same       table    table      -       -          -        -
select-distinct-key               same          same      -           -         table      table    table      -       -          -        -
tiered                            table         table     -           -         -          same     table      -       -          same     -
transform-with-state              table         table     -           -         table      same     table      -       -          same     -
tumble-agg                        table         table     table       table     -          table    table      -       -          table    table
window-dedup                      table         table     same        table     -          table    table      -       -          -        same
window-topn                       table         table     same        table     -          table    table      -       -          -        same

exact copies, with functions      interleaving  catch-up  watermarks  idleness  state-ttl  restart  retention  lookup  functions  batches  parallelism
anti-join-backfill                table         table     -           -         -          same     table      table   table      same     -
append-batch-sink                 same          same      -           -         -          same     table      table   table      same     -
audit                             same          same      -           -         -          same     table      table   table      same     -
changelog-normalize               same          same      -           -         same       table    table      table   table      -        -
drop-duplicates                   table         table     -           -         -          same     table      table   table      same     -
drop-duplicates-within-watermark  table         table     -           -         -          same     table      table   table      same     -
flat-map-groups-with-state        table         table     -           -         -          same     table      table   table      same     -
group-by-min                      same          same      -           -         table      table    table      -       -          -        -
idempotent-batch-sink             same          same      -           -         -          same     table      table   table      same     -
keyed-process                     table         table     -           -         table      table    table      table   table      -        -
late-dlq                          table         table     table       table     -          table    table      table   table      table    table
latest-wins                       table         table     -           -         -          same     table      table   table      same     -
merge-insert-only                 table         table     -           -         -          table    table      table   table      table    -
merge-upsert-latest               table         table     -           -         -          same     table      table   table      same     -
nontime                           table         table     -           -         table      table    table      table   table      same     same
nontime-to-changelog              table         table     -           -         table      table    table      table   table      same     same
pass-through                      same          same      -           -         -          table    table      table   table      -        -
pk-not-enforced                   same          same      -           -         -          table    table      table   table      -        -
proctime-asc                      table         table     -           -         table      table    table      table   table      -        -
proctime-desc                     table         table     -           -         table      table    table      table   table      -        -
ptf                               table         table     -           -         table      table    table      table   table      -        -
rowtime-asc                       table         table     table       table     same       table    table      table   table      -        same
rowtime-desc                      table         table     -           -         table      table    table      table   table      -        -
select-distinct                   same          same      -           -         same       table    table      table   table      -        -
select-distinct-key               same          same      -           -         table      table    table      -       -          -        -
tiered                            table         table     -           -         -          same     table      table   table      same     -
transform-with-state              table         table     -           -         table      same     table      table   table      same     -
tumble-agg                        table         table     table       table     -          table    table      table   table      table    table
window-dedup                      table         table     same        table     -          table    table      table   table      -        same
window-topn                       table         table     same        table     -          table    table      table   table      -        same
`

const matrixScenario = `
scenario: matrix
workload:
  trace: matrix.csv
  columns: {key: id, event_time: ts, arrival: _arrival, partition: _partition, event: _event}
job:
  parallelism: 2
  watermark: {delay: 2s, idle_after: 20s}
  checkpoint: {interval: 30s}
  retention: 15m
strategies: [pass-through]
`

// matrixOf makes the scenario. The price of a copy is that much higher.
func matrixOf(t *testing.T, raise int) *scenarios.Scenario {
	var rows strings.Builder
	rows.WriteString("id,ts,price,_arrival,_partition,_event\n")
	random := rand.New(rand.NewPCG(1, 2))
	for id := range 2400 {
		created, price, partition := 1_767_225_600_000+500*id, 10+random.IntN(90), random.IntN(3)
		send := func(at, price, partition int) {
			if since := at - 1_767_225_600_000; partition == 1 && since > 300_000 && since < 420_000 {
				at += 420_000 - since
			}
			fmt.Fprintf(&rows, "%d,%d,%d,%d,%d,%d\n", id, created, price, at, partition, id)
		}
		at := created + random.IntN(4000)
		send(at, price, partition)
		if random.IntN(5) == 0 {
			send(at+1+random.IntN(180_000)>>random.IntN(8), price+raise, (partition+1)%3)
		}
	}
	s, err := scenarios.Load("matrix.yaml", []byte(matrixScenario),
		func(paths []string, spec gen.TraceSpec) (*gen.Trace, error) {
			return gen.ReadTrace(paths[0], strings.NewReader(rows.String()), spec)
		})
	if err != nil {
		t.Fatal(err)
	}
	s.Strategies = nil
	return s
}

// TestMatrix states which strategy is open to which cause.
func TestMatrix(t *testing.T) {
	var got strings.Builder
	for i, about := range []string{"exact copies", "copies that differ", "exact copies, with functions"} {
		scenario := matrixOf(t, i%2)
		if i == 2 {
			add(scenario, stream.Now, stream.Lookup)
		}
		for _, name := range strategies.Names() {
			scenario.Strategies = append(scenario.Strategies, withTTL(t, name, scenario.Workload.Schema))
		}
		r := run(t, scenario, lab.Options{Causes: scenarios.Causes})
		fmt.Fprintf(&got, "\n%-34s%s\n", about, columns(scenarios.Causes))
		for i := range r.Strategies {
			if s := &r.Strategies[i]; s.Refused == "" {
				fmt.Fprintf(&got, "%-34s%s\n", s.ID, columns(cells(s)))
			}
		}
	}
	sameText(t, "matrix", got.String(), matrix)
	if got.String() != matrix {
		t.Logf("the whole matrix is now:%s", got.String())
	}
}

// add lets the query add a column by each function.
func add(s *scenarios.Scenario, functions ...stream.Function) {
	for _, f := range functions {
		c := gen.AddedColumn("by_"+f.String(), f)
		s.Job.Adds = append(s.Job.Adds, c)
		s.Workload.Schema.Columns = append(slices.Clip(s.Workload.Schema.Columns), c)
	}
}

func withTTL(t *testing.T, name string, schema stream.Schema) scenarios.Entry {
	strategy, err := strategies.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]string{}
	for _, p := range strategy.Params {
		switch {
		case p.Name == "ttl", p.Name == "timer":
			params[p.Name] = "10m"
		case p.Kind == strategies.Order && p.Default == "":
			params[p.Name] = "price asc"
		case p.Kind == strategies.Column && p.Default == "":
			params[p.Name] = "price"
		}
	}
	args, faults := strategy.Resolve(params, schema)
	if faults != nil {
		t.Fatal(name, faults)
	}
	return scenarios.Entry{ID: name, Strategy: strategy, Args: args}
}

func cells(s *results.Strategy) []string {
	var cells []string
	for _, d := range s.Determinism {
		cell := "same"
		switch {
		case d.Replays == 0:
			cell = "-"
		case d.SameTable < d.Replays:
			cell = "table"
		case d.SameChanges < d.Replays:
			cell = "changes"
		case d.SameOrder < d.Replays:
			cell = "order"
		}
		cells = append(cells, cell)
	}
	return cells
}

func columns(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		fmt.Fprintf(&b, "%-*s", len(scenarios.Causes[i])+2, c)
	}
	return strings.TrimRight(b.String(), " ")
}

// A cause that a strategy cannot be open to changes nothing, whatever the rows and the job.
func TestByConstruction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyScenario(t)
		if rapid.Bool().Draw(t, "mini-batch") {
			s.Job.MiniBatch = strategies.MiniBatch{Latency: 2000, Size: 5}
		}
		add(s, rapid.SliceOfNDistinct(rapid.SampledFrom([]stream.Function{stream.Now, stream.UUID, stream.Rand, stream.Lookup}),
			0, 2, rapid.ID).Draw(t, "adds")...)
		cause := rapid.SampledFrom(scenarios.Causes).Draw(t, "cause")
		r, err := lab.Run(context.Background(), s, lab.ReplayClosed(lab.Options{
			Causes: []string{cause}, Replays: rapid.IntRange(1, 3).Draw(t, "replays"), SpillAt: 20,
			OpenState: func() (sim.Cold, error) { return pebble.Open("") },
		}))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			for _, d := range s.Determinism {
				if d.ByConstruction != "" && (d.Replays == 0 || d.SameTable+d.SameChanges+d.SameOrder < 3*d.Replays) {
					t.Errorf("%s cannot be open to %s, as %s; but the table is the same in %d of %d replays, the order in %d: %s",
						s.ID, d.Cause, d.ByConstruction, d.SameTable, d.Replays, d.SameOrder, d.Example)
				}
			}
		}
	})
}

// Every difference is told twice: what became of the key in the run, and in the replay.
func TestDifferencesAreTold(t *testing.T) {
	s := matrixOf(t, 0)
	s.Strategies = []scenarios.Entry{withTTL(t, "rowtime-asc", s.Workload.Schema)}
	told := 0
	for _, d := range run(t, s, lab.Options{Causes: scenarios.Causes}).Strategies[0].Determinism {
		if (d.Example != "") != (d.SameOrder < d.Replays) || (d.Example != "") != (len(d.Stories) == 2) {
			t.Errorf("%+v", d)
			continue
		}
		if d.Example == "" {
			continue
		}
		told++
		emits := func(s results.Story) (out []string) {
			for _, step := range s.Steps {
				if step.What == results.Emits {
					out = append(out, fmt.Sprint(step.Row))
				}
			}
			return out
		}
		if before, after := emits(d.Stories[0]), emits(d.Stories[1]); slices.Equal(before, after) {
			t.Errorf("%s: rows %v go out in the run, and the same in the replay that differs: %s", d.Cause, before, d.Example)
		}
	}
	if told < 4 {
		t.Errorf("%d causes make a difference", told)
	}
}
