package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deduplab/lab"
	"deduplab/report"
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/sim/pebble"
	"deduplab/stream"
)

func newRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "run a scenario through its strategies and write a report",
		Long: `run delivers the scenario's stream to every strategy, replays it where determinism is measured, prints a verdict
table, and writes results.json and report.html. It exits 0 whatever the verdicts are. When it is interrupted, it leaves
what it has measured by then in results.partial.json and report.partial.html, and the files of an earlier run alone.`,
		Example: `  lab run scenarios/orders.yaml
  lab run scenarios/orders.yaml --only ptf,rowtime-asc --seed 7
  lab run scenarios/orders.yaml --json | jq '.strategies[] | {id, lost, residual}'`,
		Args: exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.seedGiven = cmd.Flags().Changed("seed")
			if err := o.check(cmd.Flags().Changed("scale")); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "folder for results.json and report.html (default out/<scenario>)")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "run only the strategies with these ids")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "another seed than the scenario's")
	cmd.Flags().IntVar(&o.seeds, "seeds", 1, "run under this many seeds, so that lab compare can tell change from chance")
	cmd.Flags().StringSliceVar(&o.causes, "causes", nil, fmt.Sprintf("replay under these causes of difference, %d times "+
		"each, or under all: %s (default interleaving and catch-up once, and what same_under requires)", lab.DefaultReplays,
		strings.Join(scenarios.Causes, ", ")))
	cmd.Flags().IntVar(&o.replays, "replays", 0, "replay so many times under each cause")
	cmd.Flags().StringVar(&o.onBadRow, "on-bad-row", "", "of a trace: fail, or skip and count it (default as the scenario "+
		"says, else fail)")
	cmd.Flags().Float64Var(&o.scale, "scale", 0,
		"so many times the stream's rate (default as the scenario says, else 1)")
	cmd.Flags().StringVar(&o.state, "state", "", "where state is held: memory or pebble (default as the scenario says)")
	cmd.Flags().StringVar(&o.memoryText, "memory", "",
		"refuse a run that would take more, such as 20GB (default: what is free)")
	cmd.Flags().BoolVar(&o.once, "no-replays", false, "deliver the stream once: neither determinism nor stories of rows")
	cmd.Flags().BoolVar(&o.json, "json", false, "print results.json instead of the table")
	return cmd
}

// check checks the flags. All faults are returned at once.
func (o *runOptions) check(scaleGiven bool) error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(o.seeds >= 1 && o.seeds <= 1000, "--seeds: %d must be from 1 to 1000", o.seeds)
	check(o.replays >= 0 && o.replays <= 1000, "--replays: %d must be from 1 to 1000", o.replays)
	check(!o.once || o.causes == nil && o.replays == 0, "--no-replays leaves no replays for --causes and --replays")
	var err error
	if o.causes, err = chosenCauses(o.causes); err != nil {
		faults = append(faults, err)
	}
	check(!scaleGiven || scenarios.IsScale(o.scale), "--scale: %v must be above 0 and at most a million", o.scale)
	check(slices.Contains([]string{"", "fail", "skip"}, o.onBadRow),
		"--on-bad-row: %q is neither fail nor skip", o.onBadRow)
	if o.memoryText != "" {
		if o.memory, err = parseMemory(o.memoryText); err != nil {
			faults = append(faults, err)
		}
		check(err != nil || o.memory >= leastMemory, "--memory: %s is less than any run takes: write at least %s", o.memoryText,
			gigabytes(leastMemory))
	}
	check(slices.Contains([]string{"", "memory", "pebble"}, o.state), "--state: %q is neither memory nor pebble", o.state)
	return errors.Join(faults...)
}

// read reads the scenario, and its trace as the flag says.
func (o *runOptions) read(path string) (*scenarios.Scenario, error) {
	how := scenarios.Reading{Scale: o.scale}
	if o.onBadRow != "" {
		how.Open = scenarios.SkipBadRows(o.onBadRow == "skip")
	}
	scenario, err := scenarios.ReadWith(path, how)
	if err != nil {
		return nil, err
	}
	if o.seedGiven {
		scenario.Seed = o.seed
	}
	if o.state != "" {
		scenario.Job.State = o.state
	}
	return scenario, nil
}

type runOptions struct {
	onBadRow  string
	out       string
	only      []string
	seed      uint64
	seedGiven bool
	seeds     int
	causes    []string
	replays   int
	scale     float64
	state     string
	once      bool
	memory    uint64 // bytes; 0: what is free

	memoryText string
	json       bool
}

func (o *runOptions) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	scenario, err := o.read(path)
	if err != nil {
		return err
	}
	has, err := fitsMemory(ctx, scenario, lab.Options{Only: o.only}, o.memory, o.scale)
	switch {
	case err != nil:
		return err
	case has.limit > 0: // the garbage must fit too
		debug.SetMemoryLimit(has.limit)
	}
	folder := o.out
	if folder == "" {
		folder = filepath.Join("out", scenario.Name)
	}
	undo, err := writable("--out", folder)
	if err != nil {
		return err
	}
	// A run holds the state of all strategies at once and makes little garbage: half of Go's default headroom will do.
	debug.SetGCPercent(50)
	start := time.Now()
	states := &stateFolder{}
	defer states.remove()
	progress := newProgress(stderr)
	options := lab.Options{Only: o.only, Causes: o.causes, Replays: o.replays, AtOnce: has.atOnce, OpenState: states.open,
		OpenTarget: openTarget(ctx, scenario, states), Progress: progress.show, Once: o.once}
	result, err := lab.RunSeeds(ctx, scenario, options, o.seeds)
	progress.clear()
	switch {
	case result == nil:
		undo()
		return err
	case err != nil:
		if _, failed := write(folder, result); failed != nil {
			return failed
		}
		return failure{exitInterrupted, fmt.Errorf("interrupted: what had been measured by then is in %s",
			filepath.Join(folder, reportFile(result)))}
	}
	data, err := write(folder, result)
	if err != nil {
		return err
	}
	if o.json {
		_, err = stdout.Write(data)
		return err
	}
	if err := report.Terminal(stdout, result); err != nil {
		return err
	}
	span := stream.FormatDuration(stream.Time(result.Workload.SpanMS).Floor(1000))
	_, err = fmt.Fprintf(stdout, "\n%s simulated in %.1f s   report: %s\n", span, time.Since(start).Seconds(),
		filepath.Join(folder, reportFile(result)))
	return err
}

// chosenCauses reads the names of causes; all stands for all of them.
func chosenCauses(names []string) ([]string, error) {
	if slices.Equal(names, []string{"all"}) {
		return scenarios.Causes, nil
	}
	for _, name := range names {
		if !slices.Contains(scenarios.Causes, name) {
			return nil, fmt.Errorf("--causes: there is no cause %q%s; write all, or some of %s", name,
				stream.DidYouMean(name, scenarios.Causes), strings.Join(scenarios.Causes, ", "))
		}
	}
	return names, nil
}

// reportFile and resultsFile are the names of a run's files. Those of a partial run stand beside those of a whole one.
func reportFile(r *results.Run) string {
	if r.Partial {
		return "report.partial.html"
	}
	return "report.html"
}

func resultsFile(r *results.Run) string {
	if r.Partial {
		return "results.partial.json"
	}
	return "results.json"
}

// writable makes the folder, and finds out before the run whether files can be written to it. Undo removes a folder that
// was not there before, and is empty. The flag that names the folder stands in messages.
func writable(flag, folder string) (undo func(), err error) {
	_, err = os.Stat(folder)
	undo = func() {}
	if errors.Is(err, os.ErrNotExist) {
		undo = func() { _ = os.Remove(folder) }
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	f, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return undo, errors.Join(f.Close(), os.Remove(f.Name()))
}

// write puts results.json and report.html into a folder, both whole or neither, and returns the former.
func write(folder string, result *results.Run) ([]byte, error) {
	data, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	var page bytes.Buffer
	if err := report.HTML(&page, result); err != nil {
		return nil, err
	}
	var written []string
	defer func() {
		for _, temp := range written {
			_ = removeLeft(temp)
		}
	}()
	paths := []string{filepath.Join(folder, resultsFile(result)), filepath.Join(folder, reportFile(result))}
	for i, content := range [][]byte{data, page.Bytes()} {
		temp, err := writeBeside(paths[i], 0o644, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return nil, err
		}
		written = append(written, temp)
	}
	for i, temp := range written {
		if err := os.Rename(temp, paths[i]); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// stateFolder holds the state of a run on disk while it runs.
type stateFolder struct {
	path string
	n    int
}

func (s *stateFolder) open() (sim.Cold, error) {
	path, err := s.next()
	if err != nil {
		return nil, err
	}
	return pebble.Open(path)
}

// next names a folder that is not there yet.
func (s *stateFolder) next() (string, error) {
	if s.path == "" {
		path, err := os.MkdirTemp("", "deduplab-state-")
		if err != nil {
			return "", err
		}
		s.path = path
	}
	s.n++
	return filepath.Join(s.path, fmt.Sprint(s.n)), nil
}

func (s *stateFolder) remove() {
	if s.path != "" {
		_ = os.RemoveAll(s.path)
	}
}

// progress says what a run is doing: on a terminal in one line that is written over, elsewhere in a line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	every    time.Duration
	next     time.Time
	stage    string
	since    time.Time // of the stage
	shown    bool
}

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, every: 10 * time.Second}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			p.terminal, p.every = true, 100*time.Millisecond
		}
	}
	p.next = time.Now().Add(p.every)
	return p
}

func (p *progress) show(s lab.Progress) {
	now := time.Now()
	if s.Stage != p.stage {
		p.stage, p.since = s.Stage, now
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(p.every)
	text := progressText(s, now.Sub(p.since))
	if !p.terminal {
		fmt.Fprintln(p.w, text)
		return
	}
	p.overwrite(text)
}

func (p *progress) overwrite(text string) {
	p.shown = true
	fmt.Fprint(p.w, "\r\033[K"+text)
}

// progressText says how far a stage is after so long, and how long it will take.
func progressText(s lab.Progress, took time.Duration) string {
	done := min(float64(s.Virtual)/float64(max(s.Span, 1)), 1)
	text := fmt.Sprintf("%s: %.0f %%, %s of %s, %s rows", s.Stage, 100*done, results.FormatSpan(int64(s.Virtual)),
		results.FormatSpan(int64(s.Span)), results.FormatCount(s.Rows))
	if seconds := took.Seconds(); seconds > 1 {
		text += fmt.Sprintf(", %s rows/s", results.FormatCount(int64(float64(s.Rows)/seconds)))
		if done > 0.01 && done < 1 {
			text += ", " + results.FormatSpan(int64(1000*seconds*(1-done)/done)) + " left"
		}
	}
	return text
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
