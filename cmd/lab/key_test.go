package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// trapRow is a line of the table of traps: what it is, two rows as arguments, and whether their keys differ.
var trapRow = regexp.MustCompile("(?m)^\\| (.*?)(?:, `--zone (.*)`)? \\| `(.*)` \\| `(.*)` \\| (equal|differ) \\|$")

// TestKeysPageTraps makes the keys of the rows that docs/keys.md shows.
func TestKeysPageTraps(t *testing.T) {
	page, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	traps := trapRow.FindAllStringSubmatch(string(page), -1)
	if len(traps) != 11 {
		t.Errorf("the page has %d traps, want 11", len(traps))
	}
	for _, trap := range traps {
		session, err := time.LoadLocation(trap[2]) // UTC if there is none
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := showKeys(&out, strings.Fields(trap[3]), strings.Fields(trap[4]), session); err != nil {
			t.Errorf("%s: %v", trap[1], err)
			continue
		}
		if got := strings.Contains(out.String(), "keys are EQUAL"); got != (trap[5] == "equal") {
			t.Errorf("%s: want the keys to %s, but\n%s", trap[1], trap[5], &out)
		}
	}
}
