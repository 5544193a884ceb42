package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deduplab/downstream"
	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
	"deduplab/stream"
)

// consumers maps the endings of recorded ids to what stands behind the deduplication.
var consumers = map[string]strategies.Consumer{
	"-then-count":         strategies.GroupAggregate,
	"-then-window-count":  strategies.WindowAggregate,
	"-then-interval-join": strategies.IntervalJoin,
}

// consumer splits the id of a case into that of its deduplication and what stands behind it.
func (c *Case) consumer() (string, strategies.Consumer) {
	for ending, consumer := range consumers {
		if base, ok := strings.CutSuffix(c.Strategy, ending); ok {
			return base, consumer
		}
	}
	return c.Strategy, ""
}

var (
	sumPattern  = regexp.MustCompile(`SUM\((\w+)\) AS (\w+)`)
	joinPattern = regexp.MustCompile(`SELECT q\.(\w+), q\.(\w+), s\.(\w+) FROM .*` +
		`BETWEEN q\.(\w+) AND q\.\w+ \+ INTERVAL '(\d+)' (SECOND|MINUTE|HOUR|DAY)`)
)

// behind is the consumer of a case and how its rows are spelled.
type behind struct {
	downstream.Consumer
	join     *downstream.IntervalJoin
	columns  []stream.Column // of its output
	handed   []int           // the columns that it is handed
	batches  bool            // it waits for the end of batches
	shipment []stream.Column // of the join's other input
}

// newBehind makes the consumer of a case; nil where there is none.
func (c *Case) newBehind(by strategies.Consumer, plan strategies.Plan, schema stream.Schema) (*behind, error) {
	if by == "" {
		return nil, nil
	}
	if ok, _, reason := strategies.Accepts(plan, by); !ok {
		return nil, fmt.Errorf("%s: %s", c.File, reason)
	}
	if c.SQL == nil {
		return nil, fmt.Errorf("%s: the query is needed", c.File)
	}
	if by == strategies.IntervalJoin {
		return c.newJoin(schema)
	}
	m := sumPattern.FindStringSubmatch(*c.SQL)
	if m == nil || schema.Index(m[1]) < 0 {
		return nil, fmt.Errorf("%s: no SUM over a column in the query", c.File)
	}
	column := schema.Index(m[1])
	total := schema.Columns[column]
	total.Name = m[2]
	counted := []stream.Column{{Name: "n", Type: stream.Int}, total}
	retracts := plan.Declared != stream.InsertOnly
	onePhase := c.Config["table.optimizer.agg-phase-strategy"] == "ONE_PHASE"
	batches, err := c.miniBatch()
	if err != nil {
		return nil, err
	}
	if by == strategies.GroupAggregate {
		ttl, _ := sqlshape.Duration(c.Config["table.exec.state.ttl"])
		return &behind{
			Consumer: downstream.NewAggregate(downstream.AggregateSpec{
				Column: column, Retracts: retracts, TTL: ttl, BatchSize: batches.Size, OnePhase: onePhase,
			}),
			columns: counted, handed: append(slices.Clone(schema.Key), column), batches: batches.Size > 0,
		}, nil
	}
	size := sizePattern.FindStringSubmatch(*c.SQL)
	if size == nil {
		return nil, fmt.Errorf("%s: no TUMBLE in the query", c.File)
	}
	return &behind{
		Consumer: downstream.NewWindowAggregate(downstream.WindowSpec{
			Size: interval(size[1], size[2]), Time: schema.Event, Column: column, Retracts: retracts,
			OnePhase: onePhase,
		}),
		columns: append([]stream.Column{{Name: "window_start", Type: stream.Int}, {Name: "window_end", Type: stream.Int}},
			counted...),
		handed: append(slices.Clone(schema.Key), column, schema.Event),
	}, nil
}

func (c *Case) newJoin(schema stream.Schema) (*behind, error) {
	m := joinPattern.FindStringSubmatch(*c.SQL)
	if m == nil || schema.Index(m[1]) < 0 || schema.Index(m[2]) < 0 {
		return nil, fmt.Errorf("%s: the query is no interval join that the lab knows", c.File)
	}
	b := &behind{
		handed:   []int{schema.Index(m[1]), schema.Index(m[2]), schema.Event},
		shipment: []stream.Column{{Name: m[1], Type: stream.String}, {Name: m[3], Type: stream.Timestamp}},
	}
	for _, i := range b.handed {
		b.columns = append(b.columns, schema.Columns[i])
	}
	b.columns = append(b.columns, stream.Column{Name: m[1] + "0", Type: stream.String}, b.shipment[1])
	b.join = downstream.NewIntervalJoin(downstream.JoinSpec{LeftTime: 2, RightTime: 1, Lower: interval(m[5], m[6])})
	b.Consumer = b.join
	return b, nil
}

func interval(n, unit string) stream.Time {
	t, _ := stream.ParseDuration(n + intervalLetters[strings.ToUpper(unit)])
	return t
}

// change hands on a change of the deduplication.
func (b *behind) change(kind stream.Kind, record stream.Record, at stream.Time) {
	if b.join == nil {
		b.Change(kind, record, at)
		return
	}
	left := make(stream.Record, len(b.handed))
	for i, column := range b.handed {
		left[i] = record[column]
	}
	b.Change(kind, left, at)
}

// ship hands a row to the join's other input.
func (b *behind) ship(fields Fields) error {
	if b.join == nil {
		return fmt.Errorf("a shipment needs an interval join")
	}
	row := make(stream.Record, len(b.shipment))
	for i, column := range b.shipment {
		v, err := parseValue(fields.Get(column.Name), column)
		if err != nil {
			return err
		}
		row[i] = v
	}
	b.join.Other(row)
	return nil
}

// take returns what the consumer has sent. Its key and time are those of the row of the deduplication.
func (b *behind) take() []output {
	var out []output
	for _, sent := range b.Take() {
		fields := map[string]string{"kind": sent.Kind.String()}
		for i, column := range b.columns {
			fields[column.Name] = jsonValue(sent.Values[i], column)
		}
		o := output{text: render(fields), key: fields[b.columns[0].Name]}
		if b.join != nil {
			o.time = sent.Values[2].Int
		}
		out = append(out, o)
	}
	return out
}

// handedOn spells a change of the deduplication as deduplication_emits do.
func (b *behind) handedOn(kind stream.Kind, record stream.Record, schema stream.Schema) output {
	fields := map[string]string{"kind": kind.String()}
	for _, i := range b.handed {
		fields[schema.Columns[i].Name] = jsonValue(record[i], schema.Columns[i])
	}
	time, _ := strconv.ParseInt(fields[schema.Columns[schema.Event].Name], 10, 64)
	return output{text: render(fields), key: fields[schema.Columns[schema.Key[0]].Name], time: time}
}
