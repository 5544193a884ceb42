package report

import (
	"fmt"
	"strconv"
	"strings"

	"deduplab/results"
)

// deviation writes how far a number is from the true one: +0.37 %, exact.
func deviation(d results.Deviation) string {
	switch {
	case d.Value == d.Truth:
		return "exact"
	case d.Value > d.Truth:
		return signed(d.Error)
	}
	return signed(-d.Error)
}

// decimal writes a scaled number with its digits after the point.
func decimal(n int64, scale int) string {
	if scale == 0 {
		return count(n)
	}
	unit := int64(1)
	for range scale {
		unit *= 10
	}
	rest := n % unit
	return count(n/unit) + "." + strings.Repeat("0", scale-len(strconv.FormatInt(max(rest, -rest), 10))) +
		strconv.FormatInt(max(rest, -rest), 10)
}

// read are the strategies behind which something reads.
func read(all []*results.Strategy) []*results.Strategy {
	var some []*results.Strategy
	for _, s := range all {
		if s.After != nil {
			some = append(some, s)
		}
	}
	return some
}

// afterTable has a line for each strategy: what the windows and the join behind it put out.
func afterTable(spec *results.AfterSpec, all []*results.Strategy, head string) [][]string {
	names := []string{head}
	if spec.WindowMS > 0 {
		names = append(names, "windows of "+millis(spec.WindowMS), "wrong", "rows counted")
		if spec.Sum != "" {
			names = append(names, "sum of "+spec.Sum, "")
		}
		names = append(names, "worst window", "equal rows")
	}
	if spec.JoinOn != "" {
		names = append(names, "joined on "+spec.JoinOn, "")
	}
	rows := [][]string{names}
	for _, s := range read(all) {
		cells := []string{s.ID}
		if w := s.After.Window; w != nil {
			cells = append(cells, count(w.Rows), count(w.Wrong), deviation(w.Count))
			if w.Sum != nil {
				cells = append(cells, decimal(w.Sum.Value, spec.SumScale), deviation(*w.Sum))
			}
			cells = append(cells, ratio(w.Worst), count(w.Equal))
		}
		if j := s.After.Join; j != nil {
			cells = append(cells, count(j.Rows.Value), deviation(j.Rows))
		}
		rows = append(rows, cells)
	}
	return rows
}

// behind writes under the table of strategies what comes out behind each; nothing where nothing reads.
func behind(run *results.Run, all []*results.Strategy) string {
	if run.After == nil || len(read(all)) == 0 {
		return ""
	}
	t := table{right: map[int]bool{}}
	for _, row := range afterTable(run.After, all, "behind") {
		for i := range row[1:] {
			t.right[i+1] = true
		}
		t.add(row...)
	}
	return "\n" + t.String()
}

// afterFigure draws what is counted too often, and what is missing, behind each strategy.
func afterFigure(run *results.Run, all []*results.Strategy) figure {
	f := figure{Title: "What a query behind the strategy makes of it"}
	if all = read(all); run.After == nil || len(all) == 0 {
		return f
	}
	type reading struct {
		id, caption, what string
		of                func(*results.Strategy) results.Deviation
	}
	var readings []reading
	if run.After.WindowMS > 0 {
		readings = append(readings, reading{"chart-after-window", "rows counted in windows", "the count",
			func(s *results.Strategy) results.Deviation { return s.After.Window.Count }})
	}
	if run.After.JoinOn != "" {
		readings = append(readings, reading{"chart-after-join", "rows of the join", "the join",
			func(s *results.Strategy) results.Deviation { return s.After.Join.Rows }})
	}
	see := []string{"Nothing behind a strategy sees a duplicate any more: a window adds it up, and a join puts it out once for each " +
		"partner."}
	for _, r := range readings {
		worst := all[0]
		for _, s := range all {
			if r.of(s).Error > r.of(worst).Error {
				worst = s
			}
		}
		if r.of(worst).Error > 0 {
			see = append(see, fmt.Sprintf("%s is furthest from the truth behind %s: %s.", sentence(r.what), worst.ID,
				deviation(r.of(worst))))
		} else {
			see = append(see, fmt.Sprintf("%s is exact behind every strategy.", sentence(r.what)))
		}
		parts := []part{
			newPart("too many", "--c1", all, func(s *results.Strategy) int64 { d := r.of(s); return max(d.Value-d.Truth, 0) }),
			newPart("missing", loss, all, func(s *results.Strategy) int64 { d := r.of(s); return max(d.Truth-d.Value, 0) }),
		}
		c := stacked(r.id, "Number of rows too many or missing among the "+r.caption+", for each strategy", "rows",
			ids(all), parts)
		c.Caption = r.caption
		f.Charts = append(f.Charts, c)
	}
	if run.After.WindowMS > 0 {
		see = append(see, equalRows(all))
	}
	f.See = strings.Join(see, " ")
	rows := afterTable(run.After, all, "strategy")
	f.Data = []grid{{Head: rows[0], Rows: rows[1:], Text: 1, Words: true}}
	return f
}

// equalRows says what a deduplication behind the windows would find.
func equalRows(all []*results.Strategy) string {
	equal := int64(0)
	for _, s := range all {
		equal += s.After.Window.Equal
	}
	if equal == 0 {
		return "No two rows of the windows are equal, so a deduplication behind them finds nothing to remove."
	}
	return fmt.Sprintf("Of the windows' rows %s are equal to another one.", count(equal))
}

// sentence begins a sentence.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
