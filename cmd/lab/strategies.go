package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deduplab/strategies"
)

func newStrategies() *cobra.Command {
	return &cobra.Command{
		Use:     "strategies [NAME]",
		Short:   "list the strategies, or the parameters of one",
		Example: "  lab strategies\n  lab strategies ptf",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			defer w.Flush()
			if len(args) == 0 {
				for _, name := range strategies.Names() {
					s, _ := strategies.Lookup(name)
					fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.Engine, s.About)
				}
				return nil
			}
			s, err := strategies.Find(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%s: %s\n\n%s\n", s.Name, s.About, s.Loses)
			for i, p := range s.Params {
				if i == 0 {
					fmt.Fprintln(w, "\nparameters:")
				}
				value := p.Default
				if value == "" {
					value = "required"
				}
				fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Name, value, p.About)
			}
			return nil
		},
	}
}
