package harness_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"deduplab/harness"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

func newHarness(t *testing.T, c harness.Config) *harness.Harness {
	t.Helper()
	h, err := harness.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestFailures are the inputs that fail a job. What follows one fails too.
func TestFailures(t *testing.T) {
	for name, test := range map[string]struct {
		config harness.Config
		row    harness.Columns
		is     func(error) bool
	}{
		"a NULL event time": {harness.Config{Strategy: "ptf"}, harness.Columns{"created_at": nil},
			func(err error) bool { return errors.Is(err, sim.ErrNullRowtime) }},
		"a NULL key of a DataStream": {harness.Config{Strategy: "keyed-process"}, harness.Columns{"order_id": nil},
			func(err error) bool { return err != nil }},
		"a NULL key for an upsert sink": {
			harness.Config{Strategy: "proctime-desc", Job: strategies.Job{Sink: strategies.Upsert}},
			harness.Columns{"order_id": nil},
			func(err error) bool {
				var sink *harness.SinkError
				return errors.As(err, &sink) && sink.Column == "order_id"
			}},
	} {
		h := newHarness(t, test.config)
		if err := h.Insert(test.row); !test.is(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := h.Checkpoint(); !test.is(err) {
			t.Errorf("%s: the job goes on: %v", name, err)
		}
		if out := h.Take(); len(out) > 0 {
			t.Errorf("%s: sent %v", name, out)
		}
	}
}

// TestMistakes are inputs that are refused and leave the harness as it was.
func TestMistakes(t *testing.T) {
	h := newHarness(t, harness.Config{Strategy: "ptf"})
	for name, err := range map[string]error{
		"unknown column":  h.Insert(harness.Columns{"order": "a"}),
		"no number":       h.Insert(harness.Columns{"quantity": "many"}),
		"no such type":    h.Insert(harness.Columns{"quantity": 1.5}),
		"no checkpoint":   h.Restore(),
		"back in time":    errors.Join(h.Clock(10), h.Clock(9)),
		"too many digits": h.Insert(harness.Columns{"price": "1.001"}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := h.Insert(harness.Columns{"price": "1.001"}); err == nil || len(h.Take()) > 0 {
		t.Error(err)
	}
	if err := h.Insert(nil); err != nil || len(h.Take()) != 1 {
		t.Error(err)
	}
	if _, err := harness.New(harness.Config{Strategy: "pft"}); err == nil {
		t.Error("an unknown strategy is taken")
	}
	_, err := harness.New(harness.Config{Strategy: "rowtime-desc", Job: strategies.Job{Sink: strategies.Append}})
	if refused := (*harness.Refused)(nil); !errors.As(err, &refused) {
		t.Errorf("an append-only sink is fed: %v", err)
	}
}

// TestValuesAreReadBack: what FormatValue writes, ParseValue reads.
func TestValuesAreReadBack(t *testing.T) {
	columns := append(harness.Orders().Columns, stream.Column{Name: "whole", Type: stream.Decimal})
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(columns).Draw(t, "column")
		v := stream.Value{Int: rapid.Int64Range(-1e15, 1e14).Draw(t, "int")}
		if c.Type == stream.String {
			v = stream.Value{Text: rapid.StringMatching(`[a-z0-9._-]+`).Draw(t, "text")}
		}
		text := harness.FormatValue(v, c)
		if got, err := harness.ParseValue(text, c); err == nil && c.Type == stream.String && text[0] == '\'' {
			return // quoted for YAML
		} else if err != nil || got != v {
			t.Fatalf("%s %+v is written %s and read %+v, %v", c.Name, v, text, got, err)
		}
	})
}
