package scenarios

import (
	"encoding/json"
	"slices"
	"strings"

	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/yml"
)

func (l *loader) strategies(n *yml.Node) {
	for _, entry := range l.Entries(n) {
		l.entry(entry)
	}
}

// entry reads an entry of the list: a strategy that may have an id and a key.
func (l *loader) entry(n *yml.Node) {
	e, job, keyAt := Entry{}, strategies.Job{Schema: l.scenario.Workload.Schema}, (*yml.Node)(nil)
	if n.Kind == yml.Mapping && len(n.Items) == 1 {
		if keyAt = n.Items[0].Get("key"); keyAt != nil {
			e.Key = l.entryKey(keyAt)
		}
	}
	e.Rekey(&job)
	before := l.Faults()
	s, args, head := Strategy(l.Reader, n, job.Schema, l.columnsKnown, "id", "key")
	if s == nil {
		return
	}
	e.ID, e.Strategy, e.Args = s.Name, s, args
	if e.Key != nil && l.Faults() == before && s.Plan(args, job).Key == strategies.ByRow {
		l.Add(keyAt.At, "%s goes by the whole row, not by a key", s.Name)
	}
	at := head.NameAt
	if id := head.Get("id"); id != nil {
		at = id.At
		yml.Value(l.Reader, &e.ID, slug)(id)
	}
	if slices.ContainsFunc(l.scenario.Strategies, func(other Entry) bool { return other.ID == e.ID }) {
		l.Add(at, "%s stands here a second time; tell them apart with an id: %s: {id: %s-2}", e.ID, s.Name, s.Name)
	}
	columns := head.Get("restart_columns")
	if columns != nil && columns.Text != strategies.SameColumns && l.scenario.Job.Spark.Restart == 0 {
		l.Add(columns.At, "restart_columns are those after a restart: say when that is with job.spark.restart")
	}
	l.scenario.Strategies = append(l.scenario.Strategies, e)
}

// Strategy reads a strategy: its name, or the name with its parameters. It returns nil where there is a fault, and the
// node of the name with what stands below it. Fields that are named as besides are not parameters. ColumnsKnown says
// that the schema can be trusted to judge the columns that parameters name.
func Strategy(r *yml.Reader, n *yml.Node, schema stream.Schema, columnsKnown bool, besides ...string) (
	*strategies.Strategy, strategies.Args, *yml.Node) {
	head := &yml.Node{Kind: yml.Broken}
	switch {
	case n.Kind == yml.Scalar:
		head = &yml.Node{Kind: yml.Empty, At: n.At, Name: n.Text, NameAt: n.At}
	case n.Kind == yml.Mapping && len(n.Items) == 1:
		head = n.Items[0]
	case n.Kind != yml.Broken:
		r.Add(n.At, "an entry is one strategy, with its parameters in braces or indented below it: ptf: {ttl: 2h}")
	}
	if head.Kind == yml.Broken {
		return nil, strategies.Args{}, head
	}
	s, ok := strategies.Lookup(head.Name)
	if !ok {
		r.Add(head.NameAt, "there is no strategy %q%s", head.Name,
			yml.Nearest(head.Name, strategies.Names(), "there are"))
		return nil, strategies.Args{}, head
	}
	if head.Kind != yml.Empty && !r.Is(head, yml.Mapping) {
		return s, strategies.Args{}, head
	}
	given := map[string]string{}
	for _, v := range head.Items {
		kind := slices.IndexFunc(s.Params, func(p strategies.Param) bool { return p.Name == v.Name })
		switch {
		case slices.Contains(besides, v.Name):
		case kind >= 0 && s.Params[kind].Kind == strategies.Tiers:
			given[v.Name] = tiers(r, v, schema, columnsKnown)
		default:
			given[v.Name] = param(r, v)
		}
	}
	args, wrong := s.Resolve(given, schema)
	for _, fault := range wrong {
		at := head.NameAt
		i := slices.IndexFunc(s.Params, func(p strategies.Param) bool { return p.Name == fault.Param })
		v := head.Get(fault.Param)
		switch {
		case v != nil && r.Faulty(v):
			continue
		case i >= 0 && s.Params[i].NamesColumns() && !columnsKnown:
			continue
		case i >= 0 && v != nil:
			at = v.At
		case v != nil:
			at = v.NameAt
		}
		r.Add(at, "%s", fault.Message)
	}
	return s, args, head
}

// tiers is the text of a parameter that lists strategies.
func tiers(r *yml.Reader, n *yml.Node, schema stream.Schema, columnsKnown bool) string {
	var list []map[string]map[string]string
	for _, entry := range r.Entries(n) {
		tier, _, head := Strategy(r, entry, schema, columnsKnown)
		if tier == nil {
			continue
		}
		given := map[string]string{}
		for _, v := range head.Items {
			given[v.Name] = param(r, v)
		}
		list = append(list, map[string]map[string]string{tier.Name: given})
	}
	text, _ := json.Marshal(list) // texts never fail
	return string(text)
}

// param is the text of a parameter. A list of columns may be written as such, and spans by kind as a mapping.
func param(r *yml.Reader, n *yml.Node) string {
	var parts []string
	switch n.Kind {
	case yml.List:
		for _, entry := range r.Entries(n) {
			r.Is(entry, yml.Scalar)
			parts = append(parts, entry.Text)
		}
	case yml.Mapping:
		for _, item := range n.Items {
			r.Is(item, yml.Scalar)
			parts = append(parts, item.Name+": "+item.Text)
		}
	default:
		r.Is(n, yml.Scalar)
		return n.Text
	}
	return strings.Join(parts, ", ")
}
