package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/size"
	"deduplab/stream"
)

// sizeOptions are the flags of lab size.
type sizeOptions struct {
	rate, duplicates, newKey string
	delays                   []string
	horizon                  string
	plan                     size.Options
	lookback                 int
	measured                 string
	json                     bool
}

func newSize() *cobra.Command {
	var o sizeOptions
	cmd := &cobra.Command{
		Use:   "size [SCENARIO.yaml|MEASURED.json|results.json]",
		Short: "keys, bytes and reading of each plan of tiers, and what it lets through",
		Long: `size works out what a deduplication costs and leaves: keys and bytes of a tier in the stream, dates and rows that an
insert-only MERGE reads for each batch, and the copies that still come through, plan by plan. The stream is described by
flags, measured by running a scenario's stream once, or taken from what lab measure --json wrote about a trace or lab
run about its stream; flags win. A run also tells what a key really took: in the lab's memory, or on disk with state:
pebble. Of delays only quantiles are known: between two of them nothing is taken to come before the later one.`,
		Example: `  lab size --rate 50000/s --duplicates 0.4% --delay p99.9=40m,max=3d
  lab size --rate 50000/s --duplicates 0.4% --delay p99.9=40m,max=3d --horizon 6h --bytes-per-key 64
  lab size scenarios/orders.yaml
  lab run scenarios/clickstream.yaml && lab size --rate 50000/s --run out/clickstream out/clickstream/results.json
  lab measure events.parquet --key event_id --arrival ingest_ts --json >measured.json && lab size measured.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("lookback") {
				o.plan.LookbackDays = &o.lookback
			}
			if cmd.Flags().Changed("audit") && o.plan.AuditDays == 0 {
				return errors.New("--audit: an audit over 0 days reads nothing")
			}
			return o.run(args, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.rate, "rate", "", "rows a second, such as 50000/s")
	flags.StringVar(&o.duplicates, "duplicates", "", "share of the rows that are copies, such as 0.4%")
	flags.StringSliceVar(&o.delays, "delay", nil, "quantiles of the delay of copies, such as p99.9=40m,max=3d")
	flags.StringVar(&o.newKey, "new-key", "", "share of the copies that carry a new key, which nothing can catch")
	flags.StringVar(&o.horizon, "horizon", "", "of the tier in the stream (default: p99.9 rounded up)")
	flags.IntVar(&o.lookback, "lookback", 0, "of the MERGE, in days (default: the longest delay)")
	flags.IntVar(&o.plan.AuditDays, "audit", 0, "days that the audit covers (default: 30, or ten look-backs)")
	flags.Float64Var(&o.plan.BytesPerKey, "bytes-per-key", 100, "of state: a planning figure, or what a run measured")
	flags.IntVar(&o.plan.Partitions, "partitions", 200, "shuffle partitions that the state is spread over")
	flags.StringVar(&o.measured, "run", "", "results.json, or its folder: set the bytes per key that a run measured beside "+
		"the figure")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o *sizeOptions) run(args []string, stdout io.Writer) error {
	var s size.Stream
	var run *results.Run
	var err error
	if len(args) == 1 {
		if s, run, err = measuredStream(args[0]); err != nil {
			return err
		}
	}
	if o.measured != "" {
		if run, err = readRun(o.measured); err != nil {
			return fmt.Errorf("--run: %w", err)
		}
	}
	if err := o.override(&s, len(args) == 0); err != nil {
		return err
	}
	report, err := size.Plans(s, o.plan)
	if err != nil {
		return err
	}
	if run != nil {
		if err := report.Compare(run); err != nil {
			return err
		}
	}
	if !o.json {
		return report.Terminal(stdout)
	}
	text, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(text, '\n'))
	return err
}

// measuredStream reads a stream once, or what was measured of one: by lab measure, or by the run that it returns.
func measuredStream(path string) (size.Stream, *results.Run, error) {
	if filepath.Ext(path) == ".json" {
		return fromJSON(path)
	}
	scenario, err := scenarios.Read(path)
	if err != nil {
		return size.Stream{}, nil, err
	}
	rows, err := workloadOf(scenario)
	if err != nil {
		return size.Stream{}, nil, err
	}
	s, err := size.FromWorkload(rows)
	return s, nil, err
}

func fromJSON(path string) (s size.Stream, run *results.Run, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, nil, err
	}
	var head struct{ Schema string }
	if json.Unmarshal(text, &head) == nil && head.Schema == results.Schema {
		if run, err = readRun(path); err != nil {
			return s, nil, err
		}
		s, err = size.FromRun(run)
	} else {
		s, err = size.FromMeasure(text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return s, run, err
}

// override takes what the flags say. All faults are returned at once.
func (o *sizeOptions) override(s *size.Stream, must bool) error {
	var faults []error
	take := func(flag, value string, parse func(string) (float64, error), to *float64) {
		switch {
		case value != "":
			v, err := parse(value)
			if err != nil {
				faults = append(faults, fmt.Errorf("--%s: %w", flag, err))
			}
			*to = v
		case must && flag != "new-key":
			faults = append(faults, fmt.Errorf("--%s is missing; or name a scenario, or the JSON of lab measure", flag))
		}
	}
	take("rate", o.rate, scenarios.ParseRate, &s.Rate)
	take("duplicates", o.duplicates, scenarios.ParseShare, &s.Duplicates)
	take("new-key", o.newKey, scenarios.ParseShare, &s.NewKey)
	switch points, err := parseDelays(o.delays); {
	case err != nil:
		faults = append(faults, err)
	case points != nil:
		s.Delays = points
	case must:
		faults = append(faults, errors.New("--delay is missing: quantiles such as p99.9=40m,max=3d"))
	}
	if o.horizon != "" {
		horizon, err := stream.ParseDuration(o.horizon)
		if err == nil && horizon == 0 {
			err = errors.New("a horizon of 0 catches nothing")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("--horizon: %w", err))
		}
		o.plan.Horizon = horizon
	}
	for _, f := range []struct {
		flag         string
		value, least float64
	}{
		{"lookback", float64(o.lookback), 0}, {"audit", float64(o.plan.AuditDays), 0},
		{"partitions", float64(o.plan.Partitions), 1}, {"bytes-per-key", o.plan.BytesPerKey, 1},
	} {
		if !(f.value >= f.least && f.value <= 1e6) {
			faults = append(faults, fmt.Errorf("--%s: %v must be from %v to a million", f.flag, f.value, f.least))
		}
	}
	return errors.Join(faults...)
}

// parseDelays reads quantiles such as p99.9=40m and max=3d.
func parseDelays(texts []string) ([]size.Point, error) {
	var points []size.Point
	for _, text := range texts {
		name, value, _ := strings.Cut(text, "=")
		share := 1.0
		if name != "max" {
			p, err := strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
			if err != nil || !strings.HasPrefix(name, "p") || !(p > 0 && p < 100) {
				return nil, fmt.Errorf("--delay: %q is no quantile: write p50=2s,p99.9=40m,max=3d", text)
			}
			share = math.Round(p*1e8) / 1e10
		}
		within, err := stream.ParseDuration(value)
		if err != nil {
			return nil, fmt.Errorf("--delay: %s: %w", name, err)
		}
		if slices.ContainsFunc(points, func(p size.Point) bool { return p.Share == share }) {
			return nil, fmt.Errorf("--delay: %s is given twice", name)
		}
		points = append(points, size.Point{Within: within, Share: share})
	}
	slices.SortStableFunc(points, func(a, b size.Point) int { return int(math.Copysign(1, a.Share-b.Share)) })
	return points, nil
}
