package results

// Failure is something that went wrong in the job, in ms from the start.
type Failure struct {
	Kind   string `json:"kind"` // crash, lost-checkpoint, slow-checkpoint, sink or rewind
	AtMS   int64  `json:"at_ms"`
	DownMS int64  `json:"down_ms,omitempty"`
	ForMS  int64  `json:"for_ms,omitempty"` // of a slow checkpoint: how long it took
	ByMS   int64  `json:"by_ms,omitempty"`  // of a rewind: how much further than needed
}

// Outage is a time for which the job was down, and how it caught up, in ms from the start: of a job that takes a record
// at a time. It is the same for all strategies.
type Outage struct {
	CrashMS   int64 `json:"crash_ms"`
	RestartMS int64 `json:"restart_ms"`
	// CheckpointMS is the checkpoint that the job went back to, -1 where none had completed.
	CheckpointMS int64 `json:"checkpoint_ms"`
	// RowsAgain are the rows that had been handled and were read again, RowsWaiting all that waited at the restart.
	RowsAgain   int64 `json:"rows_again"`
	RowsWaiting int64 `json:"rows_waiting"`
	// CaughtUpMS is when the last of the rows that waited was handled.
	CaughtUpMS int64 `json:"caught_up_ms"`
	// WatermarkMS is when the watermark was again what it had been at the crash, -1: not before the next one.
	WatermarkMS int64 `json:"watermark_ms"`
}

// Failures is what the failures of the job did to a strategy.
type Failures struct {
	Outages int64 `json:"outages"`
	// UndoneChanges had been made when a crash undid them. Under exactly-once nobody saw them; under at-least-once they
	// had gone out, and what the job made of the rows the second time went out too.
	UndoneChanges int64 `json:"undone_changes"`
	// WrittenAgain counts the rows that stood in the result when they were written once more; those that still stand
	// there twice at the end are write_duplicates.
	WrittenAgain int64 `json:"written_again"`
	// Wait is the wait of the events whose first row came after the checkpoint that a crash went back to, and before
	// the restart.
	Wait Quantiles `json:"wait_ms"`
	// LeakedByTTL counts the copies that had arrived within the TTL, and came through because the outage let it run out
	// before they were handled.
	LeakedByTTL int64 `json:"leaked_by_ttl"`
}
