package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"deduplab/baseline"
	"deduplab/gen"
	"deduplab/lab"
	"deduplab/results"
	"deduplab/strategies"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "say what lab was built from, and the versions that its numbers depend on",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), `lab         %s
built with  %s for %s/%s
generator   %d
rules       %d, of Flink %s unless a scenario says otherwise
measuring   %d
files       %s, %s
`, built(), runtime.Version(), runtime.GOOS, runtime.GOARCH, gen.Version, strategies.RulesVersion, strategies.Flink23,
				lab.Version, results.Schema, baseline.Schema)
			return err
		},
	}
}

// built names the source that lab was built from: the module's version, and the commit where that is known.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	text := info.Main.Version
	if revision := setting["vcs.revision"]; revision != "" {
		text += ", commit " + revision
		if setting["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	return text
}
