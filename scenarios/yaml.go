package scenarios

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
type node struct {
	kind   kind
	at     position
	name   string   // of the field that it is the value of
	nameAt position // of that name; for an entry of a list the place of the value
	text   string
	quoted bool
	items  []*node // of a list; of a mapping the values, with their names
}

type kind uint8

const (
	broken kind = iota // a fault has been reported
	empty
	scalar
	list
	mapping
)

// describe names a kind of value in messages.
func (k kind) describe() string {
	return [...]string{"something else", "nothing", "a single value", "a list", "a mapping"}[k]
}

// parse reads the one YAML document of a file.
func (f *faults) parse(src []byte) *node {
	start := position{1, 1}
	switch {
	case len(src) > maxSize:
		f.add(start, "the file has %d bytes; a scenario has at most %d", len(src), maxSize)
		return &node{}
	case !utf8.Valid(src):
		for i, line := range f.lines {
			if good := strings.ToValidUTF8(line, "\x00"); good != line {
				at := position{i + 1, utf8.RuneCountInString(good[:strings.IndexByte(good, 0)]) + 1}
				f.lines[i] = strings.ToValidUTF8(line, "\uFFFD")
				f.add(at, "the file is not UTF-8 text")
				break
			}
		}
		return &node{}
	case tooDeep(src):
		f.add(start, "brackets are nested more than %d deep", maxDepth)
		return &node{}
	}
	file, err := parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		f.syntax(err)
		return &node{}
	}
	var docs []*ast.DocumentNode
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc)
		}
	}
	if len(docs) == 0 {
		f.add(start, "the file is empty; a scenario has a name (scenario), a workload and strategies")
		return &node{}
	}
	if len(docs) > 1 {
		f.add(place(docs[1].Body), "a second document starts here; a file holds one scenario")
	}
	root := f.node(docs[0].Body)
	root.name, root.nameAt = "the scenario", root.at
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
func (f *faults) syntax(err error) {
	var fault *yaml.SyntaxError
	if !errors.As(err, &fault) {
		f.add(position{1, 1}, "not YAML: %v", err)
		return
	}
	message := "not YAML: " + fault.Message
	switch {
	case strings.HasPrefix(fault.Message, "invalid header option"):
		message = "a value that starts with > must be quoted, such as \"> 0\""
	case strings.HasPrefix(fault.Message, "found character '\t'"):
		message = "a tab cannot indent YAML; use spaces"
	}
	f.add(tokenPlace(fault.Token), "%s", message)
}

func tokenPlace(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{1, 1}
	}
	return position{t.Position.Line, t.Position.Column}
}

// place is where a node starts: a mapping in block style at its first name.
func place(n ast.Node) position {
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

func (f *faults) node(n ast.Node) *node {
	out := &node{at: place(n)}
	out.nameAt = out.at
	switch n := n.(type) {
	case *ast.NullNode:
		out.kind = empty
	case *ast.StringNode:
		out.kind, out.text = scalar, n.Value
		out.quoted = n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType
	case *ast.LiteralNode:
		out.kind, out.text, out.quoted = scalar, n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = scalar, n.GetToken().Value
	case *ast.SequenceNode:
		out.kind = list
		for _, v := range n.Values {
			out.items = append(out.items, f.node(v))
		}
	case *ast.MappingNode:
		out.kind = mapping
		for _, v := range n.Values {
			f.pair(out, v)
		}
	case *ast.MappingValueNode:
		out.kind = mapping
		f.pair(out, n)
	case *ast.AnchorNode, *ast.AliasNode:
		f.add(out.at, "anchors and aliases are not understood here; write the value out")
	case *ast.TagNode:
		f.add(out.at, "tags such as %s are not understood here", n.GetToken().Value)
	default:
		f.add(out.at, "this kind of YAML is not understood here")
	}
	return out
}

// pair adds one name and its value to a mapping.
func (f *faults) pair(m *node, pair *ast.MappingValueNode) {
	name := f.key(pair.Key)
	if name.kind != scalar {
		return
	}
	for _, v := range m.items {
		if v.name == name.text {
			f.add(name.at, "%s stands here a second time; the first is in line %d", name.text, v.nameAt.line)
			return
		}
	}
	value := f.node(pair.Value)
	value.name, value.nameAt = name.text, name.at
	if value.kind == empty {
		value.at = name.at
	}
	m.items = append(m.items, value)
}

// key reads the name of a field.
func (f *faults) key(n ast.MapKeyNode) *node {
	if _, ok := n.(*ast.MergeKeyNode); ok {
		f.add(place(n), "merge keys are not understood here; write the fields out")
		return &node{}
	}
	name := f.node(n)
	if name.kind != scalar && name.kind != broken {
		f.add(name.at, "the name of a field must be a word, not %s", name.kind.describe())
	}
	return name
}
