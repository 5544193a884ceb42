package measure_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/measure"
	"deduplab/stream"
	"deduplab/trace"
)

// TestExternal: how much memory there is makes no difference to the report, byte for byte.
func TestExternal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		columns := measure.Columns{Keys: [][]string{{"id"}, {"id", "who"}}, Arrival: "at"}
		if rapid.Bool().Draw(t, "event times") {
			columns.EventTime = "ts"
		}
		if rapid.IntRange(0, 3).Draw(t, "no arrival") == 0 {
			columns.EventTime, columns.Arrival = "ts", ""
		}
		if rapid.Bool().Draw(t, "partitions") {
			columns.Partition = "p"
		}
		if rapid.Bool().Draw(t, "origins") {
			columns.Origin = "who"
		}
		unit := rapid.SampledFrom([]string{"", "000", "123456"}).Draw(t, "unit")
		disorder := rapid.SampledFrom([]int{0, 3, 100_000}).Draw(t, "disorder")
		var text strings.Builder
		text.WriteString("id,ts,at,p,who\n")
		at := 1_700_000_000
		for range rapid.IntRange(1, 150).Draw(t, "rows") {
			at += rapid.IntRange(0, 50).Draw(t, "gap")
			seen := at - rapid.IntRange(0, disorder).Draw(t, "late")
			ts := fmt.Sprint(seen-rapid.IntRange(0, 20).Draw(t, "transport"), unit)
			if columns.Arrival != "" && rapid.IntRange(0, 9).Draw(t, "null") == 0 {
				ts = ""
			}
			fmt.Fprintf(&text, "%d,%s,%d%s,%d,%s\n", rapid.IntRange(1, 60).Draw(t, "id"), ts, seen, unit,
				rapid.IntRange(0, 3).Draw(t, "p"), rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "who"))
		}
		var want string
		for _, memory := range []int64{0, 100, 20_000} {
			r, err := measure.NewReader(columns, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Read("f", strings.NewReader(text.String())); err != nil {
				t.Fatal(err)
			}
			report, err := r.Report(measure.Options{Memory: memory, TTLs: []stream.Time{7000}, Delays: []stream.Time{3000}})
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			var scenario strings.Builder
			_ = report.Scenario(&scenario, "x") // fails with all the memory too
			got := string(data) + scenario.String()
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("with %d bytes of memory:\n%s\nwant\n%s", memory, got, want)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTemporaryFilesFail: where temporary files cannot be written, that ends the reading, and the error says where they
// go.
func TestTemporaryFilesFail(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	text := "id,at\n" + strings.Repeat("a,1\nb,1\n", 1<<20)
	in := strings.NewReader(text)
	r, err := measure.NewReader(measure.Columns{Keys: key("id"), Arrival: "at"}, false)
	if err != nil {
		t.Fatal(err)
	}
	r.Add(trace.File{Name: "f", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(in), os.RemoveAll(folder)
	}})
	_, err = r.Report(measure.Options{Memory: 1 << 20})
	if want := "temporary files go to " + folder + ", see TMPDIR: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s...", err, want)
	}
	if in.Len() < len(text)/2 {
		t.Errorf("%d of %d bytes were read all the same", len(text)-in.Len(), len(text))
	}
	if err := r.Read("stdin", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "stdin: temporary") {
		t.Errorf("%v, want it to say that stdin goes to a temporary file", err)
	}
}
