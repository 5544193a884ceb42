package yml

import (
	"cmp"
	"slices"
	"strings"

	"deduplab/stream"
)

// Field is one field of a mapping: its name and what reads its value.
type Field struct {
	name     string
	required bool
	read     func(*Node)
}

// Must makes a field that has to be there.
func Must(name string, read func(*Node)) Field { return Field{name, true, read} }

// May makes a field that need not be there.
func May(name string, read func(*Node)) Field { return Field{name, false, read} }

// Object reads a mapping. The fields are read in the order given, not in that of the file, so that one may build on
// those before it.
func (r *Reader) Object(n *Node, fields ...Field) {
	if !r.Is(n, Mapping) {
		return
	}
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = field.name
	}
	misspelt := ""
	for _, v := range n.Items {
		if !slices.Contains(names, v.Name) {
			hint := Nearest(v.Name, names, "it has")
			r.Add(v.NameAt, "unknown field %q of %s%s", v.Name, n.Name, hint)
			misspelt += hint
		}
	}
	for _, field := range fields {
		if v := n.Get(field.name); v != nil {
			field.read(v)
		} else if field.required && !strings.Contains(misspelt, stream.DidYouMean(field.name, []string{field.name})) {
			r.Add(n.NameAt, "%s needs the field %s", n.Name, field.name)
		}
	}
}

// Nearest ends a message about an unknown name with the one that is most like it, or else with all there are.
func Nearest(written string, names []string, there string) string {
	if hint := stream.DidYouMean(written, names); hint != "" {
		return hint
	}
	return "; " + there + " " + strings.Join(names, ", ")
}

// Is reports whether a node is of a kind, and its being none as a fault.
func (r *Reader) Is(n *Node, want Kind) bool {
	if n.Kind != want && n.Kind != Broken {
		r.Add(n.At, "%s must be %s, not %s", n.Name, want.Describe(), n.Kind.Describe())
	}
	return n.Kind == want
}

// Entries returns the entries of a list, which bear its name in messages. It is a fault when there are none.
func (r *Reader) Entries(n *Node) []*Node {
	if r.Is(n, List) && len(n.Items) == 0 {
		r.Add(n.At, "%s is an empty list", n.Name)
	}
	return r.Each(n)
}

// Each is Entries of a list that may be empty, which Is has been asked about.
func (r *Reader) Each(n *Node) []*Node {
	if n.Kind != List {
		return nil
	}
	for _, v := range n.Items {
		v.Name = "an entry of " + n.Name
	}
	return n.Items
}

// Value makes a field's reader out of a function that reads text.
func Value[T any](r *Reader, to *T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		if !r.Is(n, Scalar) {
			return
		}
		v, err := parse(n.Text)
		if err != nil {
			r.Add(n.At, "%v", err)
			return
		}
		*to = v
	}
}

// Bare is Value for what YAML writes without quotes: numbers, true and false.
func Bare[T any](r *Reader, to *T, parse func(string) (T, error)) func(*Node) {
	read := Value(r, to, parse)
	return func(n *Node) {
		if n.Quoted {
			r.Add(n.At, "%s must be written without quotes", n.Name)
			return
		}
		read(n)
	}
}

// Values makes the reader of a list, or of a single value in place of a list with one.
func Values[T any](r *Reader, to *[]T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		entries := []*Node{n}
		if n.Kind != Scalar {
			entries = r.Entries(n)
		}
		for _, entry := range entries {
			var v T
			before := r.Faults()
			if Value(r, &v, parse)(entry); r.Faults() == before && entry.Kind != Broken {
				*to = append(*to, v)
			}
		}
	}
}

// Bounds makes the reader of a list of two values, the lower and the upper one.
func Bounds[T cmp.Ordered](r *Reader, to *[2]T, parse func(string) (T, error)) func(*Node) {
	return func(n *Node) {
		entries := r.Entries(n)
		if len(entries) != 2 {
			if n.Kind == List {
				r.Add(n.At, "%s must be a list of two: [lowest, highest]", n.Name)
			}
			return
		}
		before := r.Faults()
		for i, entry := range entries {
			Value(r, &to[i], parse)(entry)
		}
		if r.Faults() == before && to[0] > to[1] {
			r.Add(n.At, "%s: the lower bound stands first", n.Name)
		}
	}
}
