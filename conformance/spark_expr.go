package conformance

import (
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
)

// expr is an expression of a recorded query, as Python spells it: a name, a literal, a list, a dict, or a call. The
// receiver of a method is its first part: df.dropDuplicates(["id"]) has On df, Name dropDuplicates and one argument.
type expr struct {
	Kind exprKind
	Name string  // of a Name or Call
	On   *expr   // of a Call: what the method is called on; nil for a function
	Args []*expr // of a Call or List; of a Dict: key, value, key, value ...
	Text string  // of a Text
	Num  int64   // of a Number
}

type exprKind uint8

const (
	exprName exprKind = iota
	exprCall
	exprText
	exprNumber
	exprList
	exprDict
)

// parseExpr reads an expression.
func parseExpr(text string) (*expr, error) {
	p := &exprParser{}
	p.Init(strings.NewReader(text))
	p.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings
	p.Error = func(*scanner.Scanner, string) {}
	p.next()
	e, err := p.expr(0)
	if err == nil && p.token != scanner.EOF {
		err = p.unexpected()
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not an expression that the lab knows: %w", text, err)
	}
	return e, nil
}

// exprParser reads tokens; token is the next one.
type exprParser struct {
	scanner.Scanner
	token rune
}

func (p *exprParser) next() { p.token = p.Scan() }

func (p *exprParser) unexpected() error {
	if p.token == scanner.EOF {
		return fmt.Errorf("it ends too early")
	}
	return fmt.Errorf("column %d: unexpected %s", p.Position.Column, p.TokenText())
}

// take takes a token if it is the next one.
func (p *exprParser) take(token rune) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// deepest bounds how deep expressions are nested.
const deepest = 100

func (p *exprParser) expr(depth int) (*expr, error) {
	if depth > deepest {
		return nil, fmt.Errorf("it is nested too deep")
	}
	e, err := p.operand(depth)
	for err == nil && (p.token == '.' || p.token == '(') {
		if p.take('.') {
			if p.token != scanner.Ident {
				return nil, p.unexpected()
			}
			e = &expr{Kind: exprName, Name: p.TokenText(), On: e}
			p.next()
			continue
		}
		p.next()
		if e.Kind != exprName {
			return nil, fmt.Errorf("only a name can be called")
		}
		e.Kind = exprCall
		e.Args, err = p.list(')', depth)
	}
	return e, err
}

func (p *exprParser) operand(depth int) (*expr, error) {
	text := p.TokenText()
	switch p.token {
	case scanner.Ident:
		p.next()
		return &expr{Kind: exprName, Name: text}, nil
	case scanner.String:
		p.next()
		s, err := strconv.Unquote(text)
		return &expr{Kind: exprText, Text: s}, err
	case '-', scanner.Int:
		negative := p.take('-')
		n, err := strconv.ParseInt(p.TokenText(), 10, 64)
		if p.token != scanner.Int || err != nil {
			return nil, p.unexpected()
		}
		p.next()
		if negative {
			n = -n
		}
		return &expr{Kind: exprNumber, Num: n}, nil
	case '[':
		p.next()
		args, err := p.list(']', depth)
		return &expr{Kind: exprList, Args: args}, err
	case '{':
		p.next()
		args, err := p.list('}', depth)
		return &expr{Kind: exprDict, Args: args}, err
	}
	return nil, p.unexpected()
}

// list reads expressions between commas, or colons, up to the end.
func (p *exprParser) list(end rune, depth int) ([]*expr, error) {
	var list []*expr
	for !p.take(end) {
		if len(list) > 0 && !p.take(',') && !(end == '}' && p.take(':')) {
			return nil, p.unexpected()
		}
		e, err := p.expr(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// texts returns the texts of a list.
func (e *expr) texts() ([]string, bool) {
	var texts []string
	for _, arg := range e.Args {
		if arg.Kind != exprText {
			return nil, false
		}
		texts = append(texts, arg.Text)
	}
	return texts, e.Kind == exprList
}

// is reports whether an expression is a call of a method or function, with so many arguments.
func (e *expr) is(name string, args int) bool {
	return e.Kind == exprCall && e.Name == name && len(e.Args) == args
}
