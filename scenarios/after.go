package scenarios

import (
	"fmt"
	"slices"

	"deduplab/stream"
	"deduplab/yml"
)

// after reads what stands behind the strategies.
func (l *loader) after(n *yml.Node) {
	a := &l.scenario.After
	l.Object(n,
		yml.May("window", func(n *yml.Node) {
			a.Window = &AfterWindow{Sum: -1}
			l.Object(n,
				yml.Must("size", yml.Value(l.Reader, &a.Window.Size, positive)),
				yml.May("sum", yml.Value(l.Reader, &a.Window.Sum, l.columnIndex(stream.Int, stream.Decimal))),
			)
		}),
		yml.May("join", func(n *yml.Node) {
			a.Join = &AfterJoin{}
			l.Object(n,
				yml.Must("on", yml.Value(l.Reader, &a.Join.On, l.columnIndex())),
				yml.Must("within", yml.Value(l.Reader, &a.Join.Within, positive)),
			)
		}),
	)
	if n.Kind == yml.Mapping && len(n.Items) == 0 {
		l.Add(n.At, "after needs a window, such as {size: 1h, sum: price}, or a join, such as {on: user_id, within: 1h}")
	}
}

// columnIndex reads the name of a column of one of some types, of any where there are none.
func (l *loader) columnIndex(types ...stream.Type) func(string) (int, error) {
	return func(s string) (int, error) {
		schema := l.scenario.Workload.Schema
		i := schema.Index(s)
		switch {
		case !l.columnsKnown:
			return max(i, 0), nil // what is wrong is reported elsewhere
		case i < 0:
			return 0, noColumn(s, columnNames(schema))
		case len(types) > 0 && !slices.Contains(types, schema.Columns[i].Type):
			return 0, fmt.Errorf("%s is no number that could be summed up", s)
		}
		return i, nil
	}
}

// after writes the section as the loader reads it.
func (p *printer) after(a After, schema stream.Schema) {
	if a == (After{}) {
		return
	}
	p.section("after")
	if w := a.Window; w != nil {
		sum := ""
		if w.Sum >= 0 {
			sum = ", sum: " + quoted(schema.Columns[w.Sum].Name)
		}
		p.field(1, "window", fmt.Sprintf("{size: %s%s}", dur(w.Size), sum))
	}
	if j := a.Join; j != nil {
		p.field(1, "join", fmt.Sprintf("{on: %s, within: %s}", quoted(schema.Columns[j.On].Name), dur(j.Within)))
	}
}
