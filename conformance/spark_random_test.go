package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive is dropDuplicates and dropDuplicatesWithinWatermark in the simplest words, after the rules in
// testdata/spark/README.md. It knows nothing of the lab's engine.
type naive struct {
	within          bool
	key             []string
	columns         map[string]string // types
	event           string            // the watermark's column; empty: there is no watermark
	delays          []int64           // by input
	max             bool              // policy
	noData          bool
	partitions      int
	watermark, late int64
	said            []*int64            // by input, since the last start: the largest event time less delay
	state           map[string]*stored  // by the spelling of the key
	keys            map[string][]string // the values of a key, as the state spells them
	id              int
}

// stored is a key in the state. What has no end stays for ever.
type stored struct {
	end *int64
}

func (n *naive) evicts() bool {
	return n.event != "" && (n.within || slices.Contains(n.key, n.event))
}

// batch runs a batch and returns it as it would have been recorded. Rows come by input.
func (n *naive) batch(rows [][]map[string]any) map[string]any {
	b := map[string]any{"batch": n.id, "rows": orEmpty(rows[0]), "emits": []any{}}
	if len(rows) > 1 && rows[1] != nil {
		b["rows2"] = rows[1]
	}
	if n.event != "" {
		b["watermark_before"], b["late_watermark"] = n.watermark, n.late
	} else {
		b["watermark_before"] = nil
	}
	var updated, removed, late, copies int
	emits := make([][]map[string]any, n.partitions)
	for _, row := range slices.Concat(rows...) {
		var ts *int64
		if v, ok := row[n.event].(int64); n.event != "" && ok {
			ts = &v
		}
		if ts != nil && *ts <= n.late {
			late++
			continue
		}
		values := make([]sparkValue, len(n.key))
		var spelled []string
		for i, column := range n.key {
			raw, _ := json.Marshal(row[column])
			values[i], _ = readSparkValue(raw, n.columns[column])
			spelled = append(spelled, values[i].inState())
		}
		key := strings.Join(spelled, " | ")
		if n.state[key] != nil {
			copies++
			continue
		}
		entry := &stored{}
		switch {
		case n.event != "" && n.within && ts == nil:
			entry.end = new(n.delays[0])
		case n.event != "" && n.within:
			entry.end = new(*ts + n.delays[0])
		case n.evicts():
			entry.end = ts
		}
		n.state[key], n.keys[key] = entry, spelled
		updated++
		p := partitionOf(values, n.partitions)
		emits[p] = append(emits[p], row)
	}
	if n.evicts() {
		for _, key := range slices.Collect(maps.Keys(n.state)) {
			if end := n.state[key].end; end != nil && *end <= n.watermark {
				delete(n.state, key)
				removed++
			}
		}
	}
	b["emits"] = orEmpty(slices.Concat(emits...))
	b["state_rows"], b["updated"], b["removed"] = len(n.state), updated, removed
	b["dropped_by_watermark"], b["dropped_duplicates"] = late, copies
	b["state"] = n.spellState()
	return b
}

func (n *naive) spellState() []any {
	state := []any{}
	for key, entry := range n.state {
		value := map[string]any{"__dummy__": nil}
		if n.within {
			value = map[string]any{"expiresAtMicros": *entry.end * 1000}
		}
		k := map[string]any{}
		for i, column := range n.key {
			k[column] = json.RawMessage(n.keys[key][i])
		}
		state = append(state, map[string]any{"key": k, "value": value})
	}
	return state
}

// commit moves the watermark after a batch, and reports whether it did.
func (n *naive) commit(rows [][]map[string]any) bool {
	n.id++
	n.late = n.watermark
	if n.event == "" {
		return false
	}
	for input, list := range rows {
		for _, row := range list {
			if ts, ok := row[n.event].(int64); ok {
				if said := n.said[input]; said == nil || *said < ts-n.delays[input] {
					n.said[input] = new(ts - n.delays[input])
				}
			}
		}
	}
	combined := int64(0)
	for i, said := range n.said {
		w := int64(0)
		if said != nil {
			w = *said
		}
		if i == 0 || (w > combined) == n.max {
			combined = w
		}
	}
	if combined > n.watermark {
		n.watermark = combined
	}
	return n.watermark > n.late
}

func orEmpty(rows []map[string]any) []map[string]any {
	if rows == nil {
		return []map[string]any{}
	}
	return rows
}

// TestSparkRandomCases lets the naive program record queries that are drawn at random, and replays the recordings.
func TestSparkRandomCases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recording := drawCase(t)
		text, err := json.MarshalIndent(recording, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		c, err := readSpark(text)
		if err != nil {
			t.Fatal(err)
		}
		diffs, err := runSpark("random", c)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, d := range diffs {
			t.Fatalf("%s\nwant: %s\ngot:  %s\n%s", d.Title(), d.Want, d.Got, text)
		}
	})
}

// drawCase draws a query with its input and records it.
func drawCase(t *rapid.T) map[string]any {
	flip := func(what string) bool { return rapid.Bool().Draw(t, what) }
	names := rapid.Permutation([]string{"id", "Kind", "when_", "n", "x1", "flag"}).Draw(t, "names")
	id, kind, when, number, double := names[0], names[1], names[2], names[3], names[4]
	n := &naive{
		within: flip("within"), max: flip("max"), noData: flip("no data"),
		partitions: rapid.IntRange(1, 4).Draw(t, "partitions"),
		columns:    map[string]string{id: "string", kind: "string", when: "timestamp", number: "long", double: "double"},
		state:      map[string]*stored{}, keys: map[string][]string{},
	}
	n.key = rapid.Permutation([]string{id, kind, when, number, double}).Draw(t, "key")
	n.key = n.key[:rapid.IntRange(1, 3).Draw(t, "keys")]
	inputs := rapid.IntRange(1, 2).Draw(t, "inputs")
	n.delays = make([]int64, inputs)
	n.said = make([]*int64, inputs)
	if n.within || flip("watermark") {
		n.event = when
	}
	backlog := n.noData && flip("backlog")
	maxFactor := rapid.SampledFrom([]int64{1, 5, 30}).Draw(t, "step")
	code := func() string {
		if n.event == "" {
			return n.code(inputs)
		}
		for i := range n.delays {
			n.delays[i] = rapid.SampledFrom([]int64{0, 1, 999, 5000, 20_000}).Draw(t, "delay")
		}
		return n.code(inputs)
	}
	codes, run := []string{code()}, 0
	var batches []map[string]any
	record := func(b map[string]any, rows [][]map[string]any, noData bool) bool {
		b["run"] = run
		if noData {
			b["no_data"] = true
		}
		if flip("fails") && rapid.IntRange(0, 3).Draw(t, "which") == 0 {
			failed := maps.Clone(b)
			failed["sink_failed"] = "after the write"
			for _, name := range []string{"state_rows", "updated", "removed", "dropped_by_watermark", "dropped_duplicates",
				"state"} {
				delete(failed, name)
			}
			if n.event != "" {
				failed["watermark_after"] = n.watermark
			}
			batches = append(batches, failed)
			n.said = make([]*int64, inputs)
			b["replay"] = true
		}
		moved := n.commit(rows)
		if n.event != "" {
			b["watermark_after"] = n.watermark
		}
		batches = append(batches, b)
		return moved
	}
	at := rapid.Int64Range(0, 30_000).Draw(t, "start")
	for range rapid.IntRange(1, 12).Draw(t, "batches") {
		if flip("restart") && rapid.IntRange(0, 4).Draw(t, "when") == 0 {
			run++
			codes = append(codes, code())
			n.said = make([]*int64, inputs)
		}
		at += rapid.Int64Range(0, 2000).Draw(t, "time") * maxFactor
		rows := make([][]map[string]any, inputs)
		for input := range rows {
			rows[input] = []map[string]any{}
			for range rapid.IntRange(0, 8).Draw(t, "rows") {
				rows[input] = append(rows[input], map[string]any{
					id:     orNull(t, rapid.SampledFrom([]string{"", "a", "b", "ü", "long enough for a word"}).Draw(t, "id")),
					kind:   orNull(t, rapid.SampledFrom([]string{"a", "click"}).Draw(t, "kind")),
					when:   orNull(t, at+rapid.Int64Range(-20_000, 3000).Draw(t, "ts")),
					number: orNull(t, rapid.Int64Range(-1, 1).Draw(t, "number")),
					double: json.RawMessage(rapid.SampledFrom([]string{"-0.0", "0.0", "1.5", "null"}).Draw(t, "double")),
				})
			}
		}
		moved := record(n.batch(rows), rows, false)
		if moved && n.noData && !(backlog && flip("at once")) {
			none := make([][]map[string]any, inputs)
			record(n.batch(none), none, true)
		}
	}
	config := map[string]string{
		optionPartitions: fmt.Sprint(n.partitions), optionNoData: fmt.Sprint(n.noData), optionPolicy: "min",
		optionReaders: "1",
	}
	if n.max {
		config[optionPolicy] = "max"
	}
	if backlog {
		config[optionInput] = "files that lay ready"
	}
	return map[string]any{
		"case": "random", "engine": "Apache Spark", "strategy": "random", "code": codes, "config": config,
		"columns": n.columns, "batches": batches,
	}
}

// orNull replaces one value in ten by null.
func orNull(t *rapid.T, v any) any {
	if rapid.IntRange(0, 9).Draw(t, "null") == 0 {
		return nil
	}
	return v
}

// code spells the query.
func (n *naive) code(inputs int) string {
	sources := []string{"df", "df2"}[:inputs]
	if n.event != "" {
		for i := range sources {
			sources[i] += fmt.Sprintf(`.withWatermark("%s", "%d milliseconds")`, n.event, n.delays[i])
		}
	}
	text := sources[0]
	if inputs > 1 {
		text += ".union(" + sources[1] + ")"
	}
	method := "dropDuplicates"
	if n.within {
		method = "dropDuplicatesWithinWatermark"
	}
	return fmt.Sprintf(`%s.%s(["%s"])`, text, method, strings.Join(n.key, `", "`))
}
