package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deduplab/scenarios"
)

var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```\n")

// TestDocs runs every lab command of the pages. The lines of a text block must stand in the output of the commands
// before it, in order, each from the start of a line; scenarios must be read without a fault.
func TestDocs(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for page, shown := range map[string]int{"measure.md": 20, "real-data.md": 22, "tiers.md": 12} {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, "docs", page))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			if err := os.Symlink(filepath.Join(root, "scenarios"), "scenarios"); err != nil {
				t.Fatal(err)
			}
			var output, rest string
			lines := 0
			for _, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
				switch language, content := block[1], block[2]; language {
				case "sh":
					output = runLab(t, content)
				case "text":
					rest = output
					for line := range strings.Lines(content) {
						at := strings.Index("\n"+rest, "\n"+strings.TrimSuffix(line, "\n"))
						if at < 0 {
							t.Errorf("the output does not have, from here on, the line\n%s\nin\n%s", line, output)
							continue
						}
						rest = rest[at:]
						lines++
					}
				case "yaml":
					if err := os.WriteFile("shown.yaml", []byte(content), 0o644); err != nil {
						t.Fatal(err)
					}
					if _, err := scenarios.Read("shown.yaml"); err != nil {
						t.Error(err)
					}
				}
			}
			if lines != shown {
				t.Errorf("%d lines of output were looked for, want %d", lines, shown)
			}
		})
	}
}

// runLab runs the lab commands of a block, a line each, and returns their output.
func runLab(t *testing.T, block string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	for line := range strings.Lines(block) {
		args, ok := strings.CutPrefix(line, "lab ")
		if !ok {
			t.Fatalf("not a command: %s", line)
		}
		if code := run(context.Background(), strings.Fields(args), &stdout, &stderr); code != exitFine {
			t.Fatalf("%s exits %d: %s", line, code, stderr.String())
		}
	}
	return stdout.String()
}
