package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// readCSV reads a header and rows of as many cells.
func (r *Reader) readCSV(in io.Reader) error {
	limited := &recordReader{in: in}
	rows := csv.NewReader(limited)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	record, err := rows.Read()
	if limited.failed != nil {
		err = limited.failed
	}
	if err != nil {
		return r.broken(csvError(err))
	}
	if err := r.header(record); err != nil {
		return err
	}
	width := len(record)
	places, err := r.places(record)
	if err != nil {
		return err
	}
	var buffer []byte
	for line := 1; ; {
		limited.taken = 0
		record, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if limited.failed != nil {
			return r.brokenAt(int64(line+1), limited.failed)
		}
		if parse := new(csv.ParseError); errors.As(err, &parse) { // all else that fails is the reading
			if err := r.bad("%s:%d: byte %d: %w", r.file, parse.Line, parse.Column, parse.Err); err != nil {
				return err
			}
			continue
		}
		line, _ = rows.FieldPos(0)
		if len(record) != width {
			if err := r.bad("%s:%d: %d cells, but the header has %d", r.file, line, len(record), width); err != nil {
				return err
			}
			continue
		}
		buffer = buffer[:0]
		for c, place := range places {
			if place < 0 {
				continue
			}
			v := &r.values[place]
			if v.kind = isNull; record[c] != "" {
				from := len(buffer)
				buffer = append(buffer, record[c]...)
				v.kind, v.text = isText, buffer[from:]
			}
		}
		if err := r.add(int64(line)); err != nil {
			return err
		}
	}
}

// places finds where each column of a header goes, -1 for nowhere, and where each role finds its value.
func (r *Reader) places(header []string) ([]int, error) {
	places := make([]int, len(header))
	r.values = r.values[:0]
	for c, name := range header {
		places[c] = -1
		switch {
		case r.spec.All:
			var err error
			if places[c], err = r.column(name); err != nil {
				return nil, err
			}
		case slices.ContainsFunc(r.spec.Roles, func(role Role) bool { return role.Column == name }):
			places[c] = len(r.values)
			r.values = append(r.values, value{})
		}
	}
	if r.spec.All {
		r.values = make([]value, len(r.columns))
	}
	for i, role := range r.spec.Roles {
		r.at[i], r.found[i] = places[slices.Index(header, role.Column)], true
	}
	return places, nil
}

// recordReader refuses to read on in a record that is too long, of which csv would read any amount into memory.
type recordReader struct {
	in     io.Reader
	taken  int
	failed error // which csv takes for an open quote in the middle of a text
}

var errTooLong = fmt.Errorf("the line, or the text in quotes that begins here, is longer than %d MB", MaxLine>>20)

// Read implements io.Reader.
func (l *recordReader) Read(p []byte) (int, error) {
	if l.taken > MaxLine {
		l.failed = errTooLong
		return 0, errTooLong
	}
	n, err := l.in.Read(p)
	l.taken += n
	if err != io.EOF {
		l.failed = err
	}
	return n, err
}

// csvError leaves out that it is a header that csv failed at.
func csvError(err error) error {
	if parse := new(csv.ParseError); errors.As(err, &parse) {
		return fmt.Errorf("line %d, byte %d: %w", parse.Line, parse.Column, parse.Err)
	}
	return err
}

// readJSON reads an object a line. A nested value is its text, and so is a number.
func (r *Reader) readJSON(in *bufio.Reader) error {
	if !r.spec.All {
		r.values = make([]value, len(r.spec.Roles))
		for i := range r.spec.Roles {
			r.at[i] = i
		}
	}
	lines := lineReader{in: in}
	for line := int64(1); ; line++ {
		text, err := lines.next()
		if err != nil && err != io.EOF {
			return r.brokenAt(line, err)
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var stop error
			if text[0] != '{' {
				stop = r.bad("%s:%d: not a JSON object: %s", r.file, line, shorten(text))
			} else if !json.Valid(text) {
				var any json.RawMessage
				stop = r.bad("%s:%d: not JSON: %w", r.file, line, json.Unmarshal(text, &any))
			} else if stop = r.object(text); stop == nil {
				stop = r.add(line)
			}
			if stop != nil {
				return stop
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

func shorten(text []byte) []byte {
	if len(text) > 60 {
		return append(bytes.ToValidUTF8(text[:60], nil), "..."...)
	}
	return text
}

// lineReader reads lines that are not too long.
type lineReader struct {
	in   *bufio.Reader
	line []byte // of what does not fit into the buffer
}

func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if err == nil && len(l.line) == 0 {
			return part, nil
		}
		if len(l.line)+len(part) > MaxLine {
			return nil, errTooLong
		}
		l.line = append(l.line, part...)
		if err != bufio.ErrBufferFull {
			return l.line, err
		}
	}
}

// object reads the values of a valid JSON object. Of names that stand twice the last counts.
func (r *Reader) object(text []byte) error {
	for i := range r.values {
		r.values[i].kind = isNull
	}
	note := !r.spec.All && len(r.columns) == 0 // the columns of the first row, for messages
	for rest := text[1:]; ; {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			break
		}
		end := stringEnd(rest[start:])
		name, err := unquote(rest[start : start+end])
		if err != nil {
			return err
		}
		rest = rest[start+end:]
		rest = bytes.TrimLeft(rest[bytes.IndexByte(rest, ':')+1:], " \t\r\n")
		end = valueEnd(rest)
		if err := r.member(name, rest[:end], note); err != nil {
			return err
		}
		rest = rest[end:]
	}
	if r.spec.All {
		for i, role := range r.spec.Roles {
			r.at[i] = -1
			if place, ok := r.index[role.Column]; ok {
				r.at[i], r.found[i] = place, true
			}
		}
	}
	return nil
}

// member takes in one member of an object.
func (r *Reader) member(name, text []byte, note bool) error {
	v := value{kind: isText, text: text}
	switch text[0] {
	case 'n':
		v.kind = isNull
	case '"':
		var err error
		if v.text, err = unquote(text); err != nil {
			return err
		}
		if len(v.text) == 0 {
			v.kind = isNull
		}
	}
	if note && len(r.columns) < MaxColumns {
		if _, err := r.column(string(name)); err != nil {
			return err
		}
	}
	if !r.spec.All {
		for i := range r.spec.Roles {
			if string(name) == r.spec.Roles[i].Column {
				r.values[i], r.found[i] = v, true
			}
		}
		return nil
	}
	place, ok := r.index[string(name)]
	if !ok {
		var err error
		if place, err = r.column(string(name)); err != nil {
			return err
		}
	}
	for len(r.values) < len(r.columns) {
		r.values = append(r.values, value{})
	}
	r.values[place] = v
	return nil
}

// unquote undoes the escapes of a JSON string.
func unquote(text []byte) ([]byte, error) {
	if plain := text[1 : len(text)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return plain, nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return []byte(s), err
}

// stringEnd is where the JSON string ends that a text begins with.
func stringEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// valueEnd is where the JSON value ends that a text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			if i += stringEnd(text[i:]) - 1; depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}
