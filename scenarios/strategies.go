package scenarios

import (
	"slices"
	"strings"

	"deduplab/strategies"
)

func (l *loader) strategies(n *node) {
	for _, entry := range l.entries(n) {
		l.entry(entry)
	}
}

// entry reads a strategy: its name, or the name with its parameters.
func (l *loader) entry(n *node) {
	head := &node{kind: broken}
	switch {
	case n.kind == scalar:
		head = &node{kind: empty, at: n.at, name: n.text, nameAt: n.at}
	case n.kind == mapping && len(n.items) == 1:
		head = n.items[0]
	case n.kind != broken:
		l.add(n.at, "an entry is one strategy, with its parameters in braces or indented below it: ptf: {ttl: 2h}")
	}
	if head.kind == broken {
		return
	}
	s, ok := strategies.Lookup(head.name)
	if !ok {
		l.add(head.nameAt, "there is no strategy %q%s", head.name,
			nearest(head.name, strategies.Names(), "there are"))
		return
	}
	e := Entry{ID: s.Name, Strategy: s, Args: l.params(head, s)}
	at := head.nameAt
	if id := head.get("id"); id != nil {
		at = id.at
		value(&l.faults, &e.ID, slug)(id)
	}
	if slices.ContainsFunc(l.scenario.Strategies, func(other Entry) bool { return other.ID == e.ID }) {
		l.add(at, "%s stands here a second time; tell them apart with an id: %s: {id: %s-2}", e.ID, s.Name, s.Name)
	}
	l.scenario.Strategies = append(l.scenario.Strategies, e)
}

// params reads what an entry says of its strategy, but for the id.
func (l *loader) params(n *node, s *strategies.Strategy) strategies.Args {
	if n.kind != empty && !l.is(n, mapping) {
		return strategies.Args{}
	}
	given := map[string]string{}
	for _, v := range n.items {
		if v.name != "id" {
			given[v.name] = l.param(v)
		}
	}
	args, wrong := s.Resolve(given, l.scenario.Workload.Schema)
	for _, fault := range wrong {
		at := n.nameAt
		i := slices.IndexFunc(s.Params, func(p strategies.Param) bool { return p.Name == fault.Param })
		v := n.get(fault.Param)
		switch {
		case v != nil && l.faulty(v):
			continue
		case i >= 0 && s.Params[i].NamesColumns() && !l.columnsKnown:
			continue
		case i >= 0 && v != nil:
			at = v.at
		case v != nil:
			at = v.nameAt
		}
		l.add(at, "%s", fault.Message)
	}
	return args
}

// param is the text of a parameter. A list of columns may be written as such.
func (l *loader) param(n *node) string {
	if n.kind != list {
		l.is(n, scalar)
		return n.text
	}
	var parts []string
	for _, entry := range l.entries(n) {
		l.is(entry, scalar)
		parts = append(parts, entry.text)
	}
	return strings.Join(parts, ", ")
}
