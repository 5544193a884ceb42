package sqlshape

import (
	"slices"
	"strings"
)

// split cuts an expression at a word or symbol outside of brackets. An empty expression has no parts.
func split(expr []token, at string) [][]token {
	var parts [][]token
	for len(expr) > 0 {
		part, rest, _ := cut(expr, at)
		parts = append(parts, part)
		expr = rest
	}
	return parts
}

// cut cuts an expression at the first of a word or symbol outside of brackets.
func cut(expr []token, at string) (before, after []token, found bool) {
	for i := 0; i < len(expr); i++ {
		if expr[i].is(at) {
			return expr[:i], expr[i+1:], true
		}
		i = closing(expr, i)
	}
	return expr, nil, false
}

// closing is the index of the bracket that closes the one at i, or i where there is none.
func closing(expr []token, i int) int {
	if expr[i].is("(") {
		return i + expr[i].closes - expr[i].at
	}
	return i
}

// unwrap takes off the brackets around a whole expression.
func unwrap(expr []token) []token {
	for len(expr) > 2 && closing(expr, 0) == len(expr)-1 {
		expr = expr[1 : len(expr)-1]
	}
	return expr
}

// mentions reports whether a name stands anywhere in an expression.
func mentions(expr []token, name string) bool {
	return slices.ContainsFunc(expr, func(t token) bool { return t.name() && strings.EqualFold(t.text, name) })
}

// flatten is an expression as one text without spaces, outer brackets and the names of tables.
func flatten(expr []token) string {
	expr = unwrap(expr)
	var b strings.Builder
	for i, t := range expr {
		if t.is(".") || i+1 < len(expr) && expr[i+1].is(".") {
			continue
		}
		b.WriteString(key(t.text))
	}
	return b.String()
}
