package lab

import (
	"fmt"
	"strings"

	"deduplab/results"
	"deduplab/strategies"
)

// findings are what the measurement of a strategy brought up by itself: where the engine parts from the articles, each
// with the number that shows it.
func findings(s *results.Strategy, plan strategies.Plan, job results.Job) []string {
	if s.Refused != "" {
		return nil
	}
	count := results.FormatCount
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if s.Failed != "" {
		note("%s; a restart runs the same batch again, and fails again", s.Failed)
	}
	if n := s.Fates.LateFirst; n > 0 {
		which := ""
		if idle := s.LossesByCause["late_after_idle"]; idle > 0 {
			part := count(idle)
			if idle == n {
				part = "all"
			}
			which = ", " + part + " of them from a partition that came back from idle"
		}
		note("%s events lost as late%s; the engine's own counter says %s, because it counts late copies and late firsts "+
			"alike", count(n), which, count(s.LateDropped))
	} else if s.LateDropped > 0 {
		counter := "numLateRecordsDropped"
		if s.Spark != nil && s.Spark.DroppedByWatermark > 0 { // else it was a stage of Flink's
			counter = "numRowsDroppedByWatermark"
		}
		note(counter+" says %s, yet nothing is lost: all of them are late copies", count(s.LateDropped))
	}
	if s.Spark != nil {
		notes = append(notes, sparkFindings(s, plan, job)...)
	}
	if plan.Finding != nil {
		if text := plan.Finding(s); text != "" {
			notes = append(notes, text)
		}
	}
	if s.Undeclared > 0 {
		note("declared %s by a planner fault (FLINK-40368), but %s changes of another kind went out: an insert-only consumer "+
			"stores %s rows too many", strings.Join(s.Declared.Changelog, ", "), count(s.Undeclared),
			count(s.InsertOnly.Extra))
	}
	if n := s.LeakedWithinTTL; n > 0 && s.Updates == 0 && plan.Batch == nil {
		note("%s copies came through though their key had been seen within the TTL: it counts from the first row, and copies "+
			"do not extend it (the article says: from when the key was last seen)", count(n))
	}
	if s.Synthesized > 0 {
		note("%s emitted rows never existed: each column takes its minimum by itself", count(s.Synthesized))
	}
	if plan.SharedCache && plan.StateTTL > 0 && s.State.KeysLivePeak > 0 {
		note("each checkpoint writes cached rows anew, so a key can live up to twice the TTL")
	}
	if n := s.LeaksByCause["stale_timer"]; n > 0 {
		note("%s copies came through within the timer's span after the row before them: the timer of an earlier event "+
			"cleared the state", count(n))
	}
	if n := s.WriteDuplicates; n > 0 {
		var why []string
		migrated := job.Spark != nil && job.Spark.MigrateMS > 0
		switch {
		case s.Spark == nil:
			why = append(why, "after a crash rows were handled again that had gone out")
		case !migrated || len(job.Failures) > 0:
			why = append(why, "a batch that had failed after the write was run again")
		}
		if s.Spark != nil && migrated {
			why = append(why, "the new query has read again what the old one had written")
		}
		note("%s rows stand in the result twice, because %s", count(n), results.FormatList(why))
	}
	notes = append(notes, auditFindings(s)...)
	if s.WrongVersion > 0 && plan.Promise != strategies.AnyRow {
		note("%s events end with another version than the one that the order asks for", count(s.WrongVersion))
	}
	return notes
}

// auditFindings are what the audit of a strategy says of the stages before it, beside the truth, which it does not know.
func auditFindings(s *results.Strategy) []string {
	count := results.FormatCount
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	for i := range s.Stages {
		a := s.Stages[i].Audit
		if a == nil {
			continue
		}
		runs := results.FormatNumber(a.Runs, "run")
		switch {
		case a.Runs == 0: // it tells nothing
		case a.Found == 0:
			note("the audit found no key twice in %s: the tiers are sized right, as far as keys can tell", runs)
		default:
			note("the audit found %s extra rows in %s and removed %s", count(a.Found), runs, count(a.Repaired))
		}
		if a.SameBatch > 0 {
			note("%s of the extra rows came in one batch with another row of their key: drop the duplicates of the batch before "+
				"it is written", count(a.SameBatch))
		}
		if a.Outside > 0 {
			note("%s of the extra rows came when all rows of their key were dated before the lookback: with one of %d days none "+
				"would have", count(a.Outside), a.NeededLookbackDays)
		}
		if n := s.LeaksByCause["regenerated_id"]; n > 0 {
			note("%s copies under new ids stand in the table, and the audit sees none of them: fix the producer, or make the key of "+
				"the content", count(n))
		}
	}
	return notes
}
