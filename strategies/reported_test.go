package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deduplab/downstream"
	"deduplab/harness"
	"deduplab/strategies"
	"deduplab/stream"
)

// A reported case is one that people met in public. Steps are "KIND KEY EVENT ARRIVAL QUANTITY" in seconds, "wm EVENT",
// "clock ARRIVAL" and "end"; what is sent is "KIND KEY QUANTITY", behind the step where that is no row.
type reported struct {
	name     string
	strategy string
	params   map[string]string
	job      strategies.Job
	steps    []string
	declared string // by the planner, or why it refuses
	sent     []string
	fails    string // a part of the error
}

var (
	flink20   = strategies.Job{Version: strategies.Flink20}
	fixed     = strategies.Job{Version: strategies.AfterFLINK40368}
	changelog = strategies.Job{Input: strategies.AllChanges}
	byV       = map[string]string{"order_by": "quantity asc"}
)

func into(sink strategies.Sink, job strategies.Job) strategies.Job {
	job.Sink = sink
	return job
}

var reportedCases = []reported{
	{name: "FL-01 out_2_3", strategy: "rowtime-asc", steps: earlier, declared: "I",
		sent: []string{"wm 9: +I a 2", "wm 15: +I b 3", "end: +I c 4"}},
	{name: "FL-01 out_old", strategy: "rowtime-asc", job: flink20, steps: earlier, declared: "I,UB,UA,D",
		sent: []string{"+I a 1", "-U a 1", "+U a 2", "+I b 3", "+I c 4"}},
	{name: "FL-01 old, append-only sink", strategy: "rowtime-asc", job: into(strategies.Append, flink20),
		declared: "Table sink doesn't support consuming update and delete changes"},
	{name: "FL-01 later versions wait as well", strategy: "rowtime-asc", job: fixed, steps: earlier, declared: "I",
		sent: []string{"wm 9: +I a 2", "wm 15: +I b 3", "end: +I c 4"}},

	// The case says [I,UB,UA]; apache/flink#28980 leaves it at ALL_CHANGES, which has D as well.
	{name: "FL-05 right", strategy: "nontime", params: byV, job: fixed, steps: better, declared: "I,UB,UA,D",
		sent: []string{"+I a 5", "-U a 5", "+U a 3"}},
	{name: "FL-05 right, append-only sink", strategy: "nontime", params: byV, job: into(strategies.Append, fixed),
		declared: "Table sink doesn't support consuming update and delete changes"},
	{name: "FL-05 engine_2_3_0", strategy: "nontime", params: byV, job: into(strategies.Append, strategies.Job{}),
		steps: better, declared: "I", sent: []string{"+I a 5", "+U a 3"}},
	{name: "FL-05 before 2.1", strategy: "nontime", params: byV, job: flink20, steps: better, declared: "I,UB,UA,D",
		sent: []string{"+I a 5", "-U a 5", "+U a 3"}},
	{name: "TO_CHANGELOG came with 2.3", strategy: "nontime-to-changelog", params: byV, job: flink20,
		declared: "Flink 2.0 has no TO_CHANGELOG: it came with 2.3 (FLIP-564)"},
	{name: "process table functions came with 2.1", strategy: "ptf", job: flink20,
		declared: "Flink 2.0 has no process table functions: they came with 2.1 (FLIP-440)"},
	{name: "FL-05 is of the non-time order alone", strategy: "proctime-asc", job: fixed, steps: better, declared: "I",
		sent: []string{"+I a 5"}},

	{name: "FL-08 right", strategy: "proctime-asc", params: map[string]string{"ttl": "10s"},
		job:      strategies.Job{MiniBatch: strategies.MiniBatch{Latency: 1000, Size: 100}},
		steps:    []string{"+I a 0 0 1", "clock 1", "+I a 5 5 2", "clock 6", "+I a 16 16 3", "clock 17"},
		declared: "I,UB,UA,D", sent: []string{"clock 1: +I a 1", "clock 17: +I a 3"}},

	{name: "FL-10 stays Rank", strategy: "proctime-asc", job: changelog, declared: "I,UB,UA,D",
		steps: []string{"+I a 0 0 1", "-U a 0 1 1", "+U a 0 2 2"}, sent: []string{"+I a 1", "-D a 1", "+I a 2"}},
	{name: "FL-10 Deduplicate fails on -U", strategy: "proctime-asc", declared: "I",
		steps: []string{"+I a 0 0 1", "-U a 0 1 1", "+U a 0 2 2"}, sent: []string{"+I a 1"}, fails: "checkInsertOnly"},
	{name: "FL-10 no changes into an append-only sink", strategy: "proctime-asc", job: into(strategies.Append, changelog),
		declared: "Table sink doesn't support consuming update and delete changes"},
	{name: "FL-10 windows take inserts only", strategy: "window-dedup", job: changelog,
		declared: "StreamPhysicalWindowDeduplicate doesn't support consuming update and delete changes which is produced " +
			"by node TableSourceScan"},
	{name: "FL-10 so does a process table function", strategy: "ptf", job: changelog,
		declared: "StreamPhysicalProcessTableFunction doesn't support consuming update and delete changes"},
	{name: "FL-10 a DataStream function sees rows as they come", strategy: "keyed-process", job: changelog,
		declared: "I,UB,UA,D", steps: []string{"-D a 0 0 1", "+I a 0 1 1"}, sent: []string{"-D a 1"}},

	{name: "FL-11", strategy: "changelog-normalize", job: changelog, declared: "I,UB,UA,D", steps: repeats,
		sent: []string{"+I a 1", "-D a 1"}},
	// Without normalising FLINK-19795 had Top-N die at the second -D; 2.3.0 is lenient and passes over it. But the
	// repeated +I counts twice.
	{name: "FL-11 without normalising", strategy: "nontime", params: byV, job: changelog, declared: "I,UB,UA,D",
		steps: append(slices.Clone(repeats), "-D a 0 4 1"), sent: []string{"+I a 1", "-D a 1", "+I a 1", "-D a 1"}},
}

var (
	earlier = []string{"+I a 10 10 1", "wm 5", "+I a 8 11 2", "+I b 14 12 3", "wm 9", "+I c 20 13 4", "wm 15", "end"}
	better  = []string{"+I a 0 1 5", "+I a 0 2 3"}
	repeats = []string{"+I a 0 0 1", "+I a 0 1 1", "-D a 0 2 1", "-D a 0 3 1"}
)

func TestReportedCases(t *testing.T) {
	for _, c := range reportedCases {
		t.Run(c.name, func(t *testing.T) {
			h, err := harness.New(harness.Config{Strategy: c.strategy, Params: c.params, Job: c.job})
			if err != nil {
				if c.steps != nil || !strings.Contains(err.Error(), c.declared) {
					t.Fatalf("planned: %v; want %s", err, c.declared)
				}
				return
			}
			if got := strings.Join(h.Plan().Changelog.Names(), ","); got != c.declared {
				t.Errorf("declared %s, want %s", got, c.declared)
			}
			sent, err := play(h, c.steps)
			if !slices.Equal(sent, c.sent) {
				t.Errorf("sent %q, want %q", sent, c.sent)
			}
			if (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("failed with %v, want %q", err, c.fails)
			}
		})
	}
}

// play feeds steps until one fails.
func play(h *harness.Harness, steps []string) ([]string, error) {
	var sent []string
	for _, step := range steps {
		err := feed(h, step)
		prefix := step + ": "
		if strings.ContainsAny(step[:1], "+-") {
			prefix = ""
		}
		for _, out := range h.Take() {
			sent = append(sent, fmt.Sprintf("%s%s %s %d", prefix, out.Kind, out.Row[0].Text, out.Row[1].Int))
		}
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func feed(h *harness.Harness, step string) error {
	var kind, key string
	var event, arrival, quantity int64
	if _, err := fmt.Sscan(step, &kind, &key, &event, &arrival, &quantity); err == nil {
		k, _ := stream.ParseKind(kind)
		if err := h.Clock(stream.Time(arrival * 1000)); err != nil {
			return err
		}
		return h.Change(k, harness.Columns{"order_id": key, "quantity": quantity, "created_at": event * 1000})
	}
	switch fmt.Sscan(step, &kind, &event); kind {
	case "wm":
		return h.Watermark(stream.Time(event * 1000))
	case "clock":
		return h.Clock(stream.Time(event * 1000))
	}
	return h.End()
}

// TestStateFalls is the other half of FL-08: keys whose TTL is over are known no more.
func TestStateFalls(t *testing.T) {
	h, err := harness.New(harness.Config{Strategy: "proctime-asc", Params: map[string]string{"ttl": "10s"},
		Job: strategies.Job{MiniBatch: strategies.MiniBatch{Latency: 1000, Size: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []string{"+I a 0 0 1", "clock 1", "+I b 5 5 1", "clock 6", "clock 11", "clock 16"} {
		want := []int{1, 1, 2, 2, 1, 0}[i]
		if err := feed(h, step); err != nil {
			t.Fatal(err)
		}
		if got := h.State().LiveKeys; got != want {
			t.Errorf("after %s: %d keys are known, want %d", step, got, want)
		}
	}
}

// TestNoTombstones is FL-14 from the source to the topic: a deduplication that updates writes values only.
func TestNoTombstones(t *testing.T) {
	for strategy, tombstones := range map[string]int{"rowtime-desc": 0, "proctime-desc": 0, "changelog-normalize": 0,
		"nontime": 1} {
		job := into(strategies.Upsert, strategies.Job{})
		steps := []string{"+I a 0 0 2", "+I a 1 1 1"}
		params := map[string]string{}
		switch strategy {
		case "changelog-normalize":
			job, steps = into(strategies.Upsert, changelog), []string{"+I a 0 0 2", "-U a 0 1 2", "+U a 1 2 1"}
		case "nontime": // over a changelog the Rank deletes where others update
			job, params = into(strategies.Upsert, changelog), byV
		}
		h, err := harness.New(harness.Config{Strategy: strategy, Params: params, Job: job})
		if err != nil {
			t.Fatal(err)
		}
		topic := downstream.NewUpsertKafka([]int{0})
		for _, step := range steps {
			if err := feed(h, step); err != nil {
				t.Fatal(err)
			}
			for _, out := range h.Take() {
				if out.Kind == stream.UpdateBefore {
					t.Errorf("%s: sends a -U to a sink that declares [I,UA,D]", strategy)
				}
				topic.Change(out.Kind, out.Values, out.At)
			}
		}
		if topic.Tombstones() != tombstones || topic.Records() != 2+tombstones {
			t.Errorf("%s: %d records and %d tombstones, want %d tombstones", strategy, topic.Records(), topic.Tombstones(),
				tombstones)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, v := range strategies.Versions {
		if got, err := strategies.ParseVersion(v.String()); got != v || err != nil {
			t.Errorf("%s is read as %s, %v", v, got, err)
		}
	}
	if v := strategies.Version(""); v.String() != "2.3" {
		t.Errorf("no version is %s", v)
	}
	if _, err := strategies.ParseVersion("2.4"); err == nil || !strings.Contains(err.Error(), "after-FLINK-40368") {
		t.Errorf("unknown version: %v", err)
	}
}
