package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"deduplab/trace"
)

// roles are those of most tests.
var roles = []trace.Role{
	{Name: "key", Column: "id"}, {Name: "time", Column: "ts", Kind: trace.Time},
	{Name: "arrival", Column: "at", Kind: trace.Arrival}, {Name: "partition", Column: "p", Kind: trace.Partition},
}

// dump reads one file and writes its rows as line: key event arrival partition.
func dump(spec trace.Spec, in io.Reader) (string, error) {
	r, err := trace.NewReader(spec)
	if err != nil {
		return "", err
	}
	type row struct {
		line          int64
		key           string
		null          bool
		event, arrive trace.Moment
		partition     uint16
	}
	var rows []row
	err = r.ReadAll([]trace.File{trace.Of("f", in)}, func(x *trace.Row) error {
		rows = append(rows, row{x.Line, string(x.Roles[0].Text), x.Roles[0].Null, x.Roles[1].Time, x.Roles[2].Time,
			x.Roles[3].Number})
		return nil
	})
	var b strings.Builder
	for _, x := range rows {
		if x.null {
			x.key = "null"
		}
		event, _ := x.event.Millis(r.Unit(1))
		arrival, _ := x.arrive.Millis(r.Unit(2))
		fmt.Fprintf(&b, "%s %d %d %d\n", x.key, event, arrival, x.partition)
	}
	return b.String(), err
}

type parquetRow struct {
	ID *string    `parquet:"id,optional"`
	Ts *time.Time `parquet:"ts,optional,timestamp(microsecond)"`
	At int64      `parquet:"at"`
	P  int32      `parquet:"p"`
	X  []string   `parquet:"x"`
}

func parquetFile(t testing.TB) []byte {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b)
	a, at := "a", time.UnixMilli(1700000000000)
	rows := []parquetRow{{&a, &at, 1700000000500, 0, nil}, {nil, nil, 1700000001000, 7, []string{"y"}}}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	fmt.Fprint(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, text string) []byte {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestForms: two rows in every form that there is read the same.
func TestForms(t *testing.T) {
	const csv = "x,id,ts,at,p\n,a,1700000000000,1700000000500,0\ny,,,1700000001000,7\n"
	const json = `{"id":"\u0061","p":0,"ts":1700000000.0,"at":1700000000.5,"more":{"id":["}",{}]}}` + "\n\n" +
		` {"x" : [1, "]"], "p": "7","at" :1700000001,"id":null}`
	for name, data := range map[string][]byte{
		"csv": []byte(csv), "csv with a mark": []byte("\ufeff" + csv), "csv in gzip": zipped(t, csv),
		"csv in zstd": zstandard(t, csv), "json": []byte(json), "json in gzip": zipped(t, json), "parquet": parquetFile(t),
		"csv with quotes": []byte("id,p,\"at\",ts\r\n\"a\",0,1700000000500000,\"1700000000000000\"\r\n" +
			"\"\",7,1700000001000000,\r\n"),
		"timestamps": []byte("id,p,ts,at\na,0,2023-11-14T22:13:20Z,2023-11-14 22:13:20.5\n" +
			",7,,2023-11-15 00:13:21+02:00\n"),
	} {
		got, err := dump(trace.Spec{Roles: roles}, bytes.NewReader(data))
		if want := "a 1700000000000 1700000000500 0\nnull -9223372036854775808 1700000001000 7\n"; err != nil || got != want {
			t.Errorf("%s: %v\n%swant\n%s", name, err, got, want)
		}
	}
}

func TestFaults(t *testing.T) {
	long := strings.Repeat("x", trace.MaxLine+1)
	wide := "id,ts,at,p" + strings.Repeat(",", 10_000)
	file := parquetFile(t)
	damaged := bytes.Clone(file)
	for i := 4; i < len(damaged)-8; i++ {
		damaged[i] ^= 0x55
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f: the file is empty"},
		{"no rows", "id,ts,at,p\n", "f: no rows"},
		{"binary", "\x7fELF\x00\x00", "f: neither Parquet nor text"},
		{"a JSON list", "[\n{}]", "f: begins with ["},
		{"columns", "id,id,ts\n", "f:1: column \"id\" stands twice\n" +
			"f: arrival: there is no column \"at\" (there are: id, id, ts)\n" +
			"f: partition: there is no column \"p\" (there are: id, id, ts)"},
		{"columns of JSON", `{"id":1,"p":2,"at":1}`, `f: time: there is no column "ts" (there are: id, p, at)`},
		{"cells", "id,ts,at,p\na,noon,1,0\na,1,,0\na,1,1,-1\na,1\n\"a\"b,1,1,1\n", `f:2:ts: "noon" is not a time: ` +
			"neither a number nor RFC 3339 nor an SQL timestamp\nf:3:at: a row needs an arrival\n" +
			"f:4:p: \"-1\" is not a partition, a whole number from 0 to 65534\nf:5: 2 cells, but the header has 4\n" +
			"f:6: byte 3: extraneous or missing \" in quoted-field"},
		{"JSON", "{]\n{\"at\":1,\"p\":1,\"ts\":{}}\n[]\n", "f:1: not JSON: invalid character ']' looking for beginning of " +
			"object key string\nf:2:ts: \"{}\" is not a time: neither a number nor RFC 3339 nor an SQL timestamp\n" +
			"f:3: not a JSON object: []"},
		{"long line of CSV", "id,ts,at,p\na,1,1,\"" + long + long, "f:2: the line, or the text in quotes"},
		{"long line of JSON", "{}\n{\"a\":\"" + long, "f:2: the line, or the text in quotes"},
		{"a long line of one byte", "{" + long + long + long, "f:1: the line, or the text in quotes"},
		{"many columns", wide, "f: 10004 columns; there can be 4096"},
		{"truncated gzip", string(zipped(t, "id,ts,at,p\na,1,1,0\n")[:25]), "f: the file is cut off"},
		{"truncated zstd", string(zstandard(t, "id,ts,at,p\na,1,1,0\n")[:15]), "f: the file is cut off"},
		{"truncated Parquet", string(file[:len(file)/2]), "f: the Parquet file is cut off"},
		{"damaged Parquet", string(damaged), "f"},
		{"no Parquet", "PAR1xxxxPAR1", "f: the Parquet file is damaged"},
		{"Parquet in gzip", string(zipped(t, string(file))), "f: a Parquet file is packed in it"},
	} {
		got, err := dump(trace.Spec{Roles: roles}, strings.NewReader(c.text))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %q, %v\nwant %s", c.name, got, err, c.want)
		}
	}
	if _, err := trace.NewReader(trace.Spec{Unit: "h"}); err == nil {
		t.Error("hours are a unit")
	}
}

// TestManyFaults: at most 20 are told, over all files; skipped rows are counted and hide nothing else.
func TestManyFaults(t *testing.T) {
	text := "id,ts,at,p\na,1,1,0\n" + strings.Repeat("a,1,x,0\n", 15)
	for _, skip := range []bool{false, true} {
		r, err := trace.NewReader(trace.Spec{Roles: roles, SkipBadRows: skip})
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		each := func(*trace.Row) error { rows++; return nil }
		first, second := r.Read("a", strings.NewReader(text), each), r.Read("b", strings.NewReader(text), each)
		skipped, faults := r.Skipped()
		if skip {
			if first != nil || second != nil || rows != 2 || skipped != 30 || len(faults) != 20 {
				t.Errorf("%v, %v, %d rows, %d skipped, %d told", first, second, rows, skipped, len(faults))
			}
			continue
		}
		if first == nil || strings.Count(first.Error(), "\n") != 14 || second == nil ||
			!strings.HasSuffix(second.Error(), "b:7:at: \"x\" is not a time: neither a number nor RFC 3339 nor an "+
				"SQL timestamp\nand more") {
			t.Errorf("%v\n%v", first, second)
		}
	}
	_, err := dump(trace.Spec{Roles: roles, SkipBadRows: true}, strings.NewReader("id,ts,at,p\na\nb\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "all 2 rows are bad:\nf:2: 1 cells") {
		t.Errorf("only bad rows: %v", err)
	}
}

// TestBombs: what unpacks to far more than it is ends soon and within bounded memory.
func TestBombs(t *testing.T) {
	zeros := func(w io.WriteCloser, head string) {
		fmt.Fprint(w, head)
		block := bytes.Repeat([]byte("a"), 1<<20)
		for range 1 << 7 { // 128 MB
			w.Write(block)
		}
		w.Close()
	}
	var zip, z bytes.Buffer
	zeros(gzip.NewWriter(&zip), "id,ts,at,p\n")
	w, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	zeros(w, `{"id": "`)
	for _, bomb := range []*bytes.Buffer{&zip, &z} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := dump(trace.Spec{Roles: roles}, bomb)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "longer than 16 MB") {
			t.Errorf("bomb: %v", err)
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 300 {
			t.Errorf("bomb: %d MB taken", got)
		}
	}
}

// TestAll: with all columns a row has the texts of all that were seen so far, over files of any form.
func TestAll(t *testing.T) {
	r, err := trace.NewReader(trace.Spec{Roles: []trace.Role{{Name: "key", Column: "id"}}, All: true})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	each := func(row *trace.Row) error {
		fmt.Fprintf(&b, "%s:", row.Roles[0].Text)
		for _, c := range row.Columns {
			if c.Null {
				c.Text = []byte("-")
			}
			fmt.Fprintf(&b, " %s", c.Text)
		}
		b.WriteByte('\n')
		return nil
	}
	for _, text := range []string{"{\"id\":1,\"a\":true}\n{\"b\":{\"c\":1},\"id\":2,\"b\":\"x\"}\n", "c,a,id\n5,,3\n",
		string(parquetFile(t))} {
		if err := r.Read("f", strings.NewReader(text), each); err != nil {
			t.Fatal(err)
		}
	}
	const want = "1: 1 true\n2: 2 - x\n3: 3 - - 5\n" +
		"a: a - - - 2023-11-14T22:13:20Z 1700000000500 0\n: - - - - - 1700000001000 7\n"
	if got := b.String(); got != want || strings.Join(r.Columns(), " ") != "id a b c ts at p" {
		t.Errorf("%v\n%swant\n%s", r.Columns(), got, want)
	}
	long := "{\"id\":1}\n"
	for i := range 5 {
		long += "{"
		for j := range 1000 {
			long += fmt.Sprintf("\"c%d-%d\":1,", i, j)
		}
		long += "\"id\":1}\n"
	}
	if err := r.Read("g", strings.NewReader(long), each); err == nil || err.Error() != "g: more than 4096 columns" {
		t.Errorf("many columns: %v", err)
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.csv", "a.csv", "c[1].csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("id\n"+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := trace.Files([]string{filepath.Join(dir, "?.csv"), "-", filepath.Join(dir, "c[1].csv")},
		strings.NewReader("id\nstandard input\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewReader(trace.Spec{Roles: []trace.Role{{Name: "key", Column: "id"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	if err := r.ReadAll(files, func(row *trace.Row) error {
		got += string(row.Roles[0].Text) + "; "
		return nil
	}); err != nil || got != "a.csv; b.csv; standard input; c[1].csv; " {
		t.Errorf("%v, %s", err, got)
	}
	if _, err := trace.Files([]string{filepath.Join(dir, "*.json")}, nil); err == nil ||
		!strings.Contains(err.Error(), "no file fits") {
		t.Error(err)
	}
	missing, err := trace.Files([]string{filepath.Join(dir, "x.csv")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ReadAll(missing, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestStop: a consumer ends the reading, with an error of its own or without.
func TestStop(t *testing.T) {
	for _, text := range []string{"id\na\nb\n", "{\"id\":1}\n{\"id\":2}\n"} {
		for _, want := range []error{nil, io.ErrClosedPipe} {
			r, err := trace.NewReader(trace.Spec{Roles: []trace.Role{{Name: "key", Column: "id"}}})
			if err != nil {
				t.Fatal(err)
			}
			stop := want
			if stop == nil {
				stop = trace.ErrStop
			}
			rows := 0
			err = r.Read("f", strings.NewReader(text), func(*trace.Row) error { rows++; return stop })
			if err != want || rows != 1 {
				t.Errorf("%v after %d rows, want %v", err, rows, want)
			}
		}
	}
}

// FuzzRead: whatever a file holds, reading it ends, without a panic, and rows are either handed out or told.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"id,ts,at,p\na,1,2,3\n\"\n", "[]",
		"{\"id\":\"\\u00e9\\\"\",\"ts\":[{}],\"at\":1,\"p\":0}\n{",
		"id,ts,at,p\n\"a\nb\",2024-01-01 00:00:00,-1.5,0\n",
		string(zipped(f, "id,ts,at,p\na,1,2,3\n")), string(parquetFile(f)),
		string(zstandard(f, `{"at":1}`))} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, skip bool) {
		for _, all := range []bool{false, true} {
			r, err := trace.NewReader(trace.Spec{Roles: roles, SkipBadRows: skip, All: all})
			if err != nil {
				t.Fatal(err)
			}
			rows := int64(0)
			err = r.ReadAll([]trace.File{trace.Of("f", bytes.NewReader(data))}, func(row *trace.Row) error {
				rows++
				if all && len(row.Columns) != len(r.Columns()) {
					t.Fatalf("%d cells of %d columns", len(row.Columns), len(r.Columns()))
				}
				for i := range row.Roles {
					_, _ = row.Roles[i].Time.Millis(r.Unit(i))
					_, _ = row.Roles[i].Time.Nanos(r.Unit(i))
				}
				return nil
			})
			if err == nil && (rows == 0 || rows != r.Rows()) {
				t.Fatalf("%d rows handed out, %d counted", rows, r.Rows())
			}
		}
	})
}
