package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilled kills runs that nobody can clean up behind, the moment they begin to write and some time before: the
// results of the run before stay, or those of the killed one stand there whole.
func TestKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	scenario := filepath.Join(folder, "s.yaml")
	err = os.WriteFile(scenario, []byte("scenario: s\nworkload: {duration: 1h, rate: 5/s, events: order}\n"+
		"strategies: [pass-through, ptf]\n"), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(folder, "out")
	start := func(seed string) *exec.Cmd {
		cmd := exec.CommandContext(context.Background(), self, "run", scenario, "--out", out, "--seed", seed)
		cmd.Args[0] = "lab" // what TestMain goes by
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	read := func() []byte {
		data, err := os.ReadFile(filepath.Join(out, "results.json"))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	whole := map[string][]byte{}
	for _, seed := range []string{"2", "1"} {
		if err := start(seed).Wait(); err != nil {
			t.Fatal(err)
		}
		whole[seed] = read()
	}
	for _, sign := range []string{"", ".probe-", ".results.json-", ".report.html-"} {
		cmd := start("2")
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for over := false; sign != "" && !over && !hasFile(out, sign); {
			select {
			case <-ended:
				ended <- nil
				over = true
			case <-time.After(time.Millisecond):
			}
		}
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		if got := read(); !bytes.Equal(got, whole["1"]) && !bytes.Equal(got, whole["2"]) {
			t.Errorf("killed at %q: results.json is neither that of the run before nor the new one", sign)
		}
		if err := start("1").Wait(); err != nil || !bytes.Equal(read(), whole["1"]) {
			t.Errorf("killed at %q: the next run: %v", sign, err)
		}
	}
}

// hasFile reports whether a folder has a file whose name begins so.
func hasFile(folder, start string) bool {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), start) {
			return true
		}
	}
	return false
}
