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
table, and writes results.json and report.html. It exits 0 whatever the verdicts are.`,
		Example: `  lab run scenarios/orders.yaml
  lab run scenarios/orders.yaml --only ptf,rowtime-asc --seed 7
  lab run scenarios/orders.yaml --json | jq '.strategies[] | {id, lost, residual}'`,
		Args: exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.seedGiven = cmd.Flags().Changed("seed")
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "folder for results.json and report.html (default out/<scenario>)")
	cmd.Flags().StringSliceVar(&o.only, "only", nil, "run only the strategies with these ids")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "another seed than the scenario's")
	cmd.Flags().BoolVar(&o.json, "json", false, "print results.json instead of the table")
	return cmd
}

type runOptions struct {
	out       string
	only      []string
	seed      uint64
	seedGiven bool
	json      bool
}

func (o *runOptions) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	scenario, err := scenarios.Read(path)
	if err != nil {
		return err
	}
	if o.seedGiven {
		scenario.Seed = o.seed
	}
	folder := o.out
	if folder == "" {
		folder = filepath.Join("out", scenario.Name)
	}
	undo, err := writable(folder)
	if err != nil {
		return err
	}
	// A run holds the state of all strategies at once and makes little garbage: half of Go's default headroom will do.
	debug.SetGCPercent(50)
	start := time.Now()
	states := &stateFolder{}
	defer states.remove()
	progress := newProgress(stderr)
	result, err := lab.Run(ctx, scenario, lab.Options{Only: o.only, OpenState: states.open,
		OpenTarget: openTarget(ctx, scenario, states), Progress: progress.show})
	progress.clear()
	if err != nil {
		undo()
		return err
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
		filepath.Join(folder, "report.html"))
	return err
}

// writable makes the folder, and finds out before the run whether files can be written to it. Undo removes a folder that
// was not there before.
func writable(folder string) (undo func(), err error) {
	_, err = os.Stat(folder)
	undo = func() {}
	if errors.Is(err, os.ErrNotExist) {
		undo = func() { _ = os.Remove(folder) }
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	f, err := os.CreateTemp(folder, ".probe-*")
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
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
	paths := []string{filepath.Join(folder, "results.json"), filepath.Join(folder, "report.html")}
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

// progress shows one line on a terminal, and nothing elsewhere.
type progress struct {
	w     io.Writer
	next  time.Time
	shown bool
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return &progress{}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{w: w}
}

func (p *progress) show(s lab.Progress) {
	if p.w == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(100 * time.Millisecond)
	p.shown = true
	done := 100 * float64(s.Virtual) / float64(max(s.Span, 1))
	fmt.Fprintf(p.w, "\r\033[K%s: %.0f %%, %d rows", s.Stage, min(done, 100), s.Rows)
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
