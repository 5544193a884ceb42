package main

import (
	"github.com/spf13/cobra"

	"deduplab/scenarios"
	"deduplab/strategies"
)

// completions teaches the shell what the arguments and flags of the commands may be. cobra writes the scripts: lab
// completion bash, zsh, fish or powershell.
func completions(root *cobra.Command) {
	for name, complete := range map[string]cobra.CompletionFunc{
		"run": completeScenario, "inspect": completeScenario, "gen": completeScenario, "trace": completeScenario,
		"check": completeScenarios, "test": completeScenarios,
		"strategies": completeStrategy, "explain": completeStrategy,
	} {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			cmd.ValidArgsFunction = complete
		}
	}
	for name, flag := range map[string]string{"run": "only", "trace": "strategy"} {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, completeID) // it fails only for a flag that is not there
		}
	}
}

// completeScenarios completes YAML files and folders, completeScenario the only one there may be.
func completeScenarios(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

func completeScenario(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeScenarios(cmd, args, begun)
}

// completeStrategy completes the name of a strategy, with what it is.
func completeStrategy(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var names []cobra.Completion
	if len(args) == 0 {
		for _, name := range strategies.Names() {
			s, _ := strategies.Lookup(name)
			names = append(names, cobra.CompletionWithDesc(name, s.About))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeID completes the id of a strategy in the scenario that stands before it.
func completeID(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var ids []cobra.Completion
	if len(args) > 0 {
		if scenario, err := scenarios.Read(args[0]); err == nil {
			for _, e := range scenario.Strategies {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
