package gen

import (
	"slices"

	"deduplab/stream"
)

// Ask says when the query of a job is run, for the columns that it adds. The zero value is the first time.
type Ask struct {
	// Functions and Lookups count how often each has been asked of the same rows before, a day apart.
	Functions, Lookups int
	// Moment is when a row that arrives then is asked for. Nil: at once.
	Moment func(arrival stream.Time) stream.Time
}

// AddedColumn is the column that a function gives.
func AddedColumn(name string, f stream.Function) stream.Column {
	c := stream.Column{Name: name, Function: f, Type: stream.Int}
	switch f {
	case stream.Now:
		c.Type = stream.Timestamp
	case stream.UUID:
		c.Type = stream.String
	case stream.Rand:
		c.Type, c.Scale = stream.Decimal, randDigits
	}
	return c
}

const (
	randDigits = 6
	day        = 24 * 60 * 60 * 1000 // ms
	answers    = 1000                // that a lookup can give
)

// WithAdded gives the rows of a workload more columns, made by functions of the query. A value is that of one row, so
// that copies which are equal otherwise differ in it. The answer to a lookup is that of a key at a moment: it changes once
// a day, for each key at another time. Partitions, arrivals, keys and the truth stay as they are.
func WithAdded(w Workload, columns []stream.Column, ask Ask) Workload {
	if len(columns) == 0 {
		return w
	}
	own := w.Schema()
	a := &added{Workload: w, schema: own, columns: columns, ask: ask, own: len(own.Columns)}
	a.schema.Columns = slices.Concat(own.Columns, columns)
	var key []string
	for _, i := range own.Key {
		key = append(key, own.Columns[i].Name)
	}
	a.keyed = WithKey(w, Key{Columns: key})
	return a
}

// added is a workload with columns of the query.
type added struct {
	Workload
	schema  stream.Schema
	columns []stream.Column
	own     int    // columns that the workload has itself
	keyed   *Keyed // finds the key that a lookup asks for
	ask     Ask
}

// Schema implements stream.Records.
func (a *added) Schema() stream.Schema { return a.schema }

// Record implements stream.Records.
func (a *added) Record(tag stream.Tag) stream.Record {
	record := a.Workload.Record(tag)
	for i, c := range a.columns {
		v := stream.Value{}
		if c.Function == stream.UUID {
			v.Text = uuidText(uuid(a.draw(tag, i)))
		} else {
			v.Int = a.number(tag, i)
		}
		record = append(record, v)
	}
	return record
}

// Order implements stream.Records.
func (a *added) Order(tag stream.Tag, column int) int64 {
	if column < a.own {
		return a.Workload.Order(tag, column)
	}
	return a.number(tag, column-a.own)
}

// Content implements stream.Records.
func (a *added) Content(tag stream.Tag) uint64 {
	content := a.Workload.Content(tag)
	for i, c := range a.columns {
		part := a.draw(tag, i)
		if c.Function != stream.UUID {
			part = uint64(a.number(tag, i))
		}
		content = stream.Mix(content ^ stream.Mix(part+uint64(i)))
	}
	return content
}

// number is the value of an added column that is no text.
func (a *added) number(tag stream.Tag, i int) int64 {
	const most = 1_000_000 // 10^randDigits
	switch a.columns[i].Function {
	case stream.Now:
		return int64(a.moment(tag)) + int64(a.ask.Functions)*day
	case stream.Lookup:
		key := a.keyed.Key(tag).Hash()
		asked := uint64(a.moment(tag)) + uint64(a.ask.Lookups)*day
		version := (asked + below(stream.Mix(key), day)) / day
		return int64(below(stream.Mix(key^stream.Mix(version+uint64(i))), answers))
	}
	return int64(below(a.draw(tag, i), most))
}

// moment is when a row is asked for.
func (a *added) moment(tag stream.Tag) stream.Time {
	at := a.Arrival(tag)
	if a.ask.Moment != nil {
		at = a.ask.Moment(at)
	}
	return at
}

// draw are random bits of a row for one column.
func (a *added) draw(tag stream.Tag, i int) uint64 {
	return stream.Mix(uint64(tag) ^ stream.Mix(uint64(i)<<32|uint64(a.ask.Functions)))
}
