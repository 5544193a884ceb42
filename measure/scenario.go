package measure

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"deduplab/stream"
)

// maxRules bounds the duplicate rules of a scenario that is written.
const maxRules = 60

// cuts are the percentiles, in ten-thousandths, between which the delays of copies are spread evenly.
var cuts = []int{0, 100, 500, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 9500, 9800, 9900, 9950, 9990, 10000}

// Scenario writes a scenario whose generated stream has the copies, the delays and the disorder that were measured with
// the first key: its delays are the empirical quantiles. Copies of one id are independent of each other, so ids that
// repeat far more often than others are not in it. The times of the trace must not all be equal.
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
	rate := float64(k.Distinct) / (float64(k.firsts) / 1e9)
	line("  rate: %s/s  # originals; copies come on top", strconv.FormatFloat(rate, 'f', 6, 64))
	line("  fields:\n    id: {uuid: true}\n  key: id\n  event_time: {field: event_time}")
	if n := len(r.Partitions); n > 1 {
		line("  partitions: {count: %d}", n)
	}
	if t := transport(k.transport); t != "" {
		line("  transport: %s  # from the event time of first rows to their arrival", t)
	}
	rules, err := k.rules()
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		line("  duplicates:")
		for _, rule := range rules {
			line("    - %s", rule)
		}
	}
	r.job(line, k)
	_, err = io.WriteString(w, b.String())
	return err
}

// plain makes a text safe for a folded YAML line.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

// transport writes a distribution with the median and the tail of the delays, or nothing where there are none.
func transport(d Delays) string {
	p50, p999 := d.P50.Value/millisecond, d.P999.Value/millisecond
	switch {
	case p999 == 0:
		return ""
	case p50 > 0 && p999 > p50:
		return fmt.Sprintf("{lognormal: {p50: %s, p99.9: %s}, cap: %s}", duration(p50), duration(p999),
			duration(max(d.Max.Value/millisecond, p999)))
	}
	return fmt.Sprintf("{uniform: [0s, %s]}", duration(p999))
}

// duration writes milliseconds.
func duration(ms Span) string { return stream.FormatDuration(stream.Time(ms)) }

// rules spreads the copies over rules, each with the delays between two percentiles.
func (k *KeyReport) rules() ([]string, error) {
	var rules []string
	restamp := ""
	if k.SameEvent*2 < k.Copies {
		restamp = ", restamp: true"
	}
	n := k.FromFirst.Count
	if n == 0 {
		return nil, nil
	}
	at, err := k.FromFirst.percentiles(cuts...)
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(cuts); i++ {
		low, high := at[i-1], at[i]
		share := float64(cuts[i]-cuts[i-1]) / 10000 * float64(n) / float64(k.Distinct)
		for ; share > 0 && len(rules) < maxRules; share-- { // a rule copies an original once at most
			percent := strconv.FormatFloat(min(share, 1)*100, 'f', 6, 64)
			rules = append(rules, fmt.Sprintf("{origin: copy, rate: %s%%, delay: {uniform: [%s, %s]}%s}", percent,
				duration(low/millisecond), duration(high/millisecond), restamp))
		}
	}
	return rules, nil
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
