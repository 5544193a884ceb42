package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deduplab/results"
	"deduplab/stream"
)

// A story is told as the rows that arrive, 10 ms apart, and as what an operator makes of them:
//
//	rows   a1 a2 b1 c1=a    a1 is the original of event a, a2 a copy of it; c1 is another event with the key of a
//	steps  +I a1            the row goes out as it is handled; +U a2 for a1: it takes the place of a1
//	       -U a1, -D a1     a change about a row that went out before; refresh a1: a +U that only keeps it alive
//	       drop a2 late     the row does not go out: duplicate, late, behind (late after idle), diverted, filtered
//	       hold a1          the row waits; then release a1, or revoke a1 replaced
//
// A step that handles a row happens when it arrives, any other at the time of the step before; @500 says otherwise.
var stories = []struct {
	story string
	sink  stream.Sink
	rows  string
	steps string
	want  string // fates, then why rows were lost
}{
	{"an event is kept, its copy is dropped", stream.RetractSink,
		"a1 a2", "+I a1; drop a2 duplicate", "kept 1, suppressed 1"},
	{"a copy that comes through is a leak", stream.RetractSink,
		"a1 a2 a3", "+I a1; +I a2; +I a3", "kept 1, leaked 2"},
	{"many copies come through", stream.RetractSink,
		"a1 a2 a3 a4 a5", "+I a1; +I a2; +I a3; +I a4; +I a5", "kept 1, leaked 4"},
	{"and all but two are taken back", stream.RetractSink,
		"a1 a2 a3 a4 a5", "+I a1; +I a2; +I a3; +I a4; +I a5; -D a5; -D a1; -D a2", "kept 1, leaked 1, replaced 3"},

	{"and all but one", stream.RetractSink,
		"a1 a2 a3 a4", "+I a1; +I a2; +I a3; +I a4; -D a4; -D a3; -D a2", "kept 1, replaced 3"},

	{"a late copy is harmless", stream.RetractSink,
		"a1 a2", "+I a1; drop a2 late", "kept 1, late_copy 1"},
	{"a late first is a loss", stream.RetractSink,
		"a1", "drop a1 late", "late_first 1; lost late 1"},
	{"of an event that never gets through one row is the late first, the others are late copies", stream.RetractSink,
		"a1 a2 a3", "drop a1 late; drop a2 late; drop a3 late", "late_copy 2, late_first 1; lost late 1"},
	{"the original is late, and then a copy gets through", stream.RetractSink,
		"a1 a2", "drop a1 late; +I a2", "kept 1, late_copy 1"},
	{"a row from a partition back from idle is lost to that", stream.RetractSink,
		"a1 a2", "drop a1 behind; drop a2 behind", "late_copy 1, late_first 1; lost late_after_idle 1"},
	{"the first cause that applies counts", stream.RetractSink,
		"a1 a2", "drop a1 late; drop a2 behind", "late_copy 1, late_first 1; lost late 1"},
	{"an event with a late row is lost to that, whatever became of its other rows", stream.RetractSink,
		"b1 a1=b a2=b", "+I b1; drop a1 late; drop a2 duplicate",
		"kept 1, suppressed 1, late_first 1; lost late 1"},
	{"a held row that turns out late", stream.RetractSink,
		"a1", "hold a1; revoke a1 late", "late_first 1; lost late 1"},
	{"a row that no branch lets through", stream.RetractSink,
		"a1 a2", "drop a1 filtered; drop a2 filtered", "late_copy 1, late_first 1; lost null_watermark 1"},
	{"a row in the dead letter queue is not lost", stream.RetractSink,
		"a1 b1", "drop a1 diverted; +I b1", "kept 1, diverted 1"},

	{"an event is swallowed by another one of its key", stream.RetractSink,
		"a1 b1=a", "+I a1; drop b1 duplicate", "kept 1, swallowed 1; lost key_merge 1"},
	{"all its rows are taken for copies: one event is lost", stream.RetractSink,
		"a1 b1=a b2=a", "+I a1; drop b1 duplicate; drop b2 duplicate",
		"kept 1, suppressed 1, swallowed 1; lost key_merge 1"},
	{"an event is swallowed by an update to another one of its key", stream.RetractSink,
		"a1 b1=a", "+I a1; -U a1; +U b1 for a1", "kept 1, swallowed 1; lost key_merge 1"},
	{"an event is swallowed while it waits", stream.RetractSink,
		"a1 b1=a", "hold a1; revoke a1 replaced; hold b1; release b1", "kept 1, swallowed 1; lost key_merge 1"},

	{"a better version replaces the one before", stream.RetractSink,
		"a1 a2", "+I a1; -U a1; +U a2 for a1", "kept 1, replaced 1"},
	{"a better version replaces the one that waits", stream.RetractSink,
		"a1 a2", "hold a1; revoke a1 replaced; hold a2; release a2", "kept 1, replaced 1"},
	{"an update that only keeps the row alive replaces nothing", stream.RetractSink,
		"a1 a2", "+I a1; -U a1; refresh a1; drop a2 duplicate", "kept 1, suppressed 1"},
	{"a row that still waits at the end", stream.RetractSink,
		"a1", "hold a1", "pending 1"},

	// The same changes, and what each kind of sink holds at the end.
	{"retract: an update without its -U leaves the row before it", stream.RetractSink,
		"a1 a2", "+I a1; +U a2 for a1", "kept 1, leaked 1"},
	{"upsert: an update needs no -U", stream.UpsertSink,
		"a1 a2", "+I a1; +U a2 for a1", "kept 1, replaced 1"},
	{"append: +U is one more row", stream.AppendSink,
		"a1 a2", "+I a1; -U a1; +U a2 for a1", "kept 1, leaked 1"},
	{"append: -D is unknown to it", stream.AppendSink,
		"a1", "+I a1; -D a1", "kept 1"},
	{"upsert: the last row of a key stands, whatever it is", stream.UpsertSink,
		"a1 b1=a", "+I a1; +I b1", "kept 1, swallowed 1; lost key_merge 1"},
	{"upsert: a copy writes over its original", stream.UpsertSink,
		"a1 a2", "+I a1; +I a2", "kept 1, replaced 1"},
}

func TestLedgerStories(t *testing.T) {
	for _, s := range stories {
		l := tell(t, LedgerSpec{Sink: s.sink}, s.rows, s.steps)
		if err := l.Check(); err != nil {
			t.Errorf("%s: %v", s.story, err)
		}
		var got results.Strategy
		l.Result(&got)
		if text := fatesText(&got); text != s.want {
			t.Errorf("%s:\n got %s\nwant %s", s.story, text, s.want)
		}
		f := got.Fates
		if sum := f.Kept + f.Suppressed + f.Leaked + f.LateCopy + f.LateFirst + f.Swallowed + f.Replaced + f.Diverted +
			f.Pending; sum != got.RowsIn {
			t.Errorf("%s: the fates sum up to %d of %d rows", s.story, sum, got.RowsIn)
		}
	}
}

// A row must be given exactly one disposition.
func TestLedgerCheck(t *testing.T) {
	for _, c := range []struct{ story, rows, steps string }{
		{"two dispositions", "a1", "+I a1; drop a1 duplicate"},
		{"a row released that never waited", "a1 a2", "+I a1; release a1; drop a2 duplicate"},
	} {
		l := tell(t, LedgerSpec{}, c.rows, c.steps)
		l.rows = int64(len(strings.Fields(c.rows)))
		if err := l.Check(); err == nil {
			t.Errorf("%s: no error", c.story)
		}
	}
	l := tell(t, LedgerSpec{}, "a1 a2", "+I a1")
	l.Rows(1)
	if err := l.Check(); err == nil {
		t.Error("a row that was forgotten: no error")
	}
}

// Where the promised version of an event is a2, an event that ends with another one is wrong.
func TestLedgerWrongVersion(t *testing.T) {
	for _, c := range []struct {
		story, rows, steps string
		wrong              int64
	}{
		{"the first stands", "a1 a2", "+I a1; drop a2 duplicate", 1},
		{"the promised one stands", "a1 a2", "+I a1; -U a1; +U a2 for a1", 0},
		{"it stood, and was replaced", "a1 a2 a3", "+I a1; -U a1; +U a2 for a1; -U a2; +U a3 for a2", 1},
		{"it stands beside another one", "a1 a2", "+I a1; +I a2", 0},
		{"it is kept alive", "a1 a2", "+I a2; -U a2; refresh a2; drop a1 duplicate", 0},
		{"an event that is not there is lost, not wrong", "a1", "drop a1 late", 0},
		{"nor is one that was taken back", "a1", "+I a1; -D a1", 0},
	} {
		isSecond := func(tag stream.Tag) bool { return tag.Copy() == 1 }
		var got results.Strategy
		tell(t, LedgerSpec{Right: isSecond}, c.rows, c.steps).Result(&got)
		if got.WrongVersion != c.wrong {
			t.Errorf("%s: %d wrong, want %d", c.story, got.WrongVersion, c.wrong)
		}
	}
}

// The cause of a leak is asked for when the row comes through, and taken back with it.
func TestLedgerLeakCauses(t *testing.T) {
	spec := LedgerSpec{Retracts: true, Cause: func(l LeakedRow) string {
		return fmt.Sprintf("copy %d, update %v", l.Tag.Copy(), l.Update)
	}}
	var got results.Strategy
	tell(t, spec, "a1 a2 a3 b1 b2", "+I a1; +I a2; +I a3; +I b1; +U b2 for b1; -D a3").Result(&got)
	want := map[string]int64{"copy 1, update false": 1, "copy 1, update true": 1}
	if fmt.Sprint(got.LeaksByCause) != fmt.Sprint(want) || got.Leaked != 2 {
		t.Errorf("%v, want %v", got.LeaksByCause, want)
	}
}

// Latency has three parts: wait and settle for each event that came through, commit for each change.
func TestLedgerLatency(t *testing.T) {
	for _, c := range []struct {
		story, rows, steps   string
		every                stream.Time
		wait, settle, commit string // n, median and max
	}{
		{"emitted as it arrives", "a1", "+I a1", 0, "1: 0 0", "1: 0 0", "0: 0 0"},
		{"held for 490 ms", "a1", "hold a1; release a1 @500", 0, "1: 490 490", "1: 490 490", "0: 0 0"},
		{"the wait counts from the event's first row, which was late", "a1 a2", "drop a1 late; +I a2", 0,
			"1: 10 10", "1: 10 10", "0: 0 0"},
		{"a lost event has no latency", "a1 b1", "drop a1 late; +I b1", 0, "1: 0 0", "1: 0 0", "0: 0 0"},
		{"an update settles the event later", "a1 a2", "+I a1; +U a2 for a1", 0, "1: 0 0", "1: 10 10", "0: 0 0"},
		{"a second emission is no second wait, but a later change", "a1 a2", "+I a1; +I a2", 0, "1: 0 0", "1: 10 10",
			"0: 0 0"},
		{"of several changes the last one counts", "a1 a2 a3", "+I a1; +I a2; +U a3 for a2", 0, "1: 0 0", "1: 20 20",
			"0: 0 0"},
		{"each change is visible at the next checkpoint", "a1 b1", "+I a1; +I b1", 100, "2: 0 0", "2: 0 0", "2: 80 90"},
		{"at the very checkpoint at once", "a1", "hold a1; release a1 @200", 100, "1: 190 190", "1: 190 190", "1: 0 0"},
		{"the drain is left out", "a1", "hold a1; release a1 @2000", 100, "0: 0 0", "0: 0 0", "0: 0 0"},
	} {
		var got results.Strategy
		tell(t, LedgerSpec{CommitEvery: c.every}, c.rows, c.steps).Result(&got)
		text := func(q results.Quantiles) string { return fmt.Sprintf("%d: %d %d", q.N, q.P50, q.Max) }
		for _, part := range []struct {
			name string
			got  results.Quantiles
			want string
		}{{"wait", got.Latency.Wait, c.wait}, {"settle", got.Latency.Settle, c.settle},
			{"commit", got.Latency.Commit, c.commit}} {
			if text(part.got) != part.want {
				t.Errorf("%s: %s is %s, want %s", c.story, part.name, text(part.got), part.want)
			}
		}
	}
}

// Of a row that is composed of several, the ledger says whether it ever existed.
func TestLedgerSynthesized(t *testing.T) {
	for _, c := range []struct {
		story string
		parts []string
		want  int64
	}{
		{"all columns from one row", []string{"a1", "a1"}, 0},
		{"columns from two rows, equal to neither", []string{"a1", "a2"}, 1},
	} {
		w := workloadOf("a1 a2")
		l := NewLedger(LedgerSpec{Workload: w})
		l.Rows(2)
		var parts []stream.Tag
		for _, name := range c.parts {
			parts = append(parts, w.row(name).Tag)
		}
		key := w.row("a1").Key
		for _, change := range []Change{
			{Op: OpHold, Tag: w.row("a1").Tag}, {Op: OpDrop, Tag: w.row("a2").Tag, To: Duplicate},
		} {
			l.Book(&change, key, nil)
		}
		l.Book(&Change{Op: OpRelease, Tag: w.row("a1").Tag, At: 100, Since: stream.NullTime}, key, parts)
		var got results.Strategy
		l.Result(&got)
		if got.Synthesized != c.want {
			t.Errorf("%s: %d synthesized, want %d", c.story, got.Synthesized, c.want)
		}
	}
}

// An insert-only consumer stores +I and +U alike.
func TestLedgerInsertOnlyConsumer(t *testing.T) {
	var got results.Strategy
	tell(t, LedgerSpec{}, "a1 a2 b1", "+I a1; -U a1; +U a2 for a1; +I b1").Result(&got)
	if want := (results.InsertOnly{Rows: 3, Extra: 1}); got.InsertOnly != want {
		t.Errorf("%+v, want %+v", got.InsertOnly, want)
	}
	if want := (results.Changes{Insert: 2, UpdateBefore: 1, UpdateAfter: 1}); got.Changes != want {
		t.Errorf("%+v, want %+v", got.Changes, want)
	}
	if got.Updates != 2 {
		t.Errorf("%d updates, want 2", got.Updates)
	}
}

// Two runs agree in the digest of the table if they end with the same rows, in that of the changes if the same changes
// went out, and in that of the order if those of every key did so in the same order.
func TestLedgerDigests(t *testing.T) {
	const rows = "a1 a2 b1"
	base := digestOf(t, rows, "+I a1; -U a1; +U a2 for a1; +I b1")
	for _, c := range []struct {
		story, steps          string
		table, changes, order bool
	}{
		{"the same", "+I a1; -U a1; +U a2 for a1; +I b1", true, true, true},
		{"another order of two keys", "+I b1; +I a1; -U a1; +U a2 for a1", true, true, true},
		{"the same table by other changes", "+I a2; drop a1 duplicate; +I b1", true, false, false},
		{"another version", "+I a1; drop a2 duplicate; +I b1", false, false, false},
		{"a row is missing", "+I a1; -U a1; +U a2 for a1; drop b1 late", false, false, false},
	} {
		d := digestOf(t, rows, c.steps)
		if got := d.SameTable(base); got != c.table {
			t.Errorf("%s: same table %v", c.story, got)
		}
		if got := d.Changes == base.Changes; got != c.changes {
			t.Errorf("%s: same changes %v", c.story, got)
		}
		if got := d.SameOrder(base); got != c.order {
			t.Errorf("%s: same order %v", c.story, got)
		}
	}
}

func digestOf(t *testing.T, rows, steps string) Digest {
	return tell(t, LedgerSpec{}, rows, steps).Digest()
}

func workloadOf(rows string) *handmade {
	var names []string
	var list []stream.Row
	for i, word := range strings.Fields(rows) {
		name, key, other := strings.Cut(word, "=")
		if !other {
			key = name[:1]
		}
		names = append(names, name)
		at := stream.Time(10 * (i + 1))
		list = append(list, stream.Row{Key: stream.Key{Lo: uint64(key[0])}, Event: at, Arrival: at})
	}
	return rowsOf(1000, names, list)
}

// tell opens a ledger on the rows of a story and takes its steps.
func tell(t *testing.T, spec LedgerSpec, rows, steps string) *Ledger {
	t.Helper()
	w := workloadOf(rows)
	spec.Workload = w
	l := NewLedger(spec)
	now := stream.Time(0)
	for step := range strings.SplitSeq(steps, ";") {
		text, at, timed := strings.Cut(step, "@")
		words := strings.Fields(text)
		row := w.row(words[1])
		c := Change{Tag: row.Tag, Since: stream.NullTime, First: row.First}
		handled := true
		switch words[0] {
		case "+I":
			c.Op = OpEmit
		case "+U":
			c.Op, c.Kind, c.Old = OpEmit, stream.UpdateAfter, w.row(words[3]).Tag
		case "drop", "revoke":
			c.Op, c.Behind = OpDrop, words[2] == "behind"
			if words[0] == "revoke" {
				c.Op, handled = OpDropHeld, false
			}
			c.To = Disposition(slices.Index([]string{Duplicate: "duplicate", Late: "late", Replaced: "replaced",
				Diverted: "diverted", Filtered: "filtered"}, words[2]))
			if c.Behind {
				c.To = Late
			}
		case "hold":
			c.Op = OpHold
		case "release":
			c.Op, handled = OpRelease, false
			if row.First {
				c.Since = row.Arrival
			}
		case "-U", "-D", "refresh":
			c.Op, c.Kind, handled = OpAgain, stream.UpdateAfter, false
			if words[0] != "refresh" {
				c.Kind, _ = stream.ParseKind(words[0])
			}
		default:
			t.Fatalf("what is %q?", step)
		}
		if handled {
			now = max(now, row.Arrival)
			l.Rows(1)
		}
		if timed {
			if _, err := fmt.Sscan(at, &now); err != nil {
				t.Fatal(err)
			}
		}
		if _, end := w.Span(); now > end {
			l.EndSpan()
		}
		c.At = now
		l.Book(&c, row.Key, nil)
	}
	return l
}

// fatesText lists the fates that rows have, and why events were lost.
func fatesText(s *results.Strategy) string {
	var fates []string
	f := s.Fates
	for _, n := range []struct {
		name  string
		count int64
	}{{"kept", f.Kept}, {"suppressed", f.Suppressed}, {"leaked", f.Leaked}, {"late_copy", f.LateCopy},
		{"late_first", f.LateFirst}, {"swallowed", f.Swallowed}, {"replaced", f.Replaced}, {"diverted", f.Diverted},
		{"pending", f.Pending}} {
		if n.count != 0 {
			fates = append(fates, fmt.Sprintf("%s %d", n.name, n.count))
		}
	}
	text := strings.Join(fates, ", ")
	for _, cause := range results.LossCauses {
		if n := s.LossesByCause[cause]; n > 0 {
			text += fmt.Sprintf("; lost %s %d", cause, n)
		}
	}
	return text
}
