package sqlshape

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind uint8

const (
	word   kind = iota // a keyword or a plain identifier
	quoted             // an identifier in backticks or double quotes
	text               // a string in single quotes
	number
	symbol // everything else, => <= >= <> != and || in one piece
	hint   // the inside of /*+ ... */
)

// token is one token of SQL.
type token struct {
	kind kind
	text string // without quotes
	line int
	at   int // its index
	// closes is, for an opening bracket, the index of the one that closes it.
	closes int
}

// maxName bounds the length of a name.
const maxName = 256

// is reports whether the token is the keyword or symbol, which is written in capitals.
func (t token) is(s string) bool {
	switch t.kind {
	case word:
		return len(t.text) == len(s) && strings.EqualFold(t.text, s)
	case symbol:
		return t.text == s
	}
	return false
}

// name reports whether the token can be an identifier.
func (t token) name() bool { return t.kind == word || t.kind == quoted }

// lex cuts SQL into tokens, without comments. Brackets must match.
func lex(sql string) ([]token, error) {
	var tokens []token
	var open []int
	line := 1
	for sql != "" {
		t, length, err := next(sql)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		t.line, t.at = line, len(tokens)
		line += strings.Count(sql[:length], "\n")
		sql = sql[length:]
		if t.text == "" && t.kind == symbol {
			continue // white space or a comment
		}
		switch {
		case t.name() && len(t.text) > maxName:
			return nil, fmt.Errorf("line %d: %.20s... is longer than any name", line, t.text)
		case t.is("("):
			open = append(open, len(tokens))
		case t.is(")"):
			if len(open) == 0 {
				return nil, fmt.Errorf("line %d: this ) closes nothing", t.line)
			}
			tokens[open[len(open)-1]].closes = len(tokens)
			open = open[:len(open)-1]
		}
		tokens = append(tokens, t)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("line %d: this ( is never closed", tokens[open[len(open)-1]].line)
	}
	return tokens, nil
}

// next reads one token, or white space or a comment as a symbol without text, and tells its length.
func next(sql string) (token, int, error) {
	r, size := utf8.DecodeRuneInString(sql)
	switch {
	case unicode.IsSpace(r) || r == '\uFEFF':
		return token{kind: symbol}, size, nil
	case strings.HasPrefix(sql, "--"):
		return token{kind: symbol}, until(sql, "\n"), nil
	case strings.HasPrefix(sql, "/*"):
		end := strings.Index(sql[2:], "*/")
		if end < 0 {
			return token{}, 0, fmt.Errorf("this comment is never closed")
		}
		if inside, ok := strings.CutPrefix(sql[2:2+end], "+"); ok {
			return token{kind: hint, text: inside}, end + 4, nil
		}
		return token{kind: symbol}, end + 4, nil
	case r == '\'' || r == '`' || r == '"':
		inside, length := unquote(sql, sql[0])
		if length < 0 {
			return token{}, 0, fmt.Errorf("this %c is never closed", r)
		}
		if r == '\'' {
			return token{kind: text, text: inside}, length, nil
		}
		return token{kind: quoted, text: inside}, length, nil
	case unicode.IsDigit(r):
		length := span(sql, func(r rune) bool { return unicode.IsDigit(r) || r == '.' })
		return token{kind: number, text: sql[:length]}, length, nil
	case letter(r):
		length := span(sql, func(r rune) bool { return letter(r) || unicode.IsDigit(r) })
		return token{kind: word, text: sql[:length]}, length, nil
	}
	for _, s := range []string{"=>", "<=", ">=", "<>", "!=", "||"} {
		if strings.HasPrefix(sql, s) {
			return token{kind: symbol, text: s}, len(s), nil
		}
	}
	return token{kind: symbol, text: sql[:size]}, size, nil
}

func letter(r rune) bool { return unicode.IsLetter(r) || r == '_' || r == '$' }

// span is the length of what f holds for.
func span(s string, f func(rune) bool) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return !f(r) }); i >= 0 {
		return i
	}
	return len(s)
}

// until is the length up to and with the end.
func until(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i + len(end)
	}
	return len(s)
}

// unquote reads a quoted text, in which the quote is written twice. The length is negative where it does not end.
func unquote(s string, quote byte) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			b.WriteByte(s[i])
			continue
		}
		if i+1 == len(s) || s[i+1] != quote {
			return b.String(), i + 1
		}
		b.WriteByte(quote)
		i++
	}
	return "", -1
}
