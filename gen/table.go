package gen

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// table is a file of rows, by columns.
type table struct {
	name    string
	header  []string
	columns [][]cell // as many as header, each with a cell a row
	lines   []int    // line of the file, by row
	next    func()   // tells that a record begins
}

// at is the place of a cell for a message: name:line:column-name.
func (t *table) at(row, column int) string {
	return fmt.Sprintf("%s:%d:%s", t.name, t.lines[row], t.header[column])
}

// column finds a column by name, and adds it, with NULLs in the rows so far, if it is new.
func (t *table) column(name string) int {
	c := slices.Index(t.header, name)
	if c < 0 {
		c = len(t.header)
		t.header = append(t.header, name)
		t.columns = append(t.columns, slices.Repeat([]cell{{null: true}}, len(t.lines)))
	}
	return c
}

// faultList collects faults up to maxFaults.
type faultList struct{ faults []error }

func (f *faultList) add(format string, args ...any) {
	if len(f.faults) <= maxFaults {
		f.faults = append(f.faults, fmt.Errorf(format, args...))
	}
}

func (f *faultList) full() bool { return len(f.faults) > maxFaults }

func (f *faultList) err() error {
	if f.full() {
		return errors.Join(append(slices.Clone(f.faults[:maxFaults]), errors.New("and more"))...)
	}
	return errors.Join(f.faults...)
}

// readTable reads CSV or JSON lines, which begin with a brace; gzip is undone first.
func readTable(name string, r io.Reader) (*table, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		in = bufio.NewReader(unzipped)
	}
	limit := &RecordLimit{in: in, most: maxTrace}
	in = bufio.NewReader(limit)
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		in.Discard(3)
	}
	t := &table{name: name, next: limit.Next}
	read := t.readCSV
	start, err := in.Peek(1)
	switch {
	case err == io.EOF:
		return nil, fmt.Errorf("%s: the file is empty", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case start[0] == '{':
		read = t.readJSON
	}
	if err := read(in); err != nil {
		return nil, err
	}
	if len(t.lines) == 0 {
		return nil, fmt.Errorf("%s: the file has no rows", name)
	}
	return t, nil
}

// readCSV reads a header and rows of as many cells. An empty cell is NULL.
func (t *table) readCSV(r *bufio.Reader) error {
	var faults faultList
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			faults.add("%s:1: column %q stands twice", t.name, name)
		}
	}
	t.header, t.columns = header, make([][]cell, len(header))
	for !faults.full() {
		t.next()
		record, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			faults.add("%s: %w", t.name, err) // names the line, and the reader is lost from here on
			break
		}
		line, _ := in.FieldPos(0)
		if len(record) != len(header) {
			faults.add("%s:%d: %d cells, but the header has %d", t.name, line, len(record), len(header))
			continue
		}
		t.lines = append(t.lines, line)
		for c, text := range record {
			t.columns[c] = append(t.columns[c], cell{text, text == ""})
		}
	}
	return faults.err()
}

// readJSON reads an object a line. The columns are the names of all objects in order of appearance; a name that is
// missing or null is NULL, and so is an empty string, as in CSV. A nested value is its text.
func (t *table) readJSON(r *bufio.Reader) error {
	var faults faultList
	for line := 1; !faults.full(); line++ {
		t.next()
		text, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s:%d: %w", t.name, line, err)
		}
		if len(bytes.TrimSpace(text)) > 0 {
			if err := t.addObject(text, line); err != nil {
				faults.add("%s:%d: %w", t.name, line, err)
			}
		}
		if err == io.EOF {
			break
		}
	}
	return faults.err()
}

// addObject adds a row from a JSON object.
func (t *table) addObject(text []byte, line int) error {
	in := json.NewDecoder(bytes.NewReader(text))
	if brace, err := in.Token(); err != nil || brace != json.Delim('{') {
		return fmt.Errorf("not a JSON object: %.100s", bytes.TrimSpace(text))
	}
	row := map[int]cell{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		c := cell{text: string(value), null: string(value) == "null"}
		if value[0] == '"' {
			if err := json.Unmarshal(value, &c.text); err != nil {
				return fmt.Errorf("%v: %w", name, err)
			}
			c.null = c.text == ""
		}
		row[t.column(name.(string))] = c
	}
	if _, err := in.Token(); err != nil {
		return err
	}
	t.lines = append(t.lines, line)
	for c := range t.columns {
		value, ok := row[c]
		if !ok {
			value.null = true
		}
		t.columns[c] = append(t.columns[c], value)
	}
	return nil
}
