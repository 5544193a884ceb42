package results

// Story is what became of an event's rows in one strategy, and of all rows that share a key with one of them.
type Story struct {
	Rows  []StoryRow  `json:"rows"`
	Steps []StoryStep `json:"steps"`
}

// StoryRow is one row of a story. Times count from the start of the scenario.
type StoryRow struct {
	Event     int    `json:"event"` // which of the story's events it stands for, from 1 in order of arrival
	Key       int    `json:"key"`   // which of the story's keys it has
	Origin    string `json:"origin"`
	ArrivalMS int64  `json:"arrival_ms"`
	EventMS   *int64 `json:"event_ms"` // its event time; null where it has none
	Partition int    `json:"partition"`
	// WatermarkMS is the watermark that the strategy had when the row arrived; null before the first one.
	WatermarkMS *int64            `json:"watermark_ms"`
	Row         map[string]string `json:"row"`
	Fate        string            `json:"fate"`
}

// StoryStep is something that happens in a story.
type StoryStep struct {
	AtMS int64 `json:"at_ms"`
	Row  int   `json:"row"` // the row it concerns, from 1; 0: none
	What What  `json:"what"`
	// UntilMS is the end of what begins: when state expires, when a timer fires, when a change becomes visible.
	UntilMS *int64 `json:"until_ms,omitempty"`
	// EventTime says that UntilMS is a moment of event time.
	EventTime bool   `json:"event_time,omitempty"`
	Note      string `json:"note,omitempty"`
}

// What happens in a step.
type What string

// The steps of a story.
const (
	Arrives      What = "arrives"
	ComesAgain   What = "comes again" // after a crash
	Emits        What = "emits"       // Note is the kind of change
	TakesBack    What = "takes back"  // -U or -D of a row that went out
	SendsAgain   What = "sends again" // a row that came before
	Drops        What = "drops"       // Note is why
	Holds        What = "holds"       // the row waits in the operator
	GivesUp      What = "gives up"    // a row that was held; Note is why
	CreatesState What = "creates state"
	WritesState  What = "writes state"
	RemovesState What = "removes state"
	StateExpires What = "state expires"
	SetsTimer    What = "sets timer"
	TimerFires   What = "timer fires"
	Visible      What = "visible"
	Crashes      What = "crashes" // the job
	GoesOn       What = "goes on" // the job, from its last checkpoint
)

// Trace is the stories of one choice of rows, strategy by strategy.
type Trace struct {
	Scenario   string           `json:"scenario"`
	Seed       uint64           `json:"seed"`
	Chosen     string           `json:"chosen"` // how the rows were chosen, in words
	Strategies []TracedStrategy `json:"strategies"`
}

// TracedStrategy is one strategy's part of a Trace.
type TracedStrategy struct {
	ID      string  `json:"id"`
	Refused string  `json:"refused,omitempty"`
	Stories []Story `json:"stories"`
}
