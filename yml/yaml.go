// Package yml reads the YAML that people write: strictly, with every fault of a file reported at once, each with its
// place, an excerpt and, for an unknown name, the nearest one there is.
//
// [New] takes a file, [Reader.Parse] makes it a tree of [Node], and [Reader.Object], [Value] and their kin take it
// apart. [Reader.Err] is what was found on the way. Anchors, aliases, merge keys and tags are faults.
package yml

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxSize and maxDepth bound a file: the parser takes time quadratic in the size and depth of a malicious one.
const (
	maxSize  = 64 << 10
	maxDepth = 50
)

// Reader reads one file and collects what is wrong with it.
type Reader struct {
	File   string
	src    []byte
	lines  []string
	faults []Fault
}

// New starts to read a file. The name is for messages.
func New(file string, src []byte) *Reader {
	src = bytes.TrimPrefix(src, []byte("\uFEFF")) // the byte order mark that Windows editors write
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	return &Reader{File: file, src: src, lines: strings.Split(string(src), "\n")}
}

// Node is a YAML value and its place. Scalars stay the text that was written: what it means, the reader of the field
// says, so that no or 1.10 are never taken for something else.
type Node struct {
	Kind   Kind
	At     Position
	Name   string   // of the field that it is the value of
	NameAt Position // of that name; for an entry of a list the place of the value
	Text   string
	Quoted bool
	Items  []*Node // of a list; of a mapping the values, with their names
}

// Get returns the value of a field, or nil.
func (n *Node) Get(name string) *Node {
	for _, v := range n.Items {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// Kind is what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Broken Kind = iota // a fault has been reported
	Empty
	Scalar
	List
	Mapping
)

// Describe names a kind of value in messages.
func (k Kind) Describe() string {
	return [...]string{"something else", "nothing", "a single value", "a list", "a mapping"}[k]
}

// Parse reads the one YAML document of a file. What it is, such as "scenario", and what such a file holds are for
// messages.
func (r *Reader) Parse(what, holds string) *Node {
	src, start := r.src, Position{1, 1}
	switch {
	case len(src) > maxSize:
		r.Add(start, "the file has %d bytes; a %s has at most %d", len(src), what, maxSize)
		return &Node{}
	case !utf8.Valid(src):
		for i, line := range r.lines {
			if good := strings.ToValidUTF8(line, "\x00"); good != line {
				at := Position{i + 1, utf8.RuneCountInString(good[:strings.IndexByte(good, 0)]) + 1}
				r.lines[i] = strings.ToValidUTF8(line, "\uFFFD")
				r.Add(at, "the file is not UTF-8 text")
				break
			}
		}
		return &Node{}
	case tooDeep(src):
		r.Add(start, "brackets are nested more than %d deep", maxDepth)
		return &Node{}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
		return &Node{}
	}
	var docs []*ast.DocumentNode
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		r.Add(start, "the file is empty; a %s has %s", what, holds)
		return &Node{}
	}
	if len(docs) > 1 {
		r.Add(place(docs[1].Body), "a second document starts here; a file holds one %s", what)
	}
	root := r.node(docs[0].Body)
	root.Name, root.NameAt = "the "+what, root.At
	return root
}

// tooDeep counts brackets, in texts and comments too, where nobody opens that many without closing them.
func tooDeep(src []byte) bool {
	depth := 0
	for _, c := range src {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		if depth > maxDepth {
			return true
		}
	}
	return false
}

// syntax reports what the parser could not read, in words that help with the commonest mistakes.
func (r *Reader) syntax(err error) {
	var fault *yaml.SyntaxError
	if !errors.As(err, &fault) {
		r.Add(Position{1, 1}, "not YAML: %v", err)
		return
	}
	message := "not YAML: " + fault.Message
	switch {
	case strings.HasPrefix(fault.Message, "invalid header option"):
		message = "a value that starts with > must be quoted, such as \"> 0\""
	case strings.HasPrefix(fault.Message, "found character '\t'"):
		message = "a tab cannot indent YAML; use spaces"
	}
	r.Add(tokenPlace(fault.Token), "%s", message)
}

func tokenPlace(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{1, 1}
	}
	return Position{t.Position.Line, t.Position.Column}
}

// place is where a node starts: a mapping in block style at its first name.
func place(n ast.Node) Position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return place(n.Values[0])
		}
	case *ast.MappingValueNode:
		return place(n.Key)
	}
	return tokenPlace(n.GetToken())
}

func (r *Reader) node(n ast.Node) *Node {
	out := &Node{At: place(n)}
	out.NameAt = out.At
	switch n := n.(type) {
	case *ast.NullNode:
		out.Kind = Empty
	case *ast.StringNode:
		out.Kind, out.Text = Scalar, n.Value
		out.Quoted = n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType
	case *ast.LiteralNode:
		out.Kind, out.Text, out.Quoted = Scalar, n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = Scalar, n.GetToken().Value
	case *ast.SequenceNode:
		out.Kind = List
		for _, v := range n.Values {
			out.Items = append(out.Items, r.node(v))
		}
	case *ast.MappingNode:
		out.Kind = Mapping
		for _, v := range n.Values {
			r.pair(out, v)
		}
	case *ast.MappingValueNode:
		out.Kind = Mapping
		r.pair(out, n)
	case *ast.AnchorNode, *ast.AliasNode:
		r.Add(out.At, "anchors and aliases are not understood here; write the value out")
	case *ast.TagNode:
		r.Add(out.At, "tags such as %s are not understood here", n.GetToken().Value)
	default:
		r.Add(out.At, "this kind of YAML is not understood here")
	}
	return out
}

// pair adds one name and its value to a mapping.
func (r *Reader) pair(m *Node, pair *ast.MappingValueNode) {
	name := r.key(pair.Key)
	if name.Kind != Scalar {
		return
	}
	for _, v := range m.Items {
		if v.Name == name.Text {
			r.Add(name.At, "%s stands here a second time; the first is in line %d", name.Text, v.NameAt.Line)
			return
		}
	}
	value := r.node(pair.Value)
	value.Name, value.NameAt = name.Text, name.At
	if value.Kind == Empty {
		value.At = name.At
	}
	m.Items = append(m.Items, value)
}

// key reads the name of a field.
func (r *Reader) key(n ast.MapKeyNode) *Node {
	if _, ok := n.(*ast.MergeKeyNode); ok {
		r.Add(place(n), "merge keys are not understood here; write the fields out")
		return &Node{}
	}
	name := r.node(n)
	if name.Kind != Scalar && name.Kind != Broken {
		r.Add(name.At, "the name of a field must be a word, not %s", name.Kind.Describe())
	}
	return name
}
