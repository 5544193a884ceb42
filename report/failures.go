package report

import (
	"fmt"

	"deduplab/results"
)

// failureLines tell one after the other what went wrong in the job, and how it recovered.
func failureLines(run *results.Run) []string {
	var lines []string
	for _, f := range run.Job.Failures {
		switch f.Kind {
		case "lost-checkpoint":
			lines = append(lines, fmt.Sprintf("From %s on, the first checkpoint was lost.", offset(f.AtMS)))
		case "slow-checkpoint":
			lines = append(lines, fmt.Sprintf("From %s on, the first checkpoint took %s.", offset(f.AtMS), millis(f.ForMS)))
		}
	}
	for _, o := range run.Outages {
		lines = append(lines, outageLine(o))
	}
	return lines
}

// outageLine tells of one outage.
func outageLine(o results.Outage) string {
	back := "started from nothing, as no checkpoint had completed"
	if o.CheckpointMS >= 0 {
		back = "went back to the checkpoint of " + offset(o.CheckpointMS)
	}
	watermark := "the watermark was not what it had been before the next crash"
	if o.WatermarkMS >= 0 {
		watermark = fmt.Sprintf("the watermark was what it had been %s after the restart", millis(o.WatermarkMS-o.RestartMS))
	}
	return fmt.Sprintf("At %s the job crashed; it was down for %s and %s: %s were read again, among %s that waited. "+
		"It had caught up %s after the restart, and %s.", offset(o.CrashMS), millis(o.RestartMS-o.CrashMS), back,
		results.FormatNumber(o.RowsAgain, "row"), count(o.RowsWaiting), millis(o.CaughtUpMS-o.RestartMS), watermark)
}

// failing are the strategies whose job had failures.
func failing(all []*results.Strategy) []*results.Strategy {
	var some []*results.Strategy
	for _, s := range all {
		if s.Failures != nil {
			some = append(some, s)
		}
	}
	return some
}
