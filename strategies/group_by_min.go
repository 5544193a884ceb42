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
		p := groupPlan(args, job, job.keyBytes()+columnBytes(job.Schema.Columns[column]), smaller(job.Schema, column))
		name, keys := job.Schema.Columns[column].Name, strings.Join(job.keyNames(), ", ")
		p.Code = job.ddl("orders") + "\n\n" + job.groupOptions(args) + fmt.Sprintf(
			"SELECT %s%s, MIN(%s) AS %s\nFROM orders\nGROUP BY %s;", hintText(args), keys, name, name, keys)
		p.Output, p.Column = KeyAndColumn, column
		return job.planned(p)
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
