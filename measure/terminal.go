package measure

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"deduplab/stream"
)

// maxLines bounds lists of partitions and origins on the terminal; the JSON has them all.
const maxLines = 10

// Terminal writes the report for people.
func (r *Report) Terminal(w io.Writer) error {
	p := &printer{}
	p.line("%s rows in %s, from %s to %s", count(r.Rows), r.Span, r.From, r.To)
	if r.Skipped > 0 {
		p.line("%s bad rows were skipped:", count(r.Skipped))
		for _, fault := range r.Faults {
			p.line("  %s", fault)
		}
	}
	for i := range r.Keys {
		p.key(r, &r.Keys[i])
	}
	p.agreements(r.Agreements)
	p.stream(r)
	_, err := p.WriteTo(w)
	return err
}

// printer collects the lines of a report. Nothing that it writes to can fail.
type printer struct{ bytes.Buffer }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// table writes rows of tab-separated cells, indented; all but the first column stand to the right.
func (p *printer) table(rows ...string) {
	var widths []int
	for _, row := range rows {
		for c, cell := range strings.Split(row, "\t") {
			if c == len(widths) {
				widths = append(widths, 0)
			}
			widths[c] = max(widths[c], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		line := " "
		for c, cell := range strings.Split(row, "\t") {
			pad := strings.Repeat(" ", widths[c]-len([]rune(cell)))
			if c == 0 {
				line += " " + cell + pad
			} else {
				line += "  " + pad + cell
			}
		}
		p.line("%s", strings.TrimRight(line, " "))
	}
}

func (p *printer) key(r *Report, k *KeyReport) {
	p.line("\nkey %s: %s distinct, %s copies (%s of the rows)", strings.Join(k.Key, ", "), count(k.Distinct),
		count(k.Copies), percent(float64(k.Copies)/float64(r.Rows)))
	if k.NullKeys > 0 {
		p.line("  %s rows have a NULL in this key; NULL equals NULL", count(k.NullKeys))
	}
	if k.Copies > 0 {
		p.delays(k)
		p.perID(k)
		p.forecasts(k)
	}
	p.losses(r, k)
	p.plan(k.Plan)
	p.advice(k.Advice)
}

func (p *printer) plan(plan Plan) {
	if len(plan.Tiers) == 0 {
		return
	}
	p.line("\n  in three tiers")
	rows := []string{"tier\thorizon\tcopies left\tleak rate\tkeys held\tbytes\tdates read"}
	for _, t := range plan.Tiers {
		keys, bytes, dates := "", "", ""
		if t.Keys > 0 {
			keys, bytes = bound(t.AtLeast)+count(t.Keys), bound(t.AtLeast)+size(t.Bytes)
		}
		if t.Dates > 0 {
			dates = strconv.Itoa(t.Dates)
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", t.Name, stream.FormatDuration(t.Horizon),
			count(t.Leaked), percent(t.LeakRate), keys, bytes, dates))
	}
	p.table(rows...)
	if plan.TooShort != "" {
		p.line("  The trace is too short: %s.", plan.TooShort)
	}
}

// bound marks a lower bound.
func bound(atLeast bool) string {
	if atLeast {
		return ">="
	}
	return ""
}

// agreements compares the candidate keys.
func (p *printer) agreements(all []Agreement) {
	if len(all) == 0 {
		return
	}
	p.line("\nthe keys compared: rows that are copies by both, and those that only one merges into an earlier row")
	rows := []string{"keys\tboth\tfirst only\tsecond only\tagreement"}
	for _, a := range all {
		rows = append(rows, fmt.Sprintf("(%s) and (%s)\t%s\t%s\t%s\t%s", strings.Join(a.A, ", "), strings.Join(a.B, ", "),
			count(a.Both), count(a.OnlyA), count(a.OnlyB), percent(a.Share())))
	}
	p.table(rows...)
}

func quantiles(name string, d Delays) string {
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", name, count(d.Count), d.P50, d.P99, d.P999, d.P9999, d.Max)
}

func (p *printer) delays(k *KeyReport) {
	p.line("\n  delay of a copy")
	rows := []string{"\tcopies\tp50\tp99\tp99.9\tp99.99\tmax", quantiles("from the first sighting", k.FromFirst),
		quantiles("from the previous one", k.FromPrevious)}
	for i, o := range k.ByOrigin {
		if i == maxLines {
			break
		}
		rows = append(rows, quantiles("from the first, "+o.Name, o.Delays))
	}
	p.table(rows...)
	rows = []string{"up to\tfrom first\t\tfrom previous\t"}
	for i := range max(len(k.FromFirst.Histogram), len(k.FromPrevious.Histogram)) {
		cells := func(d Delays) string {
			if i >= len(d.Histogram) {
				return "\t"
			}
			return count(d.Histogram[i].Count) + "\t" + percent(float64(d.UpTo(buckets[i]))/float64(d.Count))
		}
		upTo := "same time"
		if i > 0 {
			upTo = buckets[i].String()
		}
		if i == len(buckets)-1 {
			upTo = "longer"
		}
		rows = append(rows, upTo+"\t"+cells(k.FromFirst)+"\t"+cells(k.FromPrevious))
	}
	p.line("")
	p.table(rows...)
}

func (p *printer) perID(k *KeyReport) {
	p.line("\n  rows an id: %s on average, %s at most; the worst %d ids make %s of the copies",
		strconv.FormatFloat(k.PerID.Mean, 'f', 2, 64), count(k.PerID.Max), len(k.PerID.Worst), percent(k.PerID.WorstShare))
	rows := []string{"rows\tids"}
	from := 1
	for _, b := range k.PerID.Histogram {
		name := count(b.UpTo)
		if b.UpTo > from {
			name = count(from) + ".." + name
		}
		if b.UpTo == 1<<40 {
			name = count(from) + " or more"
		}
		from = b.UpTo + 1
		rows = append(rows, name+"\t"+count(b.IDs))
	}
	p.table(rows...)
	rows = nil
	for _, id := range k.PerID.Worst[:min(3, len(k.PerID.Worst))] {
		rows = append(rows, "worst: "+shorten(id.ID)+"\t"+count(id.Rows))
	}
	p.table(rows...)
	if k.SameEvent > 0 {
		p.line("  %s copies have the event time of an earlier row of their key: an order by event time cannot choose",
			count(k.SameEvent))
	}
}

func (p *printer) forecasts(k *KeyReport) {
	p.line("\n  predicted for each TTL, counted from the first row of a key, or from the last (copies refresh it)")
	rows := []string{"TTL\tleaked\tleak rate\tkeys held\tbytes\tleaked\tleak rate\tkeys held\tbytes"}
	for _, f := range k.Forecasts {
		ttl := "none"
		if f.TTL > 0 {
			ttl = stream.FormatDuration(f.TTL)
		}
		row := ttl
		for _, o := range []Outcome{f.Create, f.Refresh} {
			row += fmt.Sprintf("\t%s\t%s\t%s\t%s", count(o.Leaked), percent(o.LeakRate), bound(f.AtLeast)+count(o.Keys),
				size(o.Bytes))
		}
		rows = append(rows, row)
	}
	p.table(rows...)
}

func (p *printer) losses(r *Report, k *KeyReport) {
	if len(k.Losses) == 0 || r.Disorder.OutOfOrder == 0 {
		return
	}
	p.line("\n  at most lost with each watermark delay (a watermark after every row)")
	rows := []string{"delay\tlost events\tof all\tlate copies"}
	several := len(r.Partitions) > 1
	if several {
		rows[0] += "\twatermark per partition: lost\tlate copies"
	}
	for _, l := range k.Losses {
		row := fmt.Sprintf("%s\t%s\t%s\t%s", stream.FormatDuration(l.Delay), count(l.Reader.LostEvents),
			percent(l.Reader.LostRate), count(l.Reader.LateCopies))
		if several {
			row += "\t" + count(l.Partition.LostEvents) + "\t" + count(l.Partition.LateCopies)
		}
		rows = append(rows, row)
	}
	p.table(rows...)
}

func (p *printer) advice(all []Advice) {
	p.line("\n  recommended")
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, a := range all {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", a.What, a.Value, a.Why)
	}
	w.Flush()
}

func (p *printer) stream(r *Report) {
	p.line("\nthe stream")
	if r.Columns.EventTime != "" {
		d := r.Disorder
		p.line("  %s of %s rows are out of order (by %s)%s", count(d.OutOfOrder), count(d.Rows), d.Order,
			map[bool]string{true: "", false: fmt.Sprintf(": by p50 %s, p99 %s, p99.9 %s, max %s", d.Lateness.P50,
				d.Lateness.P99, d.Lateness.P999, d.Lateness.Max)}[d.OutOfOrder == 0])
		p.line("  %s rows have no event time; %s have that of an earlier row; event times count in %s",
			count(r.NullEventTimes), count(r.Ties.SameEvent), r.Ties.Resolution)
	}
	p.line("  %s rows arrive in the same instant as the row before", count(r.Ties.SameArrival))
	partitions := slices.Clone(r.Partitions)
	slices.SortStableFunc(partitions, func(a, b Idle) int { return cmp.Compare(b.Gaps.Max.Value, a.Gaps.Max.Value) })
	rows := []string{"partition\trows\tgap p50\tp99\tp99.9\tmax\tfrom\tsilent at the end"}
	for i, idle := range partitions {
		if i == maxLines {
			break
		}
		rows = append(rows, fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s", idle.Partition, count(idle.Rows), idle.Gaps.P50,
			idle.Gaps.P99, idle.Gaps.P999, idle.Gaps.Max, idle.LongestAt, idle.Silent))
	}
	p.table(rows...)
	if more := len(partitions) - maxLines; more > 0 {
		p.line("  and %d more partitions with shorter gaps", more)
	}
	p.advice([]Advice{r.IdleTimeout})
}

// count writes a number with commas.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// percent writes a share with up to four significant digits.
func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 4, 64) + "%"
}

func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, larger
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + " " + unit
}

// shorten cuts a long id.
func shorten(id string) string {
	if r := []rune(id); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return id
}
