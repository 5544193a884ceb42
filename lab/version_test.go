package lab_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"deduplab/gen"
	"deduplab/lab"
	"deduplab/scenarios"
	"deduplab/strategies"
)

var update = flag.Bool("update", false, "write testdata/versions.txt anew")

const versionsFile = "testdata/versions.txt"

// versioned is a small stream with a bit of everything, and every strategy there is on it.
func versioned() string {
	var b strings.Builder
	b.WriteString(`scenario: versions
seed: 3
workload:
  duration: 10m
  rate: 5/s
  fields: {id: {int: [1, 2000]}, price: {decimal: [1.00, 9.00]}}
  key: id
  event_time: {field: ts}
  partitions: {count: 2}
  transport: {uniform: [0s, 20s]}
  outage: [{partition: 1, from: 3m, for: 1m, flush: 50/s}]
  duplicates: [{origin: retry, rate: 20%, delay: {uniform: [0s, 3m]}, change: [price]}]
job: {parallelism: 2, watermark: {delay: 5s, idle_after: 30s}, checkpoint: {interval: 10s}}
strategies:
`)
	for _, name := range strategies.Names() {
		s, _ := strategies.Lookup(name)
		fmt.Fprintf(&b, "  - %s: {id: %s", name, name)
		for _, p := range s.Params {
			if p.Default != "" {
				continue
			}
			value := map[strategies.ParamKind]string{
				strategies.Duration: "1m", strategies.Int: "2", strategies.Bool: "true", strategies.Order: "price asc",
				strategies.Column: "ts", strategies.Columns: "key", strategies.OptionalDuration: "1m",
			}[p.Kind]
			if p.Kind == strategies.Enum {
				value = p.Values[0]
			}
			fmt.Fprintf(&b, ", %s: %s", p.Name, value)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// TestVersions makes sure that a version is raised when the bytes that it stands for change: a baseline explains by the
// versions why a number moved. The file has what was measured under the versions that it names.
func TestVersions(t *testing.T) {
	s, err := scenarios.Load("versions.yaml", []byte(versioned()), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := lab.Check(context.Background(), s, lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := []string{fmt.Sprintf("generator version %d: %s", gen.Version, c.Baseline.Stream)}
	for _, s := range c.Baseline.Strategies {
		s.Unknown = "" // one more metric that nothing has is no other number
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		now = append(now, fmt.Sprintf("%s rules %d measuring %d: %x", s.ID, strategies.RulesVersion, lab.Version,
			sum[:8]))
	}
	kept, err := os.ReadFile(versionsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(kept)) {
		line = strings.TrimSpace(line)
		under, _, _ := strings.Cut(line, ":")
		i := slices.IndexFunc(now, func(is string) bool { return strings.HasPrefix(is, under+":") })
		if i >= 0 && now[i] != line {
			t.Errorf("%s, and was %s: raise gen.Version, strategies.RulesVersion or lab.Version, whichever it is, and "+
				"run this test with -update", now[i], line)
		}
	}
	if t.Failed() {
		return
	}
	text := strings.Join(now, "\n") + "\n"
	if *update {
		if err := os.WriteFile(versionsFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(kept) {
		t.Errorf("%s is not of these versions and strategies: run this test with -update", versionsFile)
	}
}
