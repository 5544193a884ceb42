package strategies

import (
	"fmt"
	"strings"

	"deduplab/stream"
)

var _ = register(&Strategy{
	Name:   "group-by-min",
	Engine: "flink-sql",
	About:  "GROUP BY key with the MIN of one column, as updates",
	Loses: "It keeps the key and one column and throws the others away, and with a TTL sends -U/+U for each copy, " +
		"though the minimum stays.",
	Facts: groupByMinFacts,
	Params: []Param{{Name: "column", Kind: Column, About: "the column whose minimum is kept"},
		ttlParam, hintParam, phasesParam},
	Check: func(args Args, schema stream.Schema) string {
		if isKey(schema, schema.Index(args.Text("column"))) {
			return fmt.Sprintf("column %s is part of the key: use select-distinct-key", args.Text("column"))
		}
		return ""
	},
	Plan: func(args Args, job Job) Plan {
		column := job.Schema.Index(args.Text("column"))
		p := groupPlan(args, job, job.keyBytes()+columnBytes(job.Schema.Columns[column]), column)
		name, keys := job.Schema.Columns[column].Name, strings.Join(job.keyNames(), ", ")
		p.Code = job.ddl("orders") + "\n\n" + job.groupOptions(args) + fmt.Sprintf(
			"SELECT %s%s, MIN(%s) AS %s\nFROM orders\nGROUP BY %s;", hintText(args), keys, name, name, keys)
		p.Output, p.Column = KeyAndColumn, column
		return job.plannedGroup(p)
	},
})

// smaller reports whether a column of the later row is the smaller one. MIN leaves NULL out, so anything is smaller
// than that.
func smaller(schema stream.Schema, column int) replaces {
	kind := schema.Columns[column].Type
	return func(records stream.Records, stands, later stream.Tag) bool {
		a, b := records.Record(stands)[column], records.Record(later)[column]
		return !b.Null && (a.Null || b.Compare(a, kind) < 0)
	}
}

// groupByMinFacts is what is known of the strategy.
var groupByMinFacts = []Fact{
	{TopicState, "the key and the minimum so far of each key", "select-distinct-key/group-by-min-hint"},
	{TopicState, "each row of a key restarts the TTL, and a STATE_TTL hint is honoured: the recording has one of " +
		"1 h", "select-distinct-key/group-by-min-hint"},
	confluentTTL,
	{TopicChangelog, "declared [I,UB,UA]; an append-only sink refuses it", "select-distinct-key/group-by-min-hint"},
	{TopicChangelog, "with a TTL each row sends -U/+U, though the minimum " +
		"stays", "select-distinct-key/group-by-min-hint"},
	{TopicLate, "no lateness test: GROUP BY runs as SELECT DISTINCT does, which takes rows below the " +
		"watermark", "select-distinct-key/late"},
	{TopicLatency, "at once, with the first row of a key", "select-distinct-key/group-by-min-hint"},
	commitLatency,
	{TopicDeterminism, "processing time: closed for the minimum; the changes on the way depend on the order of " +
		"arrival", NotRecorded},
	{TopicDeterminism, "watermarks: closed; they are not asked", "select-distinct-key/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "select-distinct-key/late"},
	{TopicDeterminism, "state TTL: open; after it the minimum starts anew", "select-distinct-key/group-by-min-hint"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "no key: but all columns that are neither key nor minimum", "select-distinct-key/group-by-min-hint"},
	{TopicLeaks, "a key that rested for one TTL comes out as +I again", "select-distinct-key/group-by-min-hint"},
	{TopicLeaks, "with a TTL, whatever stores each change it is handed as a row holds every " +
		"copy", "select-distinct-key/group-by-min-hint"},
}
