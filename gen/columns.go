package gen

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/brianvoe/gofakeit/v7"
	"github.com/cespare/xxhash/v2"

	"deduplab/stream"
)

// column makes the values of a field. A value is a function of a random stream and the draw of an event.
type column struct {
	Field
	low   int64
	width uint64 // of a range: the number of values from low on
	plain bool   // a range that is never NULL, which is quick to draw from
	ranks *weights
	nulls chance
	hot   chance
	hots  []uint64 // the uniform numbers that the hot values stand for

	// Of an id that is used again: how often, how long after, and the one that does not change.
	reuses                           chance
	after                            sampler
	reusePicks, reuseAfter, constant source
}

func newColumn(f Field, seed uint64) column {
	c := column{Field: f, nulls: newChance(f.Null), constant: newSource(seed, "constant of field "+f.Name)}
	if f.Reuse != nil {
		c.reuses, c.after = newChance(f.Reuse.Rate), newSampler(f.Reuse.After)
		c.reusePicks = newSource(seed, "reuse of field "+f.Name)
		c.reuseAfter = newSource(seed, "age of the reused field "+f.Name)
	}
	for _, bounds := range []*[2]int64{f.Int, f.Decimal} {
		if bounds != nil {
			c.low, c.width, c.plain = bounds[0], uint64(bounds[1]-bounds[0])+1, f.Null == 0 && f.Hot == nil
		}
	}
	switch {
	case f.Zipf != nil:
		c.ranks = newZipf(*f.Zipf)
	case f.Choice != nil:
		c.ranks = newChoice(f.Choice)
	}
	if f.Hot != nil {
		c.hot = newChance(f.Hot.Share)
		hots := newSource(seed, "hot values of "+f.Name)
		for i := range f.Hot.Keys {
			c.hots = append(c.hots, hots.at(uint64(i)))
		}
	}
	return c
}

// at is the uniform number that a value stands for.
func (c *column) at(s source, draw uint64) uint64 {
	u := s.at(draw)
	if c.hots != nil {
		const salt = 0x686f74 // a hot value goes by another number than NULL and the value itself
		if h := stream.Mix(u ^ salt); c.hot.hits(h) {
			return c.hots[below(stream.Mix(h), uint64(len(c.hots)))]
		}
	}
	return u
}

// null reports whether the value is NULL.
func (c *column) null(s source, draw uint64) bool {
	return c.Null > 0 && c.nulls.hits(stream.Mix(^s.at(draw)))
}

// ranged is the value of a range that a uniform number stands for.
func (c *column) ranged(u uint64) int64 { return c.low + int64(below(u, c.width)) }

// number is the value of a numeric column, NullOrder for NULL.
func (c *column) number(s source, draw uint64) int64 {
	u := c.at(s, draw)
	switch {
	case c.plain:
	case c.null(s, draw):
		return stream.NullOrder
	case c.Zipf != nil:
		return c.ranks.pick(u)
	case c.Sequence != nil:
		return *c.Sequence + int64(draw%stream.MaxEvents) // the number of the event
	}
	return c.ranged(u)
}

// value is the value of any column but a moment.
func (c *column) value(s source, draw uint64) stream.Value {
	switch {
	case c.null(s, draw):
		return stream.Value{Null: true}
	case c.numeric():
		return stream.Value{Int: c.number(s, draw)}
	}
	return stream.Value{Text: c.text(c.at(s, draw))}
}

// hash is a fixed function of the value alone.
func (c *column) hash(s source, draw uint64) uint64 {
	switch {
	case c.null(s, draw):
		return nullHash
	case c.UUID:
		id := uuid(c.at(s, draw))
		return stream.Mix(id.Hi ^ id.Lo)
	case c.numeric():
		return stream.Mix(uint64(c.number(s, draw)))
	}
	return xxhash.Sum64String(c.text(c.at(s, draw)))
}

// nullHash is the hash of NULL.
const nullHash = 0x6e756c6c6e756c6c

// text is the value of a column of text that is not NULL. That a template works has been checked, so there is no error.
func (c *column) text(u uint64) string {
	switch {
	case c.UUID:
		return uuidText(uuid(u))
	case c.Choice != nil:
		return c.Choice[c.ranks.pick(u)-1].Text
	case c.Text > 0:
		return letters(u, c.Text)
	}
	text, _ := fake(c.Faker, u)
	return text
}

// letters makes a text of n letters that stands for a uniform number.
func letters(u uint64, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = 'a' + byte(below(stream.Mix(u+uint64(i)), 26))
	}
	return string(text)
}

// fake fills in a template of gofakeit.
func fake(template string, u uint64) (string, error) {
	return gofakeit.NewFaker(rand.NewPCG(u, stream.Mix(u)), false).Generate(template)
}

// uuid makes the version 4 UUID that a uniform number stands for.
func uuid(u uint64) stream.Key {
	const version, variant = 0x4000, 1 << 63
	return stream.Key{Hi: u&^0xf000 | version, Lo: stream.Mix(u)&^(3<<62) | variant}
}

// uuidText is the usual form, 8-4-4-4-12 hexadecimal digits.
func uuidText(k stream.Key) string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], k.Hi)
	binary.BigEndian.PutUint64(raw[8:], k.Lo)
	text := make([]byte, 0, 36)
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, raw[(len(text)-i)/2:end])
	}
	return string(text)
}

// parseUUID undoes uuidText.
func parseUUID(text []byte) (stream.Key, bool) {
	if len(text) != 36 {
		return stream.Key{}, false
	}
	var raw [16]byte
	at := 0
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			if text[at] != '-' {
				return stream.Key{}, false
			}
			at++
		}
		from := (at - i) / 2
		if _, err := hex.Decode(raw[from:end], text[at:at+2*(end-from)]); err != nil {
			return stream.Key{}, false
		}
		at += 2 * (end - from)
	}
	k := stream.Key{Hi: binary.BigEndian.Uint64(raw[:8]), Lo: binary.BigEndian.Uint64(raw[8:])}
	return k, uuidText(k) == string(text) // hexadecimal digits in capitals are another text
}

// keyHash is a key of any columns while it is put together. The parts are written one after the other so that no two
// different keys read the same.
type keyHash struct{ parts []byte }

func (k *keyHash) text(s string) {
	k.number(int64(len(s)))
	k.parts = append(k.parts, s...)
}

func (k *keyHash) number(n int64) { k.parts = binary.LittleEndian.AppendUint64(k.parts, uint64(n)) }

// null stands for a NULL, which no text can be mistaken for.
func (k *keyHash) null() { k.number(-1) }

func (k *keyHash) key() stream.Key {
	hi := xxhash.Sum64(k.parts)
	k.parts = append(k.parts, 1)
	return stream.Key{Hi: hi, Lo: xxhash.Sum64(k.parts)}
}
