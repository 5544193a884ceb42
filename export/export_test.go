package export_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"deduplab/export"
	"deduplab/gen"
	"deduplab/stream"
)

func spec() gen.Spec {
	return gen.Spec{
		Start: 1767225600000, Duration: 30 * 60 * 1000, Rate: 20, Partitions: 2,
		Fields: []gen.Field{{Name: "id", UUID: true}, {Name: "n", Int: &[2]int64{1, 10}},
			{Name: "price", Decimal: &[2]int64{-50, 149}}, {Name: "who", Faker: `{firstname} "x", {lastname}`}},
		Key: []string{"id"}, EventTime: gen.EventTime{Field: "at"},
		Transport: gen.Delay{Kind: gen.Uniform, Low: 0, High: 3000},
		Silent:    []gen.Silence{{Partition: 1, From: 20 * 60 * 1000, For: 60 * 60 * 1000}},
		Duplicates: []gen.Duplicate{
			{Origin: "cheap", Rate: 0.5, Where: &gen.Where{Field: "price", Op: "<", Value: 50}},
			{Origin: "first", Rate: 1, Where: &gen.Where{Field: "n", Op: "==", Value: 1}},
			{Origin: "most", Rate: 0.1, Where: &gen.Where{Field: "n", Op: ">=", Value: 3}},
			{Origin: "retry", Rate: 0.2, NewID: true, Delay: gen.Delay{Low: 5000}},
		},
	}
}

// workload is the first minutes of spec.
func workload(t *testing.T) gen.Workload {
	s := spec()
	s.Duration = 2 * 60 * 1000
	w, err := gen.New(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func write(t *testing.T, w gen.Workload, o export.Options) string {
	var b bytes.Buffer
	n, err := export.Write(context.Background(), &b, w, o)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(b.String(), "\n")
	if o.Format == export.CSV {
		lines--
	}
	if n != lines {
		t.Fatalf("%d rows said, %d written", n, lines)
	}
	return b.String()
}

// TestReadBack: every format holds the rows as they were delivered, the truth too.
func TestReadBack(t *testing.T) {
	w := workload(t)
	columns := gen.TraceColumns{Key: []string{"id"}, EventTime: "at", Arrival: export.Arrival, Partition: export.Partition}
	labels := columns
	labels.Event, labels.Origin = export.Event, export.Origin
	for _, o := range []export.Options{
		{Format: export.JSONLines}, {Format: export.CSV}, {Format: export.Parquet},
		{Format: export.JSONLines, Compression: export.Zstd}, {Format: export.CSV, Compression: export.Gzip},
	} {
		o.Truth = true
		var file bytes.Buffer
		n, err := export.Write(context.Background(), &file, w, o)
		if err != nil {
			t.Fatal(err)
		}
		back, err := gen.ReadTrace("f", bytes.NewReader(file.Bytes()), gen.TraceSpec{Columns: columns})
		if err != nil {
			t.Fatal(err)
		}
		labelled, err := gen.ReadTrace("f", &file, gen.TraceSpec{Columns: labels})
		if err != nil {
			t.Fatal(err)
		}
		if !labelled.Labelled() || back.Labelled() || fmt.Sprint(labelled.Schema()) != fmt.Sprint(w.Schema()) {
			t.Fatalf("%+v: with labels the columns are\n%v, and were\n%v", o, labelled.Schema(), w.Schema())
		}
		in, out, known := w.Stream(), back.Stream(), labelled.Stream()
		var a, b, c [1]stream.Row
		for row := 0; ; row++ {
			got, _ := out.Next(b[:])
			known.Next(c[:])
			if want, _ := in.Next(a[:]); want != got {
				t.Fatalf("%d rows come back", row)
			}
			if got == 0 {
				if row != n {
					t.Fatalf("%d rows, %d said", row, n)
				}
				break
			}
			for _, r := range []stream.Row{b[0], c[0]} {
				if a[0].Arrival != r.Arrival || a[0].Event != r.Event || a[0].Partition != r.Partition || a[0].Key != r.Key {
					t.Fatalf("%+v, row %d: %+v, want %+v", o, row, r, a[0])
				}
			}
			if a[0].First != c[0].First || a[0].Lone != c[0].Lone {
				t.Fatalf("%+v, row %d: %+v, want %+v", o, row, c[0], a[0])
			}
			origin := w.Origins()[a[0].Tag.Origin()]
			if got := labelled.Origins()[c[0].Tag.Origin()]; got != origin {
				t.Fatalf("%+v, row %d: of origin %s, want %s", o, row, got, origin)
			}
			record := w.Record(a[0].Tag)
			if got := labelled.Record(c[0].Tag); fmt.Sprint(got) != fmt.Sprint(record) {
				t.Fatalf("%+v, row %d: %v, want %v", o, row, got, record)
			}
			record = append(record, stream.Value{Int: int64(a[0].Tag.Event())}, stream.Value{Text: origin})
			if got := back.Record(b[0].Tag); fmt.Sprint(got) != fmt.Sprint(record) {
				t.Fatalf("%+v, row %d: %v, want %v", o, row, got, record)
			}
		}
	}
}

// TestWellFormed: other readers than our own take the files.
func TestWellFormed(t *testing.T) {
	w := workload(t)
	for line := range strings.Lines(write(t, w, export.Options{Limit: 50})) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil || len(row) != 7 {
			t.Fatalf("%s: %v", line, err)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(write(t, w, export.Options{Format: export.CSV, Limit: 50}))).ReadAll()
	if err != nil || len(rows) != 51 || strings.Join(rows[0], " ") != "id n price who at _arrival _partition" {
		t.Fatalf("%d rows, %v: %v", len(rows), rows[0], err)
	}
}

func TestNulls(t *testing.T) {
	w, err := gen.ReadTrace("f", strings.NewReader("id,at,n\n,1700000000,\na,1700000001,5\n"),
		gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "at"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := write(t, w, export.Options{Limit: 1}); got !=
		`{"id":null,"at":1700000000000,"n":null,"_arrival":1700000000000,"_partition":0}`+"\n" {
		t.Error(got)
	}
	if got := write(t, w, export.Options{Format: export.CSV, Limit: 1}); got !=
		"id,at,n,_arrival,_partition\n,1700000000000,,1700000000000,0\n" {
		t.Error(got)
	}
	if _, err := export.Write(context.Background(), &bytes.Buffer{}, w, export.Options{Truth: true}); err == nil {
		t.Error("the truth of a trace is written")
	}
}

func TestFaults(t *testing.T) {
	s := spec()
	s.Fields[1].Name, s.Duplicates = export.Partition, nil
	w, err := gen.New(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := export.Write(context.Background(), &bytes.Buffer{}, w, export.Options{}); err == nil ||
		!strings.Contains(err.Error(), `column "_partition"`) {
		t.Errorf("a column of a kept name: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := export.Write(ctx, &bytes.Buffer{}, workload(t), export.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	for name, want := range map[string]string{
		"a.csv": "1 0 <nil>", "a.csv.gz": "1 1 <nil>", "b.jsonl": "0 0 <nil>", "b.ndjson.zst": "0 2 <nil>",
		"c.parquet": "2 0 <nil>",
		"c.parquet.gz": `0 0 "c.parquet.gz" must end in .jsonl, .ndjson, .json or .csv, with or without .gz or .zst, ` +
			`or in .parquet`,
	} {
		f, packed, err := export.FormatOf(name)
		if got := fmt.Sprint(f, packed, err); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestExpectedOriginals: partitions that are silent or finished are left out, each moment once, by share and load.
func TestExpectedOriginals(t *testing.T) {
	const minute = 60 * 1000
	s := spec()
	s.Rate, s.Duration, s.Duplicates = 10, 60*minute, nil
	s.PartitionShare = []float64{0.25, 0.75}
	for _, c := range []struct {
		what     string
		silent   []gen.Silence
		finished []gen.Finish
		steps    []gen.LoadStep
		want     float64 // minutes of 600 originals
	}{
		{what: "all", want: 60},
		{what: "silent", silent: []gen.Silence{{Partition: 1, From: 50 * minute, For: 60 * minute}}, want: 60 - 0.75*10},
		{what: "finished", finished: []gen.Finish{{Partition: 1, At: 40 * minute}}, want: 60 - 0.75*20},
		{what: "overlaps", finished: []gen.Finish{{Partition: 1, At: 40 * minute}}, silent: []gen.Silence{
			{Partition: 1, From: 50 * minute, For: minute}, {Partition: 1, From: 30 * minute, For: 15 * minute},
			{Partition: 0, From: 35 * minute, For: 4 * minute}}, want: 60 - 0.75*30 - 0.25*4},
		{what: "under load", finished: []gen.Finish{{Partition: 0, At: 40 * minute}},
			steps: []gen.LoadStep{{From: 50 * minute, Times: 3}}, want: 80 - 0.25*40},
	} {
		s.Silent, s.Finished, s.Load.Steps = c.silent, c.finished, c.steps
		w, err := gen.New(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		expected, came := export.Expected(&s)[0].Rows, 0
		var batch [64]stream.Row
		for in := w.Stream(); ; {
			n, _ := in.Next(batch[:])
			if n == 0 {
				break
			}
			came += n
		}
		if want := 600 * c.want; math.Abs(expected-want) > 0.01 || math.Abs(float64(came)-want) > 4*math.Sqrt(want) {
			t.Errorf("%s: %v are expected and %d come, want %v", c.what, expected, came, want)
		}
	}
}

// TestExpected: what is expected is what comes, within five standard deviations.
func TestExpected(t *testing.T) {
	s := spec()
	w, err := gen.New(s, 7)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	var batch [64]stream.Row
	for in := w.Stream(); ; {
		n, _ := in.Next(batch[:])
		if n == 0 {
			break
		}
		for _, row := range batch[:n] {
			counts[w.Origins()[row.Tag.Origin()]]++
		}
	}
	rates := export.Expected(&s)
	if rates[0].Rows != 30000 || rates[1].Share != 0.25 || rates[2].Share != 0.1 || math.Abs(rates[3].Share-0.08) > 1e-12 {
		t.Errorf("%+v", rates)
	}
	for _, r := range rates {
		if got := counts[r.Origin]; math.Abs(got-r.Rows) > 5*math.Sqrt(r.Rows) {
			t.Errorf("%s: %v rows, expected %v", r.Origin, got, r.Rows)
		}
	}
	if total := export.Total(rates); math.Abs(total-30000*1.63) > 1e-6 {
		t.Errorf("total %v", total)
	}
}
