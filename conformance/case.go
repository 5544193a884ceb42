// Package conformance replays recordings of the real engines against the lab's operators, step by step.
//
// A recorded case is a JSON file: a strategy by its recorded id, options, input steps, and what the engine did in each
// step. [Read] parses one, [Run] feeds its steps to the operator and returns where the two differ. The format and what
// of it is to be compared are described in testdata/flink/README.md. A case of Spark holds the micro-batches of a query
// instead, as testdata/spark/README.md describes: its code is read, and each batch goes through [sim.BatchEngine].
package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Case is one recorded case. Fields that only inform are left out.
type Case struct {
	File     string            `json:"-"`
	Name     string            `json:"case"`
	Note     string            `json:"note"`
	Engine   string            `json:"engine"`
	Strategy string            `json:"strategy"`
	SQL      *string           `json:"sql"`
	DDL      string            `json:"ddl"`
	Consumer string            `json:"consumer"`
	Config   map[string]string `json:"config"`
	Columns  Columns           `json:"columns"`
	Plan     Plan              `json:"plan"`
	Steps    []Step            `json:"steps"`

	spark *sparkCase // a query of Spark; then only File, Name and Engine are set beside it
	batch []byte     // the text of a batch job of Spark, by its Strategy
}

// Plan is the part of the recorded plan that is compared.
type Plan struct {
	Declared []string `json:"declared_changelog"`
	Operator string   `json:"operator"`
}

// Step is one input and what the engine did with it.
type Step struct {
	At         *int64          `json:"at"`
	Row        Fields          `json:"row"`
	Shipment   Fields          `json:"shipment"`
	Watermark  json.RawMessage `json:"watermark"`
	Checkpoint *int64          `json:"checkpoint"`

	// Watermark generators, multiplexer and valve.
	Event     *int64          `json:"event"`
	Periodic  json.RawMessage `json:"periodic"`
	Register  json.RawMessage `json:"register"`
	Partition json.RawMessage `json:"partition"`
	Channel   *int            `json:"channel"`
	Status    string          `json:"status"`

	Emits              []Fields         `json:"emits"`
	DeduplicationEmits []Fields         `json:"deduplication_emits"`
	StateEntries       *int             `json:"state_entries"`
	States             map[string]int   `json:"states"`
	CacheEntries       *int             `json:"cache_entries"`
	Timers             *Timers          `json:"timers"`
	LastWrite          map[string]int64 `json:"last_write"`
	LateDropped        *int64           `json:"late_dropped"`
	Error              string           `json:"error"`
}

// Timers are the registered timers by time domain.
type Timers struct {
	Event int `json:"event"`
	Proc  int `json:"proc"`
}

// Columns are a table's columns and SQL types in their order.
type Columns []Column

// Column is a column as the recording declares it.
type Column struct{ Name, Type string }

// UnmarshalJSON keeps the order of the object's members.
func (c *Columns) UnmarshalJSON(b []byte) error {
	var fields Fields
	if err := fields.UnmarshalJSON(b); err != nil {
		return err
	}
	for _, f := range fields {
		var typ string
		if err := json.Unmarshal(f.Value, &typ); err != nil {
			return fmt.Errorf("column %s: the type must be a string", f.Name)
		}
		*c = append(*c, Column{f.Name, typ})
	}
	return nil
}

// Fields is a JSON object with the order of its members kept and their values left as text.
type Fields []Field

// Field is one member.
type Field struct {
	Name  string
	Value json.RawMessage
}

// Get returns the text of a member, nil when there is none.
func (f Fields) Get(name string) json.RawMessage {
	for _, field := range f {
		if field.Name == name {
			return field.Value
		}
	}
	return nil
}

// UnmarshalJSON reads an object, or null as no fields.
func (f *Fields) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return fmt.Errorf("expected an object, got %.40s", b)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		*f = append(*f, Field{name.(string), value})
	}
	return nil
}

// MarshalJSON writes the members in their order.
func (f Fields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, field := range f {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(field.Name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(field.Value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// maxCaseBytes bounds how much of a file is read as a case.
const maxCaseBytes = 64 << 20

// Read parses a case. The error names the file.
func Read(file string, r io.Reader) (*Case, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxCaseBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(b) > maxCaseBytes {
		return nil, fmt.Errorf("%s: larger than %d MB: not a recorded case", file, maxCaseBytes>>20)
	}
	c := &Case{File: file}
	var head struct {
		Name     string `json:"case"`
		Engine   string `json:"engine"`
		Driver   string `json:"driver"`
		Strategy string `json:"strategy"`
	}
	if json.Unmarshal(b, &head) == nil && isSpark(head.Engine) {
		c.Name, c.Engine, c.Strategy = head.Name, head.Engine, head.Strategy
		if head.Driver == "batch" {
			c.batch = b
			return c, nil
		}
		if c.spark, err = readSpark(b); err != nil {
			return nil, fmt.Errorf("%s: not a recorded case: %w", file, err)
		}
		return c, nil
	}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, fmt.Errorf("%s: not a recorded case: %w", file, err)
	}
	if c.Strategy == "" || len(c.Steps) == 0 {
		return nil, fmt.Errorf("%s: not a recorded case: it needs a strategy and steps", file)
	}
	return c, nil
}

// Diff is one difference between the recording and the lab.
type Diff struct {
	Step      int    // 0-based; -1 for the plan
	What      string // emits, state_entries, ...
	Want, Got string
	Unit      string // what a step is called; empty: step
}

// Title tells where the difference is and what it is about.
func (d Diff) Title() string {
	if d.Step < 0 {
		return "plan: " + d.What
	}
	return fmt.Sprintf("%s %d: %s", cmp.Or(d.Unit, "step"), d.Step+1, d.What)
}

// WantLines is the recording's side.
func (d Diff) WantLines() []string { return splitLines(d.Want) }

// GotLines is the lab's side.
func (d Diff) GotLines() []string { return splitLines(d.Got) }

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// String renders the difference with the recording's and the lab's side of it.
func (d Diff) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "      %s\n", d.Title())
	for _, side := range []struct{ name, text string }{{"engine", d.Want}, {"lab", d.Got}} {
		if side.text == "" {
			side.text = "(nothing)"
		}
		for i, line := range strings.Split(side.text, "\n") {
			if i > 0 {
				side.name = ""
			}
			fmt.Fprintf(&b, "        %-7s %s\n", side.name, line)
		}
	}
	return b.String()
}
