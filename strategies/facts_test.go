package strategies

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFacts holds every strategy to saying something on each topic and each cause of non-determinism, and every fact to
// naming a recording that exists.
func TestFacts(t *testing.T) {
	const recordings = "../conformance/testdata"
	for _, name := range Names() {
		s, _ := Lookup(name)
		for _, topic := range Topics {
			if len(s.FactsOn(topic)) == 0 {
				t.Errorf("%s: no fact on %s", name, topic)
			}
		}
		for _, cause := range DeterminismCauses {
			if !slices.ContainsFunc(s.FactsOn(TopicDeterminism), func(f Fact) bool {
				return strings.HasPrefix(f.Text, cause+": ")
			}) {
				t.Errorf("%s: no fact on determinism under %s", name, cause)
			}
		}
		for _, f := range s.Facts {
			if !slices.Contains(Topics, f.Topic) || f.Text == "" {
				t.Errorf("%s: not a fact: %+v", name, f)
			}
			recording := f.Recording()
			if recording == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(recordings, recording+".json")); err != nil {
				t.Errorf("%s: %q: no such case: %v", name, f.Text, err)
			}
		}
	}
}
