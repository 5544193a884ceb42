package downstream

import (
	"strings"
	"testing"

	"deduplab/stream"
)

// TestUpsertKafka is FL-14: the fear of tombstones from -U (StackOverflow 67898793) is unfounded; FLIP-149.
func TestUpsertKafka(t *testing.T) {
	for _, c := range []struct {
		name, in   string
		topic      string
		tombstones int
	}{
		{"FL-14", "+I a1, -U a1, +U a2", "a=1 a=2", 0},
		{"the planner sends no -U", "+I a1, +U a2", "a=1 a=2", 0},
		{"a delete", "+I a1, +I b1, -D a1", "a=1 b=1 a=", 1},
		{"a Rank over a changelog deletes where others update", "+I a1, -D a1, +I a2", "a=1 a= a=2", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := NewUpsertKafka([]int{0})
			for change := range strings.SplitSeq(c.in, ", ") {
				kind, _ := stream.ParseKind(change[:2])
				sink.Change(kind, stream.Record{{Text: change[3:4]}, {Text: change[4:]}}, 0)
			}
			var topic []string
			for _, r := range sink.Take() {
				record := r.Values[0].Text + "="
				if r.Kind == stream.Insert {
					record += r.Values[1].Text
				}
				topic = append(topic, record)
			}
			if got := strings.Join(topic, " "); got != c.topic || sink.Tombstones() != c.tombstones {
				t.Errorf("wrote %s with %d tombstones, want %s with %d", got, sink.Tombstones(), c.topic, c.tombstones)
			}
			if sink.Records() != len(topic) {
				t.Errorf("%d records counted, %d written", sink.Records(), len(topic))
			}
		})
	}
}
