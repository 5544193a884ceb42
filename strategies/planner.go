package strategies

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

var ttlParam = Param{Name: "ttl", Kind: Duration, Default: "0s", Expires: true,
	About: "table.exec.state.ttl; 0s: state is kept for ever"}

var hintParam = Param{Name: "hint", Kind: Duration, Default: "0s", Expires: true,
	About: "STATE_TTL hint in the query, which wins over ttl; 0s: none"}

func (m MiniBatch) on() bool { return m.Latency > 0 }

// topOneMode is the declared changelog mode of a top-1 node for the job's sink: insert-only, or updating, without -U
// where the sink keeps the last row of a key. FlinkChangelogModeInferenceProgram.
func (j Job) topOneMode(insertOnly bool) stream.ChangelogMode {
	if insertOnly {
		return stream.InsertOnly
	}
	return stream.Mode(stream.Insert, stream.UpdateBefore, stream.UpdateAfter, stream.Delete)
}

// planned fits a plan to the job's sink: an append-only sink refuses updates, an upsert sink needs no -U.
func (j Job) planned(p Plan) Plan {
	p.Declared = p.Changelog
	_, _, p.Refused = Accepts(p, sinkConsumers[j.Sink])
	if j.Sink == Upsert {
		p.Changelog = p.Changelog.Without(stream.UpdateBefore)
	}
	return p
}

// firstKind is the kind of the first row of a key: +U where neither -U nor the difference to +I is wanted. flink
// rowtime-desc/upsert-insert-insensitive.
func (j Job) firstKind() stream.Kind {
	if j.Sink == Upsert && j.InsertInsensitive {
		return stream.UpdateAfter
	}
	return stream.Insert
}

// rankNode names the planner's node for a ROW_NUMBER query. Also one that becomes a Deduplicate is a Rank when the
// planner checks who takes its changes.
func (j Job) rankNode(top int, order string) string {
	return fmt.Sprintf("Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=%d], partitionBy=[%s], orderBy=[%s])",
		top, strings.Join(j.keyNames(), ", "), order)
}

func perKeyUnless(ttl stream.Time) StateClass {
	if ttl > 0 {
		return TimeBounded
	}
	return PerKey
}

// tableState describes an operator whose whole state is one table.
func tableState(c *sim.Ctx, t *sim.Table, entryBytes int) sim.State {
	held := t.Held()
	return sim.State{Entries: held, LiveKeys: t.Live(c.Now()), Bytes: int64(held * entryBytes)}
}

// The lab counts the logical size of state itself: fixed-width columns as Flink's binary rows hold them, strings as the
// 36 characters of a UUID, 8 bytes for a TTL's timestamp and for the header of a row.

const (
	stringBytes    = 36
	rowHeaderBytes = 8
)

func columnBytes(c stream.Column) int {
	switch c.Type {
	case stream.String:
		return stringBytes
	case stream.Int:
		return 4
	}
	return 8
}

func (j Job) keyBytes() int {
	n := rowHeaderBytes
	for _, k := range j.Schema.Key {
		n += columnBytes(j.Schema.Columns[k])
	}
	return n + j.hashBytes()
}

func (j Job) rowBytes() int {
	n := rowHeaderBytes
	for _, c := range j.Schema.Columns {
		n += columnBytes(c)
	}
	return n + j.hashBytes()
}

// hashBytes is what the hexadecimal digits of a content key take beyond other strings.
func (j Job) hashBytes() int {
	if j.ContentOf == nil {
		return 0
	}
	return 64 - stringBytes
}

func (j Job) timerBytes() int { return j.keyBytes() + 8 }

func ttlBytes(ttl stream.Time) int {
	if ttl > 0 {
		return 8
	}
	return 0
}

// Code is rendered with the scenario's own columns.

var sqlTypes = map[stream.Type]string{stream.String: "STRING", stream.Int: "INT", stream.Timestamp: "TIMESTAMP_LTZ(3)"}

func sqlType(c stream.Column) string {
	if c.Type == stream.Decimal {
		return fmt.Sprintf("DECIMAL(10, %d)", c.Scale)
	}
	return sqlTypes[c.Type]
}

// ddl renders the source table; extra lines stand before the watermark.
func (j Job) ddl(table string, extra ...string) string {
	var lines []string
	for i, c := range j.Schema.Columns {
		if j.ContentOf != nil && i == j.Schema.Key[0] {
			lines = append(lines, fmt.Sprintf("  %s AS %s", c.Name, contentKey(j.ContentOf)))
			continue
		}
		if c.Function != stream.NoFunction {
			lines = append(lines, fmt.Sprintf("  %s AS %s", c.Name, j.call(c.Function)))
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s %s", c.Name, sqlType(c)))
	}
	lines = append(lines, extra...)
	lines = append(lines, fmt.Sprintf("  WATERMARK FOR %s AS %s", j.eventName(), j.watermark()))
	return "CREATE TABLE " + table + " (\n" + strings.Join(lines, ",\n") + "\n) WITH ('connector' = 'kafka');"
}

// call renders the call of a function. LOOKUP stands for one of the user, or for a lookup join.
func (j Job) call(f stream.Function) string {
	arguments := ""
	if f == stream.Lookup {
		arguments = strings.Join(j.keyNames(), ", ")
	}
	return strings.ToUpper(f.String()) + "(" + arguments + ")"
}

// sparkCall is call as Spark writes it.
func (j Job) sparkCall(f stream.Function) string {
	if f == stream.Now {
		return "current_timestamp()"
	}
	return strings.ToLower(j.call(f))
}

// contentKey renders the hash of some columns, each cast to text, with a sentinel for NULL and a separator. It tells
// the same rows apart as Spark's does, but Flink writes moments in another way, so keys of the two engines do not match.
func contentKey(columns []string) string {
	parts := make([]string, len(columns))
	for i, name := range columns {
		parts[i] = fmt.Sprintf(",\n    COALESCE(CAST(%s AS STRING), U&'\\0000')", name)
	}
	return "SHA256(CONCAT_WS(U&'\\001F'" + strings.Join(parts, "") + "))"
}

func (j Job) watermark() string {
	if j.WatermarkDelay == 0 {
		return j.eventName()
	}
	return fmt.Sprintf("%s - INTERVAL '%s' SECOND", j.eventName(), stream.FormatDecimal(int64(j.WatermarkDelay), 3))
}

// withProctime renders the source table with a processing-time column.
func (j Job) withProctime(table string) string { return j.ddl(table, "  proc AS PROCTIME()") }

// columns lists all columns but those left out.
func (j Job) columns(prefix string, without ...int) string {
	var names []string
	for i, c := range j.Schema.Columns {
		if !slices.Contains(without, i) {
			names = append(names, prefix+c.Name)
		}
	}
	return strings.Join(names, ", ")
}

func (j Job) allColumns() string { return j.columns("") }

func (j Job) eventName() string { return j.Schema.Columns[j.Schema.Event].Name }

func (j Job) keyNames() []string {
	names := make([]string, len(j.Schema.Key))
	for i, k := range j.Schema.Key {
		names[i] = j.Schema.Columns[k].Name
	}
	return names
}

// rowNumber renders the top-1 query by an order.
func (j Job) rowNumber(order string, without ...int) string {
	return fmt.Sprintf(`SELECT %s
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY %s ORDER BY %s) AS rn
  FROM orders)
WHERE rn = 1`, j.columns("", without...), strings.Join(j.keyNames(), ", "), order)
}

func ttlOption(ttl stream.Time) string {
	if ttl == 0 {
		return ""
	}
	return fmt.Sprintf("SET 'table.exec.state.ttl' = '%s';\n\n", flinkDuration(ttl))
}

func hintText(args Args) string {
	if hint := args.Duration("hint"); hint > 0 {
		return fmt.Sprintf("/*+ STATE_TTL('orders' = '%s') */ ", flinkDuration(hint))
	}
	return ""
}

// flinkDuration spells a span as Flink's options do.
func flinkDuration(t stream.Time) string {
	for _, u := range []struct {
		ms   stream.Time
		name string
	}{{86_400_000, "d"}, {3_600_000, "h"}, {60_000, "min"}, {1000, "s"}} {
		if t%u.ms == 0 {
			return fmt.Sprintf("%d %s", t/u.ms, u.name)
		}
	}
	return fmt.Sprintf("%d ms", t)
}

func indent(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") }
