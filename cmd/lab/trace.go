package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"deduplab/lab"
	"deduplab/report"
	"deduplab/scenarios"
)

// traceOptions are the flags of lab trace.
type traceOptions struct {
	key, fate string
	event     uint64
	hasEvent  bool
	only      []string
	seed      uint64
	hasSeed   bool
	json      bool
	html      string
}

func newTrace() *cobra.Command {
	var o traceOptions
	cmd := &cobra.Command{
		Use:   "trace SCENARIO",
		Short: "tell the story of one key: every row, timer, write of state and change",
		Long: `trace runs a scenario for the rows of one key and tells, strategy by strategy, what happened to them and when: the
rows with event time, arrival and watermark, the state that is created, written and expires, timers, what goes out, when
a reader sees it, and what became of each row. Rows that stand for the same event under another key belong to the story.
Choose by key, by the number of an event as results.json has it for its examples, or take the first row of a fate.`,
		Example: `  lab trace scenarios/orders.yaml --fate leaked --strategy ptf
  lab trace scenarios/dual-capture.yaml --key orders,2
  lab trace scenarios/orders.yaml --event 17 --strategy rowtime-asc --html story.html`,
		Args: exactly("SCENARIO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasEvent, o.hasSeed = cmd.Flags().Changed("event"), cmd.Flags().Changed("seed")
			return o.run(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.key, "key", "", "the key: its column's value, several as 1,2 or a=1,b=2")
	flags.StringVar(&o.fate, "fate", "", "the first row of a fate, such as leaked, late-first or swallowed")
	flags.Uint64Var(&o.event, "event", 0, "the number of a logical event")
	flags.StringSliceVar(&o.only, "strategy", nil, "only the strategies with these ids")
	flags.Uint64Var(&o.seed, "seed", 0, "another seed than the scenario's")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.html, "html", "", "also write the stories as a page to this `file`")
	return cmd
}

func (o *traceOptions) run(ctx context.Context, path string, stdout io.Writer) error {
	choice := lab.Choice{Key: o.key, Fate: o.fate}
	chosen := 0
	for _, given := range []bool{o.key != "", o.fate != "", o.hasEvent} {
		if given {
			chosen++
		}
	}
	if chosen != 1 {
		return errors.New("say whose story to tell: one of --key, --event and --fate")
	}
	if o.hasEvent {
		choice.Event = &o.event
	}
	scenario, err := scenarios.Read(path)
	if err != nil {
		return err
	}
	if o.hasSeed {
		scenario.Seed = o.seed
	}
	states := &stateFolder{}
	defer states.remove()
	trace, err := lab.Trace(ctx, scenario, lab.Options{Only: o.only, OpenState: states.open}, choice)
	if err != nil {
		return err
	}
	if o.html != "" {
		err := replaceFile(o.html, 0o644, func(w io.Writer) error { return report.TraceHTML(w, trace) })
		if err != nil {
			return err
		}
	}
	if !o.json {
		return report.TraceTerminal(stdout, trace)
	}
	text, err := json.MarshalIndent(trace, "", " ")
	if err != nil {
		return err
	}
	_, err = stdout.Write(append(text, '\n'))
	return err
}
