package conformance

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
	"deduplab/stream"
)

// recorded says which of the lab's strategies a recorded id is.
type recorded struct {
	strategy string
	params   map[string]string
	// rowNumber says that the query keeps the row number, which is always 1.
	rowNumber bool
	// toChangelog says that the query is wrapped in TO_CHANGELOG.
	toChangelog bool
	// watermarkColumn says that the query puts out the key, the event time and CURRENT_WATERMARK as wm.
	watermarkColumn bool
}

type params = map[string]string

// ids maps the ids of the recordings to strategies and parameters.
var ids = map[string]recorded{
	"pk-not-enforced":          {strategy: "pk-not-enforced"},
	"pk-not-enforced-distinct": {strategy: "select-distinct"},

	"select-distinct":      {strategy: "select-distinct"},
	"select-distinct-hint": {strategy: "select-distinct"},
	"select-distinct-key":  {strategy: "select-distinct-key"},
	"group-by-hint":        {strategy: "group-by-min"},

	"rowtime-asc":               {strategy: "rowtime-asc"},
	"rowtime-asc-rn":            {strategy: "rowtime-asc", rowNumber: true},
	"rowtime-desc":              {strategy: "rowtime-desc"},
	"rowtime-desc-rn":           {strategy: "rowtime-desc", rowNumber: true},
	"rowtime-desc-to-changelog": {strategy: "rowtime-desc", toChangelog: true},

	"pass-through":        {strategy: "pass-through"},
	"changelog-normalize": {strategy: "changelog-normalize", params: params{"events_duplicate": "false"}},

	"proctime-asc":  {strategy: "proctime-asc"},
	"proctime-desc": {strategy: "proctime-desc"},

	"nontime-key-asc":        {strategy: "nontime", params: params{"order_by": "order_id asc"}},
	"nontime-key-desc":       {strategy: "nontime", params: params{"order_by": "order_id desc"}},
	"nontime-price-asc":      {strategy: "nontime", params: params{"order_by": "price asc"}},
	"nontime-top2-price-asc": {strategy: "nontime", params: params{"order_by": "price asc"}},
	"nontime-price-asc-rn":   {strategy: "nontime", params: params{"order_by": "price asc"}, rowNumber: true},
	"nontime-price-desc":     {strategy: "nontime", params: params{"order_by": "price desc"}},
	"nontime-price-desc-rn":  {strategy: "nontime", params: params{"order_by": "price desc"}, rowNumber: true},
	"nontime-price-key-asc":  {strategy: "nontime", params: params{"order_by": "price asc, order_id asc"}},
	"nontime-price-key-desc": {strategy: "nontime", params: params{"order_by": "price desc, order_id desc"}},
	"rowtime-asc-tiebreak":   {strategy: "nontime", params: params{"order_by": "created_at asc, price asc"}},
	"rowtime-desc-tiebreak":  {strategy: "nontime", params: params{"order_by": "created_at desc, price desc"}},

	"nontime-to-changelog":            {strategy: "nontime-to-changelog", params: params{"order_by": "order_id asc"}},
	"nontime-to-changelog-price-asc":  {strategy: "nontime-to-changelog", params: params{"order_by": "price asc"}},
	"nontime-to-changelog-price-desc": {strategy: "nontime-to-changelog", params: params{"order_by": "price desc"}},

	"ptf": {strategy: "ptf"},

	"keyed-process":             {strategy: "keyed-process"},
	"keyed-process-side-output": {strategy: "keyed-process", params: params{"side_output": "true"}},
	"keyed-process-ttl":         {strategy: "keyed-process", params: params{"ttl": "2h"}},
	"keyed-process-timer":       {strategy: "keyed-process", params: params{"timer": "10m"}},
	"keyed-process-timer-on-first": {strategy: "keyed-process",
		params: params{"timer": "10m", "timer_on": "first"}},
	"keyed-process-timer-side-output": {strategy: "keyed-process",
		params: params{"timer": "10m", "side_output": "true"}},

	"tumble-agg":            {strategy: "tumble-agg"},
	"window-dedup":          {strategy: "window-dedup"},
	"window-dedup-desc":     {strategy: "window-dedup", params: params{"keep": "last"}},
	"window-topn-price-asc": {strategy: "window-topn", params: params{"order_by": "price asc"}},

	"late-dlq":      {strategy: "late-dlq", params: params{"main": "none", "branch": "dlq"}},
	"late-dlq-main": {strategy: "late-dlq", params: params{"main": "none"}},
	"late-dlq-main-no-null-check": {strategy: "late-dlq",
		params: params{"main": "none", "null_check": "false"}},
	"late-dlq-value": {strategy: "pass-through", watermarkColumn: true},

	// A STATE_TTL hint on Rank and Deduplicate is silently ignored.
	"hint-inner-rank-price-asc": {strategy: "nontime", params: params{"order_by": "price asc"}},
	"hint-rank-price-asc":       {strategy: "nontime", params: params{"order_by": "price asc"}},
	"hint-rank-key-asc":         {strategy: "nontime", params: params{"order_by": "order_id asc"}},
	"hint-inner-rowtime-asc":    {strategy: "rowtime-asc"},
	"hint-rowtime-asc":          {strategy: "rowtime-asc"},
	"hint-inner-rowtime-desc":   {strategy: "rowtime-desc"},
	"hint-rowtime-desc":         {strategy: "rowtime-desc"},
	"hint-proctime-asc":         {strategy: "proctime-asc"},
}

var (
	tumblePattern   = regexp.MustCompile(`(?is)TUMBLE\s*\(`)
	sizePattern     = regexp.MustCompile(`(?is)TUMBLE\s*\(.*INTERVAL\s+'(\d+)'\s+(SECOND|MINUTE|HOUR|DAY)S?\s*\)`)
	topPattern      = regexp.MustCompile(`rn <= (\d+)`)
	minPattern      = regexp.MustCompile(`MIN\((\w+)\) AS (\w+) FROM (\w+) GROUP BY`)
	hintPattern     = regexp.MustCompile(`STATE_TTL\('[^']*' = '([^']*)'\)`)
	upsertPattern   = regexp.MustCompile(`^upsert \(PRIMARY KEY \((.*)\) NOT ENFORCED\)$`)
	intervalLetters = map[string]string{"SECOND": "s", "MINUTE": "m", "HOUR": "h", "DAY": "d"}
)

// plan finds the strategy of a case and plans it for the case's options and consumer.
func (c *Case) plan(schema stream.Schema) (recorded, strategies.Plan, error) {
	id, plan, err := c.planned(schema)
	if err != nil {
		return recorded{}, strategies.Plan{}, fmt.Errorf("%s: %w", c.File, err)
	}
	return id, plan, nil
}

func (c *Case) planned(schema stream.Schema) (id recorded, plan strategies.Plan, err error) {
	base, consumer := c.consumer()
	id, ok := ids[base]
	if !ok {
		known := slices.Sorted(maps.Keys(ids))
		return id, plan, fmt.Errorf("unknown strategy %q%s", c.Strategy, stream.DidYouMean(c.Strategy, known))
	}
	strategy, _ := strategies.Lookup(id.strategy)
	g := given{strategy, params{}}
	maps.Copy(g.params, id.params)
	if err := c.readSQL(g); err != nil {
		return id, plan, err
	}
	job := strategies.Job{Schema: schema}
	if strings.Contains(c.DDL, "'changelog-mode' = 'all'") {
		job.Input = strategies.AllChanges
	}
	if err := c.readConfig(g, &job); err != nil {
		return id, plan, err
	}
	if job.MiniBatch.Latency > 0 {
		job.MiniBatch.ByWatermark = consumer == strategies.WindowAggregate || consumer == strategies.IntervalJoin
	}
	if job.Sink, err = c.sink(); err != nil {
		return id, plan, err
	}
	args, faults := strategy.Resolve(g.params, schema)
	if len(faults) > 0 {
		return id, plan, faults[0]
	}
	if id.toChangelog {
		retracting := job
		retracting.Sink = strategies.Retract
		return id, strategies.ToChangelog(strategy.Plan(args, retracting), job), nil
	}
	return id, strategy.Plan(args, job), nil
}

// given are the parameters that a case gives to its strategy.
type given struct {
	strategy *strategies.Strategy
	params   params
}

func (g given) takes(name string) bool {
	return slices.ContainsFunc(g.strategy.Params, func(p strategies.Param) bool { return p.Name == name })
}

// set gives a parameter, if the strategy takes it.
func (g given) set(name, value string) {
	if g.takes(name) {
		g.params[name] = value
	}
}

// setDuration gives a duration, as Flink's options spell it, if the strategy takes it.
func (g given) setDuration(name, value string) error {
	if !g.takes(name) {
		return nil
	}
	t, ok := sqlshape.Duration(value)
	if !ok {
		return fmt.Errorf("%q is not a duration such as 2 h or 100 ms", value)
	}
	g.set(name, stream.FormatDuration(t))
	return nil
}

// readSQL gives the parameters that stand in the query.
func (c *Case) readSQL(g given) error {
	if c.SQL == nil {
		return nil
	}
	if m := sizePattern.FindStringSubmatch(*c.SQL); m != nil {
		g.set("size", m[1]+intervalLetters[strings.ToUpper(m[2])])
	} else if tumblePattern.MatchString(*c.SQL) && g.takes("size") {
		return errors.New("the window's size is not spelled INTERVAL 'n' SECOND, MINUTE, HOUR or DAY")
	}
	if m := topPattern.FindStringSubmatch(*c.SQL); m != nil {
		g.set("top", m[1])
	}
	if m := minPattern.FindStringSubmatch(*c.SQL); m != nil {
		g.set("column", m[1])
	}
	if m := hintPattern.FindStringSubmatch(*c.SQL); m != nil {
		if err := g.setDuration("hint", m[1]); err != nil {
			return fmt.Errorf("STATE_TTL: %w", err)
		}
	}
	return nil
}

// readConfig reads the options, which concern the strategy or the job.
func (c *Case) readConfig(g given, job *strategies.Job) (err error) {
	for option, value := range c.Config {
		switch option {
		case "table.exec.state.ttl":
			// Windows ignore it, and the hint of a process table function wins over it.
			if g.strategy.Name != "ptf" {
				if err := g.setDuration("ttl", value); err != nil {
					return fmt.Errorf("%s: %w", option, err)
				}
			}
		case "table.exec.source.cdc-events-duplicate":
			g.set("events_duplicate", value)
		case "table.exec.rank.topn-cache-size":
			g.set("cache", value)
		case "table.optimizer.agg-phase-strategy":
			if value == "ONE_PHASE" {
				g.set("phases", "one")
			}
		case "table.exec.deduplicate.insert-update-after-sensitive-enabled":
			job.InsertInsensitive = value == "false"
		case "table.exec.mini-batch.enabled", "table.exec.mini-batch.allow-latency", "table.exec.mini-batch.size",
			"table.exec.deduplicate.mini-batch.compact-changes-enabled":
			if job.MiniBatch, err = c.miniBatch(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown option %s", option)
		}
	}
	return nil
}

// sink is what the case's result goes into.
func (c *Case) sink() (strategies.Sink, error) {
	switch {
	case c.Consumer == "append":
		return strategies.Append, nil
	case upsertPattern.MatchString(c.Consumer):
		return strategies.Upsert, nil
	case c.Consumer == "retract", c.Consumer == "datastream":
		return strategies.Retract, nil
	}
	return 0, fmt.Errorf("unknown consumer %q: expected retract, append, datastream or upsert (PRIMARY KEY (...) NOT "+
		"ENFORCED)", c.Consumer)
}

// miniBatch reads the options of mini-batch.
func (c *Case) miniBatch() (strategies.MiniBatch, error) {
	const prefix = "table.exec.mini-batch."
	if c.Config[prefix+"enabled"] != "true" {
		return strategies.MiniBatch{}, nil
	}
	latency, ok := sqlshape.Duration(c.Config[prefix+"allow-latency"])
	if !ok || latency == 0 {
		return strategies.MiniBatch{}, fmt.Errorf("option %sallow-latency: %q is not a duration", prefix,
			c.Config[prefix+"allow-latency"])
	}
	size, err := strconv.Atoi(c.Config[prefix+"size"])
	if err != nil || size < 1 {
		return strategies.MiniBatch{}, fmt.Errorf("option %ssize: %q is not a number of rows", prefix,
			c.Config[prefix+"size"])
	}
	return strategies.MiniBatch{
		Latency: latency, Size: size,
		Compact: c.Config["table.exec.deduplicate.mini-batch.compact-changes-enabled"] == "true",
	}, nil
}
