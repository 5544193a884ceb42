package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"deduplab/export"
	"deduplab/gen"
	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
)

const traced = `scenario: traced
workload:
WORKLOAD
job:
  watermark: {delay: 1s, idle_after: 1m}
  parallelism: 2
strategies:
  - pass-through
  - proctime-asc: {ttl: 10s}
  - rowtime-asc: {ttl: 1h}
  - select-distinct-key: {ttl: 1h}
  - select-distinct: {ttl: 1h}
  - tumble-agg: {size: 1m}
  - ptf
require: {lost: <= 0}
`

const generated = `
  duration: 20m
  rate: 5/s
  fields: {id: {uuid: true}, n: {int: [1, 1000]}}
  key: id
  event_time: {field: at}
  partitions: {count: 3}
  transport: {uniform: [0s, 4s]}
  duplicates:
    - {origin: retry, rate: 10%, delay: 30s}
    - {origin: new-id, rate: 5%, delay: 2s, new_id: true}
    - {origin: changed, rate: 5%, delay: 20s, change: n}`

const recorded = `
  trace: rows.parquet
  start: 2026-01-01T00:00:00Z
  columns: {key: id, event_time: at, arrival: _arrival, partition: _partition, event: _event, origin: _origin}`

// TestTraceWithLabels: a generated stream that is exported with the truth and run as a trace has the same fates, by the
// same causes, and the same number of rows of each origin.
func TestTraceWithLabels(t *testing.T) {
	dir := t.TempDir()
	run := func(workload string) *results.Run {
		path := filepath.Join(dir, "scenario.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(traced, "WORKLOAD", workload, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := scenarios.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if s.Workload.Spec != nil {
			w, err := gen.New(*s.Workload.Spec, s.Seed)
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			o := export.Options{Format: export.Parquet, Truth: true}
			if _, err := export.Write(context.Background(), &file, w, o); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "rows.parquet"), file.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		result, err := lab.Run(context.Background(), s, lab.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	want, got := run(generated), run(recorded)
	if !got.Workload.Labelled || !reflect.DeepEqual(got.Workload.ByOrigin, want.Workload.ByOrigin) {
		t.Errorf("%v, want %v", got.Workload.ByOrigin, want.Workload.ByOrigin)
	}
	lost, leaked := int64(0), int64(0)
	for i, w := range want.Strategies {
		g := got.Strategies[i]
		if g.Fates != w.Fates || !reflect.DeepEqual(g.LeaksByCause, w.LeaksByCause) ||
			!reflect.DeepEqual(g.LossesByCause, w.LossesByCause) || g.Changes != w.Changes {
			t.Errorf("%s: %+v %v %v\nwant %+v %v %v", w.ID, g.Fates, g.LeaksByCause, g.LossesByCause, w.Fates, w.LeaksByCause,
				w.LossesByCause)
		}
		lost, leaked = lost+w.Lost, leaked+w.LeaksByCause["regenerated_id"]
	}
	if lost == 0 || leaked == 0 {
		t.Errorf("%d events lost, %d leaked by a new id: the test shows nothing", lost, leaked)
	}
}

// TestTraceWithoutLabels: what cannot be known is null in results.json, and bad rows are counted there.
func TestTraceWithoutLabels(t *testing.T) {
	dir := t.TempDir()
	rows := "id,at\na,1700000000\nb\na,1700000005\nc,noon\n"
	scenario := "scenario: x\nworkload:\n  trace: \"*.csv\"\n  on_bad_row: skip\n" +
		"  columns: {key: id, event_time: at}\nstrategies: [ptf]\n"
	for name, text := range map[string]string{"1.csv": rows, "2.csv": rows, "x.yaml": scenario} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenarios.Read(filepath.Join(dir, "x.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Run(context.Background(), s, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := run.Workload; w.Rows != 4 || w.Skipped != 4 || len(w.BadRows) != 4 ||
		!strings.HasSuffix(w.BadRows[2], "2.csv:3: 1 cells, but the header has 2") {
		t.Errorf("%+v", w)
	}
	data, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), `"swallowed":null`) {
		t.Errorf("swallowed is not null: %s", data)
	}
	var again results.Run
	if err := json.Unmarshal(data, &again); err != nil || again.Strategies[0].Fates != run.Strategies[0].Fates {
		t.Errorf("read again: %+v, %v", again.Strategies[0].Fates, err)
	}
}

// A lost event is told of even when far more late copies came before it than are kept as examples.
func TestLateFirstBehindManyLateCopies(t *testing.T) {
	s, err := scenarios.Load("x.yaml", []byte(`scenario: x
workload:
  duration: 1h
  rate: 5/s
  fields: {id: {uuid: true}}
  key: id
  event_time: {field: ts}
  partitions: {count: 2}
  outage: [{partition: 1, from: 50m, for: 5m, flush: 500/s}]
  duplicates: [{origin: retry, rate: 30%, delay: {uniform: [2m, 4m]}}]
job: {watermark: {delay: 1s, idle_after: 5s}}
strategies: [rowtime-asc]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Run(context.Background(), s, lab.Options{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	r := run.Strategies[0]
	if r.Fates.LateCopy < 1000 || r.Fates.LateFirst == 0 || r.Example("late_first") == nil || r.Example("late_copy") == nil {
		t.Errorf("%+v, examples: %+v", r.Fates, r.Examples)
	}
}
