package gen

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/brianvoe/gofakeit/v7"

	"deduplab/stream"
)

// Field is one column. Exactly one of the kinds is set; the event-time column is declared by EventTime alone and
// stands after the fields.
type Field struct {
	Name string

	UUID     bool      // a version 4 UUID
	Int      *[2]int64 // uniform in [low, high]
	Decimal  *[2]int64 // uniform in [low, high], in hundredths: DECIMAL(10, 2)
	Faker    string    // a gofakeit template such as "{firstname} {lastname}", made only when somebody reads it
	Sequence *int64    // the value of the first event; each event has one more than the event before it
	Zipf     *Zipf     // a rank from 1 on, low ones being the most frequent
	Choice   []Choice  // one of these texts
	Text     int       // that many random letters, which fill a row up to a size
	Stamp    Stamp     // a moment that is not the event time
	Retry    bool      // the number of the copy within its event, 0 in the original: what a sender counts
	// Position is the place in the log that the row was read from, partition and offset as one number. A row has that
	// of its original if it was read again from there, otherwise one of its own. The numbers are not dense, and they
	// grow with the events, not with their arrival.
	Position bool

	// Reuse gives events an id that is not their own; for a UUID.
	Reuse *Reuse

	// Null is the share of events in whose rows the field is NULL.
	Null float64
	// Hot gives a few values to a share of the events; nil: none.
	Hot *Hot
}

// Hot is a share of the events that have one of a few values, all equally often: keys of a hot partition, the one
// customer who orders all day. The values are drawn once from the field's own distribution, so there are fewer of them
// where it makes some of them alike.
type Hot struct {
	Share float64 // above 0, at most 1
	Keys  int     // how many values, at most 2^20
}

// Reuse says that different events have the same id: no duplicates, but whoever goes by the id takes them for some.
type Reuse struct {
	Rate float64 // share of events whose id is not their own, 0 to 1; up to 0.5 if not Constant
	// After is how long before another event had the id, in the mean over the load, which it is counted in. Events near
	// the start of the scenario reuse younger ids, because there are no older ones.
	After Delay
	// Constant is one id for all of them, as a bot sends that was copied with its id. There is no After then.
	Constant bool
}

// Zipf is a distribution over the ranks 1 to N: rank r is as frequent as 1/r^S.
type Zipf struct {
	N int64   // at most 2^40
	S float64 // from 0, where all ranks are equally frequent, to 10
}

// Choice is a text and how often it is taken: weights add up to anything.
type Choice struct {
	Text   string
	Weight float64
}

// Stamp is a moment in the life of a row.
type Stamp string

// The moments that a field can hold.
const (
	Created Stamp = "created" // of the original
	Sent    Stamp = "sent"    // of the row itself, so that a copy differs from its original
)

// Column describes the field as a column.
func (f Field) Column() stream.Column {
	column := stream.Column{Name: f.Name, Type: stream.String, Nullable: f.Null > 0}
	switch {
	case f.Int != nil, f.Sequence != nil, f.Zipf != nil, f.made():
		column.Type = stream.Int
	case f.Decimal != nil:
		column.Type, column.Scale = stream.Decimal, 2
	case f.Stamp != "":
		column.Type = stream.Timestamp
	}
	return column
}

// drawn reports whether the field has a value for each event by chance, so that a copy can draw another one.
func (f Field) drawn() bool { return f.Sequence == nil && f.Stamp == "" && !f.made() }

// made reports whether the value is made of what the row is: which copy, and read from where.
func (f Field) made() bool { return f.Retry || f.Position }

// unique reports whether no two events have the same value.
func (f Field) unique() bool {
	return f.Null == 0 && (f.UUID && f.Reuse == nil && f.Hot == nil || f.Sequence != nil || f.Position)
}

// numeric reports whether the field can be compared with a constant.
func (f Field) numeric() bool {
	t := f.Column().Type
	return (t == stream.Int || t == stream.Decimal) && !f.made()
}

func (c *checker) fields() {
	s := c.spec
	seen := map[string]bool{s.EventTime.Field: true}
	for i, f := range s.Fields {
		name := fmt.Sprintf("fields[%d] %q", i, f.Name)
		switch {
		case f.Name == "":
			c.fault("fields[%d]: the field has no name", i)
		case f.Name == s.EventTime.Field:
			c.fault("%s: this is the event-time column, which is declared by event_time alone", name)
		case seen[f.Name]:
			c.fault("%s: the name stands twice", name)
		}
		seen[f.Name] = true
		c.kind(name, f)
	}
	if len(s.Key) == 0 {
		c.fault("key: needs at least one field (there are: %s)", c.fieldNames())
	}
	for i, key := range s.Key {
		switch f, ok := c.field(key); {
		case !ok:
			c.fault("key: there is no field %q (there are: %s)", key, c.fieldNames())
		case slices.Contains(s.Key[:i], key):
			c.fault("key: field %q stands twice", key)
		case f.Stamp != "":
			c.fault("key: field %q is a moment, of which a key cannot be made", key)
		}
	}
}

// kind checks what a field holds.
func (c *checker) kind(name string, f Field) {
	kinds := 0
	for _, set := range []bool{
		f.UUID, f.Int != nil, f.Decimal != nil, f.Faker != "", f.Sequence != nil, f.Zipf != nil, f.Choice != nil,
		f.Text != 0, f.Stamp != "", f.Retry, f.Position,
	} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		c.fault("%s: needs exactly one of uuid, int, decimal, faker, sequence, zipf, choice, text, "+
			"timestamp, retry and position, has %d", name, kinds)
	}
	for _, bounds := range []*[2]int64{f.Int, f.Decimal} {
		if bounds == nil {
			continue
		}
		if bounds[1] < bounds[0] {
			c.fault("%s: the upper bound %d lies below the lower bound %d", name, bounds[1], bounds[0])
		} else if bounds[1]-bounds[0] < 0 {
			c.fault("%s: the bounds lie further apart than 2^63", name)
		}
	}
	if f.Faker != "" {
		c.faker(name, f.Faker)
	}
	if f.Sequence != nil && *f.Sequence > math.MaxInt64-stream.MaxEvents {
		c.fault("%s: the sequence begins at %d, too near to the largest number", name, *f.Sequence)
	}
	if z := f.Zipf; z != nil && (z.N < 1 || z.N > maxRanks) {
		c.fault("%s: the %d ranks of zipf must be from 1 to 2^40", name, z.N)
	}
	if z := f.Zipf; z != nil && !(z.S >= 0 && z.S <= 10) {
		c.fault("%s: the exponent %v of zipf must be from 0 to 10", name, z.S)
	}
	for _, choice := range f.Choice {
		if !(choice.Weight > 0 && choice.Weight <= 1e9) {
			c.fault("%s: the weight %v of %q must be above 0 and at most 1e9", name, choice.Weight, choice.Text)
		}
	}
	if f.Text < 0 || f.Text > maxText {
		c.fault("%s: a text of %d letters must have from 1 to %d", name, f.Text, maxText)
	}
	if f.Stamp != "" && f.Stamp != Created && f.Stamp != Sent {
		c.fault("%s: there is no moment %q (there are: %s, %s)", name, f.Stamp, Created, Sent)
	}
	if f.Reuse != nil {
		c.reuse(name, f)
	}
	if !(f.Null >= 0 && f.Null <= 1) {
		c.fault("%s: the share %v of NULL must be from 0 to 1", name, f.Null)
	}
	if h := f.Hot; h != nil {
		if !(h.Share > 0 && h.Share <= 1) {
			c.fault("%s: the share %v of hot must be above 0 and at most 1", name, h.Share)
		}
		if h.Keys < 1 || h.Keys > maxHot {
			c.fault("%s: the %d keys of hot must be from 1 to %d", name, h.Keys, maxHot)
		}
		if !f.drawn() {
			c.fault("%s: the field is not drawn by chance, so it has no hot values", name)
		}
	}
}

func (c *checker) reuse(name string, f Field) {
	r := f.Reuse
	if !f.UUID {
		c.fault("%s: reuse is for a uuid", name)
	}
	if f.Hot != nil {
		c.fault("%s: an id is either used again or hot, not both", name)
	}
	switch {
	case r.Constant && !(r.Rate >= 0 && r.Rate <= 1):
		c.fault("%s: the rate %v of reuse must be from 0 to 1", name, r.Rate)
	case !r.Constant && !(r.Rate >= 0 && r.Rate <= 0.5):
		c.fault("%s: the rate %v of reuse must be from 0 to 0.5, or there are too few ids of one's own", name, r.Rate)
	case r.Constant && !r.After.IsZero():
		c.fault("%s: a constant id is not one of an earlier event, so there is no after", name)
	}
	if err := r.After.check(name + ": reuse.after"); err != nil {
		c.faults = append(c.faults, err)
	}
}

// maxRanks, maxText and maxHot bound a zipf, a text field and the hot values of a field.
const (
	maxRanks = 1 << 40
	maxText  = 1 << 16
	maxHot   = 1 << 20
)

// wallClock lists the functions of gofakeit whose result depends on today's date.
var wallClock = []string{"date", "pastdate", "futuredate", "daterange", "year", "creditcard", "creditcardexp"}

// faker checks the functions of a template, of which gofakeit would leave unknown ones as they are.
func (c *checker) faker(name, template string) {
	for _, part := range strings.Split(template, "{")[1:] {
		call, _, closed := strings.Cut(part, "}")
		function, _, _ := strings.Cut(call, ":")
		switch {
		case !closed:
			c.fault("%s: faker template %q has a { without a }", name, template)
			return
		case gofakeit.GetFuncLookup(function) == nil:
			c.fault("%s: gofakeit has no function {%s}", name, function)
			return
		case slices.Contains(wallClock, strings.ToLower(function)):
			c.fault("%s: gofakeit's {%s} depends on today's date, so runs would differ", name, function)
			return
		}
	}
	if _, err := fake(template, 1); err != nil {
		c.fault("%s: faker template %q: %w", name, template, err)
	}
}
