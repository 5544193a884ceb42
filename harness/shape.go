package harness

import (
	"slices"

	"deduplab/strategies"
	"deduplab/stream"
)

// ops are the kinds as TO_CHANGELOG spells them.
var ops = [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}

// ResultColumns lists the columns of a plan's result.
func ResultColumns(plan strategies.Plan, schema stream.Schema) []stream.Column {
	var columns []stream.Column
	if plan.ToChangelog {
		columns = append(columns, stream.Column{Name: "op", Type: stream.String})
	}
	if plan.Output == strategies.Windowed {
		columns = append(columns, stream.Column{Name: "window_start", Type: stream.Timestamp},
			stream.Column{Name: "window_end", Type: stream.Timestamp})
	}
	for i, column := range schema.Columns {
		if puts(plan, schema, i) {
			columns = append(columns, column)
		}
	}
	return columns
}

// puts reports whether the query puts out a column of its table.
func puts(plan strategies.Plan, schema stream.Schema, column int) bool {
	isKey := slices.Contains(schema.Key, column)
	switch plan.Output {
	case strategies.KeyOnly:
		return isKey
	case strategies.KeyAndColumn:
		return isKey || column == plan.Column
	case strategies.DropEvent:
		return column != schema.Event
	}
	return true
}

// shape makes the row that the sink gets.
func (h *Harness) shape(out *Output) {
	schema := h.records.schema
	values := make(stream.Record, 0, len(h.columns))
	if h.plan.ToChangelog {
		values = append(values, stream.Value{Text: ops[out.Kind]})
		out.Kind = stream.Insert
	}
	if h.plan.Output == strategies.Windowed {
		end := strategies.WindowEnd(stream.Time(out.Row[schema.Event].Int), h.plan.Window)
		values = append(values, stream.Value{Int: int64(end - h.plan.Window)}, stream.Value{Int: int64(end)})
	}
	for i := range schema.Columns {
		if puts(h.plan, schema, i) {
			values = append(values, out.Row[i])
		}
	}
	out.Columns, out.Values = h.columns, values
}
