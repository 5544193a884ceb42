package scenarios

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"deduplab/sim"
	"deduplab/stream"
	"deduplab/yml"
)

// This file reads and writes the failures of a job.

// failure reads one entry of job.failures.
func (l *loader) failure(n *yml.Node) Failure {
	var f Failure
	before := l.Faults()
	l.Object(n,
		yml.May("kind", yml.Value(l.Reader, &f.Kind, failureKind)),
		yml.May("at", yml.Value(l.Reader, &f.At, positive)),
		yml.May("random", yml.Bare(l.Reader, &f.Random, yml.Whole(1, 1000))),
		yml.May("down", yml.Value(l.Reader, &f.Down, span)),
		yml.May("for", yml.Value(l.Reader, &f.For, positive)),
		yml.May("by", yml.Value(l.Reader, &f.By, positive)),
	)
	if n.Kind != yml.Mapping || l.Faults() > before {
		return f
	}
	if (n.Get("at") == nil) == (n.Get("random") == nil) {
		l.Add(n.At, "a failure is either at a moment from the start, {at: 30m}, or at random ones, {random: 3}")
	}
	if spec := l.scenario.Workload.Spec; spec != nil && f.At > spec.Duration && spec.Duration > 0 {
		l.Add(n.Get("at").At, "the stream ends after %s", dur(spec.Duration))
	}
	for _, field := range []struct {
		name    string
		of      []sim.FailureKind
		must    bool
		without string
	}{
		{"down", []sim.FailureKind{sim.CrashFailure, sim.SinkFailure, sim.RewindFailure}, false, "the job stays up"},
		{"for", []sim.FailureKind{sim.SlowCheckpoint}, true, "only a slow checkpoint takes some time"},
		{"by", []sim.FailureKind{sim.RewindFailure}, true, "only a rewind goes back further than needed"},
	} {
		given := n.Get(field.name)
		switch has := slices.Contains(field.of, f.Kind); {
		case given != nil && !has:
			l.Add(given.NameAt, "a failure of the kind %s has no field %s: %s", f.Kind, field.name, field.without)
		case given == nil && has && field.must:
			l.Add(n.At, "a failure of the kind %s needs the field %s", f.Kind, field.name)
		}
	}
	return f
}

func failureKind(s string) (sim.FailureKind, error) {
	names := sim.FailureKinds()
	name, err := yml.OneOf(names...)(s)
	return sim.FailureKind(max(slices.Index(names, name), 0)), err
}

func (p *printer) failure(f Failure) {
	fields := []string{"kind: " + f.Kind.String()}
	add := func(name string, t stream.Time) {
		if t > 0 {
			fields = append(fields, name+": "+dur(t))
		}
	}
	if f.Random > 0 {
		fields = append(fields, "random: "+strconv.Itoa(f.Random))
	}
	add("at", f.At)
	add("down", f.Down)
	add("for", f.For)
	add("by", f.By)
	p.WriteString("    - {" + strings.Join(fields, ", ") + "}\n")
}

// PlanFailures returns the failures of a job by when they happen, for a stream of a span; the seed draws the random
// ones.
func (j Job) PlanFailures(from, to stream.Time, seed uint64) []sim.Failure {
	var failures []sim.Failure
	random := rand.New(rand.NewPCG(seed, 0xfa11))
	for _, f := range j.Failures {
		for range max(f.Random, 1) {
			one := f.Failure
			one.At += from
			if f.Random > 0 {
				one.At = from + 1 + stream.Time(random.Int64N(max(int64(to-from), 1)))
			}
			failures = append(failures, one)
		}
	}
	slices.SortStableFunc(failures, func(a, b sim.Failure) int { return cmp.Compare(a.At, b.At) })
	return failures
}
