package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/conformance"
)

func newTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE|DIR...",
		Short: "replay recordings of the real engine and compare step by step",
		Long: `test reads recorded cases (JSON), feeds their steps to the lab's operators and compares what comes out, what is held
and what is counted. In a folder, files whose names begin with _ are left out. It exits 1 on any difference.`,
		Example: "  lab test conformance/testdata/flink\n  lab test conformance/testdata/flink/ptf/ttl-chain.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := caseFiles(args)
			if err != nil {
				return err
			}
			return testCases(files, cmd.OutOrStdout())
		},
	}
}

// caseFiles lists the recorded cases that the arguments name, each once.
func caseFiles(args []string) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	for _, arg := range args {
		any := false
		err := filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := d.Name()
			if path != arg && (!strings.HasSuffix(name, ".json") || strings.HasPrefix(name, "_")) {
				return nil
			}
			any = true
			if !seen[path] {
				seen[path] = true
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !any {
			return nil, fmt.Errorf("%s: no recorded case in it: expected .json files", arg)
		}
	}
	return files, nil
}

// testCases replays cases and reports a line each, and what differs.
func testCases(files []string, w io.Writer) error {
	passed, failed := 0, 0
	for _, file := range files {
		name, diffs, err := testCase(file)
		if err == nil && len(diffs) == 0 {
			passed++
			fmt.Fprintf(w, "ok    %s\n", name)
			continue
		}
		failed++
		fmt.Fprintf(w, "FAIL  %s\n", name)
		if err != nil {
			fmt.Fprintf(w, "      %v\n", err)
		}
		for _, d := range diffs {
			fmt.Fprintf(w, "%s", d)
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		return failure{code: exitFailed}
	}
	return nil
}

func testCase(file string) (string, []conformance.Diff, error) {
	f, err := os.Open(file)
	if err != nil {
		return file, nil, err
	}
	defer f.Close()
	c, err := conformance.Read(file, f)
	if err != nil {
		return file, nil, err
	}
	diffs, err := conformance.Run(c)
	return c.Name, diffs, err
}
