package semantics_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deduplab/semantics"
	"deduplab/strategies"
	"deduplab/yml"
)

// shipped lists the files that the lab ships.
func shipped(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join("../scenarios/semantics", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// TestShipped runs all tests that the lab ships.
func TestShipped(t *testing.T) {
	for _, path := range shipped(t) {
		file, err := semantics.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			for _, f := range test.Run() {
				t.Errorf("%s: %s\n%s", test.Name, f.Place(), strings.Join(semantics.SideBySide(f.Want, f.Got), "\n"))
			}
		}
	}
}

// TestEveryStrategyHasAStory asks for one file a strategy.
func TestEveryStrategyHasAStory(t *testing.T) {
	for _, name := range strategies.Names() {
		if _, err := os.Stat(filepath.Join("../scenarios/semantics", name+".yaml")); err != nil {
			t.Error(err)
		}
	}
}

// TestRewriteOfWhatHoldsChangesNothing, byte for byte.
func TestRewriteOfWhatHoldsChangesNothing(t *testing.T) {
	for _, path := range shipped(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := semantics.Rewrite(path, src, all)
		if err != nil || n != 0 || string(got) != string(src) {
			t.Errorf("%s: %d expectations changed, %v", path, n, err)
		}
	}
}

func all(*semantics.Test) bool { return true }

// TestRewriteFillsInWhatIsMissing takes the expectations out of what is shipped and has them written again.
func TestRewriteFillsInWhatIsMissing(t *testing.T) {
	for _, path := range shipped(t) {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for line := range strings.SplitSeq(string(src), "\n") {
			text := strings.TrimSpace(line)
			if !strings.HasPrefix(text, "emits:") && !strings.HasPrefix(text, `- "`) {
				kept = append(kept, line)
			}
		}
		got, n, err := semantics.Rewrite(path, []byte(strings.Join(kept, "\n")), all)
		if err != nil || n == 0 {
			t.Fatalf("%s: %d expectations changed, %v", path, n, err)
		}
		file, err := semantics.Load(path, got)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range file.Tests {
			if failures := test.Run(); len(failures) > 0 {
				t.Errorf("%s: %s", failures[0].Place(), test.Name)
			}
		}
	}
}

// TestRewriteKeepsTheLayout: comments, line ends, flow style and the columns that an expectation names stay.
func TestRewriteKeepsTheLayout(t *testing.T) {
	const before = `# mine
tests: # all of them
  - name: one
    strategy: proctime-asc
    steps:
      - row: {order_id: a, price: 5} # the first
      - {row: {order_id: "b]", price: 5}, at: 1s}
      - row: {order_id: c}
        emits: ["+I {order_id: x}",   # not so
          "+I {order_id: y}"]         # nor so
        state: {live: 7, entries: 3}  # not seven
      - row: {order_id: d}
        emits:
          # none of these
          - "+I {quantity: 7}"
          - '+U {quantity: 8}'
        # d is done
      - row: {order_id: a}
        emits: 4
`
	const after = `# mine
tests: # all of them
  - name: one
    strategy: proctime-asc
    steps:
      - row: {order_id: a, price: 5} # the first
        emits: ["+I {order_id: a, price: 5.00}"]
      - {row: {order_id: "b]", price: 5}, at: 1s, emits: ["+I {order_id: 'b]', price: 5.00}"]}
      - row: {order_id: c}
        emits: ["+I {order_id: c}"]         # nor so
        state: {live: 3, entries: 3}  # not seven
      - row: {order_id: d}
        emits: ["+I {quantity: 1}"]
        # d is done
      - row: {order_id: a}
        emits: 0
`
	for _, end := range []string{"\n", "\r\n"} {
		with := strings.NewReplacer("\n", end)
		got, n, err := semantics.Rewrite("x.yaml", []byte(with.Replace(before)), all)
		if err != nil || n != 6 {
			t.Fatalf("%d changed, %v", n, err)
		}
		if string(got) != with.Replace(after) {
			t.Errorf("got\n%s", got)
		}
	}
}

// TestAnyOrder: with partly named columns an expected row may have to give way to another.
func TestAnyOrder(t *testing.T) {
	for emits, want := range map[string]int{
		`["+I {order_id: a}", "+I {price: 1}"]`: 0,
		`["+I {price: 1}", "+I {order_id: a}"]`: 0,
		`["+I {price: 1}", "+I {price: 1}"]`:    1,
		`["+I {price: 1}"]`:                     1,
	} {
		file, err := semantics.Load("x.yaml", []byte(`
tests:
  - name: x
    strategy: pass-through
    steps:
      - rows: [{order_id: a, price: 1}, {order_id: a, price: 2}]
        emits_any_order: true
        emits: `+emits))
		if err != nil {
			t.Fatal(err)
		}
		if failures := file.Tests[0].Run(); len(failures) != want {
			t.Errorf("%s: %v", emits, failures)
		}
	}
}

// TestGeneratedRun numbers its rows and spaces them.
func TestGeneratedRun(t *testing.T) {
	file, err := semantics.Load("x.yaml", []byte(`
tests:
  - name: x
    strategy: pass-through
    steps:
      - rows: {count: 3, every: 10ms, row: {at: 1s, order_id: "k{i}", quantity: "{i}"}}
        emits:
          - "+I {order_id: k1, quantity: 1, created_at: 1s}"
          - "+I {order_id: k2, quantity: 2, created_at: 1010ms}"
          - "+I {order_id: k3, quantity: 3, created_at: 1020ms, price: 1}"
      - row: {}
        emits: ["+I {created_at: 1020ms}"]
`))
	if err != nil {
		t.Fatal(err)
	}
	if failures := file.Tests[0].Run(); len(failures) > 0 {
		t.Error(failures)
	}
}

// FuzzLoad: whatever the file holds, there is a file or there are faults, and what loads can be rewritten.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("tests:\n  - name: x\n    strategy: ptf\n    steps: [{row: {}}, {end: true, emits: any}]\n"))
	f.Add([]byte("tests: [{name: x, strategy: {nontime: {order_by: price}}, steps: [{rows: {count: 2, row: {}}}]}]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := semantics.Load("x.yaml", src)
		if fault := (*yml.Error)(nil); err != nil && (!errors.As(err, &fault) || len(fault.Faults) == 0) {
			t.Fatalf("an error without faults: %v", err)
		}
		if err == nil && len(file.Tests) < 4 {
			_, _, _ = semantics.Rewrite("x.yaml", src, all)
		}
	})
}
