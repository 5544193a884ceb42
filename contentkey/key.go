// Package contentkey makes deduplication keys from the content of rows, byte for byte as a Spark job does with
//
//	sha2(concat_ws('\u001f', coalesce(cast(a as string), '\u0000'), coalesce(cast(b as string), '\u0000'), ...), 256)
//
// The fields stand in a fixed order; each is cast to text, NULL becomes the sentinel U+0000, the parts are joined by
// the unit separator U+001F, and the UTF-8 bytes are hashed with SHA-256. So ('ab', 'c') and ('a', 'bc') differ, and so
// do NULL and the empty string. What still goes wrong is what [Compare] explains.
package contentkey

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// Separator stands between the fields of a key.
	Separator = "\u001f"
	// Sentinel stands for NULL.
	Sentinel = "\u0000"
)

// Value is one field of a row, cast to text; the zero value is an empty string.
type Value struct {
	Null bool
	Text string
}

// Canonical is the text that is hashed.
func Canonical(row []Value) string {
	parts := make([]string, len(row))
	for i, v := range row {
		parts[i] = v.Text
		if v.Null {
			parts[i] = Sentinel
		}
	}
	return strings.Join(parts, Separator)
}

// Sum is the content key: the SHA-256 of the canonical text in lower-case hexadecimal digits.
func Sum(row []Value) string { return hash(Canonical(row)) }

// Digest is Sum as bytes.
func Digest(row []Value) [sha256.Size]byte { return sha256.Sum256([]byte(Canonical(row))) }

// SumWithoutSentinel is what comes out if coalesce is forgotten: concat_ws skips a NULL and its separator, so rows
// merge that differ only in which field is NULL.
func SumWithoutSentinel(row []Value) string {
	var parts []string
	for _, v := range row {
		if !v.Null {
			parts = append(parts, v.Text)
		}
	}
	return hash(strings.Join(parts, Separator))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Visible renders a text so that nothing in it hides: the separator as ␟, the sentinel as ␀, other control characters,
// marks that combine with the letter before, and invisible characters as \u escapes.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteString(visible(r))
	}
	return b.String()
}
