package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/conformance"
	"deduplab/junit"
	"deduplab/semantics"
	"deduplab/yml"
)

// testOptions are the flags of lab test.
type testOptions struct {
	run     string
	diff    bool
	junit   string
	rewrite bool
	quiet   bool
}

func newTest() *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test FILE|DIR...",
		Short: "run semantics tests and replay recordings of the real engine",
		Long: `test runs two kinds of tests against the lab's operators, step by step, and compares what comes out, what is
held and what is counted:

  *.yaml  tests that people write: on these rows I expect this changelog. docs/semantics.md tells how to write one,
          scenarios/semantics holds examples.
  *.json  recorded cases of the real engine.

A folder is searched with all below it; scenarios and files whose names begin with _ are left out. All failures are
reported in one run. It exits 1 when a test fails, 2 when a YAML file is invalid.`,
		Example: "  lab test scenarios/semantics conformance/testdata/flink\n" +
			"  lab test scenarios/semantics --run 'rowtime-asc.*late'\n" +
			"  lab test my-tests.yaml --rewrite",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.test(args, cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.run, "run", "", "run only the tests whose name or file matches this regular `expression`")
	flags.BoolVar(&o.diff, "diff", false, "show what differs as a unified diff, not side by side")
	flags.StringVar(&o.junit, "junit", "", "also write the results as JUnit XML to this `file`")
	flags.BoolVar(&o.rewrite, "rewrite", false, "write what was sent and held into the YAML tests that fail")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "do not list the tests that pass")
	return cmd
}

// outcome is what became of one test.
type outcome struct {
	suite, name, file string
	line              int
	failures          []difference
}

// difference is one thing that is not as expected. Text is all of it, or want and got are to be compared.
type difference struct {
	title     string
	text      string
	want, got []string
}

func (o *testOptions) test(args []string, w io.Writer) error {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	files, err := testFiles(args)
	if err != nil {
		return err
	}
	selected := func(file, name string) bool { return pattern.MatchString(name) || pattern.MatchString(file) }
	loaded, err := loadTests(files)
	if err != nil {
		if invalid, ok := errors.AsType[invalidFiles](err); ok {
			err = errors.Join(err, o.writeInvalid(invalid))
		}
		return err
	}
	if o.rewrite {
		if err := rewrite(files, selected, w); err != nil {
			return err
		}
		if loaded, err = loadTests(files); err != nil {
			return err
		}
	}
	outcomes := runTests(files, loaded, selected)
	if len(outcomes) == 0 {
		return fmt.Errorf("--run %s: no test has such a name or file", o.run)
	}
	failed := o.print(outcomes, w)
	if o.junit != "" {
		if err := o.writeJUnit(outcomes); err != nil {
			return err
		}
	}
	if failed > 0 {
		return failure{code: exitFailed}
	}
	return nil
}

// isSemantics tells a file of tests from a recorded case.
func isSemantics(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml"
}

// scenarioLine begins a scenario, which is no test.
var scenarioLine = regexp.MustCompile(`(?m)^scenario:`)

// isTest reports whether a file that was found in a folder holds tests.
func isTest(path string) (bool, error) {
	switch name := filepath.Base(path); {
	case strings.HasPrefix(name, "_"):
		return false, nil
	case isSemantics(name):
		src, err := os.ReadFile(path)
		return !scenarioLine.Match(src), err
	default:
		return filepath.Ext(name) == ".json", nil
	}
}

// testFiles lists the files of tests that the arguments name, each once.
func testFiles(args []string) ([]string, error) {
	return findFiles(args, "no test and no recorded case in it: expected .yaml or .json files", isTest)
}

// invalidFiles is all that is wrong with files.
type invalidFiles []invalidFile

type invalidFile struct {
	path string
	err  error
}

// noTestRun ends what is told of invalid files.
const noTestRun = "no test was run"

// Error tells it file by file.
func (files invalidFiles) Error() string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintln(&b, f.err)
	}
	return b.String() + noTestRun
}

// loadTests loads the YAML files. The error is all that is wrong with all of them, as [invalidFiles].
func loadTests(files []string) (map[string]*semantics.File, error) {
	loaded := map[string]*semantics.File{}
	var invalid invalidFiles
	for _, path := range files {
		if isSemantics(path) {
			file, err := semantics.Read(path)
			if err != nil {
				invalid = append(invalid, invalidFile{path, err})
			}
			loaded[path] = file
		}
	}
	if invalid != nil {
		return nil, invalid
	}
	return loaded, nil
}

// runTests runs the tests that are selected. What is no recorded case is a test that fails.
func runTests(files []string, loaded map[string]*semantics.File, selected func(file, name string) bool) []outcome {
	var outcomes []outcome
	for _, path := range files {
		if file, ok := loaded[path]; ok {
			for _, t := range file.Tests {
				if selected(path, t.Name) {
					outcomes = append(outcomes, semanticsOutcome(t))
				}
			}
			continue
		}
		if c := recordedOutcome(path); selected(path, c.name) {
			outcomes = append(outcomes, c)
		}
	}
	return outcomes
}

func semanticsOutcome(t *semantics.Test) outcome {
	out := outcome{suite: t.File, name: t.Name, file: t.File, line: t.Line}
	for _, f := range t.Run() {
		out.failures = append(out.failures, difference{title: f.Place(), want: f.Want, got: f.Got})
	}
	return out
}

// recordedOutcome replays a recorded case.
func recordedOutcome(path string) outcome {
	out := outcome{suite: filepath.Dir(path), name: path, file: path}
	name, diffs, err := testCase(path)
	out.name = name
	if err != nil {
		out.failures = append(out.failures, difference{title: err.Error()})
	}
	for _, d := range diffs {
		out.failures = append(out.failures, difference{title: d.Title(), text: d.String(), want: d.WantLines(),
			got: d.GotLines()})
	}
	return out
}

func testCase(file string) (string, []conformance.Diff, error) {
	f, err := os.Open(file)
	if err != nil {
		return file, nil, err
	}
	defer f.Close()
	c, err := conformance.Read(file, f)
	if err != nil {
		return file, nil, err
	}
	diffs, err := conformance.Run(c)
	return c.Name, diffs, err
}

// print reports each test and all that failed, and returns how many did.
func (o *testOptions) print(outcomes []outcome, w io.Writer) int {
	failed := 0
	for _, t := range outcomes {
		if len(t.failures) > 0 {
			failed++
			fmt.Fprintf(w, "FAIL  %s\n%s", t.title(), o.details(t))
		} else if !o.quiet {
			fmt.Fprintf(w, "ok    %s\n", t.title())
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", len(outcomes)-failed, failed)
	return failed
}

// title names a test. The name of a recorded case tells its file.
func (t outcome) title() string {
	if t.line == 0 {
		return t.name
	}
	return fmt.Sprintf("%s:%d: %s", t.file, t.line, t.name)
}

// details spells all failures of a test.
func (o *testOptions) details(t outcome) string {
	var b strings.Builder
	for _, f := range t.failures {
		var lines []string
		switch {
		case f.text != "" && !o.diff:
			b.WriteString(f.text)
			continue
		case f.want == nil && f.got == nil:
		case o.diff:
			lines = semantics.Unified(f.want, f.got)
		default:
			lines = semantics.SideBySide(f.want, f.got)
		}
		fmt.Fprintf(&b, "      %s\n", f.title)
		for _, line := range lines {
			fmt.Fprintf(&b, "        %s\n", line)
		}
	}
	return b.String()
}

// writeInvalid writes the files that are invalid as tests that could not be run, if JUnit XML is asked for: else the CI
// would show what the run before has left.
func (o *testOptions) writeInvalid(invalid invalidFiles) error {
	if o.junit == "" {
		return nil
	}
	var suites []junit.Suite
	for _, f := range invalid {
		c := junit.Case{Name: "the file is valid", File: f.path, Message: f.err.Error(), Invalid: true}
		if faults, ok := errors.AsType[*yml.Error](f.err); ok {
			c.Line, c.Message = faults.Faults[0].Line, faults.Faults[0].Message
		}
		c.Details = f.err.Error() + "\n" + noTestRun
		suites = append(suites, junit.Suite{Name: f.path, Cases: []junit.Case{c}})
	}
	return o.writeSuites(suites)
}

func (o *testOptions) writeJUnit(outcomes []outcome) error {
	var suites []junit.Suite
	for _, t := range outcomes {
		i := slices.IndexFunc(suites, func(s junit.Suite) bool { return s.Name == t.suite })
		if i < 0 {
			i = len(suites)
			suites = append(suites, junit.Suite{Name: t.suite})
		}
		c := junit.Case{Name: t.name, File: t.file, Line: t.line}
		if len(t.failures) > 0 {
			c.Message, c.Details = t.failures[0].title, o.details(t)
		}
		suites[i].Cases = append(suites[i].Cases, c)
	}
	return o.writeSuites(suites)
}

func (o *testOptions) writeSuites(suites []junit.Suite) error {
	slices.SortStableFunc(suites, func(a, b junit.Suite) int { return cmp.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	if err := junit.Write(&b, suites); err != nil {
		return err
	}
	return os.WriteFile(o.junit, b.Bytes(), 0o644)
}

// rewrite mends the expectations of YAML tests and says how many changed.
func rewrite(files []string, selected func(file, name string) bool, w io.Writer) error {
	total := 0
	for _, path := range files {
		if !isSemantics(path) {
			continue // what the engine did is not ours to change
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed, n, err := semantics.Rewrite(path, src, func(t *semantics.Test) bool { return selected(path, t.Name) })
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		err = replaceFile(path, info.Mode().Perm(), func(w io.Writer) error {
			_, err := w.Write(changed)
			return err
		})
		if err != nil {
			return err
		}
		total += n
		fmt.Fprintf(w, "%s: %d expectations changed\n", path, n)
	}
	fmt.Fprintf(w, "rewrite: %d expectations changed\n", total)
	return nil
}
