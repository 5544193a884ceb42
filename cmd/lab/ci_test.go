package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// recipe is what CI systems read of a recipe: the commands.
type recipe struct {
	Jobs map[string]struct { // GitHub Actions
		Steps []struct{ Run string }
	}
	Deduplication struct{ Script []string } // GitLab
}

func (r recipe) commands() []string {
	commands := r.Deduplication.Script
	for _, job := range r.Jobs {
		for _, step := range job.Steps {
			if step.Run != "" {
				commands = append(commands, step.Run)
			}
		}
	}
	return commands
}

// TestRecipes runs the very commands of docs/ci.md in a project that has the scenario of that page, first as they
// should be, then with an expectation that is not met.
func TestRecipes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs/ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlock.FindAllStringSubmatch(string(doc), -1)
	if len(blocks) != 3 {
		t.Fatalf("docs/ci.md has %d blocks of YAML: a scenario and two recipes are expected", len(blocks))
	}
	scenario := blocks[0][1]
	for _, block := range blocks[1:] {
		var r recipe
		if err := yaml.Unmarshal([]byte(block[1]), &r); err != nil {
			t.Fatal(err)
		}
		commands := r.commands()
		if len(commands) != 2 {
			t.Fatalf("%q: a build and a check are expected", commands)
		}
		project := t.TempDir()
		run := func(command string) (string, int) {
			cmd := exec.Command(bash, "-eo", "pipefail", "-c", command)
			cmd.Dir = project
			cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=true",
				"GITHUB_STEP_SUMMARY="+filepath.Join(project, "summary.md"))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			return string(out), cmd.ProcessState.ExitCode()
		}
		write := func(scenario string) {
			path := filepath.Join(project, "scenarios", "payments.yaml")
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(scenario), 0o644))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(root, filepath.Join(project, "deduplab")); err != nil {
			t.Fatal(err)
		}
		write(scenario)
		for _, step := range []struct {
			command string
			code    int
			says    string
		}{
			{commands[0], 0, ""},
			{commands[1], exitDiffers, "missing"},
			{"bin/lab check --update", 0, "written"},
			{commands[1], 0, "6 ok"},
		} {
			if out, code := run(step.command); code != step.code || !strings.Contains(out, step.says) {
				t.Fatalf("%s: exit code %d, want %d:\n%s", step.command, code, step.code, out)
			}
		}
		write(strings.Replace(scenario, `leaked: "> 0"`, "leaked: 0", 1))
		out, code := run(commands[1])
		if code != exitFailed || !strings.Contains(out, "::error file=scenarios/payments.yaml,line=16,") {
			t.Errorf("%s: exit code %d:\n%s", commands[1], code, out)
		}
		xml, err := os.ReadFile(filepath.Join(project, "check.xml"))
		if err != nil || !strings.Contains(string(xml), "<failure") {
			t.Errorf("%v: %s", err, xml)
		}
	}
}
