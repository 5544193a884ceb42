package scenarios_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/stream"
)

// fataler is what *testing.T and *rapid.T have in common here.
type fataler interface{ Fatalf(string, ...any) }

// repeat loads what Inspect writes: it must be the same scenario, and written the same way again.
func repeat(t fataler, s *scenarios.Scenario) {
	var first, second bytes.Buffer
	if err := s.Inspect(&first); err != nil {
		t.Fatalf("%v", err)
	}
	again, err := scenarios.Load(s.File, first.Bytes(), func([]string, gen.TraceSpec) (*gen.Trace, error) {
		return s.Workload.Trace.Rows, nil
	})
	if err != nil {
		t.Fatalf("Inspect wrote\n%s\nwhich is refused:\n%v", &first, err)
	}
	for _, scenario := range []*scenarios.Scenario{s, again} {
		for i := range scenario.Expect {
			scenario.Expect[i].Line = 0
		}
	}
	if !reflect.DeepEqual(s, again) {
		t.Fatalf("Inspect wrote\n%s\nwhich is\n%+v\n%+v\nand was\n%+v\n%+v", &first, again, again.Workload.Spec, s,
			s.Workload.Spec)
	}
	if err := again.Inspect(&second); err != nil || first.String() != second.String() {
		t.Fatalf("%v: Inspect wrote first\n%s\nthen\n%s", err, &first, &second)
	}
}

func TestInspectShipped(t *testing.T) {
	for _, s := range shipped(t) {
		repeat(t, s)
	}
}

// TestEventKinds loads a scenario with each ready-made kind of event, of which Inspect shows the fields.
func TestEventKinds(t *testing.T) {
	for kind, want := range map[string]string{
		"order":   "{[{order_id 0 0 false } {customer_id 1 0 false } {product 1 0 false } {quantity 1 0 false } {price 2 2 false } {created_at 3 0 false }] [0] 5}",
		"payment": "{[{payment_id 0 0 false } {account 1 0 false } {method 0 0 false } {amount 2 2 false } {sent_at 3 0 false } {paid_at 3 0 false }] [0] 5}",
		"clickstream, event_time: {field: ts, log_append: true}": "{[{event_id 0 0 false } {user_id 1 0 false } {page 1 0 false } " +
			"{action 0 0 false } {sent_at 3 0 false } {ts 3 0 false }] [0] 5}",
		"sensor, key: sensor_id": "{[{sensor_id 1 0 false } {reading 1 0 false } {temperature 2 2 false } {battery 1 0 true } {measured_at 3 0 false }] [0] 4}",
	} {
		src := "scenario: x\nworkload: {duration: 1m, rate: 10/s, events: " + kind + "}\nstrategies: [ptf]\n"
		s, err := scenarios.Load("x.yaml", []byte(src), nil)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := fmt.Sprint(s.Workload.Schema); got != want {
			t.Errorf("%s has the columns %s, want %s", kind, got, want)
		}
		repeat(t, s)
		if _, err := gen.New(*s.Workload.Spec, 1); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestInspectMarksDefaults(t *testing.T) {
	s, err := scenarios.Load("x.yaml", []byte(base), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := s.Inspect(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"    interval: 200ms                        # default", "  parallelism: 2", "    idle_after: 1m",
		"      phases: two                          # default", "      rate: 100%                           # default",
		"      where: price < 100.00", "      order_by: price asc", "  residual: <= 0.1%",
	} {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("no line %q in\n%s", line, &out)
		}
	}
}

func TestInspectRepeatsAnyScenario(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := scenarios.Load("x.yaml", []byte(drawScenario(t)), nil)
		if err != nil {
			t.Fatalf("the test drew a scenario with faults:\n%v", err)
		}
		repeat(t, s)
	})
}

// drawScenario draws a scenario without faults.
func drawScenario(t *rapid.T) string {
	d := &drawer{t: t}
	d.add("scenario: %s\n", rapid.StringMatching(`[a-z0-9][a-z0-9-]{0,8}`).Draw(t, "name"))
	d.maybe("about: %q\n", rapid.StringMatching(`[ -~äß\n\t]{0,30}[a-z#:>"'-]`).Draw(t, "about"))
	d.maybe("seed: %d\n", rapid.Uint64().Draw(t, "seed"))
	d.add("workload:\n  duration: %s\n  rate: %s\n", d.span(60_000), d.rate())
	d.maybe("  load: %s\n", d.pick("{steps: [{from: 0s, times: 2}, {from: 1h, times: 0.125}]}",
		"{sine: {period: 24h, amplitude: 33.3%, peak: 14h}}", "{sine: {period: 1d, amplitude: 1}}",
		"{burst: {every: 1h, for: 5m, times: 7.5}}"))
	d.maybe("  start: 2026-0%d-01T00:00Z\n", d.int(1, 9))
	d.add("  fields:\n    id: {uuid: true}\n    n: {int: [%d, %d]}\n", d.int(-9, 0), d.int(0, 9_000))
	d.add("    p: {decimal: [%d.%02d, 100.5]}\n    who: {faker: \"{firstname} #\"}\n", d.int(0, 99), d.int(0, 99))
	d.maybe("    seq: {sequence: %d, nulls: %s}\n", d.int(-9, 9), d.pick("5%", "0", "1", "0.123"))
	d.maybe("    rank: {zipf: {n: %d%s}%s}\n", d.int(1, 1_000_000), d.pick("", ", s: 1.2", ", s: 0"),
		d.pick("", ", hot: {share: 33.3%, keys: 7}", ", nulls: 0.5, hot: {keys: 1, share: 1}"))
	d.maybe("    color: {choice: %s}\n", d.pick("[red]", `[red, "null", "a: b"]`, "{red: 60%, green: 40%, \"b: 1\": 0.1}"))
	d.maybe("    fill: {text: %d}\n    sent_at: {timestamp: %s}\n", d.int(1, 65536), d.pick("sent", "created"))
	d.maybe("    try: {retry: true}\n    place: {position: true, nulls: 1%%}\n")
	d.maybe("    again: {uuid: true, reuse: {rate: %s, %s}}\n",
		d.pick("0.7%", "0.5"), d.pick("after: 1h", "after: {uniform: [1s, 1m]}", "constant: true", "constant: false"))
	d.add("  key: %s\n", d.pick("id", "[id]", "[id, n]"))
	d.add("  event_time: {field: %s, log_append: %s%s}\n", d.pick("ts", "created_at", `"null"`), d.pick("true", "false"),
		d.pick("", ", resolution: 1s", ", nulls: 0.1%", ", nulls: 1, resolution: 1h30m"))
	if d.pick("plain", "sources") == "sources" {
		d.add("  partitions: {count: 3, share: %s}\n", d.pick("[60%, 30%, 10%]", "[0.125, 0.375, 0.5]"))
		d.maybe("  slow:\n    - {partition: 0, delay: %s}\n    - {partition: 2, delay: 1s, from: %s, for: %s}\n", d.delay(),
			d.span(0), d.span(1))
		d.maybe("  finished: [{partition: %d, at: 1s}]\n", d.int(0, 2))
		d.maybe("  clock: [{partition: 0, skew: %s}, {partition: 2, drift: %sppm}, {partition: 1, skew: 0s, drift: 0ppm}]\n",
			d.pick("30s", "-1m30s", "-0s"), d.pick("50", "-0.5", "-0", "0.125"))
	} else {
		d.maybe("  partitions: {count: %d%s}\n", d.int(3, 65535), d.pick("", ", by: id", ", by: n"))
	}
	d.maybe("  transport: %s\n", d.delay())
	d.add("  duplicates:\n")
	for range d.int(1, 3) {
		d.add("    - {origin: %s, delay: %s", d.pick("copy", "retry", "connector-replay", "bot-constant-id"), d.delay())
		d.maybe(", where: \"%s\"", d.pick("n < 5", "p >= 1.5", "p != 7", "n == -3"))
		d.maybe(", rate: %s", d.pick("0.4%", "0", "1", "0.1234567890123", "33.3%", "0.07"))
		d.maybe(", copies: %s", d.pick("1", "3", "{geometric: {mean: 1.5}}", "{zipf: {cap: 1000}}",
			"{zipf: {s: 1.2, cap: 9}}"))
		d.maybe(", at: 20h, range: [0s, 10h], speed: 5000/s")
		d.maybe(", new_id: %s", d.pick("true", "false", "constant"))
		d.maybe(", offset: %s", d.pick("same", "new"))
		d.maybe(", partition: same")
		d.maybe(", restamp: %s", d.pick("true", "false"))
		d.maybe(", change: %s", d.pick("p", "[p, who]", "who"))
		d.add("}\n")
	}
	if rapid.Bool().Draw(t, "keys") {
		d.add("  keys:\n    a: %s\n    b: {content: %s}\n", d.pick("id", "[n, p]"), d.pick("p", "[who, n]"))
		d.maybe("  amount: %s\n", d.pick("n", "p"))
	}
	d.maybe("job:\n  retention: 90m\n  parallelism: %d\n  sink: %s\n  watermark: {delay: %s, idle_after: %s, per: %s}\n"+
		"  checkpoint: {interval: %s, delivery: %s}\n", d.int(1, 128), d.pick("append", "retract", "upsert"), d.span(0),
		d.span(0), d.pick("partition", "reader"), d.span(1), d.pick("at-least-once", "exactly-once"))
	if strings.Contains(d.String(), "\njob:\n") {
		d.maybe("  spark: {trigger: %s, max_rows_per_trigger: %d, no_data_batches: %s, watermark_policy: %s, inputs: %d,\n"+
			"    cost: {batch: %s, rows_per_second: %d}}\n", d.pick("1s", "1m", "available-now"),
			d.int(0, 9), d.pick("true", "false"), d.pick("min", "max"), d.int(1, 3), d.span(0), d.int(0, 99))
		d.maybe("  failures: [{random: %d, down: %s}, {kind: lost-checkpoint, random: 1}, {kind: slow-checkpoint, random: 2, "+
			"for: %s},\n    {kind: sink, random: 1, down: %s}, {kind: rewind, random: 1, by: %s}]\n", d.int(1, 9), d.span(0), d.span(1),
			d.span(0), d.span(1))
	}
	d.add("strategies:\n")
	for i := range d.int(1, 5) {
		d.add("  - %s: {id: s-%d}\n", d.pick(strategies.Names()...), i)
	}
	d.maybe("require:\n  residual: \"%s %s\"\n  latency_ms.wait.p99: <= %s\n  same_under: [catch-up]\n",
		d.pick("<", "<=", ">", ">=", "==", "!="), d.pick("0", "0.5%", "0.25"), d.span(0))
	text := d.String()
	for _, name := range []string{"nontime", "nontime-to-changelog", "window-topn"} {
		text = strings.ReplaceAll(text, "- "+name+": {", "- "+name+": {order_by: [p desc, n], ")
	}
	return strings.ReplaceAll(text, "- group-by-min: {", "- group-by-min: {column: p, ")
}

// drawer writes a scenario piece by piece.
type drawer struct {
	t *rapid.T
	strings.Builder
}

func (d *drawer) add(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawer) maybe(format string, args ...any) {
	if rapid.Bool().Draw(d.t, "there") {
		d.add(format, args...)
	}
}

func (d *drawer) int(low, high int) int { return rapid.IntRange(low, high).Draw(d.t, "int") }

func (d *drawer) pick(of ...string) string { return rapid.SampledFrom(of).Draw(d.t, "choice") }

func (d *drawer) span(atLeast int) string {
	return stream.FormatDuration(stream.Time(d.int(atLeast, 100_000_000)))
}

func (d *drawer) rate() string {
	return fmt.Sprintf("%d.%d/%s", d.int(1, 99), d.int(0, 999), d.pick("s", "m", "h", "d"))
}

func (d *drawer) delay() string {
	low := d.int(1, 1_000_000)
	a, b := stream.FormatDuration(stream.Time(low)), stream.FormatDuration(stream.Time(low+d.int(1, 1_000_000)))
	limit := d.pick(", cap: 1h", ", cap: 30d")
	return d.pick(a,
		fmt.Sprintf("{uniform: [%s, %s]%s}", a, b, limit),
		fmt.Sprintf("{lognormal: {p%d: %s, p%d.%d: %s}%s}", d.int(1, 49), a, d.int(50, 98), d.int(0, 9999), b, limit),
		fmt.Sprintf("{exponential: {mean: %s}%s}", a, limit),
		fmt.Sprintf("{pareto: {min: %s, %s}, cap: 9d}", a, d.pick("p99.9: "+b, "alpha: 1.25")),
		fmt.Sprintf("{mixture: [{share: 99.7%%, delay: %s}, {share: 0.003, delay: {uniform: [%s, %s]}}]%s}", a, a, b, limit),
		fmt.Sprintf("{step: {at: %s%s}}", b, d.pick("", ", then: 5s", ", then: {exponential: {mean: 1m}}")),
		fmt.Sprintf("{quantiles: {%sp99.9: %s, p5: %s, max: 1d}%s}", d.pick("", "min: 1ms, "), b, a, limit),
	)
}

// A fingerprint of a section changes with what a scenario sets there, and not with defaults that it spells out.
func TestSections(t *testing.T) {
	const whole = "scenario: x\nworkload: {duration: 1m, rate: 1/s, events: order}\nstrategies: [ptf]\njob: {%s}\n"
	job := func(fields string) string {
		s, err := scenarios.Load("x.yaml", fmt.Appendf(nil, whole, fields), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Sections()["job"]
	}
	if job("") != job("sink: retract, watermark: {interval: 200ms}, spark: {cost: {batch: 0s}}") {
		t.Error("defaults that are spelled out change the fingerprint")
	}
	seen := map[string]string{}
	for _, fields := range []string{"", "sink: append", "watermark: {interval: 10s}", "checkpoint: {interval: 10s}",
		"spark: {cost: {batch: 10s}}", "watermark: {interval: 10s}, checkpoint: {interval: 10s}"} {
		if other, ok := seen[job(fields)]; ok {
			t.Errorf("job {%s} has the fingerprint of {%s}", fields, other)
		}
		seen[job(fields)] = fields
	}
}
