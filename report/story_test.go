package report

import (
	"bytes"
	"strings"
	"testing"

	"deduplab/results"
)

// A row that has waited and one that waits later are told apart: what lasts ends in the column in which it ends. The
// page shows the rows once, with what stands in them.
func TestTracePage(t *testing.T) {
	story := results.Story{
		Rows: []results.StoryRow{{Row: map[string]string{"id": "<b>7</b>"}, Event: 1, Key: 1, Fate: "kept"},
			{Row: map[string]string{"id": "<b>7</b>"}, Event: 1, Key: 1, Fate: "suppressed"}},
		Steps: []results.StoryStep{
			{AtMS: 1, What: results.Holds, Row: 1}, {AtMS: 2, What: results.Emits, Row: 1, Note: "+I"},
			{AtMS: 3, What: results.Holds, Row: 2}, {AtMS: 4, What: results.GivesUp, Row: 2},
		},
	}
	waits := newSwimlane(story).Lanes[0]
	for i, want := range []laneCell{{On: true}, {On: true, Ends: true}, {On: true}, {On: true, Ends: true}} {
		if got := waits.Cells[i]; got.On != want.On || got.Ends != want.Ends {
			t.Errorf("%s, column %d: on %v, ends %v", waits.Name, i, got.On, got.Ends)
		}
	}
	var b bytes.Buffer
	strategies := []results.TracedStrategy{{ID: "ptf", Stories: []results.Story{story}},
		{ID: "rank", Stories: []results.Story{story}}}
	if err := TraceHTML(&b, &results.Trace{Scenario: "orders", Chosen: "key 7", Strategies: strategies}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "<td>&lt;b&gt;7&lt;/b&gt;</td>"); n != 2 {
		t.Errorf("two rows are shown %d times", n)
	}
}
