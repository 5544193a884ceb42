package size

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"deduplab/results"
	"deduplab/stream"
)

// Terminal writes the report for people.
func (r *Report) Terminal(w io.Writer) error {
	s := r.Stream
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s rows/s, %s of them copies: %s copies a day", count(s.Rate), results.FormatShare(s.Duplicates),
		count(s.Rate*s.Duplicates*daySeconds))
	var delays []string
	for _, p := range s.Delays {
		if p.Share == 1 {
			delays = append(delays, "all within "+stream.FormatDuration(p.Within))
			break
		}
		if p.Share >= 0.5 {
			delays = append(delays, fmt.Sprintf("%s %% within %s", percent(p.Share), stream.FormatDuration(p.Within)))
		}
	}
	line("delay of a copy from the first sighting: %s", strings.Join(delays, ", "))
	if s.NewKey > 0 {
		line("%s of the copies carry another key, which no tier can catch", results.FormatShare(s.NewKey))
	}
	line("state of %s bytes a key, over %d partitions", strconv.FormatFloat(r.BytesPerKey, 'g', 4, 64), r.Partitions)
	for i, plan := range r.Plans {
		line("\nplan %d: %s", i+1, plan.name())
		for _, t := range plan.Tiers {
			line("  %s", t.sentence())
		}
		if plan.Left == 0 {
			line("  nothing is left")
		} else {
			line("  left: at most %s of the copies, %s a day", share(plan.Left), count(plan.LeftPerDay))
		}
	}
	for i, m := range r.Measured {
		if i == 0 {
			line("\nmeasured for a live key, against %s bytes as planned, and for the %s keys of the tier in the stream:",
				strconv.FormatFloat(r.BytesPerKey, 'g', 4, 64), count(r.Plans[0].Tiers[0].Keys))
		}
		line("  %-34s %6.1f bytes in %s, x %.2f, %s  (logical: %.1f bytes; %s keys alive at the peak)", m.Strategy, m.PerKey,
			m.State, m.OfPlanned, bytes(m.Bytes), m.Logical, count(float64(m.Keys)))
	}
	line("\n%s", heldLonger)
	_, err := io.WriteString(w, b.String())
	return err
}

// heldLonger says how the horizon of a tier in the stream is spelled in each engine.
const heldLonger = `The keys of a tier in the stream are those of its horizon. Engines hold them for longer or shorter:
  Flink, TTL = horizon          one horizon from the first row on, by the clock of the machine
  dropDuplicatesWithinWatermark until the largest event time is two delays past the first row: twice the keys, if the
                                delay is the horizon (spark within-watermark/basic)
  flatMapGroupsWithState        horizon + watermark delay; one that a duplicate disarms, for ever
                                (spark per-key-horizon/duplicate-disarms-timeout)
Copies that come by later, or with a new key, are what the audit is for.`

// name names the tiers of a plan.
func (p Plan) name() string {
	var names []string
	for _, t := range p.Tiers {
		d := stream.FormatDuration(t.Horizon)
		switch t.Kind {
		case InStream:
			names = append(names, d+" in the stream")
		case Merge:
			names = append(names, "MERGE with a look-back of "+d)
		case Audit:
			names = append(names, "audit over "+d)
		}
	}
	return strings.Join(names, ", then ")
}

func (t Tier) sentence() string {
	d := stream.FormatDuration(t.Horizon)
	left := "lets through at most " + share(t.Left) + " of the copies"
	if t.Left == 0 {
		left = "lets nothing through"
	}
	switch t.Kind {
	case InStream:
		return fmt.Sprintf("stream  %s: %s keys, %s, %s a partition; %s", d, count(t.Keys), bytes(t.Bytes),
			bytes(t.BytesPerPartition), left)
	case Merge:
		return fmt.Sprintf("MERGE   %s: each batch reads %s of the table, %s rows at most; %s", d, t.dates(),
			count(t.Rows), left)
	}
	return fmt.Sprintf("audit   %s: reads %s once a day, %s rows at most; %s", d, t.dates(), count(t.Rows), left)
}

func (t Tier) dates() string {
	if t.Dates == 1 {
		return "1 date"
	}
	return count(float64(t.Dates)) + " dates"
}

func count(x float64) string {
	if x > 0 && x < 10 && x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	if x >= 1e15 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return results.FormatCount(int64(math.Round(x)))
}

func percent(x float64) string { return strconv.FormatFloat(math.Round(x*1e8)/1e6, 'f', -1, 64) }

// share is a part of 1 in percent, not rounded to nothing.
func share(x float64) string { return strconv.FormatFloat(x*100, 'g', 3, 64) + " %" }

// bytes writes a size with decimal prefixes.
func bytes(x float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	i := 0
	for ; x >= 1000 && i < len(units)-1; i++ {
		x /= 1000
	}
	return strconv.FormatFloat(x, 'g', 3, 64) + " " + units[i]
}
