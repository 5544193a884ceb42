package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/results"
)

// staged are the strategies that were measured stage by stage.
func staged(all []*results.Strategy) []*results.Strategy {
	return slices.DeleteFunc(slices.Clone(all), func(s *results.Strategy) bool { return len(s.Stages) == 0 })
}

// tiers writes under the table of strategies what each stage of those with several has done.
func tiers(all []*results.Strategy) string {
	var b strings.Builder
	for _, s := range staged(all) {
		if len(s.Stages) < 2 {
			continue
		}
		t := table{right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true}}
		t.add(s.ID+", stage by stage", "rows in", "caught", "let through", "copies left", "lost", "state", "shuffled",
			"read a time", "partitions")
		for i := range s.Stages {
			st := &s.Stages[i]
			rows, partitions := reads(st)
			t.add(fmt.Sprintf("  %d. %s", i+1, st.Name), count(st.RowsIn), count(st.Caught), count(st.RowsOut),
				count(st.Leaked+st.WriteDuplicates), count(st.Lost), short(st.RowsTotalPeak), byteSize(st.ShuffleBytes), rows,
				partitions)
		}
		b.WriteString("\n" + t.String())
	}
	return b.String()
}

// reads tells what a stage reads of its table, by batch or run: the mean and, in brackets, the maximum.
func reads(s *results.Stage) (rows, partitions string) {
	r := s.Read
	if r == nil {
		return "-", "-"
	}
	return short(int64(r.RowsMean+0.5)) + " (" + short(r.RowsMax) + ")",
		strconv.FormatFloat(r.PartitionsMean, 'f', 1, 64) + " (" + count(r.PartitionsMax) + ")"
}

// Rows and Partitions are the cells of the page's table.
func (s stageLine) Rows() string { rows, _ := reads(s.Stage); return rows }

// Partitions is Rows of the date partitions.
func (s stageLine) Partitions() string { _, partitions := reads(s.Stage); return partitions }

// stageLine is a line of the page's table of stages.
type stageLine struct{ *results.Stage }

// Left are the copies behind the stage.
func (s stageLine) Left() int64 { return s.Leaked + s.WriteDuplicates }

// StageLines are the lines of the table of stages.
func (s section) StageLines() []stageLine {
	var lines []stageLine
	for i := range s.Stages {
		lines = append(lines, stageLine{&s.Stages[i]})
	}
	return lines
}

// StagesSee says what to see in the table of stages.
func (s section) StagesSee() string {
	var parts []string
	best := 0
	for i := range s.Stages {
		if s.Stages[i].Caught > s.Stages[best].Caught {
			best = i
		}
	}
	first, last := &s.Stages[0], &s.Stages[len(s.Stages)-1]
	parts = append(parts, fmt.Sprintf("Of %s rows %s caught the most, %s; %s copies are left behind the last stage.",
		count(first.RowsIn), s.Stages[best].Name, count(s.Stages[best].Caught), count(stageLine{last}.Left())))
	for i := range s.Stages {
		st := &s.Stages[i]
		if r := st.Read; r != nil && st.Audit == nil {
			parts = append(parts, fmt.Sprintf("A batch of %s is joined with up to %s in %s of the table.", st.Name,
				results.FormatNumber(r.RowsMax, "row"), results.FormatNumber(r.PartitionsMax, "date partition")))
		}
		if whole, first := st.ShuffleBytesWholeRow, st.ShuffleBytesKeyFirst; whole > 0 && st.Audit == nil {
			parts = append(parts, fmt.Sprintf("Shuffled to %s are %s as whole rows, and %s with the key and the event time first.",
				st.Name, byteSize(whole), byteSize(first)))
		}
	}
	return strings.Join(parts, " ")
}

// tiersFigure draws for each strategy with stages which of them caught how many rows, and what is left: a funnel laid
// on its side.
func tiersFigure(all []*results.Strategy) figure {
	f := figure{Title: "Which stage caught what"}
	all = staged(all)
	if len(all) == 0 {
		return f
	}
	stages := 0
	for _, s := range all {
		stages = max(stages, len(s.Stages))
	}
	var parts []part
	for i := range stages {
		parts = append(parts, newPart(fmt.Sprintf("caught by stage %d", i+1), palette[i%len(palette)], all,
			func(s *results.Strategy) int64 {
				if i >= len(s.Stages) {
					return 0
				}
				return s.Stages[i].Caught
			}))
	}
	left := func(s *results.Strategy) int64 { return s.Leaked }
	parts = append(parts, newPart("copies left", bad, all, left))
	least, most := all[0], all[0]
	for _, s := range all {
		if left(s) < left(least) {
			least = s
		}
		if left(s) > left(most) {
			most = s
		}
	}
	f.See = fmt.Sprintf("Each bar is what a strategy took out of the stream, stage by stage in the order of the colours, and at "+
		"its end the copies that are left: fewest in %s, %s", least.ID, count(left(least)))
	if left(most) > left(least) {
		f.See += fmt.Sprintf("; most in %s, %s", most.ID, count(left(most)))
	}
	f.See += "."
	for _, s := range all {
		if n := len(s.Stages); n > 1 && s.Stages[n-1].Audit == nil && s.Stages[n-1].Caught == 0 {
			f.See += fmt.Sprintf(" The last stage of %s caught nothing: the ones before it leave it nothing to do.", s.ID)
			break
		}
	}
	f.Charts = []chart{stacked("chart-stages", "Rows caught by each stage and copies left, for each strategy with stages",
		"rows", ids(all), parts)}
	f.Data = stagesData(all, parts)
	return f
}
