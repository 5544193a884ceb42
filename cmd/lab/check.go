package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"deduplab/baseline"
	"deduplab/check"
	"deduplab/lab"
	"deduplab/scenarios"
	"deduplab/semantics"
	"deduplab/sim"
	"deduplab/yml"
)

// checkOptions are the flags of lab check.
type checkOptions struct {
	baselines string
	update    bool
	only      string
	jobs      int
	failFast  bool
	json      bool
	junit     string
	markdown  string
}

func newCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check [SCENARIO|DIR ...]",
		Short: "hold scenarios against their expectations and baselines, for CI",
		Long: `check runs scenarios and holds them against two things: what the section expect says of a strategy, and the
baseline, a file with the exact numbers of an earlier run. Semantics tests that it finds in a folder are run too. That a
strategy misses a requirement is no failure by itself: scenarios are there to show that. Without an argument it checks
the folder scenarios.

Only --update writes baselines, and says what it accepted. When a number has moved, check tells what, by how much, the
first event whose fate changed with its rows, and what explains it: the scenario, the generator, the engine's rules.

Exit codes: 0 fine, 1 an expectation or a semantics test failed, 2 a file is invalid or cannot be run, 3 a baseline
differs, is stale, missing or edited by hand, 4 interrupted, 70 internal error. docs/ci.md has recipes.`,
		Example: `  lab check
  lab check my-scenarios --baselines my-baselines --junit check.xml
  lab check scenarios/orders.yaml --update`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"scenarios"}
			}
			return o.check(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.baselines, "baselines", "results", "`folder` of the baselines, <scenario>.json each")
	flags.BoolVar(&o.update, "update", false, "accept what the runs show: write the baselines that differ")
	flags.StringVar(&o.only, "only", "", "check only what has a name or file that matches this regular `expression`")
	flags.IntVar(&o.jobs, "jobs", 1, "check this many files at a time")
	flags.BoolVar(&o.failFast, "fail-fast", false, "stop at the first file with a failure")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.junit, "junit", "", "also write the results as JUnit XML to this `file`")
	flags.StringVar(&o.markdown, "markdown", "", "also write them as Markdown, for a job summary, to this `file`")
	return cmd
}

func (o *checkOptions) check(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	if o.jobs < 1 || o.jobs > 1000 {
		return fmt.Errorf("--jobs: %d must be from 1 to 1000", o.jobs)
	}
	paths, err := checkFiles(args)
	if err != nil {
		return err
	}
	files, report := loadChecked(paths, pattern)
	if report.Count(check.Invalid) == 0 {
		if len(files) == 0 {
			return fmt.Errorf("--only %s: nothing has such a name or file", o.only)
		}
		if report, err = o.runAll(ctx, files, stderr); err != nil {
			return err
		}
	}
	if err := o.write(report, stdout, stderr); err != nil {
		return err
	}
	for _, end := range []struct {
		status check.Status
		code   int
	}{{check.Invalid, exitInvalid}, {check.Failed, exitFailed}, {check.Differs, exitDiffers}} {
		if report.Count(end.status) > 0 {
			return failure{code: end.code}
		}
	}
	return nil
}

// write writes the report in all the forms that are wanted.
func (o *checkOptions) write(r *check.Report, stdout, stderr io.Writer) error {
	say := r.Text
	if o.json {
		say = r.JSON
	}
	if err := say(stdout); err != nil {
		return err
	}
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		if err := r.Annotations(stderr); err != nil {
			return err
		}
	}
	file := func(flag, path string, write func(io.Writer) error) error {
		if path == "" {
			return nil
		}
		if err := replaceFile(path, 0o644, write); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		return nil
	}
	return errors.Join(file("--junit", o.junit, r.JUnit), file("--markdown", o.markdown, r.Markdown))
}

// checkFiles lists the YAML files that the arguments name, each once.
func checkFiles(args []string) ([]string, error) {
	paths, err := findFiles(args, "no scenario and no semantics test in it: expected .yaml files",
		func(path string) (bool, error) {
			return isSemantics(path) && !strings.HasPrefix(filepath.Base(path), "_"), nil
		})
	for i, path := range paths {
		paths[i] = filepath.ToSlash(path)
	}
	return paths, err
}

// checkedFile is a file that is to be checked: a scenario or tests.
type checkedFile struct {
	path     string
	scenario *scenarios.Scenario
	tests    []*semantics.Test
}

// loadChecked loads all files, and reports those that are invalid. Left out is what is not selected.
func loadChecked(paths []string, only *regexp.Regexp) ([]checkedFile, *check.Report) {
	var files []checkedFile
	report := &check.Report{Schema: check.Schema, Files: []check.File{}}
	named := map[string]string{}
	for _, path := range paths {
		f, err := loadOne(path)
		if err == nil && f.scenario != nil {
			if other, ok := named[f.scenario.Name]; ok {
				err = fmt.Errorf("%s: %s is another scenario with the name %s; each needs a baseline of its own", path,
					other, f.scenario.Name)
			}
			named[f.scenario.Name] = path
		}
		if err != nil {
			report.Add(check.File{Path: path, Cases: []check.Case{invalidCase("the file is valid", err)}})
			continue
		}
		if f.scenario != nil && !only.MatchString(path) && !only.MatchString(f.scenario.Name) {
			continue
		}
		var tests []*semantics.Test
		for _, t := range f.tests {
			if only.MatchString(path) || only.MatchString(t.Name) {
				tests = append(tests, t)
			}
		}
		if f.tests = tests; f.scenario != nil || tests != nil {
			files = append(files, f)
		}
	}
	return files, report
}

func loadOne(path string) (checkedFile, error) {
	f := checkedFile{path: path}
	src, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if scenarioLine.Match(src) {
		f.scenario, err = scenarios.Read(path)
		return f, err
	}
	tests, err := semantics.Read(path)
	if err != nil {
		return f, err
	}
	f.tests = tests.Tests
	return f, nil
}

// invalidCase tells what is wrong with a file. What should be so is its name.
func invalidCase(name string, err error) check.Case {
	lines := strings.Split(err.Error(), "\n")
	c := check.Case{Kind: check.Validity, Name: name, Status: check.Invalid, Message: lines[0], Details: lines[1:]}
	if faults, ok := errors.AsType[*yml.Error](err); ok {
		c.Line, c.Message, c.Details = faults.Faults[0].Line, faults.Faults[0].Message, lines
	}
	return c
}

// runAll checks the files, some at a time. The report is in their order whatever ends first; with --fail-fast it ends
// with the first file that fails. Baselines are written when all is checked.
func (o *checkOptions) runAll(ctx context.Context, files []checkedFile, stderr io.Writer) (*check.Report, error) {
	if o.update {
		undo, err := writable("--baselines", o.baselines)
		if err != nil {
			return nil, err
		}
		defer undo()
	}
	told := &checkProgress{progress: newProgress(stderr), files: len(files)}
	defer told.clear()
	ctx, stop := context.WithCancel(ctx)
	type outcome struct {
		file  check.File
		write func() error // the baseline, nil: it stays
		err   error
	}
	done := make([]chan outcome, len(files))
	for i := range done {
		done[i] = make(chan outcome, 1)
	}
	slots := make(chan struct{}, o.jobs)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for i, f := range files {
			slots <- struct{}{}
			go func() {
				file, write, err := o.checkOne(ctx, f, told.of(f.path))
				told.done()
				<-slots
				done[i] <- outcome{file, write, err}
			}()
		}
	}()
	report := &check.Report{Schema: check.Schema, Files: []check.File{}}
	var failed error
	var writes []func() error
	ended := false
	for i := range files {
		out := <-done[i]
		switch {
		case ended: // a file after the end, which is waited for
		case out.err != nil:
			failed, ended = out.err, true
			stop()
		default:
			report.Add(out.file)
			if out.write != nil {
				writes = append(writes, out.write)
			}
			if o.failFast && out.file.Bad() {
				ended = true
				stop()
			}
		}
	}
	stop()
	<-finished
	for _, write := range writes {
		if failed == nil {
			failed = write()
		}
	}
	return report, failed
}

// checkProgress says on a terminal how far the check is.
type checkProgress struct {
	*progress
	files int

	mu      sync.Mutex
	checked int
}

// of tells of the run of a file; nil where nobody sees it.
func (p *checkProgress) of(path string) func(lab.Progress) {
	if !p.terminal {
		return nil
	}
	return func(s lab.Progress) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if now := time.Now(); now.After(p.next) {
			p.next = now.Add(p.every)
			p.overwrite(fmt.Sprintf("%d of %d checked, %s: %s", p.checked, p.files, path, progressText(s, 0)))
		}
	}
}

func (p *checkProgress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked++
}

// checkOne checks a file. Write writes its baseline anew; it is nil where that stays. An error is no fault of the file.
func (o *checkOptions) checkOne(ctx context.Context, f checkedFile, told func(lab.Progress)) (file check.File,
	write func() error, err error) {
	defer func() {
		if p := recover(); p != nil { // in a goroutine of its own nobody else would
			err = sim.InternalError(fmt.Sprintf("%v\n%s", p, debug.Stack()))
		}
	}()
	if err := ctx.Err(); err != nil {
		return file, nil, err
	}
	file = check.File{Path: f.path}
	if f.scenario == nil {
		for _, t := range f.tests {
			file.Cases = append(file.Cases, semanticsCase(t))
		}
		return file, nil, nil
	}
	file.Name = f.scenario.Name
	states := &stateFolder{}
	defer states.remove()
	options := lab.Options{OpenState: states.open, Progress: told}
	var checked *lab.Checked
	var has room
	if has, err = fitsMemory(ctx, f.scenario, options, 0, 0); err == nil {
		options.AtOnce = has.atOnce
		checked, err = lab.Check(ctx, f.scenario, options)
	}
	var internal sim.InternalError
	switch {
	case errors.Is(err, context.Canceled) || errors.As(err, &internal):
		return file, nil, fmt.Errorf("%s: %w", f.path, err)
	case err != nil:
		file.Cases = append(file.Cases, invalidCase("the scenario runs", err))
		return file, nil, nil
	}
	for _, e := range checked.Expected() {
		file.Cases = append(file.Cases, expectedCase(e))
	}
	kept, write, err := o.baselineCase(f.path, checked)
	file.Cases = append(file.Cases, kept)
	return file, write, err
}

func semanticsCase(t *semantics.Test) check.Case {
	c := check.Case{Kind: check.Semantics, Name: t.Name, Line: t.Line, Status: check.OK}
	if out := semanticsOutcome(t); len(out.failures) > 0 {
		c.Status, c.Message = check.Failed, out.failures[0].title
		c.Details = strings.Split(strings.TrimRight((&testOptions{}).details(out), "\n"), "\n")
	}
	return c
}

func expectedCase(e lab.Expected) check.Case {
	c := check.Case{Kind: check.Expectation, Name: e.Strategy + " " + e.String(), Line: e.Line, Status: check.OK}
	if !e.Met {
		c.Status, c.Message = check.Failed, "it is "+e.Got
		if e.Evidence != "" {
			c.Details = []string{e.Evidence}
		}
	}
	return c
}

// baselineCase holds a run against its baseline. With --update, write writes it anew where it differs.
func (o *checkOptions) baselineCase(scenario string, c *lab.Checked) (out check.Case, write func() error, err error) {
	path := filepath.Join(o.baselines, c.Run.Scenario+".json")
	out = check.Case{Kind: check.Baseline, Name: "baseline " + filepath.ToSlash(path), Status: check.OK}
	src, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Status, out.Message = check.Differs, "missing"
	case err != nil:
		return out, nil, err
	default:
		if err := compareBaseline(&out, scenario, path, src, c); err != nil {
			out.Status, out.Message = check.Differs, err.Error()
		}
	}
	switch {
	case out.Status == check.OK:
		return out, nil, nil
	case !o.update:
		out.Details = append(out.Details, "to accept this: lab check --update")
		return out, nil, nil
	}
	out.Status, out.Message = check.Accepted, "written; before: "+out.Message
	anew := c.Baseline // nothing else of the run stays in memory
	return out, func() error { return replaceFile(path, 0o644, anew.Write) }, nil
}

// compareBaseline says in a case what differs. The error is that of a file that is no baseline.
func compareBaseline(to *check.Case, scenario, path string, src []byte, c *lab.Checked) error {
	kept, err := baseline.Read(path, src)
	if err != nil {
		return err
	}
	d := baseline.Compare(kept, c.Baseline, c.FateOf)
	var say []string
	if kept.Edited() {
		say = append(say, "edited by hand: it is not what lab check --update wrote")
	}
	if len(d.Scenario) > 0 {
		say = append(say, "stale: the scenario has changed since it was written")
		to.Details = append(to.Details, "changed in the scenario: "+strings.Join(d.Scenario, "; "))
	}
	if n := len(d.Strategies); n > 0 {
		say = append(say, fmt.Sprintf("numbers moved of %d of %d strategies", n, len(c.Baseline.Strategies)))
	}
	for _, reason := range d.Reasons {
		to.Details = append(to.Details, "changed: "+reason)
	}
	for _, m := range d.Strategies {
		to.Details = append(to.Details, m.ID)
		for _, line := range m.Lines {
			to.Details = append(to.Details, "  "+line)
		}
		to.Details = append(to.Details, firstChanged(scenario, m, c)...)
	}
	if say != nil {
		to.Status, to.Message = check.Differs, strings.Join(say, "; ")
	}
	return nil
}

// firstChanged tells of the first event whose fate changed, with its rows, and how to see what becomes of them.
func firstChanged(scenario string, m baseline.Moved, c *lab.Checked) []string {
	if m.First == nil {
		return nil
	}
	e := *m.First
	var line string
	if e.Then != "" {
		line = fmt.Sprintf("first event whose fate changed: event %d, %s -> %s", e.Number, e.Then, e.Now)
	} else {
		line = fmt.Sprintf("first fate that changed: of one of the events %d to %d", e.Number, e.End-1)
		other, ok := c.FirstOther(m.ID, e.Number, e.End)
		if !ok {
			return []string{"  " + line}
		}
		line += fmt.Sprintf("; event %d is the first of them that is not kept: %s", other, c.FateOf(m.ID, other))
		e.Number = other
	}
	lines := []string{"  " + line}
	if e.Number >= c.Baseline.Events {
		return lines
	}
	for _, row := range c.Rows(e.Number) {
		lines = append(lines, "    "+row)
	}
	return append(lines, fmt.Sprintf("    its story: lab trace %s --event %d --strategy %s", scenario, e.Number, m.ID))
}
