package report

import (
	"strings"
	"testing"

	"deduplab/results"
)

func TestKeysInTheTerminal(t *testing.T) {
	var b strings.Builder
	if err := Terminal(&b, keyed()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"strategy   dups left   lost           amount   wait p99",
		"leaky              3    ≥ 0   +1.5 %, -2.5 %",
		"clean              0    ≥ 0                -",
		`
The keys, with perfect memory:
key        keys   events merged   duplicates missed        counted twice   gone            made of
default       7               0   0                        0               0               id
content   1,234               5   12 (retry 9, resend 3)   15 (1.5 %)      24.50 (2.5 %)   content of who, what
`,
		"This trace has no labels, so the default key is taken for the truth",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s\nis not in\n%s", want, &b)
		}
	}
	b.Reset()
	if err := Terminal(&b, small()); err != nil || strings.Contains(b.String(), "keys, with") ||
		strings.Contains(b.String(), "amount") {
		t.Errorf("%v: nothing was said of keys and amounts, but\n%s", err, &b)
	}
}

func TestKeysInThePage(t *testing.T) {
	html := bare(t, keyed())
	for _, want := range []string{
		`<a href="#keys">Keys</a>`, `<h2 id="keys">The keys</h2>`, "A key that merges events is too coarse",
		"the default key is taken for the truth", "12 (retry 9, resend 3)", "24.50 (2.5 %)", "content of who, what",
		"Rows that the key content gets wrong", "<td>merged</td><td>original</td><td>tea</td><td>ann</td>",
		`title="990.50 of 1,000: 15 counted twice, 24.50 gone">&#43;1.5 %, -2.5 %</td>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(html, "Rows that the key default gets wrong") {
		t.Error("a key without examples has a place for them")
	}
	if html := bare(t, small()); strings.Contains(html, `id="keys"`) || strings.Contains(html, "counted twice</a>") {
		t.Error("nothing was said of keys, but the page shows them")
	}
}

func TestOff(t *testing.T) {
	for _, c := range []struct {
		amount *results.Amount
		want   string
	}{
		{nil, "-"},
		{&results.Amount{}, "0 %"},
		{&results.Amount{Twice: 5, TwiceRate: 0.05, Error: 0.05}, "+5 %"},
		{&results.Amount{Gone: 5, GoneRate: 0.001, Error: 0.001}, "-0.1 %"},
		{&results.Amount{Twice: 1, TwiceRate: 0.5, Gone: 1, GoneRate: 0.5}, "+50 %, -50 %"},
		{&results.Amount{Error: 0.002}, "±0.2 %"}, // events that end with another row's amount
	} {
		if got := off(c.amount); got != c.want {
			t.Errorf("%+v: %q, want %q", c.amount, got, c.want)
		}
	}
}
