package semantics

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Place is where the failure is and what it is about, as an editor understands it: file:line first.
func (f Failure) Place() string {
	step := ""
	if f.Step != "" {
		step = f.Step + ": "
	}
	return fmt.Sprintf("%s:%d: %s%s", f.File, f.Line, step, f.What)
}

// pair is one line of a comparison: what is expected and what came, one of which may be missing.
type pair struct {
	want, got       string
	hasWant, hasGot bool
}

// align sets lines that are equal beside each other, by their longest common subsequence; between those, lines stand
// beside each other in turn.
func align(want, got []string) []pair {
	longest := make([][]int, len(want)+1)
	for i := range longest {
		longest[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); want[i] == got[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	var pairs []pair
	i, j := 0, 0
	fill := func(toWant, toGot int) {
		for i < toWant || j < toGot {
			var p pair
			if i < toWant {
				p.want, p.hasWant = want[i], true
				i++
			}
			if j < toGot {
				p.got, p.hasGot = got[j], true
				j++
			}
			pairs = append(pairs, p)
		}
	}
	for a, b := 0, 0; ; {
		switch {
		case a == len(want) || b == len(got):
			fill(len(want), len(got))
			return pairs
		case want[a] == got[b]:
			fill(a, b)
			pairs = append(pairs, pair{want[a], got[b], true, true})
			a, b = a+1, b+1
			i, j = a, b
		case longest[a+1][b] >= longest[a][b+1]:
			a++
		default:
			b++
		}
	}
}

// maxAligned bounds the lines that are compared by their longest common subsequence, and shown.
const maxAligned = 1000

func bounded(lines []string) []string {
	if len(lines) <= maxAligned {
		return lines
	}
	return append(lines[:maxAligned:maxAligned], fmt.Sprintf("... and %d more", len(lines)-maxAligned))
}

// SideBySide sets what is expected and what came beside each other: < and > mark a line that only one side has, | one
// that differs.
func SideBySide(want, got []string) []string {
	want, got = orNothing(bounded(want)), orNothing(bounded(got))
	width := len("exp")
	for _, line := range want {
		width = max(width, utf8.RuneCountInString(line))
	}
	column := func(text string) string { return text + strings.Repeat(" ", width-utf8.RuneCountInString(text)) }
	lines := []string{column("exp") + "   got"}
	for _, p := range align(want, got) {
		mark := "|"
		switch {
		case !p.hasWant:
			mark = ">"
		case !p.hasGot:
			mark = "<"
		case p.want == p.got:
			mark = " "
		}
		lines = append(lines, strings.TrimRight(column(p.want)+" "+mark+" "+p.got, " "))
	}
	return lines
}

func orNothing(lines []string) []string {
	if len(lines) == 0 {
		return []string{"(nothing)"}
	}
	return lines
}

// Unified is the comparison as a unified diff: - what is expected, + what came.
func Unified(want, got []string) []string {
	lines := []string{"--- exp", "+++ got"}
	var minus, plus []string
	flush := func() {
		lines = append(append(lines, minus...), plus...)
		minus, plus = nil, nil
	}
	for _, p := range align(bounded(want), bounded(got)) {
		if p.hasWant && p.hasGot && p.want == p.got {
			flush()
			lines = append(lines, "  "+p.want)
			continue
		}
		if p.hasWant {
			minus = append(minus, "- "+p.want)
		}
		if p.hasGot {
			plus = append(plus, "+ "+p.got)
		}
	}
	flush()
	return lines
}
