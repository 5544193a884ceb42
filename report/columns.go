package report

import (
	"slices"
	"strconv"

	"deduplab/results"
)

// cell is a number of a sortable table: as it is read, exactly, and as it is compared.
type cell struct {
	Text  string
	Exact string // shown when the cell is pointed at, if Text is rounded
	Value string // empty: unknown, below all others
}

// column is one of the table of numbers. Word is the glossary's for what it shows, and After what stands behind it.
type column struct {
	Word, After string
	of          func(*results.Strategy) cell
}

// Cell returns the column's number for a strategy.
func (c column) Cell(s *results.Strategy) cell { return c.of(s) }

// columns are those of the table of numbers.
var columns = []column{
	{"dups left", "", counted(func(s *results.Strategy) int64 { return s.Leaked })},
	{"residual", "", func(s *results.Strategy) cell { return cell{ratio(s.Residual), "", float(s.Residual)} }},
	{"lost", "", func(s *results.Strategy) cell { return cell{lost(s), "", whole(s.Lost)} }},
	{"wrong version", "", counted(func(s *results.Strategy) int64 { return s.WrongVersion })},
	{"wait", " p99", waited(func(s *results.Strategy) results.Quantiles { return s.Latency.Wait })},
	{"settle", " p99", waited(func(s *results.Strategy) results.Quantiles { return s.Latency.Settle })},
	{"commit", " p99", waited(func(s *results.Strategy) results.Quantiles { return s.Latency.Commit })},
	{"keys live", "", func(s *results.Strategy) cell {
		return cell{short(s.State.KeysLivePeak), count(s.State.KeysLivePeak) + " at the peak, " +
			count(s.State.KeysLiveEnd) + " at the end", whole(s.State.KeysLivePeak)}
	}},
	{"keys held", "", peak(func(s *results.Strategy) int64 { return s.State.KeysHeldPeak })},
	{"timers", "", peak(func(s *results.Strategy) int64 { return s.State.TimersPeak })},
	{"logical bytes", "", func(s *results.Strategy) cell {
		n := s.State.BytesPeak
		return cell{byteSize(n), count(n) + " bytes at the peak", whole(n)}
	}},
	{"update", "s", counted(func(s *results.Strategy) int64 { return s.Updates })},
	{"undeclared change", "s", counted(func(s *results.Strategy) int64 { return s.Undeclared })},
}

// sumColumn stands after the losses where the scenario names a column to sum up. It sorts by the error.
var sumColumn = column{"amount", "", func(s *results.Strategy) cell {
	a := s.Amount
	if a == nil {
		return cell{Text: off(a)}
	}
	return cell{off(a), results.FormatSum(a.Result) + " of " + results.FormatSum(a.Expected) + ": " +
		results.FormatSum(a.Twice) + " counted twice, " + results.FormatSum(a.Gone) + " gone", float(a.Error)}
}}

// columnsFor are the columns of a run's table.
func columnsFor(run *results.Run) []column {
	if !hasAmounts(run) {
		return columns
	}
	return slices.Insert(slices.Clone(columns), 3, sumColumn)
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }

func float(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// counted is the content of a column that counts.
func counted(of func(*results.Strategy) int64) func(*results.Strategy) cell {
	return func(s *results.Strategy) cell { return cell{count(of(s)), "", whole(of(s))} }
}

// peak is the content of a column of large numbers, rounded.
func peak(of func(*results.Strategy) int64) func(*results.Strategy) cell {
	return func(s *results.Strategy) cell {
		return cell{short(of(s)), count(of(s)) + " at the peak", whole(of(s))}
	}
}

// waited is the content of a column of times at p99.
func waited(of func(*results.Strategy) results.Quantiles) func(*results.Strategy) cell {
	return func(s *results.Strategy) cell {
		q := of(s)
		if q.N == 0 {
			return cell{Text: p99(q)}
		}
		return cell{p99(q), count(q.P99) + " ms", whole(q.P99)}
	}
}

// stateClasses from the one that grows least.
var stateClasses = []string{"stateless", "constant", "time-bounded", "per key", "per record"}

// Rank is what a verdict is sorted by: the number that decides, where there is one. The names of other requirements
// stand for the number behind them; what is left goes by the verdict, those that pass first.
func (s section) Rank(v results.Verdict) string {
	metric := v.Requirement
	switch metric {
	case "append_only":
		metric = "append_only_violations"
	case "version":
		metric = "wrong_version"
	case "state.class":
		if i := slices.Index(stateClasses, s.State.Class); i >= 0 {
			return strconv.Itoa(i)
		}
		return ""
	case "same_under":
		differ := 0
		for _, d := range s.Determinism {
			differ += d.Replays - d.SameTable
		}
		return strconv.Itoa(differ)
	}
	if x, ok := s.Metric(metric); ok {
		return float(x)
	}
	return strconv.Itoa(slices.Index([]string{results.Pass, results.NotApplicable, results.Undetermined, results.Fail},
		v.Verdict))
}

// Missed is how many of the requirements a strategy does not meet.
func (s section) Missed() int {
	met, of := s.Score()
	return of - met
}

// MeetsAll reports whether the strategy ran and meets every requirement.
func (s section) MeetsAll() bool {
	return s.Refused == "" && s.Missed() == 0
}

// engines lists the engines of strategies, each once, in alphabetical order.
func engines(all []*results.Strategy) []string {
	var names []string
	for _, s := range all {
		if s.Engine != "" {
			names = append(names, s.Engine)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
