package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
)

// runWatermark replays a case of one of the four kinds that make or combine watermarks.
func runWatermark(c *Case) ([]Diff, error) {
	var out watermarkEmits
	feed, err := newWatermarkFeed(c, &out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.File, err)
	}
	var diffs []Diff
	differ := func(step int, what string, want, got any) {
		if want, got := fmt.Sprint(want), fmt.Sprint(got); want != got {
			diffs = append(diffs, Diff{Step: step, What: what, Want: want, Got: got})
		}
	}
	if c.SQL != nil {
		differ(-1, "declared_changelog", c.Plan.Declared, stream.InsertOnly.Names())
	}
	for i := range c.Steps {
		step := &c.Steps[i]
		out = nil
		err := feed(step)
		failed := errors.Is(err, sim.ErrNullRowtime)
		if err != nil && !failed {
			return nil, fmt.Errorf("%s: step %d: %w", c.File, i+1, err)
		}
		differ(i, "emits", watermarkEmits(step.Emits), out)
		if failed != (step.Error != "") {
			got := "no error"
			if failed {
				got = err.Error()
			}
			differ(i, "error", step.Error, got)
		}
		if failed || step.Error != "" {
			break
		}
		// Nothing that makes watermarks holds keyed state, has timers of a key or drops rows.
		if step.StateEntries != nil {
			differ(i, "state_entries", *step.StateEntries, 0)
		}
		if step.Timers != nil {
			differ(i, "timers", *step.Timers, Timers{})
		}
		if step.LateDropped != nil {
			differ(i, "late_dropped", *step.LateDropped, 0)
		}
	}
	return diffs, nil
}

// watermarkFeed feeds one step in. sim.ErrNullRowtime is the job's failure, any other error one of the case.
type watermarkFeed func(*Step) error

func newWatermarkFeed(c *Case, out *watermarkEmits) (watermarkFeed, error) {
	for _, kind := range []struct {
		prefix string
		feed   func(*Case, *watermarkEmits) (watermarkFeed, error)
	}{
		{"watermark-sql", feedAssigner},
		{"watermark-datastream", feedGenerator},
		{"watermark-multiplexer", feedMultiplexer},
		{"watermark-valve", feedValve},
	} {
		if strings.HasPrefix(c.Strategy, kind.prefix) {
			return kind.feed(c, out)
		}
	}
	return nil, fmt.Errorf("unknown watermark strategy %q", c.Strategy)
}

// assignerPlan reads WatermarkAssigner(rowtime=[ts], watermark=[(ts - 5000:INTERVAL SECOND)]): the planner writes an
// interval in milliseconds, whatever its unit.
var assignerPlan = regexp.MustCompile(
	`rowtime=\[(\w+)\], watermark=\[(?:(\w+)|\((\w+) - (\d+):INTERVAL [A-Z ]+(?:\(\d+\))?\))\]`)

func feedAssigner(c *Case, out *watermarkEmits) (watermarkFeed, error) {
	plan := assignerPlan.FindStringSubmatch(c.Plan.Operator)
	if plan == nil || plan[2]+plan[3] != plan[1] {
		return nil, fmt.Errorf("the plan's watermark is not a column less an interval: %q", c.Plan.Operator)
	}
	rowtime, delay := plan[1], stream.Time(0)
	if plan[4] != "" {
		ms, err := strconv.ParseInt(plan[4], 10, 64)
		if err != nil {
			return nil, err
		}
		delay = stream.Time(ms)
	}
	interval, err := configMillis(c.Config, "pipeline.auto-watermark-interval", 200)
	if err != nil {
		return nil, err
	}
	idleAfter, err := configMillis(c.Config, "table.exec.source.idle-timeout", 0)
	if err != nil {
		return nil, err
	}
	assigner := sim.NewSQLAssigner(delay, interval, idleAfter, 0, out)
	return func(s *Step) error {
		if s.At != nil {
			assigner.Tick(stream.Time(*s.At))
		}
		switch {
		case s.Row != nil:
			event, err := timeOrNull(s.Row.Get(rowtime))
			if err != nil {
				return err
			}
			at := len(*out)
			if err := assigner.Row(event); err != nil {
				return err
			}
			if at < len(*out) && (*out)[at].Get("status") != nil {
				at++ // ACTIVE goes out before the row, a watermark after it
			}
			*out = slices.Insert(*out, at, passThrough(s.Row, c.Columns))
		case s.Watermark != nil:
			// The operator ignores the watermarks of its input, but for the one that ends the stream.
			w, err := timeOrNull(s.Watermark)
			if err != nil {
				return err
			}
			if w == stream.MaxTime {
				assigner.End()
			}
		}
		return nil
	}, nil
}

// passThrough is the row as `SELECT <all columns>` puts it out.
func passThrough(row Fields, columns Columns) Fields {
	out := Fields{{"kind", json.RawMessage(`"+I"`)}}
	if kind := row.Get("kind"); kind != nil {
		out[0].Value = kind
	}
	for _, column := range columns {
		value := row.Get(column.Name)
		if value == nil {
			value = json.RawMessage("null")
		}
		out = append(out, Field{column.Name, value})
	}
	return out
}

var (
	boundedPlan  = regexp.MustCompile(`forBoundedOutOfOrderness\(([^)]*)\)`)
	idlenessPlan = regexp.MustCompile(`withIdleness\(([^)]*)\)`)
)

func feedGenerator(c *Case, out *watermarkEmits) (watermarkFeed, error) {
	bounded := boundedPlan.FindStringSubmatch(c.Plan.Operator)
	if bounded == nil {
		return nil, fmt.Errorf("the plan is not a bounded out-of-orderness strategy: %q", c.Plan.Operator)
	}
	delay, err := parseMillis(bounded[1])
	if err != nil {
		return nil, err
	}
	var idleAfter stream.Time
	if idleness := idlenessPlan.FindStringSubmatch(c.Plan.Operator); idleness != nil {
		if idleAfter, err = parseMillis(idleness[1]); err != nil {
			return nil, err
		}
	}
	generator := sim.NewBounded(delay, idleAfter)
	var now stream.Time
	return func(s *Step) error {
		if s.At != nil {
			now = stream.Time(*s.At)
		}
		if s.Event != nil {
			generator.Row(stream.Time(*s.Event))
		}
		if s.Periodic != nil {
			generator.Periodic(now, out)
		}
		return nil
	}, nil
}

func feedMultiplexer(_ *Case, out *watermarkEmits) (watermarkFeed, error) {
	multiplexer := sim.NewMultiplexer(out)
	splits := map[string]*sim.Split{}
	return func(s *Step) error {
		switch {
		case s.Register != nil:
			splits[string(s.Register)] = multiplexer.Register()
		case s.Partition != nil:
			split := splits[string(s.Partition)]
			if split == nil {
				return fmt.Errorf("partition %s is not registered", s.Partition)
			}
			return putOut(s, split)
		case s.Periodic != nil:
			multiplexer.Periodic()
		}
		return nil
	}, nil
}

var (
	valvePlan = regexp.MustCompile(`(\w+) input channels?`)
	numbers   = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
)

func feedValve(c *Case, out *watermarkEmits) (watermarkFeed, error) {
	plan := valvePlan.FindStringSubmatch(c.Plan.Operator)
	if plan == nil {
		return nil, fmt.Errorf("the plan does not tell the number of input channels: %q", c.Plan.Operator)
	}
	channels := slices.Index(numbers, plan[1])
	if channels < 0 {
		var err error
		if channels, err = strconv.Atoi(plan[1]); err != nil {
			return nil, fmt.Errorf("the plan does not tell the number of input channels: %q", c.Plan.Operator)
		}
	}
	valve := sim.NewValve(channels, out)
	return func(s *Step) error {
		if s.Channel == nil || *s.Channel < 0 || *s.Channel >= channels {
			return fmt.Errorf("the step needs a channel from 0 to %d", channels-1)
		}
		return putOut(s, valveChannel{valve, *s.Channel})
	}, nil
}

// valveChannel is one input channel as an output.
type valveChannel struct {
	valve   *sim.Valve
	channel int
}

func (c valveChannel) Watermark(w stream.Time) { c.valve.Watermark(c.channel, w) }
func (c valveChannel) Idle()                   { c.valve.Idle(c.channel) }
func (c valveChannel) Active()                 { c.valve.Active(c.channel) }

// putOut gives an output the watermark or status of a step.
func putOut(s *Step, out sim.WatermarkOutput) error {
	switch {
	case s.Watermark != nil:
		w, err := timeOrNull(s.Watermark)
		if err != nil {
			return err
		}
		out.Watermark(w)
	case s.Status == "IDLE":
		out.Idle()
	case s.Status == "ACTIVE":
		out.Active()
	default:
		return fmt.Errorf("the step needs a watermark or a status, not %q", s.Status)
	}
	return nil
}

// watermarkEmits collects what is put out, in the shape of a step's emits.
type watermarkEmits []Fields

func (e *watermarkEmits) Watermark(w stream.Time) {
	*e = append(*e, Fields{{"watermark", json.RawMessage(strconv.FormatInt(int64(w), 10))}})
}

func (e *watermarkEmits) Idle() { *e = append(*e, Fields{{"status", json.RawMessage(`"IDLE"`)}}) }

func (e *watermarkEmits) Active() { *e = append(*e, Fields{{"status", json.RawMessage(`"ACTIVE"`)}}) }

// String renders the emits as the recordings do.
func (e watermarkEmits) String() string {
	b, err := json.Marshal(append([]Fields{}, e...))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// timeOrNull reads epoch milliseconds, or null or nothing as NullTime.
func timeOrNull(raw json.RawMessage) (stream.Time, error) {
	t := int64(stream.NullTime)
	if raw == nil {
		return stream.NullTime, nil
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return 0, fmt.Errorf("%s is not a time in milliseconds", raw)
	}
	return stream.Time(t), nil
}

func configMillis(config map[string]string, option string, unset stream.Time) (stream.Time, error) {
	text, ok := config[option]
	if !ok {
		return unset, nil
	}
	ms, err := parseMillis(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", option, err)
	}
	return ms, nil
}

// parseMillis reads a duration as Flink's options write it: a number and a unit, milliseconds without one.
func parseMillis(text string) (stream.Time, error) {
	text = strings.TrimSpace(text)
	unit := strings.TrimLeft(text, "0123456789")
	n, err := strconv.ParseInt(text[:len(text)-len(unit)], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	switch strings.ToLower(strings.TrimSpace(unit)) {
	case "", "ms", "milli", "millis", "millisecond", "milliseconds":
	case "s", "sec", "secs", "second", "seconds":
		n *= 1000
	case "m", "min", "minute", "minutes":
		n *= 60 * 1000
	case "h", "hour", "hours":
		n *= 60 * 60 * 1000
	case "d", "day", "days":
		n *= 24 * 60 * 60 * 1000
	default:
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	return stream.Time(n), nil
}
