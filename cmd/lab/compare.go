package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"deduplab/compare"
	"deduplab/report"
	"deduplab/results"
)

// compareOptions are the flags of lab compare.
type compareOptions struct {
	all      bool
	markdown string
	html     string
}

func newCompare() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare A B [C...]",
		Short: "compare runs: the verdicts that flipped, and what else changed",
		Long: `compare reads the results.json or report.html of runs, or the folders that hold them, and holds all of them against
the first: verdicts that flipped come first, then what changed in each strategy. Numbers of one seed are compared
exactly. Runs over several seeds (lab run --seeds 10) are compared as samples, and ~ marks a change that may be chance.
Where runs cannot be compared it says so, and compares the rest.`,
		Example: `  lab compare out/orders out/orders-exact
  lab run scenarios/orders.yaml --out before && lab run my-orders.yaml --out after && lab compare before after
  lab compare before/results.json after/report.html --markdown comment.md --html compare.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("compare takes two runs or more, and got %d; see lab compare --help", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(args, cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "list all metrics that differ, not only those that decide")
	flags.StringVar(&o.markdown, "markdown", "", "also write the comparison as Markdown to this `file`")
	flags.StringVar(&o.html, "html", "", "also write the comparison as a page to this `file`")
	return cmd
}

func (o *compareOptions) run(paths []string, stdout io.Writer) error {
	var columns []compare.Column
	var faults []error
	for i, path := range paths {
		run, err := readRun(path)
		if err != nil {
			faults = append(faults, err)
		}
		columns = append(columns, compare.Column{Name: columnName(paths, i), Run: run})
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	c, err := compare.Compare(columns)
	if err != nil {
		return err
	}
	for _, out := range []struct {
		path  string
		write func(io.Writer, *compare.Comparison) error
	}{{o.markdown, report.CompareMarkdown}, {o.html, report.CompareHTML}} {
		if out.path == "" {
			continue
		}
		if err := replaceFile(out.path, 0o644, func(w io.Writer) error { return out.write(w, c) }); err != nil {
			return err
		}
	}
	return report.CompareTerminal(stdout, c, o.all)
}

// readRun reads a file, or that of a folder.
func readRun(path string) (*results.Run, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "results.json")
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		partial := filepath.Join(filepath.Dir(path), "results.partial.json")
		if _, found := os.Stat(partial); found == nil {
			return nil, fmt.Errorf("%w; there is %s of an interrupted run", err, partial)
		}
	}
	if err != nil {
		return nil, err
	}
	run, err := report.ReadRun(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// columnName names a run after its path, and by a letter where two have the same one.
func columnName(paths []string, i int) string {
	for j, other := range paths {
		if j != i && filepath.Clean(other) == filepath.Clean(paths[i]) {
			return fmt.Sprintf("%s (%c)", paths[i], 'A'+rune(i%26))
		}
	}
	return filepath.Clean(paths[i])
}
