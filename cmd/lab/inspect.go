package main

import (
	"github.com/spf13/cobra"

	"deduplab/scenarios"
)

func newInspect() *cobra.Command {
	return &cobra.Command{
		Use:     "inspect SCENARIO",
		Short:   "print a scenario with every default filled in",
		Example: "  lab inspect scenarios/orders.yaml",
		Args:    exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, err := scenarios.Read(args[0])
			if err != nil {
				return err
			}
			return scenario.Inspect(cmd.OutOrStdout())
		},
	}
}
