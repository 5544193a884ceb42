package results

// Stage is one stage of a strategy: what it caught, what it let through and what that cost. The rows that a batch has
// written a second time are counted apart.
type Stage struct {
	Name   string `json:"name"`
	Engine string `json:"engine"`

	RowsIn     int64 `json:"rows_in"`
	Caught     int64 `json:"caught"` // rows_in - rows_out: suppressed, late, repaired and others
	Suppressed int64 `json:"suppressed"`
	Late       int64 `json:"late"`
	Repaired   int64 `json:"repaired"` // rows that an audit has removed from the table
	RowsOut    int64 `json:"rows_out"`
	Updates    int64 `json:"updates"` // of rows_out: those that took the place of another row of the table
	// Leaked are rows let through that stand beside another one of their event, Lost events of which a row came in and
	// none went out.
	Leaked int64 `json:"leaked"`
	Lost   int64 `json:"lost"`
	// WriteDuplicates are rows that a batch has written again.
	WriteDuplicates int64 `json:"write_duplicates"`

	// RowsTotalPeak and RowsTotalEnd are the entries of its state, Spark's numRowsTotal.
	RowsTotalPeak int64 `json:"rows_total_peak"`
	RowsTotalEnd  int64 `json:"rows_total_end"`

	// ShuffleBytes are moved to it by key: those of whole rows, or of key and event time, as job.spark.shuffle says. Where
	// the payload is joined back to the rows that went out, JoinBackBytes are moved for that.
	ShuffleBytes         int64 `json:"shuffle_bytes"`
	ShuffleBytesWholeRow int64 `json:"shuffle_bytes_whole_row"`
	ShuffleBytesKeyFirst int64 `json:"shuffle_bytes_key_first"`
	JoinBackBytes        int64 `json:"join_back_bytes"`

	// Read is what it reads of the table, nil where it reads none.
	Read  *StageRead `json:"read,omitempty"`
	Audit *Audit     `json:"audit,omitempty"`
}

// StageRead is what a stage reads of its table: rows and date partitions joined, by batch with rows or run of an audit.
type StageRead struct {
	Times          int64   `json:"times"` // batches or runs
	RowsMean       float64 `json:"rows_mean"`
	RowsMax        int64   `json:"rows_max"`
	PartitionsMean float64 `json:"partitions_mean"`
	PartitionsMax  int64   `json:"partitions_max"`
}

// Audit is what all runs of an audit have found. An extra row is one whose key has an earlier row in the table.
type Audit struct {
	Runs      int64 `json:"runs"`
	Keys      int64 `json:"keys"`       // with more than one row, by the last run
	ExtraRows int64 `json:"extra_rows"` // by the last run
	Found     int64 `json:"found"`      // extra rows, each counted by the first run that has seen it
	// Of those found: in the batch that has written the key before, or in one after it with an earlier row of the key
	// within the lookback or none.
	SameBatch int64 `json:"same_batch"`
	Inside    int64 `json:"inside_lookback"`
	Outside   int64 `json:"outside_lookback"`
	// NeededLookbackDays is the lookback that none of those outside would have been outside of.
	NeededLookbackDays int64 `json:"needed_lookback_days"`
	Repaired           int64 `json:"repaired"`
}
