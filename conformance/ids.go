package conformance

import (
	"fmt"
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
	fail := func(format string, args ...any) (recorded, strategies.Plan, error) {
		return recorded{}, strategies.Plan{}, fmt.Errorf("%s: "+format, append([]any{c.File}, args...)...)
	}
	base, consumer := c.consumer()
	id, ok := ids[base]
	if !ok {
		known := make([]string, 0, len(ids))
		for name := range ids {
			known = append(known, name)
		}
		slices.Sort(known)
		return fail("unknown strategy %q%s", c.Strategy, stream.DidYouMean(c.Strategy, known))
	}
	strategy, _ := strategies.Lookup(id.strategy)
	given := params{}
	for name, value := range id.params {
		given[name] = value
	}
	takes := func(name string) bool {
		return slices.ContainsFunc(strategy.Params, func(p strategies.Param) bool { return p.Name == name })
	}
	if c.SQL != nil {
		if m := sizePattern.FindStringSubmatch(*c.SQL); m != nil && takes("size") {
			given["size"] = m[1] + intervalLetters[strings.ToUpper(m[2])]
		} else if tumblePattern.MatchString(*c.SQL) && takes("size") {
			return fail("the window's size is not spelled INTERVAL 'n' SECOND, MINUTE, HOUR or DAY")
		}
		if m := topPattern.FindStringSubmatch(*c.SQL); m != nil && takes("top") {
			given["top"] = m[1]
		}
		if m := minPattern.FindStringSubmatch(*c.SQL); m != nil && takes("column") {
			given["column"] = m[1]
		}
		if m := hintPattern.FindStringSubmatch(*c.SQL); m != nil && takes("hint") {
			if err := optionDuration(given, "hint", m[1]); err != nil {
				return fail("STATE_TTL: %w", err)
			}
		}
	}
	job := strategies.Job{Schema: schema}
	if strings.Contains(c.DDL, "'changelog-mode' = 'all'") {
		job.Input = strategies.AllChanges
	}
	for option, value := range c.Config {
		switch option {
		case "table.exec.state.ttl":
			// Windows ignore it, and the hint of a process table function wins over it.
			if takes("ttl") && id.strategy != "ptf" {
				if err := optionDuration(given, "ttl", value); err != nil {
					return fail("%s: %w", option, err)
				}
			}
		case "table.exec.source.cdc-events-duplicate":
			if takes("events_duplicate") {
				given["events_duplicate"] = value
			}
		case "table.exec.rank.topn-cache-size":
			if takes("cache") {
				given["cache"] = value
			}
		case "table.optimizer.agg-phase-strategy":
			if value == "ONE_PHASE" && takes("phases") {
				given["phases"] = "one"
			}
		case "table.exec.deduplicate.insert-update-after-sensitive-enabled":
			job.InsertInsensitive = value == "false"
		case "table.exec.mini-batch.enabled", "table.exec.mini-batch.allow-latency", "table.exec.mini-batch.size",
			"table.exec.deduplicate.mini-batch.compact-changes-enabled":
			var err error
			if job.MiniBatch, err = c.miniBatch(); err != nil {
				return fail("%w", err)
			}
			job.MiniBatch.ByWatermark = consumer == strategies.WindowAggregate || consumer == strategies.IntervalJoin
		default:
			return fail("unknown option %s", option)
		}
	}
	switch {
	case c.Consumer == "append":
		job.Sink = strategies.Append
	case upsertPattern.MatchString(c.Consumer):
		job.Sink = strategies.Upsert
	case c.Consumer != "retract" && c.Consumer != "datastream":
		return fail("unknown consumer %q: expected retract, append, datastream or upsert (PRIMARY KEY (...) NOT ENFORCED)",
			c.Consumer)
	}
	args, faults := strategy.Resolve(given, schema)
	if len(faults) > 0 {
		return fail("%v", faults[0])
	}
	if id.toChangelog {
		retracting := job
		retracting.Sink = strategies.Retract
		return id, strategies.ToChangelog(strategy.Plan(args, retracting), job), nil
	}
	plan := strategy.Plan(args, job)
	return id, plan, nil
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

// optionDuration puts a duration, as Flink's options spell it, among the parameters.
func optionDuration(given params, name, value string) error {
	t, ok := sqlshape.Duration(value)
	if !ok {
		return fmt.Errorf("%q is not a duration such as 2 h or 100 ms", value)
	}
	given[name] = stream.FormatDuration(t)
	return nil
}
