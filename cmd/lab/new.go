package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deduplab/scenarios"
)

func newNew() *cobra.Command {
	var o newOptions
	cmd := &cobra.Command{
		Use:   "new [NAME]",
		Short: "write a scenario to start from",
		Long: `new writes a scenario with comments that runs as it is: one that shows what there is to set, or with --preset
one of those that the lab ships, whose rates and delays are published ones. The file is NAME.yaml, or as --out says; a
file that is there is not overwritten.`,
		Example: `  lab new --list
  lab new payments
  lab new retries --preset webhook-3d --out scenarios/retries.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.list {
				return listPresets(cmd.OutOrStdout())
			}
			if len(args) == 1 {
				o.name = args[0]
			}
			return o.run(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&o.preset, "preset", scenarios.Starter, "the scenario to begin with; see --list")
	cmd.Flags().StringVar(&o.out, "out", "", "file to write, or - for the standard output (default NAME.yaml)")
	cmd.Flags().BoolVar(&o.list, "list", false, "list the presets")
	return cmd
}

type newOptions struct {
	name, preset, out string
	list              bool
}

func (o *newOptions) run(stdout, stderr io.Writer) error {
	preset, err := scenarios.FindPreset(o.preset)
	if err != nil {
		return fmt.Errorf("--preset: %w", err)
	}
	if o.name == "" {
		o.name = "my-stream"
		if o.preset != scenarios.Starter {
			o.name = "my-" + o.preset
		}
	}
	text, err := preset.Named(o.name)
	if err != nil {
		return err
	}
	if o.out == "-" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	if o.out == "" {
		o.out = o.name + ".yaml"
	}
	if _, err := os.Lstat(o.out); err == nil {
		return fmt.Errorf("%s is there already; choose another name, or another file with --out", o.out)
	}
	err = replaceFile(o.out, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprintf(stderr, "%s is written; to run it: lab run %s\n", o.out, o.out)
	return nil
}

func listPresets(w io.Writer) error {
	presets, err := scenarios.Presets()
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range presets {
		fmt.Fprintf(tw, "%s\t%s\n", p.Name, p.About)
	}
	return tw.Flush()
}
