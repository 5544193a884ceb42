package lab_test

import (
	"compress/gzip"
	"encoding/csv"
	"os"
	"strconv"
	"testing"
)

// On real frames the TTL decides what is a duplicate, and no label tells. So the number of inserts is held against a
// count made from the file itself: processing-time ASC lets a frame through again a TTL after it last did, SELECT
// DISTINCT a TTL after it was last seen, because there a copy extends the TTL.
func TestRadioFrames(t *testing.T) {
	frames, at := radioFrames(t)
	count := func(ttl int64, copiesExtend bool) (inserts int64) {
		live := map[string]int64{}
		for i, frame := range frames {
			since, known := live[frame]
			expired := !known || at[i]-since >= ttl
			if expired {
				inserts++
			}
			if expired || copiesExtend {
				live[frame] = at[i]
			}
		}
		return inserts
	}
	run := shipped(t, "radio-frames")
	if run.Workload.Rows != 57_793 || run.Workload.Distinct != 39_643 {
		t.Errorf("%d rows, %d of them distinct; the flight has 57,793 and 39,643", run.Workload.Rows, run.Workload.Distinct)
	}
	for _, c := range []struct {
		id           string
		ttl          int64
		copiesExtend bool
	}{
		{"proctime-asc-100ms", 100, false},
		{"proctime-asc-1s", 1000, false},
		{"proctime-asc-1m", 60_000, false},
		{"select-distinct-key-100ms", 100, true},
		{"select-distinct-key-1s", 1000, true},
		{"select-distinct-key-1m", 60_000, true},
	} {
		s := strategyOf(t, run, c.id)
		if want := count(c.ttl, c.copiesExtend); s.Changes.Insert != want {
			t.Errorf("%s: %d inserts, the independent count says %d", c.id, s.Changes.Insert, want)
		}
		if s.Fates.Swallowed >= 0 {
			t.Errorf("%s: %d swallowed; without labels that is not known", c.id, s.Fates.Swallowed)
		}
	}
}

// radioFrames reads the frames and when they were heard, in ms: those of one millisecond in the order of the file.
func radioFrames(t *testing.T) (frames []string, at []int64) {
	t.Helper()
	file, err := os.Open("../scenarios/data/radio-frames.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(plain).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		seconds, err := strconv.ParseFloat(line[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		frames, at = append(frames, line[1]), append(at, int64(seconds*1000))
	}
	return frames, at
}
