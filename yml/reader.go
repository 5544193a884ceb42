package yml

import (
	"cmp"
	"slices"
	"strings"

	"deduplab/stream"
)

// field is one field of a mapping: its name and what reads its value.
type Field struct {
	name     string
	required bool
	read     func(*Node)
}

// must makes a field that has to be there, may one that does not.
func Must(name string, read func(*Node)) Field { return Field{name, true, read} }
func May(name string, read func(*Node)) Field  { return Field{name, false, read} }

// object reads a mapping. The fields are read in the order given, not in that of the file, so that one may build on
// those before it.
func (f *Reader) object(n *Node, fields ...field) {
	if !f.Is(n, mapping) {
		return
	}
	names := make([]string, len(fields))
	for i, fd := range fields {
		names[i] = fd.Name
	}
	misspelt := ""
	for _, v := range n.Items {
		if !slices.Contains(names, v.Name) {
			hint := Nearest(v.Name, names, "it has")
			f.Add(v.NameAt, "unknown field %q of %s%s", v.Name, n.Name, hint)
			misspelt += hint
		}
	}
	for _, fd := range fields {
		if v := n.Get(fd.Name); v != nil {
			fd.read(v)
		} else if fd.required && !strings.Contains(misspelt, stream.DidYouMean(fd.Name, []string{fd.Name})) {
			f.Add(n.NameAt, "%s needs the field %s", n.Name, fd.Name)
		}
	}
}

// nearest ends a message about an unknown name with the one that is most like it, or else with all there are.
func Nearest(written string, names []string, there string) string {
	if hint := stream.DidYouMean(written, names); hint != "" {
		return hint
	}
	return "; " + there + " " + strings.Join(names, ", ")
}

// get returns the value of a field, or nil.
func (n *Node) get(name string) *Node {
	for _, v := range n.Items {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// is reports whether a node is of a kind, and its being none as a fault.
func (f *Reader) is(n *Node, want Kind) bool {
	if n.Kind != want && n.Kind != broken {
		f.Add(n.At, "%s must be %s, not %s", n.Name, want.describe(), n.Kind.describe())
	}
	return n.Kind == want
}

// entries returns the entries of a list, which bear its name in messages. It is a fault when there are none.
func (f *Reader) entries(n *Node) []*Node {
	if !f.Is(n, list) {
		return nil
	}
	if len(n.Items) == 0 {
		f.Add(n.At, "%s is an empty list", n.Name)
	}
	for _, v := range n.Items {
		v.Name = "an entry of " + n.Name
	}
	return n.Items
}

// value makes a field's reader out of a function that reads text.
func Value[T any](f *Reader, to *T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		if !f.Is(n, scalar) {
			return
		}
		v, err := parse(n.Text)
		if err != nil {
			f.Add(n.At, "%v", err)
			return
		}
		*to = v
	}
}

// bare is value for what YAML writes without quotes: numbers, true and false.
func Bare[T any](f *Reader, to *T, parse func(string) (T, error)) func(*Node) {
	read := Value(f, to, parse)
	return func(n *Node) {
		if n.Quoted {
			f.Add(n.At, "%s must be written without quotes", n.Name)
			return
		}
		read(n)
	}
}

// values makes the reader of a list, or of a single value in place of a list with one.
func Values[T any](f *Reader, to *[]T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		entries := []*Node{n}
		if n.Kind != scalar {
			entries = f.Entries(n)
		}
		for _, entry := range entries {
			var v T
			before := len(f.found)
			if Value(f, &v, parse)(entry); len(f.found) == before && entry.Kind != broken {
				*to = append(*to, v)
			}
		}
	}
}

// bounds makes the reader of a list of two values, the lower and the upper one.
func Bounds[T cmp.Ordered](f *Reader, to *[2]T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		entries := f.Entries(n)
		if len(entries) != 2 {
			if n.Kind == list {
				f.Add(n.At, "%s must be a list of two: [lowest, highest]", n.Name)
			}
			return
		}
		before := len(f.found)
		for i, entry := range entries {
			Value(f, &to[i], parse)(entry)
		}
		if len(f.found) == before && to[0] > to[1] {
			f.Add(n.At, "%s: the lower bound stands first", n.Name)
		}
	}
}
