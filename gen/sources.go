package gen

import (
	"fmt"
	"math"
	"slices"

	"deduplab/stream"
)

// This file holds what sets one source partition apart from another.

// Slow is a span in which a partition is slow: Delay is added to the transport delay of the rows that are sent in it.
// Where spans of a partition overlap, the delays add up.
type Slow struct {
	Partition int
	From, For stream.Time // From counts from the start of the scenario; For 0: without end
	Delay     Delay
}

// Finish is the end of a partition: nothing is sent in it from At on, which counts from the start of the scenario,
// neither an original nor a copy of an earlier one, be it of another partition. Its last rows are still under way then.
// A source knows that it has read the last one, so that the partition does not hold back the watermark as one that is
// silent does.
type Finish struct {
	Partition int
	At        stream.Time
}

// Clock is the clock of the device whose rows a partition holds: by Skew ahead of the true time at the start of the
// scenario, behind if negative, and gaining Drift. It shows in event times alone. Rows are created and arrive when they
// do; fields that hold a moment hold the true one, and timestamps that the log appends are of the log's own clock. A
// copy that goes to another partition has the timestamp that its original's clock made, unless it is stamped anew.
type Clock struct {
	Partition int
	Skew      stream.Time
	Drift     float64 // millionths: 50 gains 180 ms an hour; exact to three digits after the point
}

// The largest error of a clock.
const (
	maxSkew  = longest / 8
	maxDrift = 10_000 // millionths
)

// highestRate is the highest rate of originals of a partition, a second.
func (s Spec) highestRate(partition int) float64 {
	if partition >= 0 && partition < len(s.PartitionShare) {
		return s.Rate * s.Load.peak() * s.PartitionShare[partition]
	}
	return s.Rate * s.Load.peak() / float64(max(1, s.Partitions))
}

// share is the share of the originals that a partition is to hold.
func (s Spec) share(partition int) float64 {
	if s.PartitionShare != nil {
		return s.PartitionShare[partition]
	}
	return 1 / float64(s.Partitions)
}

func (c *checker) partition(name string, partition int) {
	if partition < 0 || partition >= c.spec.Partitions {
		c.fault("%s.partition: %d does not exist, there are %d", name, partition, c.spec.Partitions)
	}
}

func (c *checker) shares() {
	shares, sum := c.spec.PartitionShare, 0.0
	if shares == nil {
		return
	}
	if len(shares) != c.spec.Partitions {
		c.fault("partitions.share: has %d shares for %d partitions", len(shares), c.spec.Partitions)
		return
	}
	for partition, share := range shares {
		if !(share > 0 && share <= 1) {
			c.fault("partitions.share: that of partition %d, %v, must be above 0 and at most 1", partition, share)
		}
		sum += share
	}
	if math.Abs(sum-1) > 1e-9 {
		c.fault("partitions.share: the shares add up to %v %%, not to 100 %%", math.Round(sum*1e10)/1e8)
	}
}

func (c *checker) slow() {
	for i, s := range c.spec.Slow {
		name := fmt.Sprintf("slow[%d]", i)
		c.partition(name, s.Partition)
		if s.From < 0 {
			c.fault("%s.from: %d ms is negative", name, s.From)
		}
		if s.For < 0 {
			c.fault("%s.for: %d ms is negative", name, s.For)
		}
		if err := s.Delay.check(name + ".delay"); err != nil {
			c.faults = append(c.faults, err)
		}
	}
}

func (c *checker) finished() {
	seen := map[int]bool{}
	for i, f := range c.spec.Finished {
		name := fmt.Sprintf("finished[%d]", i)
		c.partition(name, f.Partition)
		if seen[f.Partition] {
			c.fault("%s.partition: %d is finished already", name, f.Partition)
		}
		seen[f.Partition] = true
		if f.At < 0 || f.At >= c.spec.Duration && c.spec.Duration > 0 {
			c.fault("%s.at: %d ms does not lie within the duration of %d ms", name, f.At, c.spec.Duration)
		}
	}
}

func (c *checker) clocks() {
	seen := map[int]bool{}
	for i, k := range c.spec.Clock {
		name := fmt.Sprintf("clock[%d]", i)
		c.partition(name, k.Partition)
		if seen[k.Partition] {
			c.fault("%s.partition: %d has a clock already", name, k.Partition)
		}
		seen[k.Partition] = true
		if k.Skew <= -maxSkew || k.Skew >= maxSkew {
			c.fault("%s.skew: %d ms is more than 4 years", name, k.Skew)
		} else if c.spec.Start >= 0 && c.spec.Start+k.Skew < 0 {
			c.fault("%s.skew: %d ms makes the clock start before 1970", name, k.Skew)
		}
		if !(k.Drift >= -maxDrift && k.Drift <= maxDrift) {
			c.fault("%s.drift: %v ppm must be from -%d to %d", name, k.Drift, maxDrift, maxDrift)
		}
	}
}

// slow is a Slow made ready.
type slow struct {
	partition  int
	from, till stream.Time
	sampler    sampler
	draws      []source // by origin
}

// delay is what is added to the transport of a row.
func (s *slow) delay(draw uint64, origin, partition int, sent stream.Time) stream.Time {
	if partition != s.partition || sent < s.from || sent >= s.till {
		return 0
	}
	return s.sampler.draw(s.draws[origin].at(draw))
}

// clock is a Clock made ready: drift in billionths.
type clock struct {
	skew  stream.Time
	drift int64
}

// show is what the clock shows at a moment; all times count from the start.
func (c clock) show(at stream.Time) stream.Time {
	const billion = 1e9
	gained := int64(at) * c.drift // below 2^38 * 10^7, as a row is sent within twice the longest span
	if gained %= billion; gained < 0 {
		gained += billion // rounded down, so that the clock never jumps
	}
	return at + c.skew + stream.Time((int64(at)*c.drift-gained)/billion)
}

// addSources makes ready what sets partitions and event times apart.
func (g *generator) addSources(seed uint64) {
	s := g.spec
	if s.PartitionShare != nil {
		firsts := []int64{1}
		for p := range s.PartitionShare {
			firsts = append(firsts, int64(p)+2)
		}
		g.shares = newWeights(firsts, s.PartitionShare)
	}
	for i, made := range s.Slow {
		ready := slow{made.Partition, made.From, made.From + made.For, newSampler(made.Delay), nil}
		if made.For == 0 {
			ready.till = stream.MaxTime
		}
		for origin := range g.transports {
			ready.draws = append(ready.draws, newSource(seed, fmt.Sprintf("slow %d of origin %d", i, origin)))
		}
		g.slows = append(g.slows, ready)
	}
	if s.Finished != nil {
		g.finishes = slices.Repeat([]stream.Time{stream.MaxTime}, s.Partitions)
		for _, f := range s.Finished {
			g.finishes[f.Partition] = f.At
		}
	}
	if s.Clock != nil {
		g.clocks = make([]clock, s.Partitions)
		for _, k := range s.Clock {
			g.clocks[k.Partition] = clock{k.Skew, int64(math.Round(k.Drift * 1000))}
		}
	}
	g.nullTime, g.nullTimes = newChance(s.EventTime.Null), newSource(seed, "NULL event time")
	g.trueTimes = s.Clock == nil && s.EventTime.Resolution == 0 && s.EventTime.Null == 0
}

// untilFinish leaves out the rows of an event that would be sent once their partition is finished.
func (g *generator) untilFinish(rows []sending) []sending {
	return slices.DeleteFunc(rows, func(s sending) bool { return s.sent >= g.finishes[s.partition] })
}

// shown is the event time, NullTime for NULL, that stands for a moment from the start.
func (g *generator) shown(at stream.Time, draw uint64, partition int) stream.Time {
	e := &g.spec.EventTime
	if e.Null > 0 && g.nullTime.hits(g.nullTimes.at(draw)) {
		return stream.NullTime
	}
	if g.clocks != nil && !e.LogAppend {
		at = g.clocks[partition].show(at)
	}
	at += g.spec.Start
	if e.Resolution > 0 {
		at = at.Floor(e.Resolution)
	}
	return at
}

// Ends implements Workload. Which row is a partition's last one shows only when all are delivered.
func (g *generator) Ends() []End {
	g.walk.Do(func() {
		if g.finishes == nil {
			return
		}
		all := make([]End, g.spec.Partitions)
		var rows [256]stream.Row
		for in := g.Stream(); ; {
			n, _ := in.Next(rows[:]) // never fails
			if n == 0 {
				break
			}
			for i := range rows[:n] {
				end := &all[rows[i].Partition]
				end.Rows++
				end.Last = rows[i].Tag
			}
		}
		for partition, at := range g.finishes {
			if at != stream.MaxTime {
				all[partition].Partition = partition
				g.ends = append(g.ends, all[partition])
			}
		}
	})
	return g.ends
}
