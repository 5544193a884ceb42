package yml

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxSize and maxDepth bound a scenario: the parser takes time quadratic in the size and depth of a malicious one.
const (
	maxSize  = 64 << 10
	maxDepth = 50
)

// node is a YAML value and its place. Scalars stay the text that was written: what it means, the reader of the field
// says, so that no or 1.10 are never taken for something else.
type Node struct {
	Kind   Kind
	at     Position
	name   string   // of the field that it is the value of
	nameAt Position // of that name; for an entry of a list the place of the value
	text   string
	quoted bool
	items  []*Node // of a list; of a mapping the values, with their names
}

type Kind uint8

const (
	broken Kind = iota // a fault has been reported
	empty
	scalar
	list
	mapping
)

// describe names a kind of value in messages.
func (k Kind) describe() string {
	return [...]string{"something else", "nothing", "a single value", "a list", "a mapping"}[k]
}

// parse reads the one YAML document of a file.
func (f *Reader) parse(src []byte) *Node {
	start := Position{1, 1}
	switch {
	case len(src) > maxSize:
		f.Add(start, "the file has %d bytes; a scenario has at most %d", len(src), maxSize)
		return &Node{}
	case !utf8.Valid(src):
		for i, line := range f.lines {
			if good := strings.ToValidUTF8(line, "\x00"); good != line {
				at := Position{i + 1, utf8.RuneCountInString(good[:strings.IndexByte(good, 0)]) + 1}
				f.lines[i] = strings.ToValidUTF8(line, "\uFFFD")
				f.Add(at, "the file is not UTF-8 text")
				break
			}
		}
		return &Node{}
	case tooDeep(src):
		f.Add(start, "brackets are nested more than %d deep", maxDepth)
		return &Node{}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntax(err)
		return &Node{}
	}
	var docs []*ast.DocumentNode
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		f.Add(start, "the file is empty; a scenario has a name (scenario), a workload and strategies")
		return &Node{}
	}
	if len(docs) > 1 {
		f.Add(place(docs[1].Body), "a second document starts here; a file holds one scenario")
	}
	root := f.node(docs[0].Body)
	root.Name, root.NameAt = "the scenario", root.At
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
func (f *Reader) syntax(err error) {
	var fault *yaml.SyntaxError
	if !errors.As(err, &fault) {
		f.Add(Position{1, 1}, "not YAML: %v", err)
		return
	}
	message := "not YAML: " + fault.Message
	switch {
	case strings.HasPrefix(fault.Message, "invalid header option"):
		message = "a value that starts with > must be quoted, such as \"> 0\""
	case strings.HasPrefix(fault.Message, "found character '\t'"):
		message = "a tab cannot indent YAML; use spaces"
	}
	f.Add(tokenPlace(fault.Token), "%s", message)
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

func (f *Reader) Node(n ast.Node) *Node {
	out := &Node{at: place(n)}
	out.NameAt = out.At
	switch n := n.(type) {
	case *ast.NullNode:
		out.Kind = empty
	case *ast.StringNode:
		out.Kind, out.Text = scalar, n.Value
		out.Quoted = n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType
	case *ast.LiteralNode:
		out.Kind, out.Text, out.Quoted = scalar, n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.Kind, out.Text = scalar, n.GetToken().Value
	case *ast.SequenceNode:
		out.Kind = list
		for _, v := range n.Values {
			out.Items = append(out.Items, f.node(v))
		}
	case *ast.MappingNode:
		out.Kind = mapping
		for _, v := range n.Values {
			f.pair(out, v)
		}
	case *ast.MappingValueNode:
		out.Kind = mapping
		f.pair(out, n)
	case *ast.AnchorNode, *ast.AliasNode:
		f.Add(out.At, "anchors and aliases are not understood here; write the value out")
	case *ast.TagNode:
		f.Add(out.At, "tags such as %s are not understood here", n.GetToken().Value)
	default:
		f.Add(out.At, "this kind of YAML is not understood here")
	}
	return out
}

// pair adds one name and its value to a mapping.
func (f *Reader) pair(m *Node, pair *ast.MappingValueNode) {
	name := f.key(pair.Key)
	if name.Kind != scalar {
		return
	}
	for _, v := range m.Items {
		if v.Name == name.Text {
			f.Add(name.At, "%s stands here a second time; the first is in line %d", name.Text, v.NameAt.Line)
			return
		}
	}
	Value := f.node(pair.Value)
	Value.Name, Value.NameAt = name.Text, name.At
	if Value.Kind == empty {
		Value.At = name.At
	}
	m.Items = append(m.Items, Value)
}

// key reads the name of a field.
func (f *Reader) key(n ast.MapKeyNode) *Node {
	if _, ok := n.(*ast.MergeKeyNode); ok {
		f.Add(place(n), "merge keys are not understood here; write the fields out")
		return &Node{}
	}
	name := f.node(n)
	if name.Kind != scalar && name.Kind != broken {
		f.Add(name.At, "the name of a field must be a word, not %s", name.Kind.describe())
	}
	return name
}
