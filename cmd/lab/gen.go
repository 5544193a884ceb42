package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deduplab/export"
	"deduplab/gen"
	"deduplab/scenarios"
)

func newGen() *cobra.Command {
	var o genOptions
	cmd := &cobra.Command{
		Use:   "gen SCENARIO",
		Short: "write a scenario's stream as a file, or show what it looks like",
		Long: `gen writes the stream of a scenario in order of arrival, as Parquet, JSON lines or CSV by the ending of the file, the
latter two packed if .gz or .zst follows; - writes JSON lines to the standard output. Each row has its columns, _arrival (milliseconds since 1970) and
_partition; with --truth also _event, the logical event that it stands for, and _origin. The file is the same for the
same scenario and seed, and can be read by lab measure and by a scenario's trace.`,
		Example: `  lab gen scenarios/orders.yaml --dry-run
  lab gen scenarios/orders.yaml --out orders.jsonl.gz --truth
  lab measure orders.jsonl.gz --key order_id --event-time created_at --arrival _arrival --origin _origin`,
		Args: exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.seedGiven = cmd.Flags().Changed("seed")
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "file to write: .parquet; .jsonl, .ndjson, .json or .csv, plain or with .gz or .zst; or -")
	cmd.Flags().BoolVar(&o.truth, "truth", false, "write the columns _event and _origin")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "print ten rows and the rates to expect, write nothing")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "another seed than the scenario's")
	return cmd
}

type genOptions struct {
	out        string
	truth, dry bool
	seed       uint64
	seedGiven  bool
}

func (o *genOptions) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	if o.dry == (o.out != "") {
		return errors.New("gen needs either --out FILE or --dry-run")
	}
	options := export.Options{Truth: o.truth}
	if !o.dry && o.out != "-" {
		var err error
		if options.Format, options.Compression, err = export.FormatOf(o.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	scenario, err := scenarios.Read(path)
	if err != nil {
		return err
	}
	if o.seedGiven {
		scenario.Seed = o.seed
	}
	rows, err := workloadOf(scenario)
	if err != nil {
		return err
	}
	switch {
	case o.dry:
		options.Limit = 10
		options.Truth = o.truth || rows.Labelled()
		if _, err := export.Write(ctx, stdout, rows, options); err != nil {
			return err
		}
		return expect(stdout, scenario)
	case o.out == "-":
		_, err := export.Write(ctx, stdout, rows, options)
		return err
	}
	n, err := writeRows(ctx, o.out, rows, options)
	if err == nil {
		fmt.Fprintf(stderr, "%d rows: %s\n", n, o.out)
	}
	return err
}

// workloadOf makes the stream of a scenario.
func workloadOf(s *scenarios.Scenario) (gen.Workload, error) {
	if s.Workload.Trace != nil {
		return s.Workload.Trace.Rows, nil
	}
	return gen.New(*s.Workload.Spec, s.Seed)
}

// expect prints what a scenario makes in the mean.
func expect(w io.Writer, s *scenarios.Scenario) error {
	if s.Workload.Spec == nil {
		_, err := fmt.Fprintln(w, "\nThe stream is a trace: lab measure says what is in it.")
		return err
	}
	rates := export.Expected(s.Workload.Spec)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nexpected\trows\tof the originals")
	for _, r := range rates {
		fmt.Fprintf(tw, "%s\t%.0f\t%.4g%%\n", r.Origin, r.Rows, 100*r.Share)
	}
	fmt.Fprintf(tw, "total\t%.0f\t\n", export.Total(rates))
	return tw.Flush()
}

// writeRows writes a file that is whole or not there.
func writeRows(ctx context.Context, path string, rows gen.Workload, o export.Options) (n int, err error) {
	err = replaceFile(path, 0o644, func(f io.Writer) error {
		n, err = export.Write(ctx, f, rows, o)
		return err
	})
	if path := new(fs.PathError); errors.As(err, &path) {
		err = fmt.Errorf("--out: %w", err)
	}
	return n, err
}
