package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"deduplab/sim"
)

// The exit codes.
const (
	exitFine        = 0
	exitFailed      = 1 // a check, a test or a recorded case failed
	exitInvalid     = 2 // the input is invalid
	exitDiffers     = 3 // a baseline differs, is stale, missing or edited by hand
	exitInterrupted = 4
	exitInternal    = 70
)

// run is the whole command: arguments in, exit code out.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(stderr, "lab: internal error: %v\nThis is a fault of lab, please report it with this text:\n%s",
				p, debug.Stack())
			code = exitInternal
		}
	}()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var failed failure
	var internal sim.InternalError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "lab: interrupted; nothing was written")
		return exitInterrupted
	case errors.As(err, &failed):
		if failed.err != nil {
			fmt.Fprintf(stderr, "lab: %v\n", failed.err)
		}
		return failed.code
	}
	fmt.Fprintf(stderr, "lab: %v\n", err)
	if errors.As(err, &internal) {
		return exitInternal
	}
	return exitInvalid
}

// failure is an error with an exit code; a nil err has been reported already.
type failure struct {
	code int
	err  error
}

// Error returns the message.
func (f failure) Error() string { return fmt.Sprint(f.err) }

// Unwrap returns the cause.
func (f failure) Unwrap() error { return f.err }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "simulate and compare ways of removing duplicates from a stream",
		Long: `lab runs a stream with duplicates through many ways of removing them, side by side and on the same rows, and says
which of them meet your requirements, which do not, and the number and the row that prove it.

Exit codes: 0 fine, 1 a test or an expectation failed, 2 the input is invalid, 3 a baseline differs, 4 interrupted,
70 internal error.`,
		Example: `  lab run scenarios/orders.yaml        run the article's experiment, write out/orders/report.html
  lab new payments                     a scenario of your own to start from
  lab compare out/orders out/orders-exact
                                       the verdicts that flipped between two runs, and what else changed
  lab trace scenarios/orders.yaml --fate leaked --strategy ptf
                                       the story of one key: rows, state, timers, changes
  lab inspect scenarios/orders.yaml    the scenario with every default filled in
  lab strategies                       what there is to compare
  lab measure events.jsonl.gz --key event_id --arrival ingest_ts
                                       how many duplicates, how late, and the TTL they need
  lab gen scenarios/orders.yaml --dry-run
                                       ten rows of the stream and the rates to expect
  lab size --rate 50000/s --duplicates 0.4% --delay p99.9=40m,max=3d
                                       keys, bytes and what comes through, for each plan of tiers
  lab key amount:bigint=1 --other amount:double=1
                                       the content keys of two rows, and why they differ
  lab explain --sql query.sql          what a deduplication query becomes, and what it does
  lab test conformance/testdata/flink  hold the operators against recordings of the real engine
  lab test scenarios/semantics         run semantics tests, yours or the ones that the lab ships
  lab check scenarios                  hold scenarios against their expectations and baselines, for CI`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newRun(), newNew(), newInspect(), newTest(), newStrategies(), newExplain(), newKey(), newMeasure(),
		newGen(), newSize(), newCompare(), newTrace(), newCheck(), newVersion(), newSchema())
	completions(root)
	return root
}

// exactly asks for one argument.
func exactly(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes one argument, %s, and got %d; see %s --help", cmd.CommandPath(), name, len(args),
				cmd.CommandPath())
		}
		return nil
	}
}
