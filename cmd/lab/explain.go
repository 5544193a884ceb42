package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"deduplab/explain"
	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
)

func newExplain() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain STRATEGY | --sql FILE",
		Short: "tell all that is known of a strategy, or of a query",
		Long: `explain prints the page of a strategy: the code to deploy, the planner's operator, who accepts the result, what
it keeps, when it emits, what makes it non-deterministic, when it loses data and when copies leak. Each line names the
recorded case that shows it; lab test replays it.

With --scenario it reads the columns, the parameters and, of the job, input, flink, mini_batch, sink and the watermark's
delay from that file.

With --sql it reads a deduplication query, with the CREATE TABLE and SET statements that belong to it if there are any,
tells which operator the query becomes and why, and prints the page of the strategy that it is.`,
		Example: `  lab explain ptf
  lab explain nontime --param order_by="price asc" --param ttl=2h
  lab explain rowtime-asc --scenario scenarios/orders.yaml
  lab explain --sql query.sql`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := o.page(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if !o.json {
				return page.Text(cmd.OutOrStdout())
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetEscapeHTML(false)
			out.SetIndent("", " ")
			return out.Encode(page)
		},
	}
	cmd.Flags().StringVar(&o.scenario, "scenario", "", "take columns, job and parameters from this scenario")
	cmd.Flags().StringArrayVar(&o.params, "param", nil, "a parameter of the strategy as name=value; may be repeated")
	cmd.Flags().StringVar(&o.sql, "sql", "", "a file with a deduplication query; - for standard input")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON instead of text")
	return cmd
}

type explainOptions struct {
	scenario string
	params   []string
	sql      string
	json     bool
}

func (o *explainOptions) page(args []string, stdin io.Reader) (*explain.Page, error) {
	switch {
	case o.sql == "" && len(args) == 0:
		return nil, fmt.Errorf("name a strategy or hand in a query with --sql; the strategies are %s",
			strings.Join(strategies.Names(), ", "))
	case o.sql == "":
		return o.ofStrategy(args[0])
	case len(args) > 0 || o.scenario != "" || len(o.params) > 0:
		return nil, errors.New("--sql goes without a strategy, --scenario and --param: the query tells them")
	}
	sql, err := readSQL(o.sql, stdin)
	if err != nil {
		return nil, err
	}
	shape, err := sqlshape.Recognise(sql)
	if err != nil {
		return nil, fmt.Errorf("%s: no deduplication that the lab knows: %w", o.sql, err)
	}
	return explain.OfQuery(shape)
}

// readSQL reads a file, or standard input, no further than a query can be long.
func readSQL(path string, stdin io.Reader) (string, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		stdin = file
	}
	b, err := io.ReadAll(io.LimitReader(stdin, sqlshape.MaxBytes+1))
	return string(b), err
}

// ofStrategy makes the page of a strategy, or of the entry with that id in the scenario.
func (o *explainOptions) ofStrategy(name string) (*explain.Page, error) {
	given := map[string]string{}
	job, sink := strategies.Job{Schema: explain.Orders}, ""
	if o.scenario != "" {
		s, err := scenarios.Read(o.scenario)
		if err != nil {
			return nil, err
		}
		job = strategies.Job{
			Schema: s.Workload.Schema, Version: s.Job.Flink, Input: s.Job.Input, MiniBatch: s.Job.MiniBatch,
			WatermarkDelay: s.Job.Watermark.Delay,
		}
		sink = s.Job.Sink.String()
		if e, ok := entryOf(s, name); ok {
			name, given = e.Strategy.Name, e.Args.Map()
			e.Rekey(&job)
		}
	}
	strategy, err := strategies.Find(name)
	if err != nil {
		return nil, err
	}
	if strategy.Name == "changelog-normalize" {
		job.Input = strategies.AllChanges // it is there for nothing else
	}
	own := maps.Clone(given)
	for _, p := range o.params {
		param, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, fmt.Errorf("--param %s: expected name=value", p)
		}
		own[param] = value
	}
	complete, examples := explain.Complete(strategy, own, job.Schema)
	args, faults := strategy.Resolve(complete, job.Schema)
	if len(faults) > 0 {
		var all []error
		for _, f := range faults {
			all = append(all, fmt.Errorf("%s: %w", name, f))
		}
		return nil, errors.Join(all...)
	}
	page := explain.New(strategy, args, job)
	page.Example(examples)
	page.Plan.Sink = sink
	return page, nil
}

// entryOf finds a strategy in a scenario, by id or else by name.
func entryOf(s *scenarios.Scenario, name string) (scenarios.Entry, bool) {
	for _, has := range []func(scenarios.Entry) bool{
		func(e scenarios.Entry) bool { return e.ID == name },
		func(e scenarios.Entry) bool { return e.Strategy.Name == name },
	} {
		if i := slices.IndexFunc(s.Strategies, has); i >= 0 {
			return s.Strategies[i], true
		}
	}
	return scenarios.Entry{}, false
}
