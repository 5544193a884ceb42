package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deduplab/stream"
)

// watermarkCases are the recorded cases of watermarks, all of them.
var watermarkCases = []string{
	"datastream-bounded-0ms",
	"datastream-bounded-5000ms",
	"datastream-idleness",
	"multiplexer-two-partitions",
	"sql-5s",
	"sql-idle",
	"sql-negative",
	"sql-no-delay",
	"sql-null-rowtime",
	"valve-all-idle",
	"valve-two-channels",
}

const watermarkDir = "testdata/flink/watermark"

func TestWatermarkCases(t *testing.T) {
	for _, name := range watermarkCases {
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(filepath.Join(watermarkDir, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			c, err := Read(f.Name(), f)
			if err != nil {
				t.Fatal(err)
			}
			diffs, err := runWatermark(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range diffs {
				t.Errorf("step %d, %s:\nwant %s\n got %s", d.Step, d.What, d.Want, d.Got)
			}
		})
	}
}

func TestWatermarkCasesAreAllListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(watermarkDir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(watermarkCases) {
		t.Errorf("%d recorded cases, %d listed: %q", len(files), len(watermarkCases), files)
	}
}

func TestWatermarkDifferencesAreFound(t *testing.T) {
	diffs, err := runWatermark(watermarkCase(t, `{"strategy": "watermark-valve-x",
		"plan": {"operator": "StatusWatermarkValve, three input channels"}, "steps": [
		{"channel": 0, "watermark": 1, "emits": [{"watermark": 1}]},
		{"channel": 1, "watermark": 2, "emits": []},
		{"channel": 2, "watermark": 3, "emits": [{"watermark": 1}]}]}`))
	want := []Diff{{Step: 0, What: "emits", Want: `[{"watermark":1}]`, Got: `[]`}}
	if err != nil || !slices.Equal(diffs, want) {
		t.Errorf("got %v, %v, want %v", diffs, err, want)
	}
}

func TestWatermarkCasesThatCannotBeRun(t *testing.T) {
	for _, text := range []string{
		`{"strategy": "watermark-other", "steps": [{}]}`,
		`{"strategy": "watermark-sql", "plan": {"operator": "WatermarkAssigner(rowtime=[a], watermark=[b])"}, "steps": [{}]}`,
		`{"strategy": "watermark-datastream-x", "plan": {"operator": "forMonotonousTimestamps()"}, "steps": [{}]}`,
		`{"strategy": "watermark-datastream-x", "plan": {"operator": "forBoundedOutOfOrderness(x)"}, "steps": [{}]}`,
		`{"strategy": "watermark-multiplexer-x", "steps": [{"partition": "p0", "watermark": 1}]}`,
		`{"strategy": "watermark-valve-x", "plan": {"operator": "two input channels"}, "steps": [{"channel": 2}]}`,
		`{"strategy": "watermark-valve-x", "plan": {"operator": "2 input channels"}, "steps": [{"channel": 1}]}`,
	} {
		if _, err := runWatermark(watermarkCase(t, text)); err == nil {
			t.Errorf("no error for %s", text)
		}
	}
}

func watermarkCase(t *testing.T, text string) *Case {
	t.Helper()
	c, err := Read("test.json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseMillis(t *testing.T) {
	for text, want := range map[string]stream.Time{
		"0": 0, "200": 200, "200 ms": 200, "200ms": 200, "1 s": 1000, "2 min": 120_000, "1 h": 3_600_000, "1 d": 86_400_000,
	} {
		if got, err := parseMillis(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "s", "1 week", "-1 s"} {
		if _, err := parseMillis(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
