// Package docs_test holds the project's pages to what the project does.
package docs_test

//go:generate go run ../cmd/lab run ../scenarios/orders.yaml --out ../out/orders
//go:generate go run ../report/screenshot ../out/orders/report.html .

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"deduplab/lab"
	"deduplab/report"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/semantics"
	"deduplab/stream"
	"deduplab/yml"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var block = regexp.MustCompile("(?ms)^```(\\w+)( wrong)?\n(.*?)^```\n")

// TestSemanticsPage runs every YAML block of the page. One that is marked as wrong must fail as the text below it says.
func TestSemanticsPage(t *testing.T) {
	blocks := block.FindAllStringSubmatch(read(t, "semantics.md"), -1)
	ran := 0
	for i, b := range blocks {
		language, wrong, text := b[1], b[2] != "", b[3]
		if language != "yaml" {
			continue
		}
		name := "my-tests.yaml"
		if wrong {
			name = "wrong.yaml"
		}
		file, err := semantics.Load(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		for _, test := range file.Tests {
			ran++
			for _, f := range test.Run() {
				failed++
				lines := append([]string{f.Place()}, semantics.SideBySide(f.Want, f.Got)...)
				if !wrong {
					t.Errorf("%s fails:\n%s", test.Name, strings.Join(lines, "\n"))
					continue
				}
				for _, line := range lines {
					if !strings.Contains(blocks[i+1][3], " "+line+"\n") {
						t.Errorf("the page does not show the line %q", line)
					}
				}
			}
		}
		if wrong && failed == 0 {
			t.Errorf("nothing fails in\n%s", text)
		}
	}
	if ran < 5 {
		t.Errorf("the page has %d tests only", ran)
	}
}

// TestSemanticsPageNamesEveryField has the loader list the fields there are, and looks for each in the page.
func TestSemanticsPageNamesEveryField(t *testing.T) {
	const unknown = `
tests:
  - {name: x, strategy: ptf, zzzzzzzz: 1, job: {zzzzzzzz: 1, sink: upsert-kafka, mini_batch: {zzzzzzzz: 1}},
     steps: [{zzzzzzzz: 1}, {rows: {zzzzzzzz: 1}}, {state: {zzzzzzzz: 1}}]}
`
	_, err := semantics.Load("x.yaml", []byte(unknown))
	invalid, ok := errors.AsType[*yml.Error](err)
	if !ok {
		t.Fatal(err)
	}
	page, lists := read(t, "semantics.md"), 0
	for _, f := range invalid.Faults {
		_, fields, ok := strings.Cut(f.Message, "; it has ")
		if !ok {
			continue
		}
		lists++
		for field := range strings.SplitSeq(fields, ", ") {
			if !regexp.MustCompile("[`{ ]" + field + "[:`]").MatchString(page) {
				t.Errorf("the page does not name %s: %s", field, f.Message)
			}
		}
	}
	if lists != 6 {
		t.Errorf("%d lists of fields, want 6: %v", lists, err)
	}
}

// TestReadmeNamesEveryFolder: each folder with Go code stands in the README.
func TestReadmeNamesEveryFolder(t *testing.T) {
	readme := read(t, "../README.md")
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		folder := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
		if name := d.Name(); name == "testdata" || file != ".." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		code, err := filepath.Glob(filepath.Join(file, "*.go"))
		if len(code) > 0 && !strings.Contains(readme, "`"+path.Clean(folder)+"/`") {
			t.Errorf("README.md does not name the folder `%s/`", folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDeterminismPage replays the scenario of the page under all causes: the table must be the one that the page shows.
func TestDeterminismPage(t *testing.T) {
	page := read(t, "determinism.md")
	blocks := block.FindAllStringSubmatch(page, -1)
	s, err := scenarios.Load("determinism.md", []byte(blocks[0][3]), nil)
	if err != nil {
		t.Fatal(err)
	}
	run, err := lab.Run(t.Context(), s, lab.Options{Causes: scenarios.Causes})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.Terminal(&out, run); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), blocks[2][3]) {
		t.Errorf("the page shows\n%s\nthe lab says\n%s", blocks[2][3], &out)
	}
	adds := ""
	for _, line := range strings.Split(strings.TrimSpace(blocks[3][3]), "\n") {
		adds += "  " + line + "\n"
	}
	all := strings.Replace(blocks[0][3], "  adds: [{column: seen_at, function: now}]\n", adds, 1)
	if s, err := scenarios.Load("determinism.md", []byte(all), nil); err != nil || len(s.Job.Adds) != len(stream.Functions) {
		t.Errorf("not all functions are shown: %v", err)
	}
	for _, cause := range scenarios.Causes {
		if !strings.Contains(page, "\n| `"+cause+"` |") {
			t.Errorf("the page does not name the cause %s", cause)
		}
	}
	for i := range reflect.TypeFor[results.Determinism]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[results.Determinism]().Field(i).Tag.Get("json"), ",")
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// TestKeysPage runs the scenario of the page: the report must hold the lines that the page shows.
func TestKeysPage(t *testing.T) {
	page := read(t, "keys.md")
	var shown []string
	ran := false
	var out strings.Builder
	for _, b := range block.FindAllStringSubmatch(page, -1) {
		switch b[1] {
		case "yaml":
			s, err := scenarios.Load("keys.md", []byte(b[3]), nil)
			if err != nil {
				t.Fatal(err)
			}
			run, err := lab.Run(t.Context(), s, lab.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := report.Terminal(&out, run); err != nil {
				t.Fatal(err)
			}
			ran = true
		case "text":
			shown = append(shown, strings.Split(strings.TrimSuffix(b[3], "\n"), "\n")...)
		}
	}
	if !ran || len(shown) < 3 {
		t.Errorf("the page has a scenario: %v; it shows %d lines", ran, len(shown))
	}
	for _, line := range shown {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("the page shows\n%s\nthe lab says\n%s", line, &out)
			return
		}
	}
	for _, value := range []any{results.Key{}, results.Amount{}} {
		for i := range reflect.TypeOf(value).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(value).Field(i).Tag.Get("json"), ",")
			if _, isAmount := value.(results.Amount); isAmount {
				name = "amount." + name
			}
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("the page does not name %s", name)
			}
		}
	}
}
