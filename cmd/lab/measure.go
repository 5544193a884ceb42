package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/measure"
	"deduplab/report"
	"deduplab/scenarios"
	"deduplab/stream"
	"deduplab/trace"
)

func newMeasure() *cobra.Command {
	var o measureOptions
	cmd := &cobra.Command{
		Use:   "measure FILE...",
		Short: "measure the duplicates of a trace, and what each TTL and watermark delay would cost",
		Long: `measure reads a trace of a stream, Parquet, CSV with a header or JSON lines, the latter two plain, gzip or zstd
(- is the standard input, data/*.gz all files that fit), and says how many copies there are, how long after the first and after the previous one they
come, how often one id is repeated, how disordered and idle the stream is, what each TTL would leak and hold and each
watermark delay lose, and what it recommends: a TTL in the stream, a look-back at the sink, an audit. Several --key are
compared: what one merges and another keeps apart. Measure the raw stream, before anything has been deduplicated.

Times are numbers (s, ms, us or ns since 1970; --unit), RFC 3339 or SQL timestamps. Percentiles are exact: the value at rank
ceil(p x n). What is half the trace or longer is marked >=: a trace that short cannot tell. A trace may be larger than
memory: what does not fit goes to temporary files in $TMPDIR, about 90 bytes a row and 60 more for each further key, and
so does the standard input, as it is. They are removed at the end, also after Ctrl-C.`,
		Example: `  lab measure events.jsonl.gz --key event_id --event-time ts --arrival ingest_ts
  lab measure events.csv --key event_id --key account,amount,client_seq --arrival ingest_ts --origin producer
  lab measure events.csv --key event_id --event-time created_at --arrival ingest_ts --html measured.html
  lab measure scenarios/data/radio-frames.csv.gz --key frame --arrival timestamp --ttl 100ms --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.keys, "key", nil, "column or columns (a,b) of a candidate key; may be given several times")
	flags.StringVar(&o.columns.EventTime, "event-time", "", "column of the event time")
	flags.StringVar(&o.columns.Arrival, "arrival", "", "column of the time of arrival (default: the event time)")
	flags.StringVar(&o.columns.Partition, "partition", "", "column of the source partition, whole numbers from 0")
	flags.StringVar(&o.columns.Origin, "origin", "", "column by which delays are told apart, such as producer or type")
	flags.StringVar(&o.columns.Unit, "unit", "auto", "of times written as numbers: auto, s, ms, us, ns")
	flags.StringSliceVar(&o.ttls, "ttl", nil, "more TTLs to predict, such as 40m,3d")
	flags.StringSliceVar(&o.delays, "watermark-delay", nil, "more watermark delays to predict")
	flags.Int64Var(&o.bytes, "bytes-per-key", 100, "state a key takes, for the bytes predicted")
	flags.StringVar(&o.onBadRow, "on-bad-row", "fail", "fail, or skip: skipped rows are counted and the first 20 shown")
	flags.StringVar(&o.memory, "memory", "512MB", "memory to use, beside what reading takes; the rest goes to temporary "+
		"files")
	flags.StringVar(&o.write, "write", "", "also write a scenario calibrated to the trace, with the first key")
	flags.StringVar(&o.html, "html", "", "also write a page with charts of all that was measured, which works offline")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

type measureOptions struct {
	columns      measure.Columns
	keys         []string
	ttls, delays []string
	bytes        int64
	onBadRow     string
	memory       string
	write        string
	html         string
	json         bool
}

func (o *measureOptions) run(ctx context.Context, files []string, stdin io.Reader, stdout io.Writer) error {
	options := measure.Options{BytesPerKey: o.bytes}
	var err error
	if options.TTLs, err = durations("--ttl", o.ttls); err != nil {
		return err
	}
	if options.Delays, err = durations("--watermark-delay", o.delays); err != nil {
		return err
	}
	if options.Memory, err = memorySize(o.memory); err != nil {
		return err
	}
	if o.onBadRow != "fail" && o.onBadRow != "skip" {
		return fmt.Errorf("--on-bad-row: %q is neither fail nor skip", o.onBadRow)
	}
	if o.bytes <= 0 || o.bytes > 1e9 {
		return fmt.Errorf("--bytes-per-key: %d must be more than 0 and at most a billion", o.bytes)
	}
	for _, key := range o.keys {
		o.columns.Keys = append(o.columns.Keys, strings.Split(key, ","))
	}
	asked := len(o.columns.Keys)
	o.columns.Keys = measure.Unions(o.columns.Keys)
	reader, err := measure.NewReader(o.columns, o.onBadRow == "skip")
	if err != nil {
		return err
	}
	defer reader.Close()
	if err := addFiles(ctx, reader, files, stdin); err != nil {
		return err
	}
	// Rows leave little garbage behind them, so that half of Go's default headroom will do.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	measured, err := reader.ReportContext(ctx, options)
	if err != nil {
		return err
	}
	measured.Compare(asked)
	if o.write != "" {
		if err := writeScenario(o.write, measured); err != nil {
			return fmt.Errorf("--write: %w", err)
		}
	}
	if o.html != "" {
		err := replaceFile(o.html, 0o644, func(w io.Writer) error { return report.Measure(w, measured) })
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if !o.json {
		return measured.Terminal(stdout)
	}
	data, err := json.MarshalIndent(measured, "", " ")
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(data, '\n'))
	return err
}

// writeScenario writes a scenario that has the name of its file. It does not replace a file.
func writeScenario(path string, measured *measure.Report) error {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	name = strings.Trim(unslug.ReplaceAllString(name, "-"), "-")
	if name == "" {
		name = "trace"
	}
	var text bytes.Buffer
	if err := measured.Scenario(&text, name); err != nil {
		return err
	}
	if _, err := scenarios.Load(filepath.Base(path), text.Bytes(), nil); err != nil {
		return fmt.Errorf("no scenario can be like this trace: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = text.WriteTo(f)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// unslug is what the name of a scenario cannot hold.
var unslug = regexp.MustCompile("[^a-z0-9]+")

func addFiles(ctx context.Context, reader *measure.Reader, paths []string, stdin io.Reader) error {
	for _, path := range paths {
		if path == trace.Stdin {
			if err := reader.Read("stdin", &interruptible{ctx: ctx, in: stdin}); err != nil {
				return err
			}
			continue
		}
		files, err := trace.Files([]string{path}, nil)
		if err != nil {
			return err
		}
		reader.Add(files...)
	}
	return nil
}

// interruptible ends a wait for input when the context is done.
type interruptible struct {
	ctx    context.Context
	in     io.Reader
	buffer [1 << 16]byte // of a read that nobody may wait for any more
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := r.in.Read(r.buffer[:min(len(p), len(r.buffer))])
		done <- result{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		return copy(p, r.buffer[:got.n]), got.err
	}
}

// memorySize reads a number of bytes, such as 512MB.
func memorySize(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGB")
	n, err := strconv.ParseInt(digits, 10, 32)
	size, ok := map[string]int64{"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}[strings.TrimPrefix(text, digits)]
	if err != nil || n <= 0 || !ok {
		return 0, fmt.Errorf("--memory: %q is not a size such as 512MB or 2GB", text)
	}
	return n * size, nil
}

func durations(flag string, texts []string) ([]stream.Time, error) {
	var all []stream.Time
	for _, text := range texts {
		d, err := stream.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		all = append(all, d)
	}
	return all, nil
}
