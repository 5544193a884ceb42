package gen

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/brianvoe/gofakeit/v7"
	"github.com/cespare/xxhash/v2"

	"deduplab/stream"
)

// column turns a uniform number into the value of a field.
type column struct {
	uuid     bool
	template string // of gofakeit; "" for a number or a UUID
	low      int64
	width    uint64 // the number of values from low on
}

func newColumn(f Field) column {
	c := column{uuid: f.UUID, template: f.Faker}
	for _, bounds := range []*[2]int64{f.Int, f.Decimal} {
		if bounds != nil {
			c.low, c.width = bounds[0], uint64(bounds[1]-bounds[0])+1
		}
	}
	return c
}

// number is the value of a numeric column.
func (c *column) number(u uint64) int64 { return c.low + int64(below(u, c.width)) }

// value is the value of any column.
func (c *column) value(u uint64) stream.Value {
	switch {
	case c.uuid:
		return stream.Value{Text: uuidText(uuid(u))}
	case c.template != "":
		return stream.Value{Text: c.text(u)}
	}
	return stream.Value{Int: c.number(u)}
}

// hash is a fixed function of the value alone.
func (c *column) hash(u uint64) uint64 {
	switch {
	case c.uuid:
		id := uuid(u)
		return stream.Mix(id.Hi ^ id.Lo)
	case c.template != "":
		return xxhash.Sum64String(c.text(u))
	}
	return stream.Mix(uint64(c.number(u)))
}

// text is the value of a faker column. That the template works has been checked, so there is no error.
func (c *column) text(u uint64) string {
	text, _ := fake(c.template, u)
	return text
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
