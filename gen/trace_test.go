package gen_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"deduplab/gen"
	"deduplab/stream"
)

// framesSpec is how the sample of radio frames is read.
var framesSpec = gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"frame"}, EventTime: "timestamp"}}

func TestRadioFrames(t *testing.T) {
	file, err := os.Open("../scenarios/data/radio-frames.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	frames, err := gen.ReadTrace("radio-frames.csv.gz", file, framesSpec)
	if err != nil {
		t.Fatal(err)
	}
	rows := collect(t, frames)
	if len(rows) != 57_793 {
		t.Errorf("%d rows, want 57,793", len(rows))
	}
	first := 0
	for _, row := range rows {
		if row.First {
			first++
		}
	}
	if first != 39_643 {
		t.Errorf("%d distinct frames, want 39,643", first)
	}
	checkLookups(t, frames, rows)
}

func TestReadTrace(t *testing.T) {
	const second = stream.Time(1000)
	timed := gen.TraceColumns{Key: []string{"id"}, EventTime: "ts"}
	arriving := gen.TraceColumns{Key: []string{"id"}, EventTime: "ts", Arrival: "seen"}
	tests := []struct {
		name, file string
		spec       gen.TraceSpec
		want       string // rows as partition@arrival record, in order of arrival
	}{
		{
			name: "types are inferred",
			file: "ts,id,n,price,code\n1,a,-5,1.50,007\n2,b,,20.05,8\n",
			spec: gen.TraceSpec{Columns: timed},
			want: "0@1000 1970-01-01T00:00:01.000Z a -5 1.50 007\n0@2000 1970-01-01T00:00:02.000Z b null 20.05 8\n",
		},
		{
			name: "rows are sorted by arrival and else stay in order",
			file: "ts,id,seen\n1,a,9\n2,b,3\n3,c,9\n4,d,\"3\"\n",
			spec: gen.TraceSpec{Columns: arriving},
			want: "0@3000 1970-01-01T00:00:02.000Z b 1970-01-01T00:00:03.000Z\n" +
				"0@3000 1970-01-01T00:00:04.000Z d 1970-01-01T00:00:03.000Z\n" +
				"0@9000 1970-01-01T00:00:01.000Z a 1970-01-01T00:00:09.000Z\n" +
				"0@9000 1970-01-01T00:00:03.000Z c 1970-01-01T00:00:09.000Z\n",
		},
		{
			name: "partitions come from a column, and lower ones first",
			file: "ts,id,p\n1,a,2\n1,b,0\n",
			spec: gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "ts", Partition: "p"}},
			want: "0@1000 1970-01-01T00:00:01.000Z b 0\n2@1000 1970-01-01T00:00:01.000Z a 2\n",
		},
		{
			name: "JSON lines with missing, null and nested values",
			file: `{"ts": 1.0004, "id": "a", "n": 5}` + "\n\n" + `{"id": null, "ts": 1.0005, "tags": ["x", 1]}`,
			spec: gen.TraceSpec{Columns: timed},
			want: "0@1000 1970-01-01T00:00:01.000Z a 5 null\n" + `0@1001 1970-01-01T00:00:01.001Z null null ["x", 1]` + "\n",
		},
		{
			name: "an event time may be NULL if there is an arrival",
			file: "ts,id,seen\n,a,1\n",
			spec: gen.TraceSpec{Columns: arriving},
			want: "0@1000 null a 1970-01-01T00:00:01.000Z\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			work, err := gen.ReadTrace("trace", strings.NewReader(test.file), test.spec)
			if err != nil {
				t.Fatal(err)
			}
			rows := collect(t, work)
			if got := format(work, rows); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			checkLookups(t, work, rows)
			if from, _ := work.Span(); from != rows[0].Arrival || from < second {
				t.Errorf("span starts at %v", from)
			}
		})
	}
}

func TestTraceTimes(t *testing.T) {
	const max = "9223372036854775807"
	tests := []struct {
		unit  string
		cells []string
		want  []stream.Time // nil: an error
	}{
		{"", []string{"1720248189.525094", "0"}, []stream.Time{1720248189525, 0}},
		{"", []string{"99999999999", "5"}, []stream.Time{99999999999000, 5000}},
		{"", []string{"100000000000", "5"}, []stream.Time{100000000000, 5}},
		{"auto", []string{"1720248189525.5", "5"}, []stream.Time{1720248189526, 5}},
		{"auto", []string{"1720248189525499"}, []stream.Time{1720248189525}},
		{"auto", []string{"1720248189525499999"}, []stream.Time{1720248189525}},
		{"s", []string{"0.0014999999999999999999999", "0.0015", "-0.0015"}, []stream.Time{1, 2, -2}},
		{"ms", []string{"7", "7.5"}, []stream.Time{7, 8}},
		{"us", []string{"1499", "1500", "7"}, []stream.Time{1, 2, 0}},
		{"ns", []string{"1720248189525094000"}, []stream.Time{1720248189525}},
		{"", []string{"2024-07-06T06:43:09.5255Z", "2024-07-06T08:43:09+02:00"},
			[]stream.Time{1720248189526, 1720248189000}},
		{"s", []string{max}, nil},
		{"ms", []string{"1e9"}, nil},
		{"ms", []string{"1."}, nil},
		{"ms", []string{"noon"}, nil},
		{"h", []string{"1"}, nil},
	}
	for _, test := range tests {
		file := "ts,id\n"
		for _, cell := range test.cells {
			file += cell + ",a\n"
		}
		spec := gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "ts"}, Unit: test.unit}
		work, err := gen.ReadTrace("trace", strings.NewReader(file), spec)
		if (err != nil) != (test.want == nil) {
			t.Errorf("%q %s: error %v", test.cells, test.unit, err)
		}
		if err != nil {
			continue
		}
		want := map[stream.Time]int{}
		for _, at := range test.want {
			want[at]++
		}
		for _, row := range collect(t, work) {
			want[row.Event]--
		}
		for at, n := range want {
			if n != 0 {
				t.Errorf("%q %s: want %v, and %v is wrong", test.cells, test.unit, test.want, int64(at))
			}
		}
	}
}

func TestTraceKeys(t *testing.T) {
	file := "ts,id,part\n1,a,\n2,,a\n3,,\n4,a,\n5,,\n"
	spec := gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id", "part"}, EventTime: "ts"}, Partitions: 4}
	work, err := gen.ReadTrace("trace", strings.NewReader(file), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := []stream.Tag{
		stream.NewTag(0, 0, 0), stream.NewTag(1, 0, 0), stream.NewTag(2, 0, 0), // a + NULL, NULL + a, NULL + NULL
		stream.NewTag(0, 1, 1), stream.NewTag(2, 1, 1),
	}
	partitions := map[uint64]uint16{}
	for i, row := range collect(t, work) {
		if row.Tag != want[i] {
			t.Errorf("row %d is %x, want %x", i, row.Tag, want[i])
		}
		if p, ok := partitions[row.Tag.Event()]; ok && p != row.Partition {
			t.Errorf("row %d is in partition %d, its original in %d", i, row.Partition, p)
		}
		partitions[row.Tag.Event()] = row.Partition
	}
	if work.Labelled() {
		t.Error("a trace has no labels")
	}
}

func TestTraceFaults(t *testing.T) {
	columns := gen.TraceColumns{Key: []string{"id"}, EventTime: "ts", Partition: "p"}
	tests := []struct {
		name, file string
		want       []string // lines of the error
	}{
		{"empty", "", []string{"t: the file is empty"}},
		{"header only", "ts,id,p\n", []string{"t: no rows"}},
		{"columns", "id,time\na,1\n", []string{
			`t: columns.event_time: there is no column "ts" (there are: id, time)`,
			`t: columns.partition: there is no column "p" (there are: id, time)`,
		}},
		{"column twice", "ts,id,p,id\n1,a,0,b\n", []string{`t:1: column "id" stands twice`}},
		{"ragged", "ts,id,p\n1,a\n1,a,0\n", []string{"t:2: 2 cells, but the header has 3"}},
		{"cells", "ts,id,p\nnow,a,0\n1,\"a\nb\",-1\n,a,1\n", []string{
			`t:2:ts: "now" is not a time: neither a number nor RFC 3339 nor an SQL timestamp`,
			`t:3:p: "-1" is not a partition, a whole number from 0 to 65534`,
			`t:5:ts: a row needs an arrival`,
		}},
		{"quote", "ts,id,p\n1,\"a,0\n", []string{
			`t:2: byte 8: extraneous or missing " in quoted-field`,
		}},
		{"json", "{\"ts\":1,\"id\":\"a\",\"p\":0}\n[]\n{\"ts\":}\n", []string{
			"t:2: not a JSON object: []",
			"t:3: not JSON: invalid character '}' looking for beginning of value",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := gen.ReadTrace("t", strings.NewReader(test.file), gen.TraceSpec{Columns: columns})
			if err == nil {
				t.Fatal("no error")
			}
			if want := strings.Join(test.want, "\n"); err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
	many := "ts,id,p\n" + strings.Repeat("x,a,0\n", 30)
	_, err := gen.ReadTrace("t", strings.NewReader(many), gen.TraceSpec{Columns: columns})
	if err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and more") {
		t.Errorf("30 faults: %v", err)
	}
}

func TestTraceCompressed(t *testing.T) {
	var file bytes.Buffer
	zip := gzip.NewWriter(&file)
	zip.Write([]byte("\ufeffts,id\n1,a\n"))
	zip.Close()
	work, err := gen.ReadTrace("t", &file, gen.TraceSpec{Columns: gen.TraceColumns{Key: []string{"id"}, EventTime: "ts"}})
	if err != nil {
		t.Fatal(err)
	}
	if rows := collect(t, work); len(rows) != 1 {
		t.Errorf("%d rows, want 1", len(rows))
	}
}
