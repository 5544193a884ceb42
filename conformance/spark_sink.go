package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// sinkQuery is what the lab makes of the code that foreachBatch ran.
type sinkQuery struct {
	strategy string
	params   map[string]string
	key      []string
}

var (
	sinkSource   = regexp.MustCompile(`^(.*?)(?:\s*--\s*s = (.*))?$`)
	dedupSource  = regexp.MustCompile(`^batch\.dropDuplicates\(\[(.*)\]\)$`)
	appendCode   = regexp.MustCompile(`^s\.write\.format\("delta"\)\.mode\("append"\)(.*)\.saveAsTable\("t"\)$`)
	onceOptions  = regexp.MustCompile(`^\.option\("txnAppId", *"[^"]*"\)\.option\("txnVersion", *batch_id\)$`)
	mergeCode    = regexp.MustCompile(`(?i)^MERGE INTO t USING s ON (.+?) (WHEN .*)$`)
	keyMatches   = regexp.MustCompile("^(?:t|s)\\.(`[^`]+`|\\w+) (=|<=>) (?:t|s)\\.(`[^`]+`|\\w+)$")
	dateBound    = regexp.MustCompile(`(?i)^t\.date >= date_sub\(DATE'\{today\}', (\{lookback\}|\d+)\)$`)
	insertClause = regexp.MustCompile(`(?i)^WHEN NOT MATCHED THEN INSERT \*$`)
	upsertClause = regexp.MustCompile("(?i)^WHEN MATCHED AND s\\.(`[^`]+`|\\w+) > t\\.(`[^`]+`|\\w+) THEN UPDATE SET \\* " +
		`WHEN NOT MATCHED THEN INSERT \*$`)
	dateColumn = regexp.MustCompile(`^date of (.+), UTC$`)
)

// sinkQuery reads the code. Event is the column of the event time.
func (c *sparkCase) sinkQuery(code, event string) (*sinkQuery, error) {
	parts := sinkSource.FindStringSubmatch(strings.TrimSpace(code))
	q := &sinkQuery{params: map[string]string{}}
	var source []string
	switch m := dedupSource.FindStringSubmatch(parts[2]); {
	case m != nil:
		for name := range strings.SplitSeq(m[1], ",") {
			source = append(source, strings.Trim(name, " '\""))
		}
	case parts[2] != "" && parts[2] != "the batch as it is":
		return nil, fmt.Errorf("the lab does not know s = %s", parts[2])
	}
	var err error
	if m := appendCode.FindStringSubmatch(parts[1]); m != nil {
		err = q.append(m[1], source)
	} else if m := mergeCode.FindStringSubmatch(parts[1]); m != nil {
		err = q.merge(m[1], m[2], event, string(c.Params["lookback_days"]))
	} else {
		err = fmt.Errorf("it is neither an append to t nor a MERGE INTO t USING s")
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", code, err)
	case source != nil && !slices.Equal(sorted(source), sorted(q.key)):
		return nil, fmt.Errorf("%s: the lab knows dropDuplicates by the key of the MERGE only", code)
	case source != nil && q.strategy == "merge-upsert-latest":
		q.params["source_batch"] = "first"
	case source != nil:
		q.params["dedup_source_batch"] = "true"
	}
	return q, nil
}

func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

func (q *sinkQuery) append(options string, source []string) error {
	switch {
	case options == "":
		q.strategy = "append-batch-sink"
	case onceOptions.MatchString(options):
		q.strategy = "idempotent-batch-sink"
	default:
		return fmt.Errorf("the lab knows no option but txnAppId with txnVersion")
	}
	q.key = source
	return nil
}

func (q *sinkQuery) merge(on, clauses, event, lookback string) error {
	switch m := upsertClause.FindStringSubmatch(clauses); {
	case m != nil && bare(m[1]) == event && bare(m[2]) == event:
		q.strategy, q.params["source_batch"] = "merge-upsert-latest", "as-is"
	case m != nil:
		return fmt.Errorf("the lab compares by the column that the date is taken of, %s", event)
	case insertClause.MatchString(clauses):
		q.strategy = "merge-insert-only"
	default:
		return fmt.Errorf("the lab does not know %s", clauses)
	}
	q.params["lookback"] = strategies.None
	operators := map[string]bool{}
	for _, condition := range regexp.MustCompile(`(?i) AND `).Split(on, -1) {
		if m := keyMatches.FindStringSubmatch(condition); m != nil && m[1] == m[3] {
			q.key = append(q.key, bare(m[1]))
			operators[m[2]] = true
			q.params["null_safe"] = strconv.FormatBool(m[2] == "<=>")
		} else if m := dateBound.FindStringSubmatch(condition); m != nil {
			days := strings.Replace(m[1], "{lookback}", lookback, 1)
			if _, err := strconv.Atoi(days); err != nil {
				return fmt.Errorf("lookback_days is %q, not a number of days", days)
			}
			q.params["lookback"] = days + "d"
		} else {
			return fmt.Errorf("the lab does not know the condition %s", condition)
		}
	}
	if len(operators) != 1 {
		return fmt.Errorf("the lab joins all columns of a key by = or all by <=>")
	}
	return nil
}

// bare is a name without its backticks.
func bare(name string) string { return strings.Trim(name, "`") }

// sinkReplay is a recorded sink that is being run.
type sinkReplay struct {
	c      *sparkCase
	key    []int // columns
	rows   *sparkRows
	json   []string // of the rows, as the table is recorded
	target *watchedTarget
	spec   sim.BatchSpec
	engine *sim.BatchEngine
	diffs  []Diff
}

// watchedTarget notes what a batch has done.
type watchedTarget struct {
	sim.Target
	outcome sim.TargetOutcome
}

func (w *watchedTarget) Write(write *sim.TargetWrite) (sim.TargetOutcome, error) {
	var err error
	w.outcome, err = w.Target.Write(write)
	return w.outcome, err
}

// runSink replays a recorded sink batch by batch.
func runSink(file string, c *sparkCase) ([]Diff, error) {
	r := &sinkReplay{c: c, rows: &sparkRows{}, target: &watchedTarget{Target: sim.NewMemoryTarget()}}
	if err := r.plan(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r.engine = sim.NewBatchEngine(r.spec)
	saved := r.engine.Snapshot()
	for i := range c.Batches {
		b := &c.Batches[i]
		attempt := 1
		if b.Replay {
			r.engine, attempt = sim.RestoreBatchEngine(r.spec, saved), 2
		}
		stop, err := r.step(i, b, attempt)
		if err != nil {
			return nil, fmt.Errorf("%s: batch %d: %w", file, i+1, err)
		}
		if stop {
			break
		}
		if b.SinkFailed == "" {
			saved = r.engine.Snapshot()
		}
	}
	return r.diffs, nil
}

// plan plans the query.
func (r *sinkReplay) plan() error {
	var columns sparkColumns
	event := ""
	for _, column := range r.c.Columns {
		if m := dateColumn.FindStringSubmatch(column.Type); m != nil {
			event = m[1]
			continue
		}
		typ, _, _ := strings.Cut(column.Type, " ")
		columns.names, columns.types = append(columns.names, column.Name), append(columns.types, typ)
	}
	at, err := columns.index(event)
	if err != nil {
		return fmt.Errorf("columns: a column must be the \"date of\" another one, \"UTC\": %w", err)
	}
	q, err := r.c.sinkQuery(r.c.Code[0], event)
	if err != nil {
		return err
	}
	for _, name := range q.key {
		i, err := columns.index(name)
		if err != nil {
			return err
		}
		r.key = append(r.key, i)
	}
	if r.rows.schema, err = columns.schema(r.key, at); err != nil {
		return err
	}
	for i := range r.rows.schema.Columns {
		r.rows.schema.Columns[i].Nullable = true
	}
	strategy, err := strategies.Find(q.strategy)
	if err != nil {
		return err
	}
	args, faults := strategy.Resolve(q.params, r.rows.schema)
	if len(faults) > 0 {
		return faults[0]
	}
	batch := strategy.Plan(args, strategies.Job{Schema: r.rows.schema}).Batch
	r.spec = batch.Spec(sim.BatchSpec{Records: r.rows, Target: r.target}, 1)
	return nil
}

func (r *sinkReplay) differ(batch int, what, want, got string) {
	if want != got {
		r.diffs = append(r.diffs, Diff{Step: batch, What: what, Want: want, Got: got, Unit: "batch"})
	}
}

// step runs one batch and compares. It reports whether the case ends there.
func (r *sinkReplay) step(i int, b *sparkBatch, attempt int) (bool, error) {
	rows, err := r.read(b)
	if err != nil {
		return false, err
	}
	today, err := time.Parse(time.DateOnly, b.Today)
	if err != nil {
		return false, fmt.Errorf("today is %q, not a date such as 2024-10-04", b.Today)
	}
	r.target.outcome = sim.TargetOutcome{}
	p := r.engine.RunBatch(stream.Time(today.UnixMilli()), rows, attempt)
	failure := conditionOf(r.engine.Err())
	r.differ(i, "error", orNone(b.failure()), orNone(failure))
	if failure != "" || b.failure() != "" {
		return true, nil
	}
	number := func(what string, want *int64, got int64) {
		if want != nil {
			r.differ(i, what, strconv.FormatInt(*want, 10), strconv.FormatInt(got, 10))
		}
	}
	o := &r.target.outcome
	number("batch", b.Batch, p.ID)
	number("inserted", b.Inserted, int64(o.Inserted))
	number("updated", b.Updated, int64(o.Updated))
	if b.Committed != nil {
		r.differ(i, "committed", strconv.FormatBool(*b.Committed), strconv.FormatBool(o.Committed))
	}
	table, err := r.table()
	number("table_rows", b.TableRows, int64(len(table)))
	if b.Table != nil {
		var want []string
		for _, row := range *b.Table {
			want = append(want, canonicalFields(row))
		}
		r.differ(i, "table", strings.Join(sorted(want), "\n"), strings.Join(table, "\n"))
	}
	return false, err
}

// read takes the rows of a batch.
func (r *sinkReplay) read(b *sparkBatch) ([]stream.Row, error) {
	var rows []stream.Row
	schema := r.rows.schema
	for i, recorded := range b.Rows {
		row := stream.Row{Event: stream.NullTime, Tag: stream.NewTag(uint64(len(r.rows.rows)), 0, 0)}
		fields := map[string]string{}
		var values []sparkValue
		for j, column := range schema.Columns {
			v, err := readSparkValue(recorded.Get(column.Name), r.c.typeOf(column.Name))
			if err != nil {
				return nil, fmt.Errorf("row %d: column %s: %w", i+1, column.Name, err)
			}
			values = append(values, v)
			fields[column.Name] = v.json
			if j == schema.Event && !v.null {
				row.Event = stream.Time(v.n)
			}
		}
		for _, column := range r.c.Columns {
			if dateColumn.MatchString(column.Type) {
				fields[column.Name] = "null"
				if row.Event != stream.NullTime {
					fields[column.Name] = quoteJSON(sim.DateOf(row.Event).String())
				}
			}
		}
		r.rows.rows = append(r.rows.rows, values)
		r.json = append(r.json, spellFields(fields))
		row.Key = strategies.HashColumns(r.rows.Record(row.Tag), r.key)
		rows = append(rows, row)
	}
	return rows, nil
}

// typeOf is the type of a column, the first word of what columns says.
func (c *sparkCase) typeOf(name string) string {
	for _, column := range c.Columns {
		if column.Name == name {
			typ, _, _ := strings.Cut(column.Type, " ")
			return typ
		}
	}
	return ""
}

// table spells the target's rows, sorted.
func (r *sinkReplay) table() ([]string, error) {
	rows := []string{}
	err := r.target.Scan(func(row *sim.TargetRow) { rows = append(rows, r.json[row.Tag.Event()]) })
	return sorted(rows), err
}
