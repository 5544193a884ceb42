package scenarios

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"deduplab/gen"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// Inspect writes the scenario as YAML that Load reads again, with everything that was left to the defaults. Values that
// are the default are marked, whoever set them.
func (s *Scenario) Inspect(w io.Writer) error {
	p := &printer{}
	p.field(0, "scenario", quoted(s.Name))
	if s.About != "" {
		p.about(s.About)
	}
	p.orDefault(0, "seed", s.Seed == 1, s.Seed)
	if s.Workload.Trace != nil {
		p.trace(s.Workload.Trace)
	} else {
		p.workload(s.Workload.Spec)
	}
	p.keys(s.Workload)
	p.job(s.Job)
	p.section("strategies")
	for _, e := range s.Strategies {
		p.entry(e)
	}
	p.after(s.After, s.Workload.Schema)
	if len(s.Require) > 0 {
		p.section("require")
	}
	for _, r := range s.Require {
		p.requirement(r)
	}
	p.expect(s.Expect)
	_, err := w.Write(p.Bytes())
	return err
}

// WorkloadSpec is a fingerprint of the workload section without the seed: equal for equal workloads, whichever way they
// are written.
func (s *Scenario) WorkloadSpec() string {
	p := &printer{}
	if s.Workload.Trace != nil {
		p.trace(s.Workload.Trace)
	} else {
		p.workload(s.Workload.Spec)
	}
	return p.fingerprint()
}

// Sections has a fingerprint of each section that a run depends on, made as that of the workload is, by its name. What the
// workload says of other keys counts as a section.
func (s *Scenario) Sections() map[string]string {
	of := func(print func(p *printer)) string {
		p := &printer{}
		print(p)
		return p.fingerprint()
	}
	return map[string]string{
		"workload": s.WorkloadSpec(),
		"keys":     of(func(p *printer) { p.keys(s.Workload) }),
		"job":      of(func(p *printer) { p.job(s.Job) }),
		"after":    of(func(p *printer) { p.after(s.After, s.Workload.Schema) }),
		"require": of(func(p *printer) {
			for _, r := range s.Require {
				p.requirement(r)
			}
		}),
	}
}

// fingerprint is of what differs from the defaults, so that a scenario keeps its own when there is one more field.
func (p *printer) fingerprint() string {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	hash, below := sha256.New(), 0 // the indent of the line below
	for _, line := range slices.Backward(strings.Split(p.String(), "\n")) {
		empty := strings.HasSuffix(line, ":") && below <= indent(line)
		if line != "" && !empty && !strings.HasSuffix(line, defaultMark) {
			fmt.Fprintln(hash, line)
			below = indent(line)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))[:16]
}

// printer writes YAML, one field a line.
type printer struct{ bytes.Buffer }

// defaultMark ends the lines of what is the default.
const defaultMark = " # default"

func (p *printer) section(name string) { fmt.Fprintf(p, "\n%s:\n", name) }

// field writes a name and its value, two spaces deeper for every level.
func (p *printer) field(level int, name string, value any) { p.orDefault(level, name, false, value) }

// orDefault is field for a value that may be the default.
func (p *printer) orDefault(level int, name string, isDefault bool, value any) {
	line := fmt.Sprintf("%s%s: %v", strings.Repeat("  ", level), name, value)
	if isDefault {
		line = fmt.Sprintf("%-42s%s", line, defaultMark)
	}
	fmt.Fprintln(p, line)
}

// open writes a name whose fields follow.
func (p *printer) open(level int, name string) {
	fmt.Fprintf(p, "%s%s:\n", strings.Repeat("  ", level), name)
}

// about writes a text folded to lines where it is made of plain words, else quoted.
func (p *printer) about(text string) {
	words := strings.Fields(text)
	plain := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == '\uFEFF' }) < 0
	if !plain || text != strings.Join(words, " ") {
		p.field(0, "about", strconv.Quote(text))
		return
	}
	p.field(0, "about", ">")
	line := " "
	for _, word := range words {
		if len(line)+1+len(word) > 110 && line != " " {
			fmt.Fprintln(p, line)
			line = " "
		}
		line += " " + word
	}
	fmt.Fprintln(p, line)
}

func (p *printer) workload(s *gen.Spec) {
	p.section("workload")
	p.orDefault(1, "start", s.Start == defaultStart, s.Start)
	p.field(1, "duration", dur(s.Duration))
	p.field(1, "rate", formatRate(s.Rate))
	if load := formatLoad(s.Load); load != "" {
		p.field(1, "load", load)
	}
	p.field(1, "key", names(s.Key))
	p.open(1, "fields")
	for _, fd := range s.Fields {
		p.field(2, quoted(fd.Name), kindOf(fd))
	}
	p.open(1, "event_time")
	p.field(2, "field", quoted(s.EventTime.Field))
	p.orDefault(2, "log_append", !s.EventTime.LogAppend, s.EventTime.LogAppend)
	if s.EventTime.Resolution > 0 {
		p.field(2, "resolution", dur(s.EventTime.Resolution))
	}
	if s.EventTime.Null > 0 {
		p.field(2, "nulls", formatShare(s.EventTime.Null))
	}
	p.open(1, "partitions")
	p.orDefault(2, "count", s.Partitions == 1, s.Partitions)
	p.orDefault(2, "by", s.PartitionBy == s.Key[0], quoted(s.PartitionBy))
	if s.PartitionShare != nil {
		p.field(2, "share", formatShares(s.PartitionShare))
	}
	p.orDefault(1, "transport", s.Transport.IsZero(), formatDelay(s.Transport))
	if len(s.Silent) > 0 {
		p.open(1, "silent")
	}
	for _, o := range s.Silent {
		fmt.Fprintf(p, "    - {partition: %d, from: %s, for: %s}\n", o.Partition, dur(o.From), dur(o.For))
	}
	if len(s.Outage) > 0 {
		p.open(1, "outage")
	}
	for _, o := range s.Outage {
		fmt.Fprintf(p, "    - {partition: %d, from: %s, for: %s, flush: %s}\n", o.Partition, dur(o.From), dur(o.For),
			formatRate(o.Flush))
	}
	p.sources(s)
	if len(s.Duplicates) > 0 {
		p.open(1, "duplicates")
	}
	for _, d := range s.Duplicates {
		p.duplicate(d, s.Fields)
	}
}

func (p *printer) trace(t *Trace) {
	p.section("workload")
	c := t.Spec.Columns
	p.field(1, "trace", names(t.Files))
	if t.Spec.Start != 0 {
		p.field(1, "start", t.Spec.Start)
	}
	p.open(1, "columns")
	p.field(2, "key", names(c.Key))
	p.field(2, "event_time", quoted(c.EventTime))
	p.orDefault(2, "arrival", c.Arrival == c.EventTime, quoted(c.Arrival))
	if c.Partition != "" {
		p.field(2, "partition", quoted(c.Partition))
	}
	if c.Event != "" {
		p.field(2, "event", quoted(c.Event))
	}
	if c.Origin != "" {
		p.field(2, "origin", quoted(c.Origin))
	}
	onBadRow := "fail"
	if t.Spec.SkipBadRows {
		onBadRow = "skip"
	}
	p.orDefault(1, "on_bad_row", !t.Spec.SkipBadRows, onBadRow)
	p.orDefault(1, "unit", t.Spec.Unit == "auto", t.Spec.Unit)
	p.open(1, "partitions")
	p.orDefault(2, "count", t.Spec.Partitions == 1, t.Spec.Partitions)
}

func (p *printer) keys(w Workload) {
	if len(w.Keys) > 0 {
		p.open(1, "keys")
	}
	for _, k := range w.Keys {
		p.field(2, quoted(k.Name), formatKey(k))
	}
	if w.Amount != "" {
		p.field(1, "amount", quoted(w.Amount))
	}
}

func (p *printer) job(j Job) {
	d := defaultJob()
	p.section("job")
	p.orDefault(1, "flink", j.Flink == d.Flink, j.Flink)
	p.orDefault(1, "input", strategies.InputName(j.Input) == strategies.InputName(d.Input), strategies.InputName(j.Input))
	p.orDefault(1, "parallelism", j.Parallelism == d.Parallelism, j.Parallelism)
	p.open(1, "watermark")
	p.orDefault(2, "delay", j.Watermark.Delay == d.Watermark.Delay, dur(j.Watermark.Delay))
	p.orDefault(2, "interval", j.Watermark.Interval == d.Watermark.Interval, dur(j.Watermark.Interval))
	p.orDefault(2, "idle_after", j.Watermark.IdleAfter == 0, dur(j.Watermark.IdleAfter))
	p.orDefault(2, "per", j.Watermark.Per == d.Watermark.Per, j.Watermark.Per)
	p.open(1, "checkpoint")
	p.orDefault(2, "interval", j.Checkpoint.Interval == 0, dur(j.Checkpoint.Interval))
	p.orDefault(2, "delivery", j.Checkpoint.Delivery == d.Checkpoint.Delivery, j.Checkpoint.Delivery)
	p.orDefault(1, "sink", j.Sink == d.Sink, j.Sink)
	p.orDefault(1, "state", j.State == d.State, j.State)
	if j.MiniBatch.Latency > 0 {
		p.open(1, "mini_batch")
		p.field(2, "latency", dur(j.MiniBatch.Latency))
		p.field(2, "size", j.MiniBatch.Size)
	}
	if j.CatchUpRate > 0 {
		p.field(1, "catch_up_rate", formatRate(j.CatchUpRate))
	} else {
		fmt.Fprintln(p, "  # catch_up_rate: 100 times the stream's mean, the default")
	}
	p.orDefault(1, "skew", j.Skew == d.Skew, j.Skew)
	if j.Retention > 0 {
		p.field(1, "retention", dur(j.Retention))
	}
	if len(j.Adds) > 0 {
		p.open(1, "adds")
	}
	for _, c := range j.Adds {
		fmt.Fprintf(p, "    - {column: %s, function: %s}\n", quoted(c.Name), c.Function)
	}
	p.orDefault(1, "table", j.Table == d.Table, quoted(j.Table))
	p.spark(j.Spark, d.Spark)
	if len(j.Failures) > 0 {
		p.open(1, "failures")
	}
	for _, f := range j.Failures {
		p.failure(f)
	}
}

func (p *printer) spark(s, d Spark) {
	p.open(1, "spark")
	p.orDefault(2, "trigger", s.Trigger.Every == d.Trigger.Every && !s.Trigger.AvailableNow, formatTrigger(s.Trigger))
	p.orDefault(2, "max_rows_per_trigger", s.Trigger.MaxRows == 0, s.Trigger.MaxRows)
	p.orDefault(2, "no_data_batches", s.NoDataBatches == d.NoDataBatches, s.NoDataBatches)
	p.orDefault(2, "watermark_policy", s.Policy == d.Policy, PolicyName(s.Policy))
	p.orDefault(2, "inputs", s.Inputs == d.Inputs, s.Inputs)
	p.open(2, "cost")
	p.orDefault(3, "batch", s.Cost.Batch == 0, dur(s.Cost.Batch))
	p.orDefault(3, "rows_per_second", s.Cost.RowsPerSecond == 0, s.Cost.RowsPerSecond)
	p.orDefault(2, "shuffle", s.Shuffle == d.Shuffle, s.Shuffle)
	p.orDefault(2, "restart", s.Restart == 0, dur(s.Restart))
	if s.Migrate.At > 0 {
		p.field(2, "migrate", fmt.Sprintf("{at: %s, overlap: %s}", dur(s.Migrate.At), dur(s.Migrate.Overlap)))
	}
}

func formatTrigger(t sim.Trigger) string {
	if t.AvailableNow {
		return AvailableNow
	}
	return dur(t.Every)
}

func (p *printer) entry(e Entry) {
	p.open(1, "- "+e.Strategy.Name)
	p.orDefault(3, "id", e.ID == e.Strategy.Name, quoted(e.ID))
	if e.Key != nil {
		p.field(3, "key", quoted(e.Key.Name))
	}
	defaults, _ := e.Strategy.Resolve(nil, stream.Schema{})
	for _, param := range e.Strategy.Params {
		text := e.Args.Text(param.Name)
		if param.Kind != strategies.Tiers { // JSON is YAML
			text = quoted(text)
		}
		p.orDefault(3, param.Name, e.Args.Text(param.Name) == defaults.Text(param.Name), text)
	}
}

func (p *printer) requirement(r Requirement) {
	switch {
	case r.Causes != nil:
		p.field(1, r.Name, names(r.Causes))
	case r.Name == AppendOnly:
		p.field(1, r.Name, r.Bound)
	default:
		p.field(1, r.Name, quoted(r.Bound))
	}
}

func dur(t stream.Time) string { return stream.FormatDuration(t) }

func formatWhere(w *gen.Where, fields []gen.Field) string {
	scale := 0
	if i := slices.Index(fieldNames(fields), w.Field); fields[i].Decimal != nil {
		scale = 2
	}
	return fmt.Sprintf("%s %s %s", w.Field, w.Op, stream.FormatDecimal(w.Value, scale))
}

// plainText is text that YAML takes as it stands.
var plainText = regexp.MustCompile(`^[A-Za-z0-9_<][A-Za-z0-9_./<=-]*( [A-Za-z0-9_./%<=-]+)*$`)

// quoted is text as YAML, with quotes where it needs them.
func quoted(s string) string {
	if plainText.MatchString(s) && !strings.EqualFold(s, "null") {
		return s
	}
	return strconv.Quote(s)
}

// names writes a list, or the only entry of one.
func names(list []string) string {
	if len(list) == 1 {
		return quoted(list[0])
	}
	parts := make([]string, len(list))
	for i, s := range list {
		parts[i] = quoted(s)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
