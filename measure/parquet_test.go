package measure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"deduplab/measure"
)

// parquetRow is the columns of the small trace, and what is not read.
type parquetRow struct {
	ID   *string `parquet:"id,optional,dict"`
	Meta struct {
		Ts *time.Time `parquet:"ts,optional,timestamp(microsecond)"`
	} `parquet:"meta"`
	At    int64    `parquet:"at"`
	P     int32    `parquet:"p"`
	Price float64  `parquet:"price"`
	Tags  []string `parquet:"tags"`
}

// parquetFile writes rows in several row groups, and the same rows as CSV.
func parquetFile(t *testing.T, rows int) (data []byte, csv string) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b, parquet.Compression(&parquet.Zstd))
	csv = "id,meta.ts,at,p,price\n"
	for i := range rows {
		row := parquetRow{At: 1700000000000 + int64(i*i)*7, P: int32(i % 2), Price: float64(i%5) / 4,
			Tags: []string{"x", "y"}}
		id, ts := "", ""
		if i%7 > 0 {
			id = fmt.Sprint("id-", i%50)
			row.ID = &id
		}
		if i%11 > 0 {
			at := time.UnixMilli(row.At - int64(i%13)*1500).UTC().Add(250 * time.Microsecond)
			row.Meta.Ts, ts = &at, at.Format(time.RFC3339Nano)
		}
		if _, err := w.Write([]parquetRow{row}); err != nil {
			t.Fatal(err)
		}
		if i%400 == 399 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		csv += fmt.Sprintf("%s,%s,%d,%d,%v\n", id, ts, row.At, row.P, row.Price)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), csv
}

// TestParquet: a Parquet file measures as the same rows in CSV, from disk, from a stream, and as CSV in zstd.
func TestParquet(t *testing.T) {
	data, csv := parquetFile(t, 1000)
	var zipped bytes.Buffer
	z, err := zstd.NewWriter(&zipped)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(z, csv)
	z.Close()
	columns := measure.Columns{Keys: [][]string{{"id"}, {"id", "price"}}, EventTime: "meta.ts", Arrival: "at",
		Partition: "p"}
	want, err := json.Marshal(report(t, columns, measure.Options{}, map[string]string{"f": csv}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fromDisk, err := measure.NewReader(columns, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := fromDisk.Read("f", file); err != nil {
		t.Fatal(err)
	}
	disk, err := fromDisk.Report(measure.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*measure.Report{
		"disk":   disk,
		"stream": report(t, columns, measure.Options{}, map[string]string{"f": string(data)}),
		"zstd":   report(t, columns, measure.Options{}, map[string]string{"f": zipped.String()}),
	} {
		if got, err := json.Marshal(r); err != nil || string(got) != string(want) {
			t.Errorf("%s: %s\nwant %s", name, got, want)
		}
	}
}

func TestParquetFaults(t *testing.T) {
	data, _ := parquetFile(t, 20)
	for _, c := range []struct {
		columns measure.Columns
		data    []byte
		want    string
	}{
		{measure.Columns{Keys: key("nr"), Arrival: "at"}, data,
			`f: --key: there is no column "nr" (there are: id, meta.ts, at, p, price, tags)`},
		{measure.Columns{Keys: key("meta"), Arrival: "at"}, data, `f: --key: there is no column "meta"`},
		{measure.Columns{Keys: key("tags"), Arrival: "at"}, data, `f: column "tags" is a list`},
		{measure.Columns{Keys: key("p"), Arrival: "id"}, data, `f:1:id: a row needs an arrival`},
		{measure.Columns{Keys: key("p"), Arrival: "at"}, data[:len(data)/2], `f: `},
	} {
		r, err := measure.NewReader(c.columns, false)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.Read("f", bytes.NewReader(c.data)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Report(measure.Options{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
