package report

import (
	"slices"
	"strings"

	"deduplab/results"
)

// keysToSee says what to look for in the table of keys.
const keysToSee = "What each key makes of this stream when the first row of every key is kept for ever, whatever the " +
	"strategy. A key that misses duplicates is too fine: something in it changes when a row is sent again. A key that " +
	"merges events is too coarse: it takes a legitimate repeat for a copy. No strategy repairs its key."

// keysUnlabelled is what the table of keys means where nobody knows the truth.
const keysUnlabelled = "This trace has no labels, so the default key is taken for the truth, and the others are held " +
	"against it."

// hasAmounts reports whether a run sums a column.
func hasAmounts(run *results.Run) bool {
	return slices.ContainsFunc(run.Keys, func(k results.Key) bool { return k.Amount != nil }) ||
		slices.ContainsFunc(run.Strategies, func(s results.Strategy) bool { return s.Amount != nil })
}

// off writes what a result counts twice and what it lacks, as parts of the true sum: +2.5 %, -0.1 %.
func off(a *results.Amount) string {
	if a == nil {
		return "-"
	}
	var parts []string
	if a.Twice != 0 {
		parts = append(parts, signed(a.TwiceRate))
	}
	if a.Gone != 0 {
		parts = append(parts, signed(-a.GoneRate))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case a.Error > 0:
		return "±" + ratio(a.Error)
	}
	return ratio(0)
}

func signed(share float64) string {
	if share > 0 {
		return "+" + ratio(share)
	}
	return ratio(share)
}

// spelled writes what a key is made of.
func spelled(k results.Key) string {
	columns := strings.Join(k.Columns, ", ")
	if k.Content {
		return "content of " + columns
	}
	return columns
}

// missedRows writes how many rows a key misses, and of what origin.
func missedRows(k results.Key) string {
	text := count(k.Missed)
	if origins := byCount(k.MissedByOrigin); len(origins) > 0 {
		text += " (" + causeText(origins) + ")"
	}
	return text
}

// sumOf writes a sum and its part of the true one.
func sumOf(sum, rate float64) string {
	if sum == 0 {
		return "0"
	}
	return results.FormatSum(sum) + " (" + ratio(rate) + ")"
}

// keyTable writes what each key makes of the stream; nothing where the scenario names no keys.
func keyTable(run *results.Run) string {
	if len(run.Keys) == 0 {
		return ""
	}
	t := table{right: map[int]bool{1: true, 2: true}}
	head := []string{"key", "keys", "events merged", "duplicates missed"}
	if hasAmounts(run) {
		head = append(head, "counted twice", "gone")
	}
	t.add(append(head, "made of")...)
	for _, k := range run.Keys {
		cells := []string{k.Name, count(k.Keys), count(k.Merged), missedRows(k)}
		if k.Amount != nil {
			cells = append(cells, sumOf(k.Amount.Twice, k.Amount.TwiceRate), sumOf(k.Amount.Gone, k.Amount.GoneRate))
		}
		t.add(append(cells, spelled(k))...)
	}
	text := "\nThe keys, with perfect memory:\n" + t.String()
	if !run.Workload.Labelled {
		text += wrap("", keysUnlabelled, lineWidth)
	}
	return text
}

// keyExamples are rows that a key gets wrong, each followed by the one that shows it.
type keyExamples struct {
	Title   string
	Columns []string
	Rows    []results.Example
}

func newKeyExamples(keys []results.Key) []keyExamples {
	var all []keyExamples
	for _, k := range keys {
		e := keyExamples{Title: "Rows that the key " + k.Name + " gets wrong"}
		for _, pair := range k.Examples {
			e.Rows = append(e.Rows, pair.Row, pair.Other)
		}
		if len(e.Rows) > 0 {
			e.Columns = columnsOf(e.Rows)
			all = append(all, e)
		}
	}
	return all
}
