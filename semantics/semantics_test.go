package semantics_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

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

// TestEveryStrategyHasAStory asks for one file a strategy, but for those in micro-batches, which are not fed row by
// row.
func TestEveryStrategyHasAStory(t *testing.T) {
	for _, name := range strategies.Names() {
		if s, _ := strategies.Lookup(name); strings.HasPrefix(s.Engine, "spark") {
			continue
		}
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
        # not so
        emits: ["+I {order_id: c}"]         # nor so
        state: {live: 3, entries: 3}  # not seven
      - row: {order_id: d}
        # none of these
        emits:
          - "+I {quantity: 1}"
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

// TestRewriteConverges: a second rewrite changes nothing and all passes, whatever the texts hold.
func TestRewriteConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.SampledFrom([]rune("\n\r\t\x00\x01\x1b\x7f\u0085\u00a0\u2028\ufeff\\\"'#:{}[],&*!|>%@`- aé😀"))
		texts := rapid.SliceOfN(rapid.OneOf(rapid.StringOf(odd), rapid.String()), 1, 3).Draw(t, "texts")
		src := "tests:\n  - name: x\n    strategy: pass-through\n    steps:\n"
		for i, text := range texts {
			src += "      - row: {order_id: " + strconv.Quote(text) + "}\n"
			if i%2 == 0 {
				src += "        emits:\n        # why\n        - \"+I {order_id: x}\" # because\n        - '+I {}'\n"
			}
		}
		once, _, err := semantics.Rewrite("x.yaml", []byte(src), all)
		if err != nil {
			t.Fatalf("%v in\n%s", err, src)
		}
		twice, n, err := semantics.Rewrite("x.yaml", once, all)
		if err != nil || n != 0 || string(twice) != string(once) {
			t.Fatalf("%d changed again, %v:\n%s\nthen\n%s", n, err, once, twice)
		}
		file, err := semantics.Load("x.yaml", once)
		if err != nil {
			t.Fatal(err)
		}
		if failures := file.Tests[0].Run(); len(failures) > 0 {
			t.Fatalf("%v in\n%s", failures, once)
		}
		for _, comment := range []string{"# why", "# because"} {
			if strings.Count(string(once), comment) != strings.Count(src, comment) {
				t.Fatalf("%s is lost in\n%s", comment, once)
			}
		}
	})
}

// TestRewriteOfOddLayouts: block and folded texts, texts without quotes over two lines, a list before its row.
func TestRewriteOfOddLayouts(t *testing.T) {
	const before = `tests:
  - name: x
    strategy: pass-through
    steps:
      - emits: # one
          - |
            +I {order_id: x}

          # two
          - -D
              {} # three
        row: {order_id: a}
      - row:
          order_id: |
            b

      - row: {order_id: c}
        emits:
        - "+I {order_id: '# no comment'}"
        # four
`
	const after = `tests:
  - name: x
    strategy: pass-through
    steps:
      # one
      # two
      - emits:
          - "+I {order_id: a}" # three
        row: {order_id: a}
      - row:
          order_id: |
            b
        emits: ["+I {order_id: \"b\\n\"}"]

      - row: {order_id: c}
        emits:
        - "+I {order_id: c}"
        # four
`
	got, n, err := semantics.Rewrite("x.yaml", []byte(before), all)
	if err != nil || n != 3 || string(got) != after {
		t.Errorf("%d changed, %v:\n%s", n, err, got)
	}
}

// TestRefused are mistakes that would pass, or fail far from where they are.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ fields, step, want string }{
		{"strategy: rowtime-asc", "- state: {entries: {waiting-to-emit-on-timr: 0}}",
			`8:27: rowtime-asc has no state "waiting-to-emit-on-timr", did you mean waiting-to-emit-on-timer?`},
		{"strategy: rowtime-asc", "- state: {entries: {zzz: 0}}",
			"it has already-emitted-state-boolean, waiting-to-emit-on-timer"},
		{"strategy: pass-through", "- state: {entries: {zzz: 0}}",
			"8:27: pass-through does not name its states here: write entries as one number"},
		{"strategy: ptf", "- end: true\n      - end: true", "9:9: the input ended in line 8"},
		{"strategy: ptf", "- end: true\n      - row: {}\n        emits: any", "9:9: the input ended in line 8"},
		{"strategy: ptf", "- end: true\n      - at: 1h\n        restore: true", "9:9: the input ended in line 8"},
		{"strategy: ptf", "- end: true\n      - restore: true\n      - row: {}\n        emits: 1\n" +
			"      - end: true", ""},
		{"strategy: ptf", "- row: {quantity: 99999999999}",
			"8:25: 99999999999 is out of the range of quantity, which is INT"},
		{"strategy: ptf", "- row: {quantity: -2147483649}", "which is INT"},
		{"strategy: ptf", "- row: {quantity: -2147483648}\n        emits: 1", ""},
		{"strategy: ptf", "- row: {price: 123456789012}",
			"8:22: 123456789012 is out of the range of price, which is DECIMAL"},
		{"strategy: ptf", "- row: {price: -99999999.99}\n        emits: 1", ""},
		{"strategy: ptf", "- row: {}\n        emits: ['+I {price: 100000000}']",
			"9:17: +I {price: 100000000}: 100000000 is out"},
		{"strategy: ptf", "- rows: {count: 3, row: {quantity: '214748364{i}000'}}", "out of the range"},
		{"strategy: ptf\n    columns: {id: BIGINT, ts: TIMESTAMP(3)}", "- row: {id: 9223372036854775808}", "too large"},
		{"strategy: ptf\n    columns: {id: BIGINT, ts: TIMESTAMP(3)}", "- row: {id: -9223372036854775808}\n" +
			"        emits: 1", ""},
		{"strategy: ptf\n    columns: {id: 'DECIMAL(2, 2)', ts: TIMESTAMP(3)}", "- row: {}",
			"the row must name id"},
		{"strategy: ptf\n    columns: {id: 'DECIMAL(2, 3)', ts: TIMESTAMP(3)}", "- row: {}",
			"there is no DECIMAL(2, 3)"},
	} {
		file, err := semantics.Load("x.yaml", []byte("# 1\n# 2\n# 3\ntests:\n  - name: x\n    "+test.fields+
			"\n    steps:\n      "+test.step+"\n"))
		switch {
		case test.want == "" && err != nil,
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s, %s: %v", test.fields, test.step, err)
		case test.want == "":
			if failures := file.Tests[0].Run(); len(failures) > 0 {
				t.Errorf("%s: %v", test.step, failures)
			}
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
