package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"deduplab/results"
)

func terminal(t *testing.T, run *results.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, run); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTerminalGolden(t *testing.T) {
	golden(t, "terminal.golden", []byte(terminal(t, sample(t))))
}

func TestTerminalWidth(t *testing.T) {
	for line := range strings.Lines(terminal(t, sample(t))) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 150 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

func TestTerminalEmpty(t *testing.T) {
	want := "empty   seed 0   0 ms of virtual time   0 rows = 0 events + 0 copies (0 %)   " +
		"horizon p99.9 0 ms, max 0 ms\n\nno strategy was run\n"
	if got := terminal(t, &results.Run{Scenario: "empty"}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTerminalOrder(t *testing.T) {
	got := terminal(t, small())
	at := 0
	for _, id := range []string{"\nclean ", "\nleaky ", "\nlossy ", "\nrefused   rejected: the sink takes no updates"} {
		i := strings.Index(got[at:], id)
		if i < 0 {
			t.Fatalf("%q is missing or out of order in\n%s", id, got)
		}
		at += i
	}
	for _, want := range []string{
		"misses lost <= 0: 7 (late 6, id_reuse 1) - order x came late",
		"lossy, see report.html#s-lossy",
		"≥ 7",
		"unknown, and lost is a lower bound",
		"1,000,000,000,007",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestSameTable(t *testing.T) {
	agree := func(cause string, same int) results.Determinism {
		return results.Determinism{Cause: cause, Replays: 2, SameTable: same}
	}
	for _, c := range []struct {
		causes []results.Determinism
		want   string
	}{
		{nil, "-"},
		{[]results.Determinism{agree("a", 2), agree("b", 1)}, "a 2/2, b 1/2"},
		{[]results.Determinism{agree("a", 2), agree("b", 2), agree("c", 2)}, "3 causes 6/6"},
		{[]results.Determinism{agree("a", 2), agree("b", 1), agree("c", 2)}, "b 1/2"},
		{[]results.Determinism{agree("a", 0), agree("b", 1), agree("c", 0)}, "a 0/2, b 1/2, +1 more"},
	} {
		if got := sameTable(c.causes); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
