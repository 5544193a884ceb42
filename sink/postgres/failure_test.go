//go:build unix

package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"deduplab/sim"
	"deduplab/stream"
)

// batchOf makes the write of a batch of three rows, one of which an earlier batch has brought.
func batchOf(batch int64) *sim.TargetWrite {
	w := &sim.TargetWrite{Batch: batch, Mode: sim.MergeInsert, Since: sim.NullDate, Today: 20_000}
	for n := 2 * batch; n < 2*batch+3; n++ {
		w.Rows = append(w.Rows, sim.TargetRow{Key: stream.Key{Lo: uint64(n)}, Tag: stream.Tag(n), Event: 1_728_000_000_000})
	}
	return w
}

// A database that goes away in the middle of a run is an error that says so; the rows that stay are those of the
// batches recorded, and running again loses and doubles nothing.
func TestDatabaseGoesAway(t *testing.T) {
	db := startServer(t)
	ctx := context.Background()
	target, err := Open(ctx, db.url(), Table{Name: "orders", Records: records{}})
	if err != nil {
		t.Fatal(err)
	}
	for batch := range int64(5) {
		if _, err := target.Write(batchOf(batch)); err != nil {
			t.Fatal(err)
		}
	}
	db.stop()
	_, err = target.Write(batchOf(5))
	if err == nil || !strings.HasPrefix(err.Error(), "target table orders: the database went away") {
		t.Fatalf("the error says %v", err)
	}
	_ = target.Close()
	if _, err := Open(ctx, db.url(), Table{Name: "orders", Records: records{}}); err == nil {
		t.Fatal("no error though there is no server")
	}

	db.start()
	conn, err := pgx.Connect(ctx, db.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	counts := func() (rows, keys, last int64) {
		t.Helper()
		if err := conn.QueryRow(ctx, `SELECT count(*), count(DISTINCT lab_key), (SELECT last_batch FROM deduplab_batches
			WHERE table_name = 'orders') FROM orders`).Scan(&rows, &keys, &last); err != nil {
			t.Fatal(err)
		}
		return rows, keys, last
	}
	if rows, keys, last := counts(); rows != 11 || keys != 11 || last != 4 {
		t.Errorf("after the crash: %d rows, %d keys, last batch %d", rows, keys, last)
	}
	target, err = Open(ctx, db.url(), Table{Name: "orders", Records: records{}})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for batch := range int64(8) {
		if _, err := target.Write(batchOf(batch)); err != nil {
			t.Fatal(err)
		}
	}
	if rows, keys, last := counts(); rows != 17 || keys != 17 || last != 7 {
		t.Errorf("after the second run: %d rows, %d keys, last batch %d", rows, keys, last)
	}
}

// The lab replaces its own tables only.
func TestForeignTable(t *testing.T) {
	db := startServer(t)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.url())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `CREATE TABLE orders (id int)`); err != nil {
		t.Fatal(err)
	}
	_, err = Open(ctx, db.url(), Table{Name: "orders", Records: records{}})
	if err == nil || !strings.Contains(err.Error(), "which the lab has not made") {
		t.Errorf("the error says %v", err)
	}
}
