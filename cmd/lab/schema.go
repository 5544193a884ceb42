package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/schema"
	"deduplab/yml"
)

func newSchema() *cobra.Command {
	names := schema.Names()
	return &cobra.Command{
		Use:   "schema " + strings.Join(names, "|"),
		Short: "print the JSON Schema of a kind of file, for editors",
		Long: `schema prints the JSON Schema of scenarios, of semantics tests or of results.json. With

  # yaml-language-server: $schema=FILE

as its first line, a YAML file is completed and checked by every editor that has a YAML language server.`,
		Example:   "  lab schema scenario > scenario.json",
		ValidArgs: names,
		Args:      exactly(strings.Join(names, "|")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := yml.OneOf(names...)(args[0]); err != nil {
				return fmt.Errorf("schema: %w", err)
			}
			return schema.Write(cmd.OutOrStdout(), args[0])
		},
	}
}
