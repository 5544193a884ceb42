package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/stream"
)

// Choice says whose story is told: one of the three.
type Choice struct {
	Key   string  // as its column is written, or as a=1 b=2, or 1,2
	Event *uint64 // the number of a logical event, from 0
	Fate  string  // such as leaked or late_first: the first example of it
}

// Trace tells the story of one key, or of the rows of one event, in every strategy.
func Trace(ctx context.Context, s *scenarios.Scenario, o Options, c Choice) (*results.Trace, error) {
	r, err := newRun(s, o)
	if err != nil {
		return nil, err
	}
	out := &results.Trace{Scenario: s.Name, Seed: s.Seed}
	var events []uint64
	switch {
	case c.Key != "":
		out.Chosen = "key " + c.Key
		events, err = r.eventsOf(ctx, c.Key)
	case c.Event != nil:
		out.Chosen = fmt.Sprintf("event %d", *c.Event)
		events = []uint64{*c.Event}
	default:
		events, out.Chosen, err = r.eventWith(ctx, c.Fate)
	}
	if err != nil {
		return nil, err
	}
	wanted := map[int][]uint64{}
	for i, e := range r.entries {
		if e.plan.Refused == "" {
			wanted[i] = events
		}
	}
	told, err := r.tell(ctx, wanted, 0)
	if err != nil {
		return nil, err
	}
	found := len(wanted) == 0
	for i, e := range r.entries {
		t := results.TracedStrategy{ID: e.ID, Refused: e.plan.Refused, Stories: orEmpty(told[i].list)}
		found = found || len(t.Stories) > 0
		out.Strategies = append(out.Strategies, t)
	}
	if !found {
		return nil, fmt.Errorf("%s: the stream has no such row", out.Chosen)
	}
	return out, nil
}

// eventsOf finds the events of the rows that have a key.
func (r *run) eventsOf(ctx context.Context, key string) ([]uint64, error) {
	schema := r.workload.Schema()
	var events []uint64
	var found *stream.Key
	rows, buffer := r.workload.Stream(), make([]stream.Row, 1024)
	for {
		n, err := rows.Next(buffer)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		for i := range buffer[:n] {
			row := &buffer[i]
			if found == nil && slices.Contains(spellings(schema, r.workload.Record(row.Tag)), key) {
				k := row.Key
				found = &k
			}
			if found != nil && row.Key == *found && !slices.Contains(events, row.Tag.Event()) {
				events = append(events, row.Tag.Event())
			}
		}
	}
	if events == nil {
		return nil, fmt.Errorf("no row has the key %q; a key is written as its column, or as %s", key,
			spellings(schema, r.example())[1])
	}
	return events, nil
}

// example is the first row of the stream; there is one, or no key could be looked for.
func (r *run) example() stream.Record {
	var first [1]stream.Row
	if n, err := r.workload.Stream().Next(first[:]); n == 0 || err != nil {
		return make(stream.Record, len(r.workload.Schema().Columns))
	}
	return r.workload.Record(first[0].Tag)
}

// spellings are the ways in which people write a key: its values, and its values with their names.
func spellings(schema stream.Schema, record stream.Record) []string {
	var values, named []string
	for _, k := range schema.Key {
		value := record[k].Format(schema.Columns[k])
		values, named = append(values, value), append(named, schema.Columns[k].Name+"="+value)
	}
	return []string{strings.Join(values, ","), strings.Join(named, " "), strings.Join(named, ",")}
}

// eventWith runs the strategies for the first example of a fate.
func (r *run) eventWith(ctx context.Context, fate string) ([]uint64, string, error) {
	var err error
	if r.base, err = r.basePass(ctx); err != nil {
		return nil, "", err
	}
	fate = strings.NewReplacer("-", "_", " ", "_").Replace(fate)
	var fates []string
	for _, s := range r.result().Strategies {
		if e := s.Example(fate); e != nil {
			return []uint64{e.EventNumber}, fmt.Sprintf("the first row of %s that is %s", s.ID,
				strings.ReplaceAll(fate, "_", " ")), nil
		}
		for _, e := range s.Examples {
			if !slices.Contains(fates, e.Fate) {
				fates = append(fates, e.Fate)
			}
		}
	}
	slices.Sort(fates)
	there := "there are none to choose from"
	if len(fates) > 0 {
		there = "to choose from there are " + written(strings.Join(fates, ", "))
	}
	meant := ""
	if !slices.Contains(sim.ExampleFates, fate) {
		meant = written(stream.DidYouMean(fate, sim.ExampleFates))
	}
	return nil, "", fmt.Errorf("--fate: there is no example of a row that is %s%s; %s", written(fate), meant, there)
}

// written is a fate as people write it on the command line.
func written(fate string) string { return strings.ReplaceAll(fate, "_", "-") }
