package scenarios

import (
	"cmp"
	"slices"
	"strings"

	"deduplab/stream"
)

// field is one field of a mapping: its name and what reads its value.
type field struct {
	name     string
	required bool
	read     func(*node)
}

// must makes a field that has to be there, may one that does not.
func must(name string, read func(*node)) field { return field{name, true, read} }
func may(name string, read func(*node)) field  { return field{name, false, read} }

// object reads a mapping. The fields are read in the order given, not in that of the file, so that one may build on
// those before it.
func (f *faults) object(n *node, fields ...field) {
	if !f.is(n, mapping) {
		return
	}
	names := make([]string, len(fields))
	for i, fd := range fields {
		names[i] = fd.name
	}
	misspelt := ""
	for _, v := range n.items {
		if !slices.Contains(names, v.name) {
			hint := nearest(v.name, names, "it has")
			f.add(v.nameAt, "unknown field %q of %s%s", v.name, n.name, hint)
			misspelt += hint
		}
	}
	for _, fd := range fields {
		if v := n.get(fd.name); v != nil {
			fd.read(v)
		} else if fd.required && !strings.Contains(misspelt, stream.DidYouMean(fd.name, []string{fd.name})) {
			f.add(n.nameAt, "%s needs the field %s", n.name, fd.name)
		}
	}
}

// nearest ends a message about an unknown name with the one that is most like it, or else with all there are.
func nearest(written string, names []string, there string) string {
	if hint := stream.DidYouMean(written, names); hint != "" {
		return hint
	}
	return "; " + there + " " + strings.Join(names, ", ")
}

// get returns the value of a field, or nil.
func (n *node) get(name string) *node {
	for _, v := range n.items {
		if v.name == name {
			return v
		}
	}
	return nil
}

// is reports whether a node is of a kind, and its being none as a fault.
func (f *faults) is(n *node, want kind) bool {
	if n.kind != want && n.kind != broken {
		f.add(n.at, "%s must be %s, not %s", n.name, want.describe(), n.kind.describe())
	}
	return n.kind == want
}

// entries returns the entries of a list, which bear its name in messages. It is a fault when there are none.
func (f *faults) entries(n *node) []*node {
	if !f.is(n, list) {
		return nil
	}
	if len(n.items) == 0 {
		f.add(n.at, "%s is an empty list", n.name)
	}
	for _, v := range n.items {
		v.name = "an entry of " + n.name
	}
	return n.items
}

// value makes a field's reader out of a function that reads text.
func value[T any](f *faults, to *T, parse func(string) (T, error)) func(*node) {
	return func(n *node) {
		if !f.is(n, scalar) {
			return
		}
		v, err := parse(n.text)
		if err != nil {
			f.add(n.at, "%v", err)
			return
		}
		*to = v
	}
}

// bare is value for what YAML writes without quotes: numbers, true and false.
func bare[T any](f *faults, to *T, parse func(string) (T, error)) func(*node) {
	read := value(f, to, parse)
	return func(n *node) {
		if n.quoted {
			f.add(n.at, "%s must be written without quotes", n.name)
			return
		}
		read(n)
	}
}

// values makes the reader of a list, or of a single value in place of a list with one.
func values[T any](f *faults, to *[]T, parse func(string) (T, error)) func(*node) {
	return func(n *node) {
		entries := []*node{n}
		if n.kind != scalar {
			entries = f.entries(n)
		}
		for _, entry := range entries {
			var v T
			before := len(f.list)
			if value(f, &v, parse)(entry); len(f.list) == before && entry.kind != broken {
				*to = append(*to, v)
			}
		}
	}
}

// bounds makes the reader of a list of two values, the lower and the upper one.
func bounds[T cmp.Ordered](f *faults, to *[2]T, parse func(string) (T, error)) func(*node) {
	return func(n *node) {
		entries := f.entries(n)
		if len(entries) != 2 {
			if n.kind == list {
				f.add(n.at, "%s must be a list of two: [lowest, highest]", n.name)
			}
			return
		}
		before := len(f.list)
		for i, entry := range entries {
			value(f, &to[i], parse)(entry)
		}
		if len(f.list) == before && to[0] > to[1] {
			f.add(n.at, "%s: the lower bound stands first", n.name)
		}
	}
}
