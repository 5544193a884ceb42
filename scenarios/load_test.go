package scenarios_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
)

var update = flag.Bool("update", false, "rewrite testdata/faults.txt")

// base is a scenario without faults. The tests break it.
const base = `scenario: orders
about: a few orders
seed: 42
workload:
  duration: 8h
  rate: 10/s
  fields:
    order_id: {uuid: true}
    price:    {decimal: [2.00, 500.00]}
    customer: {faker: "{firstname}"}
  key: order_id
  event_time: {field: created_at}
  partitions: {count: 2, by: order_id}
  transport: {lognormal: {p50: 40ms, p99.9: 8s}, cap: 5m}
  silent: [{partition: 0, from: 1h, for: 10m}]
  outage: [{partition: 1, from: 3h, for: 10m, flush: 500/s}]
  duplicates:
    - {origin: copy, where: "price < 100", delay: 0s}
    - {origin: producer-retry, rate: 0.4%, delay: {uniform: [2h, 3h]}}
job:
  parallelism: 2
  watermark: {delay: 5s, interval: 200ms, idle_after: 1m}
  checkpoint: {interval: 10s, delivery: exactly-once}
  sink: retract
strategies:
  - pass-through
  - tumble-agg: {size: 1m}
  - nontime: {id: by-price, order_by: price asc, ttl: 2h}
require:
  residual: <= 0.1%
  lost: <= 0
  append_only: true
  latency_ms.wait.p99: <= 1s
  state.class: at most time-bounded
  same_under: [interleaving, catch-up]
`

// broken are scenarios with faults: edits of base, old and new text in turn, or whole files.
var broken = []struct {
	name  string
	edits []string
	whole string
}{
	{name: "one fault in every section", edits: []string{
		"seed: 42", "sede: 42",
		"rate: 10/s", "rate: fast",
		"sink: retract", "sink: retracts",
		"- pass-through", "- pass-trough",
		"lost: <= 0", "losst: <= 0",
	}},
	{name: "expectations", edits: []string{
		"require:\n", "expect:\n  pass-trough: {leaked: 0}\n  by-price:\n    leakd: 0\n    lost: all\n" +
			"    residual: \"< much\"\n    latency_ms.wait.p99: 3\n    verdict: passed\n  tumble-agg:\n" +
			"    verdict: {lots: pass, append_only: maybe}\n  pass-through: none\nrequire:\n",
	}},
	{name: "a verdict without a requirement", whole: "scenario: x\nworkload: {duration: 1m, rate: 1/s, " +
		"events: order}\nstrategies: [ptf]\nexpect: {ptf: {verdict: pass}}\n"},
	{name: "a restart after the stream", edits: []string{"  sink: retract\n", "  sink: retract\n  spark: {restart: 8h}\n"}},
	{name: "a migration after the stream", edits: []string{
		"  sink: retract\n", "  sink: retract\n  spark: {migrate: {at: 9d, overlap: 1h}}\n",
	}},
	{name: "sections missing", whole: "about: nothing\n"},
	{name: "workload empty", whole: "scenario: x\nworkload:\nstrategies: [ptf]\n"},
	{name: "parts of the workload missing", edits: []string{
		"  duration: 8h\n", "", "  key: order_id\n", "", "{field: created_at}", "{}",
		"partition: 1, from: 3h, ", "", "{origin: copy, ", "{",
	}},
	{name: "unknown fields", edits: []string{
		"duration: 8h", "duraton: 8h", "interval: 200ms", "intervall: 200ms", "flush: 500/s", "flsh: 500/s",
		"cap: 5m", "cop: 5m", "{uuid: true}", "{uid: true}", "delay: 0s", "delays: 0s",
	}},
	{name: "durations", edits: []string{
		"duration: 8h", "duration: 8", "delay: 5s", "delay: -5s", "interval: 10s", "interval: 10 s",
		"idle_after: 1m", "idle_after: 1y", "from: 1h", "from: 31000d", "interval: 200ms", "interval: 0s",
	}},
	{name: "wrong types", edits: []string{
		"seed: 42", "seed: [42]", "rate: 10/s", "rate: {per: s}", "parallelism: 2", "parallelism: two",
		"key: order_id", "key: {order_id: true}", "transport: {lognormal: {p50: 40ms, p99.9: 8s}, cap: 5m}",
		"transport: [1s]",
		"append_only: true", "append_only: yes", "{size: 1m}", "1m", "sink: retract", "sink:",
		"same_under: [interleaving, catch-up]", "same_under: {interleaving: 1}",
	}},
	{name: "quoted numbers", edits: []string{"seed: 42", `seed: "42"`, "{uuid: true}", `{uuid: "true"}`}},
	{name: "lists for mappings", edits: []string{
		"job:\n  parallelism: 2\n", "job:\n  - parallelism: 2\n",
		"  watermark: {delay: 5s, interval: 200ms, idle_after: 1m}\n", "",
		"  checkpoint: {interval: 10s, delivery: exactly-once}\n", "", "  sink: retract\n", "",
		"event_time: {field: created_at}", "event_time: [created_at]",
	}},
	{name: "numbers out of range", edits: []string{
		"seed: 42", "seed: -1", "rate: 10/s", "rate: 0/s", "count: 2", "count: 65536", "parallelism: 2",
		"parallelism: 129",
		"rate: 0.4%", "rate: 101%", "flush: 500/s", "flush: .nan", "[2.00, 500.00]", "[500.00, 2.00]",
	}},
	{name: "not numbers", edits: []string{
		"rate: 10/s", "rate: .inf", "rate: 0.4%", "rate: nan", "[2.00, 500.00]", "[2.005, 99999999999999999999]",
		"[2h, 3h]", "[2h]",
	}},
	{name: "too many events", edits: []string{
		"rate: 10/s", "rate: 1_000_000/s", "partition: 1, from", "partition: 0, from",
	}},
	{name: "the generator's own checks", edits: []string{
		"flush: 500/s", "flush: 1/s", "partition: 0", "partition: 7", "{firstname}", "{fristname}",
	}},
	{name: "columns", edits: []string{
		"key: order_id", "key: [order_id, customr]", "by: order_id", "by: orderid", `"price < 100"`, `"prize < 100"`,
		"order_by: price asc", "order_by: prices asc", "delay: 0s", "delay: 0s, change: [pric]",
	}},
	{name: "column declared twice over", edits: []string{
		"price:    {decimal: [2.00, 500.00]}", "price:    {decimal: [2.00, 500.00], int: [1, 2]}",
		"customer: {faker: \"{firstname}\"}", "customer: {uuid: false}", "field: created_at", "field: created at",
	}},
	{name: "no column known", edits: []string{
		"  fields:\n    order_id: {uuid: true}\n    price:    {decimal: [2.00, 500.00]}\n" +
			"    customer: {faker: \"{firstname}\"}\n",
		"",
	}},
	{name: "conditions", edits: []string{
		`"price < 100"`, `"price under 100"`, "producer-retry,", `producer-retry, where: "customer < 5",`,
	}},
	{name: "condition on a finer number", edits: []string{`"price < 100"`, `"price < 99.995"`}},
	{name: "distributions", edits: []string{
		"{p50: 40ms, p99.9: 8s}", "{p50: 40s, p99.9: 8s}", "{uniform: [2h, 3h]}", "{lognormal: {q50: 1s, p0: 2s}}",
		"delay: 0s", "delay: {cap: 1h}",
	}},
	{name: "distribution with one quantile", edits: []string{"{p50: 40ms, p99.9: 8s}", "{p50: 40ms}"}},
	{name: "ready-made origins and copies", edits: []string{
		"{origin: copy, where: \"price < 100\", delay: 0s}", "{origin: backfill-flood, at: 1h, range: [0s, 2h], rate: 2}",
		"{origin: producer-retry, rate: 0.4%, delay: {uniform: [2h, 3h]}}",
		"{origin: dual-capture, copies: {geometric: {}}, new_id: maybe, partition: elsewhere, offset: old, speed: 5}",
		"{uuid: true}", "{uuid: true, reuse: {rate: 60%, aftr: 1h}}", "{faker: \"{firstname}\"}", "{retry: false}",
	}},
	{name: "no number of copies", edits: []string{
		"delay: 0s", "delay: 0s, copies: 0", "rate: 0.4%", "rate: 0.4%, copies: {zipf: {cap: 9}, geometric: {mean: 2}}",
	}},
	{name: "too many copies", edits: []string{
		"delay: 0s", "delay: 0s, copies: 16_000_000, partition: other",
		"rate: 0.4%", "rate: 0.4%, copies: {zipf: {cap: 16000000}}",
		"count: 2", "count: 1", "partition: 1, from", "partition: 0, from",
	}},
	{name: "origin", edits: []string{
		"origin: copy", "origin: original", "origin: producer-retry", "origin: Producer Retry",
	}},
	{name: "nearly a ready-made origin", edits: []string{
		`origin: copy, where: "price < 100", delay: 0s`, `origin: producer-rety, where: "price < 100"`,
		"origin: producer-retry", "origin: dual-captures",
	}},
	{name: "dates", edits: []string{"  duration: 8h", "  start: 2026-02-30T00:00Z\n  duration: 8h"}},
	{name: "dates before the epoch", edits: []string{"  duration: 8h", "  start: 1969-12-31\n  duration: 8h"}},
	{name: "choices", edits: []string{
		"  sink: retract", "  sink: apend\n  state: peble\n  flink: 2.4", "exactly-once", "exactly-onec",
		"delay: 5s", "delay: 5s, per: partitions",
	}},
	{name: "exactly-once without checkpoints", edits: []string{"interval: 10s, ", ""}},
	{name: "mini-batch", edits: []string{
		"  sink: retract", "  mini_batch: {latency: 0s}\n  catch_up_rate: 5\n  skew: 0",
	}},
	{name: "load", edits: []string{"rate: 10/s", "rate: 10/s\n  load: {steps: [{from: 1h, times: 0}, {from: x}]}"}},
	{name: "load of two forms", edits: []string{"rate: 10/s", "rate: 10/s\n  load: {sine: {period: 1ms, amplitude: 0%, " +
		"peak: 1h}, burst: {every: 1h, for: 1h, times: 10000}}"}},
	{name: "fields", edits: []string{
		"price:    {decimal: [2.00, 500.00]}", "price:    {decimal: [2.00, 500.00], nulls: 101%}\n" +
			"    a: {sequence: x}\n    b: {zipf: {s: -1}}\n    c: {choice: {red: 1, green: few}}\n    d: {text: 0}\n" +
			"    e: {timestamp: now}\n    f: {nulls: 5%}\n    g: {zipf: {n: 0, s: 11}}\n    h: {choice: {red: 0}}\n" +
			"    i: {choice: {}}\n    j: {choice: red}",
		"key: order_id", "key: i", "{field: created_at}", "{field: j}",
	}},
	{name: "sources", edits: []string{
		"count: 2, by: order_id}", "count: 2, share: [60%, x]}\n" +
			"  slow: [{partition: 0, delay: 5, for: 0s}, {partition: 1}]\n" +
			"  finished: [{partition: 1}, {partition: -1, at: 1h}]\n" +
			"  clock: [{partition: 0, skew: --5s, drift: 50}, {partition: 1}, {partition: 1, skew: 5y, drift: --1ppm}]",
		"{field: created_at}", "{field: created_at, resolution: 0s, nulls: 200%}",
		"order_id: {uuid: true}", "order_id: {uuid: true, hot: {share: 0.5}}",
		"customer: {", "customer: {hot: {share: 5, keys: 0}, ",
		"  sink: retract", "  sink: retract\n  retention: 0s",
	}},
	{name: "columns that the query adds", edits: []string{
		"  sink: retract", "  sink: retract\n  adds:\n    - {column: price, function: now}\n" +
			"    - {column: a b, function: uid}\n    - {column: seen_at, function: now}\n" +
			"    - {column: seen_at, function: rand}\n    - {name: x}\n    - uuid",
		"order_by: price asc", "order_by: seen_att asc",
	}},
	{name: "columns that the query adds to changes", edits: []string{
		"  sink: retract", "  sink: retract\n  input: changelog\n  adds: [{column: seen_at, function: now}]",
	}},
	{name: "sources, the generator's own checks", edits: []string{
		"count: 2, by: order_id}", "count: 2, share: [60%, 30%]}\n" +
			"  slow: [{partition: 2, delay: 5s}]\n" +
			"  finished: [{partition: 0, at: 8h}, {partition: 0, at: 1h}]\n" +
			"  clock: [{partition: 0, skew: 5s}, {partition: 0, drift: 20000ppm}]",
		"price:    {decimal: [2.00, 500.00]}", "price:    {sequence: 1, hot: {share: 0, keys: 1}}",
	}},
	{name: "number of shares", edits: []string{"count: 2, by: order_id}", "count: 3, share: 100%}"}},
	{name: "unknown kind of event", whole: "scenario: x\nworkload: {duration: 1h, rate: 1/s, events: orders}\n" +
		"strategies: [ptf, nontime: {order_by: price asc}]\n"},
	{name: "kind of event", whole: "scenario: x\nworkload: {duration: 1h, rate: 1/s, events: order, key: id}\n" +
		"strategies: [ptf, nontime: {order_by: prices asc}]\n"},
	{name: "delays", edits: []string{
		"{lognormal: {p50: 40ms, p99.9: 8s}, cap: 5m}", "{pareto: {min: 1s, q99: 5s}, exponential: {mean: 0s}}",
		"delay: 0s", "delay: {mixture: [{share: 50%, delay: {step: {then: 5}}}, {share: 0%}]}",
		"{uniform: [2h, 3h]}", "{quantiles: {p90: 3h, p50: 4h, p100: 5h}}",
	}},
	{name: "delays, one form each", edits: []string{
		"{lognormal: {p50: 40ms, p99.9: 8s}, cap: 5m}", "{pareto: {min: 1s, p99: 5s, alpha: 1}}",
		"delay: 0s", "delay: {mixture: [{share: 50%, delay: 1s}, {share: 40%, delay: {uniform: [1s, 2s]}}]}",
		"{uniform: [2h, 3h]}", "{cap: 3h}",
	}},
	{name: "strategy parameters", edits: []string{
		"tumble-agg: {size: 1m}", "tumble-agg: {sise: 1m, phases: three}",
		"nontime: {id: by-price, order_by: price asc, ttl: 2h}", "nontime: {id: By Price, ttl: -2h, cache: 0}",
		"- pass-through", "- pass-through: {ttl: 1h}",
	}},
	{name: "strategy against the schema", edits: []string{"order_by: price asc", "order_by: created_at desc"}},
	{name: "keys", edits: []string{
		"  key: order_id\n", "  key: order_id\n  keys: {by price: price, default: customer, who: [customer, custmer], " +
			"twice: {content: [price, price]}, none: [], hash: {contents: price}}\n  amount: customer\n",
		"- pass-through", "- pass-through: {key: hsah}", "{size: 1m}", "{size: 1m, key: by-price}",
	}},
	{name: "key of a strategy", edits: []string{
		"  key: order_id\n", "  key: order_id\n  keys: {by-price: price, who: {content: customer}}\n",
		"- pass-through", "- pass-through: {key: by-prize}\n  - select-distinct: {key: who}\n  - ptf: {key: [who]}",
		"order_by: price asc", "order_by: price asc, key: by-price",
		"lost: <= 0", "amount.error: <= 0.1%\n  amount.twice: 5\n  amount.errors: <= 1%",
	}},
	{name: "bound of a sum", edits: []string{
		"  key: order_id\n", "  key: order_id\n  amount: price\n",
		"lost: <= 0", "amount.error: 0.1%\n  amount.twice: <= -5\n  amount.gone: few",
	}},
	{name: "no keys", edits: []string{"  key: order_id\n", "  key: order_id\n  keys: {}\n  amount: prices\n"}},
	{name: "a column in the place of the content key", edits: []string{
		"customer: {faker", "dedup_key: {faker",
		"  key: order_id\n", "  key: order_id\n  keys: {who: {content: dedup_key}, plain: dedup_key}\n",
	}},
	{name: "strategy twice", edits: []string{"- pass-through", "- tumble-agg", "id: by-price", "id: tumble-agg"}},
	{name: "strategy not indented", edits: []string{
		"- tumble-agg: {size: 1m}", "- tumble-agg:\n    size: 1m\n  - 7\n  - [ptf]",
	}},
	{name: "order_by as a list", edits: []string{"order_by: price asc", "order_by: [price asc, {price: desc}]"}},
	{name: "no strategies", edits: []string{
		"strategies:\n  - pass-through\n  - tumble-agg: {size: 1m}\n" +
			"  - nontime: {id: by-price, order_by: price asc, ttl: 2h}\n",
		"strategies: []\n",
	}},
	{name: "spark", edits: []string{
		"sink: retract\n", "sink: retract\n  spark: {trigger: once, max_rows_per_trigger: -1, no_data_batches: maybe, " +
			"watermark_policy: mean, inputs: 0, cost: {batch: 1, rows_per_second: -1}, triggers: 1s}\n",
		"- pass-through", "- drop-duplicates: {columns: [order_id, prise], delay: x, window: 1}\n" +
			"  - drop-duplicates-within-watermark: {delay: none, columns: [price, price]}",
	}},
	{name: "failures", edits: []string{
		"sink: retract\n", "sink: retract\n  failures: [{kind: crsh, at: 1x}, {down: 1m}, {at: 1h, random: 2}, {at: 900h}, 7, " +
			"{at: 1h, for: 2m},\n    {kind: slow-checkpoint, at: 1h, down: 1m}, {kind: rewind, at: 1h}, {kind: sink, random: 0}, {att: 1h}]\n",
	}},
	{name: "columns after a restart that does not come", edits: []string{
		"- pass-through", "- drop-duplicates: {restart_columns: price}",
	}},
	{name: "a migration beside a restart", edits: []string{
		"sink: retract\n", "sink: retract\n  spark: {restart: 1h, migrate: {at: 2h}}\n",
	}},
	{name: "an overlap before the start", edits: []string{
		"sink: retract\n", "sink: retract\n  spark: {migrate: {at: 1h, overlap: 2h}}\n",
	}},
	{name: "columns of what reads the result", edits: []string{
		"\nrequire:", "\nafter: {window: {size: 1h, sum: order_id}, join: {on: prise, within: 0s}}\n\nrequire:",
	}},
	{name: "nothing reads the result", edits: []string{"\nrequire:", "\nafter: {}\n\nrequire:"}},
	{name: "spark without an end of a batch", edits: []string{
		"sink: retract\n", "sink: retract\n  spark: {trigger: 0s}\n",
	}},
	{name: "bounds", edits: []string{
		"residual: <= 0.1%", "residual: 0.1%", "lost: <= 0", "lost: <= 0.5", "append_only: true",
		"append_only: false",
		"wait.p99: <= 1s", "wait.p99: <= 1000\n  state.bytes_peak: <= 5 MB", "at most time-bounded",
		"at most time-bound",
		"[interleaving, catch-up]", "[interleaving, restarts]",
	}},
	{name: "metrics", edits: []string{
		"residual:", "residuals:", "latency_ms.wait.p99", "latency_ms.wait.p95", "lost:", "leaks_by_cause.tll:",
		"same_under", "same-under",
	}},
	{name: "bound not quoted", edits: []string{"lost: <= 0", "updates: > 0"}},
	{name: "fields twice", edits: []string{
		"duration: 8h", "duration: 8h\n  duration: 9h", "seed: 42", "seed: 42\nseed: 43",
	}},
	{name: "anchors, aliases, merge keys and tags", edits: []string{
		"key: order_id", "key: &k order_id", "by: order_id", "by: *k", "{uuid: true}", "{<<: *k, uuid: true}",
		"seed: 42", "seed: !!int 42",
	}},
	{name: "alias to itself", edits: []string{"key: order_id", "key: &k [*k]"}},
	{name: "two documents", whole: base + "---\n" + base},
	{name: "tabs", edits: []string{"  rate: 10/s", "\trate: 10/s"}},
	{name: "not closed", edits: []string{"{size: 1m}", "{size: 1m"}},
	{name: "empty", whole: ""},
	{name: "only a comment", whole: "# later\n"},
	{name: "a list", whole: "- scenario: x\n"},
	{name: "a word", whole: "orders\n"},
	{name: "not UTF-8", edits: []string{"a few orders", "a \xe9 few"}},
	{name: "too large", whole: "# " + strings.Repeat("x", 1<<16)},
	{name: "Windows line ends and a long line", whole: strings.ReplaceAll(strings.ReplaceAll(base,
		"sink: retract", "sink: "+strings.Repeat("retract", 40)), "\n", "\r\n")},
	{name: "byte order mark and wide characters", whole: "\uFEFF" + strings.ReplaceAll(base,
		"scenario: orders", "scenario: Bestellungen äöü # ä")},
	{name: "nested deeply", whole: strings.Repeat("[", 1<<15) + strings.Repeat("]", 1<<15)},
	{name: "trace that cannot be opened", whole: trace},
	{name: "trace and generator in one", whole: strings.ReplaceAll(trace, "{key: ", "{keys: ") + "  rate: 10/s\n"},
}

const trace = "scenario: x\nstrategies: [nontime: {order_by: frame asc}]\nworkload:\n  trace: frames.csv\n" +
	"  columns: {key: frame, event_time: timestamp}\n"

func TestFaults(t *testing.T) {
	var out strings.Builder
	for _, test := range broken {
		src := test.whole
		if len(test.edits) > 0 {
			src = base
		}
		for i := 0; i < len(test.edits); i += 2 {
			if !strings.Contains(src, test.edits[i]) {
				t.Fatalf("%s: nothing to edit: %q", test.name, test.edits[i])
			}
			src = strings.Replace(src, test.edits[i], test.edits[i+1], 1)
		}
		_, err := scenarios.Load("x.yaml", []byte(src), nil)
		var fault *scenarios.Error
		if !errors.As(err, &fault) || len(fault.Faults) == 0 {
			t.Errorf("%s: the error is %v", test.name, err)
			continue
		}
		fmt.Fprintf(&out, "== %s\n%v\n\n", test.name, err)
	}
	golden := filepath.Join("testdata", "faults.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wantTests, gotTests := strings.Split(string(want), "\n\n"), strings.Split(out.String(), "\n\n")
	for i := range max(len(wantTests), len(gotTests)) {
		var w, g string
		if i < len(wantTests) {
			w = wantTests[i]
		}
		if i < len(gotTests) {
			g = gotTests[i]
		}
		if w != g {
			t.Errorf("want\n%s\ngot\n%s", w, g)
		}
	}
}

func TestFaultsAreSortedAndPlaced(t *testing.T) {
	src := strings.NewReplacer("rate: 10/s", "rate: 0/s", "seed: 42", "seed: x", "lost:", "lots:").Replace(base)
	_, err := scenarios.Load("dir/x.yaml", []byte(src), nil)
	var fault *scenarios.Error
	if !errors.As(err, &fault) {
		t.Fatal(err)
	}
	var places []string
	for _, f := range fault.Faults {
		places = append(places, fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column))
	}
	if want := []string{"dir/x.yaml:3:7", "dir/x.yaml:6:9", "dir/x.yaml:31:3"}; !slices.Equal(places, want) {
		t.Errorf("faults at %v, want %v", places, want)
	}
}

func TestLoadSources(t *testing.T) {
	src := strings.NewReplacer(
		"count: 2, by: order_id}", "count: 2, by: order_id, share: [70%, 0.3]}\n"+
			"  slow: [{partition: 1, delay: {uniform: [1s, 5s]}, from: 1h, for: 10m}, {partition: 0, delay: 1s}]\n"+
			"  finished: [{partition: 1, at: 4h}]\n"+
			"  clock: [{partition: 0, skew: -30s, drift: 50ppm}, {partition: 1, drift: -0.5ppm}]",
		"{field: created_at}", "{field: created_at, resolution: 1s, nulls: 0.1%}",
		"decimal: [2.00, 500.00]", "decimal: [2.00, 500.00], hot: {share: 20%, keys: 3}",
		"  sink: retract", "  sink: retract\n  retention: 6h\n  adds: [{column: seen_at, function: now}, "+
			"{column: rate, function: lookup}]",
		"order_by: price asc", "order_by: \"seen_at asc, rate desc\"",
	).Replace(base)
	s, err := scenarios.Load("x.yaml", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.Workload.Spec
	for _, check := range []struct {
		what      string
		got, want any
	}{
		{"share", spec.PartitionShare, []float64{0.7, 0.3}},
		{"slow", spec.Slow, []gen.Slow{
			{Partition: 1, From: 3_600_000, For: 600_000, Delay: gen.Delay{Kind: gen.Uniform, Low: 1000, High: 5000}},
			{Partition: 0, Delay: gen.Delay{Low: 1000}},
		}},
		{"finished", spec.Finished, []gen.Finish{{Partition: 1, At: 14_400_000}}},
		{"clock", spec.Clock, []gen.Clock{{Partition: 0, Skew: -30_000, Drift: 50}, {Partition: 1, Drift: -0.5}}},
		{"event time", spec.EventTime, gen.EventTime{Field: "created_at", Resolution: 1000, Null: 0.001}},
		{"hot", *spec.Fields[1].Hot, gen.Hot{Share: 0.2, Keys: 3}},
		{"retention", s.Job.Retention, stream.Time(21_600_000)},
		{"adds", s.Job.Adds, []stream.Column{
			{Name: "seen_at", Type: stream.Timestamp, Function: stream.Now},
			{Name: "rate", Type: stream.Int, Function: stream.Lookup},
		}},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s is %+v, want %+v", check.what, check.got, check.want)
		}
	}
	repeat(t, s)
	var out strings.Builder
	if err := s.Inspect(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"    share: [70%, 30%]",
		"    - {partition: 1, delay: {uniform: [1s, 5s]}, from: 1h, for: 10m}",
		"    - {partition: 1, at: 4h}",
		"    - {partition: 0, skew: -30s, drift: 50ppm}",
		"    - {partition: 1, skew: 0s, drift: -0.5ppm}",
		"    resolution: 1s", "    nulls: 0.1%", "  retention: 6h",
		"    price: {decimal: [2.00, 500.00], hot: {share: 20%, keys: 3}}",
		"    - {column: seen_at, function: now}", "    - {column: rate, function: lookup}",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
}

func TestLoad(t *testing.T) {
	s, err := scenarios.Load("x.yaml", []byte(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := s.Workload.Spec
	for _, check := range []struct {
		what      string
		got, want any
	}{
		{"name", s.Name, "orders"},
		{"about", s.About, "a few orders"},
		{"seed", s.Seed, uint64(42)},
		{"start", spec.Start.String(), "2026-01-01T00:00:00.000Z"},
		{"duration", spec.Duration, stream.Time(8 * 3600 * 1000)},
		{"rate", spec.Rate, 10.0},
		{"price", *spec.Fields[1].Decimal, [2]int64{200, 50000}},
		{"where", *spec.Duplicates[0].Where, gen.Where{Field: "price", Op: "<", Value: 10000}},
		{"share of an original rule", spec.Duplicates[0].Rate, 1.0},
		{"share", spec.Duplicates[1].Rate, 0.004},
		{"transport", spec.Transport, gen.Delay{Kind: gen.Lognormal, Low: 40, High: 8000, P1: 0.5, P2: 0.999, Cap: 300_000}},
		{"delay", spec.Duplicates[1].Delay, gen.Delay{Kind: gen.Uniform, Low: 7_200_000, High: 10_800_000}},
		{"schema", fmt.Sprint(s.Workload.Schema), "{[{order_id 0 0 false } {price 2 2 false } {customer 0 0 false } {created_at 3 0 false }] [0] 3}"},
		{"flink", s.Job.Flink, strategies.Flink23},
		{"watermarks per", s.Job.Watermark.Per, "partition"},
		{"skew", s.Job.Skew, 10000},
		{"id", s.Strategies[1].ID, "tumble-agg"},
		{"own id", s.Strategies[2].ID, "by-price"},
		{"parameter", s.Strategies[2].Args.Duration("ttl"), stream.Time(7_200_000)},
		{"order", s.Strategies[2].Args.OrderBy()[0].Column, 1},
		{"requirements", len(s.Require), 6},
		{"share required", s.Require[0].Value, 0.001},
		{"latency required", s.Require[3].Value, 1000.0},
		{"class required", string(s.Require[4].Class), "time-bounded"},
		{"causes", s.Require[5].Bound, "interleaving, catch-up"},
	} {
		if !reflect.DeepEqual(check.got, check.want) {
			t.Errorf("%s is %v, want %v", check.what, check.got, check.want)
		}
	}
}

// TestDelays reads every form of a delay.
func TestDelays(t *testing.T) {
	for text, want := range map[string]gen.Delay{
		"5s":                                       {Low: 5000},
		"{uniform: [1s, 2s]}":                      {Kind: gen.Uniform, Low: 1000, High: 2000},
		"{exponential: {mean: 5s}}":                {Kind: gen.Exponential, Low: 5000},
		"{lognormal: {p99: 9s, p50: 1s}}":          {Kind: gen.Lognormal, Low: 1000, High: 9000, P1: 0.5, P2: 0.99},
		"{pareto: {min: 1s, p99: 1m}}":             {Kind: gen.Pareto, Low: 1000, High: 60_000, P2: 0.99},
		"{pareto: {min: 1s, alpha: 1.5}, cap: 1h}": {Kind: gen.Pareto, Low: 1000, Alpha: 1.5, Cap: 3_600_000},
		"{mixture: [{share: 90%, delay: 2m}, {share: 10%, delay: {uniform: [1h, 9h]}}]}": {
			Kind: gen.Mixture, Mixture: []gen.Part{
				{Share: 0.9, Delay: gen.Delay{Low: 120_000}},
				{Share: 0.1, Delay: gen.Delay{Kind: gen.Uniform, Low: 3_600_000, High: 9 * 3_600_000}},
			},
		},
		"{step: {at: 24h}}":           {Kind: gen.Step, Low: 86_400_000},
		"{step: {at: 24h, then: 1s}}": {Kind: gen.Step, Low: 86_400_000, Then: &gen.Delay{Low: 1000}},
		"{quantiles: {max: 1h, p50: 4s, min: 1s}}": {Kind: gen.Empirical, Quantiles: []gen.Quantile{
			{P: 0, At: 1000}, {P: 0.5, At: 4000}, {P: 1, At: 3_600_000}}},
	} {
		src := strings.Replace(base, "{lognormal: {p50: 40ms, p99.9: 8s}, cap: 5m}", text, 1)
		s, err := scenarios.Load("x.yaml", []byte(src), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := s.Workload.Spec.Transport; !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %+v, want %+v", text, got, want)
		}
	}
}

func TestExpect(t *testing.T) {
	src := base + `expect:
  tumble-agg:
    lost: 12
    latency_ms.wait.p99: <= 1m
    verdict: {residual: not applicable, lost: fail}
  pass-through: {verdict: fail, residual: "> 1%"}
`
	s, err := scenarios.Load("x.yaml", []byte(src), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range s.Expect {
		got = append(got, fmt.Sprintf("%d %s %s", e.Line-strings.Count(base, "\n"), e.Strategy, e))
	}
	want := []string{
		"3 tumble-agg lost == 12", "4 tumble-agg latency_ms.wait.p99 <= 1m",
		"5 tumble-agg verdict.residual: not applicable", "5 tumble-agg verdict.lost: fail",
		"6 pass-through verdict: fail", "6 pass-through residual > 1%",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	repeat(t, s)
}

func TestRequirementHolds(t *testing.T) {
	for _, test := range []struct {
		op                   string
		below, equal, beyond bool
	}{
		{"<", true, false, false}, {"<=", true, true, false}, {">", false, false, true}, {">=", false, true, true},
		{"==", false, true, false}, {"!=", true, false, true},
	} {
		r := scenarios.Requirement{Op: test.op, Value: 5}
		if r.Holds(4) != test.below || r.Holds(5) != test.equal || r.Holds(6) != test.beyond {
			t.Errorf("%s 5 holds for 4, 5, 6: %v, %v, %v", test.op, r.Holds(4), r.Holds(5), r.Holds(6))
		}
	}
}

// shipped reads the scenarios of this folder.
func shipped(t *testing.T) map[string]*scenarios.Scenario {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("scenarios are missing: %v, %v", files, err)
	}
	all := map[string]*scenarios.Scenario{}
	for _, file := range files {
		s, err := scenarios.Read(file)
		if err != nil {
			t.Errorf("\n%v", err)
			continue
		}
		all[file] = s
	}
	return all
}

func TestShipped(t *testing.T) {
	for file, s := range shipped(t) {
		if want := strings.TrimSuffix(file, ".yaml"); s.Name != want {
			t.Errorf("%s is named %s", file, s.Name)
		}
		if s.About == "" || len(s.Require) == 0 {
			t.Errorf("%s needs to say what it is about, and requirements", file)
		}
		if s.Workload.Spec == nil {
			continue
		}
		spec, perEvent := s.Workload.Spec, 1.0
		for _, d := range spec.Duplicates {
			perEvent += d.Rate * d.Copies.Mean()
		}
		plateau := slices.ContainsFunc(s.Require, func(r scenarios.Requirement) bool { return r.Name == scenarios.StateClass })
		if plateau && (spec.Duration < 150*60*1000 || spec.Rate*float64(spec.Duration)/1000*perEvent < 150_000) {
			t.Errorf("%s is too short to show a plateau of state", file)
		}
		w, err := gen.New(*s.Workload.Spec, s.Seed)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		} else if got, want := fmt.Sprint(s.Workload.Schema), fmt.Sprint(w.Schema()); got != want {
			t.Errorf("%s: the loader takes the schema for %s, the generator makes %s", file, got, want)
		}
	}
}

func TestReadNoFile(t *testing.T) {
	if _, err := scenarios.Read("testdata/none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

// A trace is opened once, beside the scenario, and what is wrong with its columns is a fault of the scenario.
func TestTrace(t *testing.T) {
	src := strings.Replace(trace, "timestamp}", "timestamp, partition: parttion}", 1)
	opened := ""
	_, err := scenarios.Load("dir/x.yaml", []byte(src), func(paths []string, spec gen.TraceSpec) (*gen.Trace, error) {
		opened = paths[0]
		return gen.ReadTrace(paths[0], strings.NewReader("timestamp,frame\n1.5,ab\n"), spec)
	})
	if opened != filepath.Join("dir", "frames.csv") {
		t.Errorf("opened %s", opened)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "dir/x.yaml:5:59: partition: there is no column") {
		t.Errorf("the error is %v", err)
	}
}

// Nothing may make the loader panic, hang or forget where a fault is; and what it accepts, Inspect repeats.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(trace))
	f.Add([]byte("a: &a [*a]\nb: {<<: *a}\n? [x]\n: !!y z\n"))
	f.Add([]byte("workload:\r\n\t- \xff"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := scenarios.Load("x.yaml", src, nil)
		if err == nil {
			repeat(t, s)
			return
		}
		var fault *scenarios.Error
		if !errors.As(err, &fault) || len(fault.Faults) == 0 {
			t.Fatalf("the error is %v", err)
		}
		for _, f := range fault.Faults {
			if f.Line < 1 || f.Column < 1 || f.Message == "" {
				t.Fatalf("a fault without a place or a message: %+v", f)
			}
		}
	})
}
