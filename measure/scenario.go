package measure

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"deduplab/stream"
)

// cuts are the percentiles of a distribution that is written, in ten-thousandths.
var cuts = []int{0, 100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 9500, 9800, 9900, 9950, 9990, 9995,
	9999, 10000}

// Scenario writes a scenario whose generated stream has the copies, the delays and the disorder that were measured with
// the first key: its delays are the empirical quantiles, and of an id that repeats there are as many copies in the mean,
// geometrically distributed, so that ids that repeat far more often than others are not in it. The times of the trace
// must not all be equal.
func (r *Report) Scenario(w io.Writer, name string) error {
	k := &r.Keys[0]
	if k.firsts <= 0 {
		return fmt.Errorf("all keys come first at one instant: there is no rate to write a scenario with")
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("scenario: %s", name)
	line("about: >")
	line("  Calibrated by lab measure to %s: %d rows, %d distinct by the key", plain(strings.Join(r.Files, ", ")), r.Rows,
		k.Distinct)
	line("  %s. Its delays are the empirical quantiles of the trace.", plain(strings.Join(k.Key, ", ")))
	line("seed: 1\n\nworkload:")
	line("  duration: %s", stream.FormatDuration(stream.Time(max(k.firsts/millisecond, 1))))
	if rate := float64(k.Distinct) / (float64(k.firsts) / 1e9); rate < 0.01 {
		line("  rate: %.6f/d  # originals; copies come on top", rate*86400)
	} else {
		line("  rate: %.6f/s  # originals; copies come on top", rate)
	}
	line("  fields:\n    id: {uuid: true}\n  key: id\n  event_time: {field: event_time}")
	if n := len(r.Partitions); n > 1 {
		line("  partitions: {count: %d}", n)
	}
	if k.transport.Max.Value >= millisecond {
		transport, err := k.transport.quantiles()
		if err != nil {
			return err
		}
		line("  transport:  # from the event time of first rows to their arrival\n    %s", transport)
	}
	if err := k.rule(line); err != nil {
		return err
	}
	r.job(line, k)
	_, err := io.WriteString(w, b.String())
	return err
}

// plain makes a text safe for a folded YAML line.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

// quantiles writes a distribution, of which there must be something.
func (d Delays) quantiles() (string, error) {
	at, err := d.percentiles(cuts...)
	points := make([]string, len(at))
	for i, span := range at {
		name := "p" + strconv.FormatFloat(float64(cuts[i])/100, 'f', -1, 64)
		switch cuts[i] {
		case 0:
			name = "min"
		case 10000:
			name = "max"
		}
		points[i] = name + ": " + stream.FormatDuration(stream.Time(min(span/millisecond, longest)))
	}
	return "quantiles: {" + strings.Join(points, ", ") + "}", err
}

// longest is the longest delay that a scenario can have, in milliseconds.
const longest = 1<<40 - 1

// rule writes what copies there are, as the trace has them: counted from the arrival of the first row. They have its
// event time or one of their own, whichever most have.
func (k *KeyReport) rule(line func(string, ...any)) error {
	if k.Copies == 0 {
		return nil
	}
	delay, err := k.FromFirst.quantiles()
	if err != nil {
		return err
	}
	repeated := k.Distinct - k.PerID.Histogram[0].IDs
	copies := fmt.Sprintf("{geometric: {mean: %.6f}}", min(float64(k.Copies)/float64(repeated), 1000))
	if most := k.PerID.Max - 1; k.Copies == repeated*most && most < stream.MaxCopies {
		copies = strconv.Itoa(most)
	}
	line("  duplicates:\n    - origin: copy\n      rate: %.6f%%  # of the ids come again\n      copies: %s",
		100*float64(repeated)/float64(k.Distinct), copies)
	line("      transport: same  # the delay is from arrival to arrival\n      delay:\n        %s", delay)
	if k.SameEvent*2 < k.Copies {
		line("      restamp: true")
	}
	return nil
}

// job writes the recommended settings and a few strategies to compare with them.
func (r *Report) job(line func(string, ...any), k *KeyReport) {
	setting := func(what, otherwise string) string {
		for _, a := range append([]Advice{r.IdleTimeout}, k.Advice...) {
			value := strings.TrimPrefix(a.Value, ">=")
			if _, err := stream.ParseDuration(value); a.What == what && err == nil {
				return value
			}
		}
		return otherwise
	}
	line("\njob:")
	line("  watermark: {delay: %s, idle_after: %s}", setting(WatermarkAdvice, "0s"), setting(IdleAdvice, "0s"))
	line("  checkpoint: {interval: 10s, delivery: exactly-once}")
	line("\nstrategies:\n  - pass-through")
	line("  - proctime-asc: {ttl: %s}", setting(TTLAdvice, "1h"))
	line("  - select-distinct-key: {ttl: %s}  # copies extend the TTL", setting(RefreshAdvice, "1h"))
	line("  - rowtime-asc: {ttl: %s}", setting(TTLAdvice, "1h"))
	line("\nrequire:\n  residual: <= 0.1%%\n  lost: <= 0\n  append_only: true")
}
