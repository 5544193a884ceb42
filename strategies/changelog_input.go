package strategies

import (
	"fmt"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

// AllChanges is the mode of a source that sends inserts, updates and deletes, as a table of a database's changes.
var AllChanges = stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter, stream.Delete)

var inputs = []string{"append", "changelog"}

// ParseInput reads how scenarios name the changes that a source sends: append or changelog.
func ParseInput(s string) (stream.ChangelogMode, error) {
	switch s {
	case inputs[0]:
		return stream.InsertOnly, nil
	case inputs[1]:
		return AllChanges, nil
	}
	return 0, fmt.Errorf("%q is not one of %s%s", s, strings.Join(inputs, ", "), stream.DidYouMean(s, inputs))
}

// InputName is what ParseInput reads.
func InputName(m stream.ChangelogMode) string {
	if (Job{Input: m}).changelog() {
		return inputs[1]
	}
	return inputs[0]
}

// inputMode is the mode that the source declares.
func (j Job) inputMode() stream.ChangelogMode {
	if j.Input == 0 {
		return stream.InsertOnly
	}
	return j.Input
}

// changelog reports whether the source declares more than inserts.
func (j Job) changelog() bool { return j.inputMode() != stream.InsertOnly }

// sourceNode names the planner's node for the source.
func (j Job) sourceNode() string {
	return fmt.Sprintf("TableSourceScan(table=[[default_catalog, default_database, orders]], fields=[%s])", j.allColumns())
}

// insertsOnly refuses a changelog for a node that takes inserts only: FlinkChangelogModeInferenceProgram, flink-extra
// _refused.json.
func (j Job) insertsOnly(p Plan, node string) Plan {
	if j.changelog() {
		p.Refused = fmt.Sprintf("%s doesn't support consuming %s changes which is produced by node %s",
			node, changesOf(j.Input), j.sourceNode())
	}
	return p
}

// notModelled refuses what the engine does with a changelog and the lab does not.
func (j Job) notModelled(p Plan, what string) Plan {
	if j.changelog() && p.Refused == "" {
		p.Refused = "not the planner's reason, but the lab's: it does not have " + what
	}
	return p
}

// failsOnUpdates makes an operator check that its input holds inserts only, as the functions behind
// StreamExecDeduplicate do: DeduplicateFunctionHelper.checkInsertOnly. No planned job gets there, unless its source
// declares insert-only what it is not: FLINK-34702.
func failsOnUpdates(p Plan) Plan {
	newOperator := p.New
	p.New = func(c *sim.Ctx) sim.Operator { return checked{newOperator(c)} }
	return p
}

type checked struct{ sim.Operator }

func (o checked) Rows(c *sim.Ctx, rows []stream.Row) {
	for i := range rows {
		if k := rows[i].Kind; k != stream.Insert {
			o.Operator.Rows(c, rows[:i])
			c.Fail(fmt.Errorf("IllegalArgumentException in DeduplicateFunctionHelper.checkInsertOnly: the row is a %s, "+
				"though the source is declared insert-only", k))
			return
		}
	}
	o.Operator.Rows(c, rows)
}
