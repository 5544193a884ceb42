package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/gen"
	"deduplab/strategies"
	"deduplab/stream"
	"deduplab/yml"
)

// DefaultKey is the name of the key that the workload comes with.
const DefaultKey = "default"

// later is a part of the workload that is read once its columns are known.
func later(*yml.Node) {}

// keys reads the alternative keys by their names, and the column to sum.
func (l *loader) keys(workload *yml.Node) {
	w := &l.scenario.Workload
	n := workload.Get("keys")
	if n != nil && l.Is(n, yml.Mapping) {
		if len(n.Items) == 0 {
			l.Add(n.At, "keys needs at least one key: {by-order: [order_id, version]}")
		}
		for _, v := range n.Items {
			w.Keys = append(w.Keys, l.key(v))
		}
	}
	l.keysKnown = l.columnsKnown && (n == nil || !l.Faulty(n))
	if n := workload.Get("amount"); n != nil {
		yml.Value(l.Reader, &w.Amount, l.amount)(n)
	}
}

// key reads one key: its columns, or {content: columns}.
func (l *loader) key(n *yml.Node) gen.Key {
	k := gen.Key{Name: n.Name}
	if _, err := slug(n.Name); err != nil {
		l.Add(n.NameAt, "%v", err)
	} else if n.Name == DefaultKey {
		l.Add(n.NameAt, "%s is the name of the workload's own key", DefaultKey)
	}
	columns := yml.Values(l.Reader, &k.Columns, l.keyColumn)
	if n.Kind == yml.Mapping {
		k.Content = true
		l.Object(n, yml.Must("content", columns))
		if l.scenario.Workload.Schema.Index(gen.DedupKey) >= 0 {
			l.Add(n.NameAt, "a content key stands in a column %s, but the workload has one already", gen.DedupKey)
		}
	} else {
		columns(n)
	}
	for i, name := range k.Columns {
		if slices.Contains(k.Columns[:i], name) {
			l.Add(n.At, "%s: column %s stands twice", n.Name, name)
		}
	}
	return k
}

// keyColumn accepts the name of a column. What is wrong with the columns themselves is reported elsewhere.
func (l *loader) keyColumn(name string) (string, error) {
	schema := l.scenario.Workload.Schema
	if l.columnsKnown && schema.Index(name) < 0 {
		return "", noColumn(name, columnNames(schema))
	}
	return name, nil
}

// amount accepts the name of a column of numbers.
func (l *loader) amount(name string) (string, error) {
	if name, err := l.keyColumn(name); err != nil || !l.columnsKnown {
		return name, err
	}
	schema := l.scenario.Workload.Schema
	if c := schema.Columns[schema.Index(name)]; c.Type != stream.Int && c.Type != stream.Decimal {
		return "", fmt.Errorf("amount: %s is not a number that could be summed", name)
	}
	return name, nil
}

func columnNames(schema stream.Schema) []string {
	names := make([]string, len(schema.Columns))
	for i, c := range schema.Columns {
		names[i] = c.Name
	}
	return names
}

// entryKey reads the key of a strategy, nil for that of the workload.
func (l *loader) entryKey(n *yml.Node) *gen.Key {
	keys := l.scenario.Workload.Keys
	if len(keys) == 0 && !l.keysKnown {
		return nil // of what there is nothing is known
	}
	names := []string{DefaultKey}
	for _, k := range keys {
		names = append(names, k.Name)
	}
	name := ""
	yml.Value(l.Reader, &name, func(s string) (string, error) {
		if !slices.Contains(names, s) {
			return "", fmt.Errorf("there is no key %q%s", s, yml.Nearest(s, names, "the workload has"))
		}
		return s, nil
	})(n)
	i := slices.IndexFunc(keys, func(k gen.Key) bool { return k.Name == name })
	if i < 0 || !l.keysKnown {
		return nil
	}
	return &keys[i]
}

// Rekey tells the planner the key of the strategy, where it is not the workload's own.
func (e Entry) Rekey(job *strategies.Job) {
	if e.Key == nil {
		return
	}
	job.Schema = e.Key.Schema(job.Schema)
	if e.Key.Content {
		job.ContentOf = e.Key.Columns
	}
}

// formatKey writes a key as the loader reads it.
func formatKey(k gen.Key) string {
	if k.Content {
		return "{content: " + names(k.Columns) + "}"
	}
	return names(k.Columns)
}

// amountMetrics begins the names of the metrics that need a column to sum.
const amountMetrics = "amount."

func isAmount(metric string) bool { return strings.HasPrefix(metric, amountMetrics) }
