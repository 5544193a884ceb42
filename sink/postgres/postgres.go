// Package postgres keeps a sink's target in a table of a Postgres database, version 15 or later, which has MERGE.
//
// Each table has the columns of the workload, to be looked at, and beside them those that the lab goes by, which begin
// with lab_. A batch is copied into a temporary table and written from there with the statement that a user would run:
// INSERT, INSERT ... ON CONFLICT DO NOTHING where a unique key allows it, or MERGE. The id of the batch is recorded in
// the table deduplab_batches in the same transaction.
package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"deduplab/sim"
	"deduplab/stream"
)

// Table is the table that a target is kept in.
type Table struct {
	Name    string
	Records stream.Records // gives the columns of the workload
	// UniqueKey says that no key is to stand in the table twice: all that is written to it are merges without a lookback
	// of batches with one row a key. NullSafe says the same of keys with a NULL.
	UniqueKey, NullSafe bool
}

// target is a sim.Target.
type target struct {
	ctx        context.Context
	conn       *pgx.Conn
	table      Table
	name       string   // quoted
	columns    []string // quoted, of the workload
	partitions []sim.Partition
	last       int64
	next       uint64
}

// made is the comment by which the lab knows its own tables.
const made = "made by deduplab; the next run starts with an empty one"

// labColumns are the columns beside those of the workload, in the order of scan and copy.
var labColumns = []string{"lab_date", "lab_key", "lab_null_key", "lab_id", "lab_event", "lab_tag", "lab_batch",
	"lab_written"}

// Open connects and makes an empty table, in place of the one of a run before. A table of that name which the lab has
// not made is an error. The context ends all that the target does.
func Open(ctx context.Context, address string, table Table) (sim.Target, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		// The driver lists all that it has tried, a line each.
		return nil, fmt.Errorf("target table %s: %s", table.Name, strings.Join(strings.Fields(err.Error()), " "))
	}
	t := &target{ctx: ctx, conn: conn, table: table, name: pgx.Identifier{table.Name}.Sanitize(), last: -1}
	for _, c := range table.Records.Schema().Columns {
		if strings.HasPrefix(c.Name, "lab_") {
			err = fmt.Errorf("column %q: names that begin with lab_ are the lab's own", c.Name)
		}
		t.columns = append(t.columns, pgx.Identifier{c.Name}.Sanitize())
	}
	if err == nil {
		err = pgx.BeginFunc(ctx, conn, t.create)
	}
	if err != nil {
		return nil, errors.Join(t.failed(err), conn.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

// failed says where an error comes from.
func (t *target) failed(err error) error {
	if t.conn.IsClosed() {
		return fmt.Errorf("target table %s: the database went away, and nothing of the batch is in the table; run again "+
			"when it is back, which starts with an empty table: %w", t.table.Name, err)
	}
	return fmt.Errorf("target table %s: %w", t.table.Name, err)
}

// create makes the tables.
func (t *target) create(tx pgx.Tx) error {
	var comment *string
	err := tx.QueryRow(t.ctx, `SELECT obj_description(c.oid, 'pg_class') FROM pg_class c WHERE c.oid = to_regclass($1)`,
		t.name).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return err
	case comment == nil || *comment != made:
		return fmt.Errorf("there is a table of that name already, which the lab has not made; rename one of them")
	}
	columns := make([]string, 0, len(t.columns))
	for i, c := range t.table.Records.Schema().Columns {
		columns = append(columns, t.columns[i]+" "+columnType(c)+",")
	}
	lab := strings.Join(columns, " ") + ` lab_date date, lab_key uuid NOT NULL, lab_null_key boolean NOT NULL,
		lab_id bigint NOT NULL, lab_event bigint, lab_tag bigint NOT NULL, lab_batch bigint NOT NULL, lab_written date NOT NULL`
	statements := []string{
		`CREATE TABLE IF NOT EXISTS deduplab_batches (table_name text PRIMARY KEY, last_batch bigint NOT NULL,
			next_id bigint NOT NULL)`,
		`DROP TABLE IF EXISTS ` + t.name,
		`CREATE TABLE ` + t.name + ` (` + lab + `)`,
		`COMMENT ON TABLE ` + t.name + ` IS '` + made + `'`,
		`CREATE INDEX ON ` + t.name + ` (lab_key, lab_date)`,
		`CREATE TEMPORARY TABLE lab_batch (` + lab + `) ON COMMIT DELETE ROWS`,
	}
	if t.table.UniqueKey {
		where := ` WHERE NOT lab_null_key`
		if t.table.NullSafe {
			where = ""
		}
		statements = append(statements, `CREATE UNIQUE INDEX ON `+t.name+` (lab_key)`+where)
	}
	for _, statement := range statements {
		if _, err := tx.Exec(t.ctx, statement); err != nil {
			return err
		}
	}
	_, err = tx.Exec(t.ctx, `INSERT INTO deduplab_batches VALUES ($1, -1, 0) ON CONFLICT (table_name)
		DO UPDATE SET last_batch = -1, next_id = 0`, t.table.Name)
	return err
}

func columnType(c stream.Column) string {
	switch c.Type {
	case stream.String:
		return "text"
	case stream.Decimal:
		return "numeric"
	case stream.Timestamp:
		return "timestamptz"
	}
	return "bigint"
}

func (t *target) Last() int64 { return t.last }

func (t *target) Partitions() []sim.Partition { return append([]sim.Partition(nil), t.partitions...) }

func (t *target) Close() error { return t.conn.Close(context.WithoutCancel(t.ctx)) }

// Write writes one batch in one transaction.
func (t *target) Write(w *sim.TargetWrite) (sim.TargetOutcome, error) {
	var o sim.TargetOutcome
	if w.Mode == sim.AppendOnce && w.Batch <= t.last {
		for range w.Rows {
			o.Fates = append(o.Fates, sim.RowSkipped)
		}
		return o, nil
	}
	last, next := max(w.Batch, t.last), t.next+uint64(len(w.Rows))
	err := pgx.BeginFunc(t.ctx, t.conn, func(tx pgx.Tx) error {
		o = sim.TargetOutcome{Fates: make([]sim.RowFate, len(w.Rows))}
		if err := t.copy(tx, w); err != nil {
			return err
		}
		if err := t.run(tx, w, &o); err != nil {
			return err
		}
		return t.record(tx, last, next)
	})
	if err != nil {
		var multiple sim.MultipleMatches
		if errors.As(err, &multiple) {
			return sim.TargetOutcome{}, err
		}
		return sim.TargetOutcome{}, t.failed(err)
	}
	for i, fate := range o.Fates {
		if fate == sim.RowInserted {
			t.count(sim.DateOf(w.Rows[i].Event), 1)
		}
	}
	for _, r := range o.Replaced {
		t.count(r.Old.Date, -1)
		t.count(sim.DateOf(w.Rows[r.By].Event), 1)
	}
	t.last, t.next = last, next
	return o, nil
}

func (t *target) count(d sim.Date, n int64) { t.partitions = sim.CountRows(t.partitions, d, n) }

// record records what the batch has come to.
func (t *target) record(tx pgx.Tx, last int64, next uint64) error {
	_, err := tx.Exec(t.ctx, `UPDATE deduplab_batches SET last_batch = $2, next_id = $3 WHERE table_name = $1`,
		t.table.Name, last, int64(next))
	return err
}

// copy brings the batch into its temporary table.
func (t *target) copy(tx pgx.Tx, w *sim.TargetWrite) error {
	schema := t.table.Records.Schema()
	names := append([]string(nil), labColumns...)
	for _, c := range schema.Columns {
		names = append(names, c.Name)
	}
	_, err := tx.CopyFrom(t.ctx, pgx.Identifier{"lab_batch"}, names, pgx.CopyFromSlice(len(w.Rows), func(i int) ([]any, error) {
		row := &w.Rows[i]
		values := []any{
			dateValue(sim.DateOf(row.Event)), uuidOf(row.Key), row.NullKey, int64(t.next) + int64(i), eventValue(row.Event),
			int64(row.Tag), w.Batch, dateValue(w.Today),
		}
		for j, v := range t.table.Records.Record(row.Tag) {
			values = append(values, value(v, schema.Columns[j]))
		}
		return values, nil
	}))
	return err
}

// run runs the statement on the batch, and before it the join that tells which rows match.
func (t *target) run(tx pgx.Tx, w *sim.TargetWrite, o *sim.TargetOutcome) error {
	all := strings.Join(append(append([]string(nil), labColumns...), t.columns...), ", ")
	insert := `INSERT INTO ` + t.name + ` (` + all + `) SELECT ` + all + ` FROM lab_batch ORDER BY lab_id`
	if w.Mode == sim.Append || w.Mode == sim.AppendOnce {
		o.Inserted, o.Committed = len(w.Rows), len(w.Rows) > 0 || w.Mode == sim.AppendOnce
		_, err := tx.Exec(t.ctx, insert)
		return err
	}
	for _, p := range t.partitions {
		if p.Date >= w.Since {
			o.JoinedDates++
			o.JoinedRows += p.Rows
		}
	}
	if t.table.UniqueKey && w.Mode == sim.MergeInsert && w.Since == sim.NullDate {
		return t.insertNew(tx, insert+` ON CONFLICT DO NOTHING RETURNING lab_id`, o)
	}
	on := t.condition(w)
	touched, err := t.match(tx, w, on, o)
	if err != nil {
		return err
	}
	for _, fate := range o.Fates {
		if fate == sim.RowInserted {
			o.Inserted++
		}
	}
	o.Committed = o.Inserted > 0 || touched && w.Mode == sim.MergeUpsert
	done, err := tx.Exec(t.ctx, `MERGE INTO `+t.name+` t USING lab_batch s ON `+on+t.update(w.Mode)+
		` WHEN NOT MATCHED THEN INSERT (`+all+`) VALUES (`+prefixed("s.", labColumns, t.columns)+`)`)
	if err == nil && done.RowsAffected() != int64(o.Inserted+o.Updated) {
		err = fmt.Errorf("MERGE changed %d rows, not %d: somebody else writes to the table", done.RowsAffected(),
			o.Inserted+o.Updated)
	}
	return err
}

// condition is what a merge joins by.
func (t *target) condition(w *sim.TargetWrite) string {
	on := `t.lab_key = s.lab_key`
	if !w.NullSafe {
		on += ` AND NOT s.lab_null_key`
	}
	if w.Since != sim.NullDate {
		on += fmt.Sprintf(` AND t.lab_date >= DATE '%s'`, w.Since)
	}
	return on
}

// update is the clause of an upsert. The row keeps its lab_id.
func (t *target) update(mode sim.WriteMode) string {
	if mode != sim.MergeUpsert {
		return ""
	}
	var set []string
	for _, c := range append(append([]string(nil), labColumns...), t.columns...) {
		if c != "lab_id" {
			set = append(set, c+` = s.`+c)
		}
	}
	return ` WHEN MATCHED AND s.lab_event > t.lab_event THEN UPDATE SET ` + strings.Join(set, ", ")
}

// insertNew leaves it to a unique index which rows are new.
func (t *target) insertNew(tx pgx.Tx, insert string, o *sim.TargetOutcome) error {
	for i := range o.Fates {
		o.Fates[i] = sim.RowMatched
	}
	rows, err := tx.Query(t.ctx, insert)
	if err != nil {
		return err
	}
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		o.Fates[id-int64(t.next)] = sim.RowInserted
		o.Inserted++
		return nil
	})
	o.Committed = o.Inserted > 0
	return err
}

// match joins the batch with the table as it is before the MERGE, and reports whether anything matches.
func (t *target) match(tx pgx.Tx, w *sim.TargetWrite, on string, o *sim.TargetOutcome) (bool, error) {
	rows, err := tx.Query(t.ctx, `SELECT s.lab_id, `+prefixed("t.", labColumns)+` FROM lab_batch s JOIN `+t.name+
		` t ON `+on+` ORDER BY s.lab_id, t.lab_date DESC NULLS LAST, t.lab_id`)
	if err != nil {
		return false, err
	}
	touched := false
	matched := map[uint64]bool{}
	var id int64
	var r scanned
	_, err = pgx.ForEachRow(rows, append([]any{&id}, r.fields()...), func() error {
		touched = true
		i, old := int(id-int64(t.next)), r.row()
		if o.Fates[i] == sim.RowInserted {
			o.Fates[i] = sim.RowMatched
		}
		if w.Mode != sim.MergeUpsert {
			return nil
		}
		if matched[old.ID] {
			return sim.MultipleMatches{}
		}
		matched[old.ID] = true
		if s := w.Rows[i].Event; s != stream.NullTime && old.Event != stream.NullTime && s > old.Event {
			o.Fates[i] = sim.RowUpdated
			o.Updated++
			o.Replaced = append(o.Replaced, sim.ReplacedRow{By: i, Old: old})
		}
		return nil
	})
	return touched, err
}

// Remove removes rows.
func (t *target) Remove(removed []sim.TargetRow) error {
	ids := make([]int64, len(removed))
	for i := range removed {
		ids[i] = int64(removed[i].ID)
	}
	_, err := t.conn.Exec(t.ctx, `DELETE FROM `+t.name+` WHERE lab_id = ANY($1)`, ids)
	if err != nil {
		return t.failed(err)
	}
	for i := range removed {
		t.count(removed[i].Date, -1)
	}
	return nil
}

// Scan visits all rows.
func (t *target) Scan(f func(*sim.TargetRow)) error {
	return t.each(`SELECT `+prefixed("", labColumns)+` FROM `+t.name+` ORDER BY lab_date NULLS FIRST, lab_key, lab_id`, f)
}

func (t *target) each(query string, f func(*sim.TargetRow)) error {
	rows, err := t.conn.Query(t.ctx, query)
	if err != nil {
		return t.failed(err)
	}
	var r scanned
	if _, err = pgx.ForEachRow(rows, r.fields(), func() error {
		row := r.row()
		f(&row)
		return nil
	}); err != nil {
		return t.failed(err)
	}
	return nil
}

// Repeated lets the database count the keys.
func (t *target) Repeated(from sim.Date, f func(rows []sim.TargetRow)) error {
	dated := ``
	if from != sim.NullDate {
		dated = fmt.Sprintf(` AND lab_date >= DATE '%s'`, from)
	}
	var group []sim.TargetRow
	flush := func() {
		if len(group) > 0 {
			f(group)
		}
		group = group[:0]
	}
	err := t.each(`SELECT `+prefixed("", labColumns)+` FROM (SELECT *, count(*) OVER (PARTITION BY lab_key) AS times FROM `+
		t.name+` WHERE NOT lab_null_key`+dated+`) counted WHERE times > 1 ORDER BY lab_key, lab_id`,
		func(row *sim.TargetRow) {
			if len(group) > 0 && group[0].Key != row.Key {
				flush()
			}
			group = append(group, *row)
		})
	flush()
	return err
}

// scanned takes the lab's columns of one row.
type scanned struct {
	date, written pgtype.Date
	key           [16]byte
	nullKey       bool
	id, tag       int64
	event         *int64
	batch         int64
}

func (s *scanned) fields() []any {
	return []any{&s.date, &s.key, &s.nullKey, &s.id, &s.event, &s.tag, &s.batch, &s.written}
}

func (s *scanned) row() sim.TargetRow {
	event := stream.NullTime
	if s.event != nil {
		event = stream.Time(*s.event)
	}
	return sim.TargetRow{
		Date: sim.DateOf(event), NullKey: s.nullKey, ID: uint64(s.id), Event: event, Tag: stream.Tag(s.tag), Batch: s.batch,
		Key:     stream.Key{Hi: binary.BigEndian.Uint64(s.key[:8]), Lo: binary.BigEndian.Uint64(s.key[8:])},
		Written: sim.DateOf(stream.Time(s.written.Time.UnixMilli())),
	}
}

func uuidOf(k stream.Key) (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], k.Hi)
	binary.BigEndian.PutUint64(b[8:], k.Lo)
	return b
}

func dateValue(d sim.Date) any {
	if d == sim.NullDate {
		return nil
	}
	return time.UnixMilli(int64(d.Time())).UTC()
}

func eventValue(t stream.Time) any {
	if t == stream.NullTime {
		return nil
	}
	return int64(t)
}

// value is a column of the workload.
func value(v stream.Value, c stream.Column) any {
	switch {
	case v.Null:
		return nil
	case c.Type == stream.String:
		return v.Text
	case c.Type == stream.Decimal:
		return pgtype.Numeric{Int: big.NewInt(v.Int), Exp: -int32(c.Scale), Valid: true}
	case c.Type == stream.Timestamp:
		return time.UnixMilli(v.Int).UTC()
	}
	return v.Int
}

// prefixed lists columns.
func prefixed(prefix string, lists ...[]string) string {
	var names []string
	for _, list := range lists {
		for _, name := range list {
			names = append(names, prefix+name)
		}
	}
	return strings.Join(names, ", ")
}
