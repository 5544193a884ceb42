package main

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v4/mem"

	"deduplab/lab"
	"deduplab/results"
	"deduplab/scenarios"
)

// room is what a run that fits has: the memory that it may take, in bytes, and how many replays of it fit in there at a
// time. 0: nothing is known of it.
type room struct {
	limit  int64
	atOnce int
}

// fitsMemory refuses a run that will take more memory than it may. A budget of 0 is what the machine has free; where that
// cannot be told, anything fits. Scale is that of the command line, 0 if there is none.
func fitsMemory(ctx context.Context, s *scenarios.Scenario, o lab.Options, budget uint64, scale float64) (room, error) {
	estimate, err := lab.EstimateMemory(ctx, s, o)
	if estimate == nil || err != nil {
		return room{}, err
	}
	whence := "--memory allows"
	if budget == 0 {
		free, err := mem.VirtualMemory()
		if err != nil {
			return room{}, nil
		}
		budget, whence = free.Available, "the machine has free"
	}
	need, limit := estimate.Total(), int64(min(budget, math.MaxInt64))
	if need > limit {
		what := fmt.Sprintf("the run would take %s of memory, and %s %s", gigabytes(need), whence, gigabytes(limit))
		return room{}, tooLarge(estimate, what, smaller(float64(limit)/float64(need), scale))
	}
	return room{limit, int(min(limit/max(need, 1), int64(runtime.GOMAXPROCS(0))))}, nil
}

// smaller tells how to run the part of the stream that there is room for.
func smaller(part, scale float64) string {
	if scale == 0 {
		return fmt.Sprintf("run %.3g %% of the stream (--scale)", 100*part)
	}
	return fmt.Sprintf("run less of the stream (--scale %.2g)", 0.97*scale*part) // rounded up by less than 3 %
}

// tooLarge says what takes the memory, and what would help.
func tooLarge(e *lab.Estimate, what, smaller string) error {
	var b strings.Builder
	fmt.Fprintln(&b, what)
	onDisk := false
	for _, s := range e.Strategies {
		fmt.Fprintf(&b, "  %s: %s keys, %s\n", s.ID, results.FormatCount(s.Keys), gigabytes(s.Total()))
		onDisk = onDisk || s.OnDisk
	}
	fmt.Fprintf(&b, "  the stream itself: %s\n", gigabytes(e.Stream))
	var help []string
	if len(e.Strategies) > 1 {
		help = append(help, "run one strategy at a time (--only "+e.Strategies[0].ID+")")
	}
	help = append(help, smaller)
	if onDisk {
		help = append(help, "keep the state on disk (--state pebble)")
	}
	fmt.Fprintf(&b, "%s; or allow more with --memory", strings.Join(help, ", "))
	return fmt.Errorf("%s", b.String())
}

// gigabytes writes a size with a decimal prefix.
func gigabytes(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// leastMemory is what a run may take that is too small to be estimated.
const leastMemory = 100e6

// parseMemory reads a size such as 20GB or 16GiB.
func parseMemory(s string) (uint64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("--memory: %q is not a size such as 20GB or 500MB", s)
	}
	return n, nil
}
