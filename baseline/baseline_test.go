package baseline_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deduplab/baseline"
)

// run makes the baseline of a run of one strategy: the fates of its events, in which . is kept and l is leaked.
func run(fates string) *baseline.Baseline {
	leaked := float64(strings.Count(fates, "l"))
	b := &baseline.Baseline{
		Schema: baseline.Schema, Scenario: "x", Seed: 1, Stream: "s",
		Sections: map[string]string{"workload": "w", "job": "j"},
		Events:   uint64(len(fates)), Versions: baseline.Versions{Generator: 1, Rules: 1, Measuring: 1},
	}
	s := baseline.Strategy{
		ID: "ptf", Name: "ptf", Params: map[string]string{"ttl": "1h"}, Changelog: "I", Class: "per key",
		Verdicts: map[string]string{"lost": "pass"}, Same: map[string]string{"catch-up": "1/1"},
		Metrics: map[string]float64{},
	}
	if leaked > 0 {
		s.Metrics["leaked"] = leaked
	}
	s.AddFates(b.Events, func(event uint64) string { return fateIn(fates, event) })
	b.Strategies = []baseline.Strategy{s}
	_ = b.Write(io.Discard) // sets the checksum
	return b
}

func fateIn(fates string, event uint64) string {
	if fates[event] == 'l' {
		return "leaked"
	}
	return baseline.Kept
}

func compare(then, now *baseline.Baseline, fates string) *baseline.Difference {
	return baseline.Compare(then, now, func(_ string, event uint64) string { return fateIn(fates, event) })
}

func TestCompare(t *testing.T) {
	const fates = "..l....l.."
	for _, c := range []struct {
		name                     string
		change                   func(*baseline.Baseline) // of the run that is compared
		scenario, reasons, ofPtf string
		first                    string
		fates                    string // others than before
	}{
		{name: "nothing"},
		{name: "the seed", change: func(b *baseline.Baseline) { b.Seed = 2 }, scenario: "seed 1 -> 2"},
		{name: "a section", change: func(b *baseline.Baseline) { b.Sections["job"] = "k" }, scenario: "section job"},
		{name: "a parameter", change: func(b *baseline.Baseline) { b.Strategies[0].Params["ttl"] = "2h" },
			scenario: "strategy ptf: ttl 1h -> 2h"},
		{name: "another strategy", change: func(b *baseline.Baseline) { b.Strategies[0].ID = "other" },
			scenario: "strategy ptf is gone; strategy other is new"},
		{name: "an event that leaks no longer", fates: ".......l..",
			reasons: "the scenario and its rows are the same: the rules of the engine, or what the lab measures",
			ofPtf:   "leaked: 2 -> 1 (-1, -50 %)", first: "2 leaked -> kept"},
		{name: "an event that leaks", fates: ".ll....l..",
			reasons: "the scenario and its rows are the same: the rules of the engine, or what the lab measures",
			ofPtf:   "leaked: 2 -> 3 (+1, +50 %)", first: "1 kept -> leaked"},
		{name: "other rules", fates: "..l.....l.", change: func(b *baseline.Baseline) { b.Versions.Rules = 2 },
			reasons: "the engine's rules: version 1 -> 2", first: "7 leaked -> kept"},
		{name: "other rows", fates: "..l.....l.", change: func(b *baseline.Baseline) { b.Stream = "other" },
			reasons: "the rows are others though the workload and its seed are the same: the trace, or the generator",
			first:   "7 leaked -> kept"},
		{name: "a verdict", change: func(b *baseline.Baseline) { b.Strategies[0].Verdicts["lost"] = "fail" },
			reasons: "the scenario and its rows are the same: the rules of the engine, or what the lab measures",
			ofPtf:   "verdict on lost: pass -> fail"},
		{name: "a number that is not known any more",
			change:  func(b *baseline.Baseline) { b.Strategies[0].Unknown = "leaked" },
			reasons: "the scenario and its rows are the same: the rules of the engine, or what the lab measures",
			ofPtf:   "leaked: 2 -> unknown"},
		{name: "refused", change: func(b *baseline.Baseline) { b.Strategies[0].Refused = "no" },
			reasons: "the scenario and its rows are the same: the rules of the engine, or what the lab measures",
			ofPtf:   "refused: none -> no"},
		{name: "versions alone", change: func(b *baseline.Baseline) { b.Versions.Rules = 2 }},
	} {
		now := fates
		if c.fates != "" {
			now = c.fates
		}
		b := run(now)
		if c.change != nil {
			c.change(b)
		}
		d := compare(run(fates), b, now)
		ofPtf, first := "", ""
		for _, m := range d.Strategies {
			ofPtf = strings.Join(m.Lines, "; ")
			if m.First != nil {
				first = fmt.Sprintf("%d %s -> %s", m.First.Number, m.First.Then, m.First.Now)
			}
		}
		for _, x := range []struct{ what, got, want string }{
			{"scenario", strings.Join(d.Scenario, "; "), c.scenario},
			{"reasons", strings.Join(d.Reasons, "; "), c.reasons},
			{"ptf", ofPtf, c.ofPtf},
			{"first event", first, c.first},
			{"any", fmt.Sprint(d.Any()), fmt.Sprint(c.scenario+c.reasons+c.ofPtf+c.first != "")},
		} {
			if x.got != x.want {
				t.Errorf("%s: %s is %q, want %q", c.name, x.what, x.got, x.want)
			}
		}
	}
}

// The first event whose fate changed is named, or the range that it is in when too many stand before it.
func TestFirstEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "events")
		letters := rapid.SliceOfN(rapid.SampledFrom([]byte("...lll")), n, n)
		then := letters.Draw(t, "then")
		now := slices.Clone(then)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			now[rapid.IntRange(0, n-1).Draw(t, "at")] = 'l'
		}
		want := -1
		for i := range then {
			if then[i] != now[i] {
				want = i
				break
			}
		}
		d := compare(run(string(then)), run(string(now)), string(now))
		var got *baseline.Event
		for _, m := range d.Strategies {
			got = m.First
		}
		switch {
		case want < 0 && got != nil:
			t.Fatalf("nothing changed, but %+v is told", *got)
		case want >= 0 && got == nil:
			t.Fatalf("event %d changed, but none is told", want)
		case want >= 0 && (uint64(want) < got.Number || uint64(want) >= got.End):
			t.Fatalf("event %d changed, but %+v is told", want, *got)
		case want >= 0 && bytes.Count(then[:want+1], []byte("l")) < baseline.Listed-1 && got.Then == "":
			t.Fatalf("event %d is among the first %d, but only a range is told: %+v", want, baseline.Listed, *got)
		}
	})
}

// Metrics that are 0 are left out, and a group of which none is known has one word.
func TestSetMetrics(t *testing.T) {
	values := map[string]float64{"leaked": 0, "lost": 3, "spark.a": 1}
	s := baseline.Strategy{}
	s.SetMetrics([]string{"after.x", "after.y", "fates.swallowed", "leaked", "lost", "spark.a", "spark.b"},
		func(name string) (float64, bool) { v, ok := values[name]; return v, ok })
	if want := map[string]float64{"lost": 3, "spark.a": 1}; !maps.Equal(s.Metrics, want) {
		t.Errorf("known are %v, want %v", s.Metrics, want)
	}
	if want := "after fates spark.b"; s.Unknown != want {
		t.Errorf("unknown are %q, want %q", s.Unknown, want)
	}
}

// What is written is read again, and an edit by hand is found out.
func TestWriteRead(t *testing.T) {
	var b bytes.Buffer
	if err := run("..l.").Write(&b); err != nil {
		t.Fatal(err)
	}
	written := b.String()
	got, err := baseline.Read("x.json", []byte(written))
	if err != nil || got.Edited() {
		t.Fatalf("%v, edited: %v", err, got.Edited())
	}
	if d := compare(got, run("..l."), "..l."); d.Any() {
		t.Errorf("it differs from itself: %+v", *d)
	}
	for _, edit := range [][2]string{
		{`"seed": 1`, `"seed": 2`}, {`"leaked": 1`, `"leaked": 2`}, {`"leaked": "2"`, `"leaked": "3"`},
		{`"ttl": "1h"`, `"ttl": "2h"`}, {`"lost": "pass"`, `"lost": "fail"`},
	} {
		edited := strings.Replace(written, edit[0], edit[1], 1)
		if edited == written {
			t.Fatalf("the file has no %s", edit[0])
		}
		if got, err := baseline.Read("x.json", []byte(edited)); err != nil || !got.Edited() {
			t.Errorf("%s -> %s: %v, edited: %v", edit[0], edit[1], err, got.Edited())
		}
	}
	crlf := strings.ReplaceAll(written, "\n", "\r\n")
	if got, err := baseline.Read("x.json", []byte(crlf)); err != nil || got.Edited() {
		t.Errorf("line ends of another system: %v", err)
	}
}

func TestReadFaults(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "x.json: not a baseline: line 1: unexpected end of JSON input"},
		{"{\n]", "x.json: not a baseline: line 2: invalid character ']' looking for beginning of object key string"},
		{`{"schema": "deduplab/results/1"}`, `x.json: not a baseline: its schema is "deduplab/results/1", not "` +
			baseline.Schema + `"`},
		{`{"schema": "` + baseline.Schema + `", "sede": 1}`, `x.json: not a baseline: json: unknown field "sede"`},
		{`{"schema": "` + baseline.Schema + `", "strategies": [{"id": "ptf", "fates": {"leaked": "1 x"}}]}`,
			`x.json: not a baseline: ptf: "x" is not the number of an event`},
	} {
		if _, err := baseline.Read("x.json", []byte(c.src)); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.src, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := run("..l.l").Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(bytes.ReplaceAll(b.Bytes(), []byte(`"leaked": "2 4"`), []byte(`"leaked": "2 99999999"`)))
	f.Add(bytes.ReplaceAll(b.Bytes(), []byte(`"events": 5`), []byte(`"events": 18446744073709551615`)))
	f.Fuzz(func(t *testing.T, src []byte) {
		if got, err := baseline.Read("x.json", src); err == nil {
			compare(got, run("..l.l"), "..l.l")
		}
	})
}
