package schema

import (
	"deduplab/results"
	"deduplab/scenarios"
	"deduplab/sim"
	"deduplab/strategies"
	"deduplab/stream"
)

// scenario describes what scenarios.Load reads.
func scenario() *Schema {
	s := object(
		must("scenario", about("its name: lower-case letters, digits and -", text())),
		may("about", text()),
		may("seed", whole()),
		must("workload", about("the stream: generated, or a trace", either(generated(), trace()))),
		may("job", job()),
		must("strategies", list(strategy("id", "key"))),
		may("after", about("what reads the result", after())),
		may("require", about("one verdict each for every strategy", require())),
		may("expect", about("what lab check holds the strategies to, by their ids", mapOf(expect()))),
	)
	s.Title = "a scenario of lab"
	s.Defs = map[string]*Schema{"delay": delay()}
	return s
}

func generated() *Schema {
	return object(
		may("start", about("default 2026-01-01T00:00Z", text())),
		must("duration", duration()),
		must("rate", about("of originals; copies come on top", rate())),
		may("scale", about("so many times the events in the same time", number())),
		may("load", about("how the rate changes over time", load())),
		may("events", choice("order", "payment", "clickstream", "sensor")),
		may("fields", mapOf(column())),
		may("key", oneOrMore(text)),
		may("event_time", object(may("field", text()), may("log_append", boolean()),
			may("resolution", duration()), may("nulls", share()))),
		may("partitions", object(must("count", whole()), may("by", text()), may("share", list(share())))),
		may("transport", about("from creation to arrival", ref("delay"))),
		may("silent", list(object(must("partition", whole()), must("from", duration()), must("for", duration())))),
		may("outage", list(object(must("partition", whole()), must("from", duration()), must("for", duration()),
			must("flush", rate())))),
		may("slow", list(object(must("partition", whole()), must("delay", ref("delay")), may("from", duration()),
			may("for", duration())))),
		may("finished", list(object(must("partition", whole()), must("at", duration())))),
		may("clock", list(object(must("partition", whole()), may("skew", about("such as -30s", text())),
			may("drift", about("such as 50ppm", text()))))),
		may("duplicates", list(object(
			must("origin", text()),
			may("where", about(`a comparison such as "price < 100"`, text())),
			may("rate", share()),
			may("delay", about("counts from the creation of the original", ref("delay"))),
			may("transport", choice("own", "same")),
			may("copies", copies()),
			may("at", duration()), may("range", bounds(duration())), may("speed", rate()),
			may("new_id", &Schema{Enum: []any{true, false, "constant"}}), may("restamp", boolean()),
			may("partition", choice("same", "other")), may("offset", choice("new", "same")),
			may("change", oneOrMore(text)),
		))),
		may("keys", keys()),
		may("amount", amount()),
	)
}

func copies() *Schema {
	return either(whole(), object(
		may("geometric", object(must("mean", number()))),
		may("zipf", object(may("s", number()), must("cap", whole()))),
	))
}

func keys() *Schema {
	return about("other keys for strategies to go by: columns, or the content of columns",
		mapOf(either(text(), list(text()), object(must("content", oneOrMore(text))))))
}

func amount() *Schema { return about("the column whose sum is followed", text()) }

func load() *Schema {
	return object(
		may("steps", list(object(must("from", duration()), must("times", number())))),
		may("sine", object(must("period", duration()), must("amplitude", share()), may("peak", duration()))),
		may("burst", object(must("every", duration()), must("for", duration()), must("times", number()))),
	)
}

func column() *Schema {
	return object(
		may("uuid", boolean()), may("int", bounds(whole())), may("decimal", bounds(number())), may("faker", text()),
		may("sequence", whole()), may("zipf", object(must("n", whole()), may("s", number()))),
		may("choice", either(list(scalar()), mapOf(share()))), may("text", whole()),
		may("timestamp", choice("created", "sent")), may("retry", boolean()), may("position", boolean()),
		may("reuse", object(must("rate", share()), may("after", ref("delay")), may("constant", boolean()))),
		may("nulls", share()), may("hot", object(must("share", share()), must("keys", whole()))),
	)
}

func delay() *Schema {
	quantiles := func() *Schema { return mapOf(either(duration(), number())) }
	return either(duration(), object(
		may("uniform", bounds(duration())),
		may("exponential", object(must("mean", duration()))),
		may("lognormal", quantiles()), may("pareto", quantiles()),
		may("mixture", list(object(must("share", share()), must("delay", ref("delay"))))),
		may("step", object(must("at", duration()), may("then", ref("delay")))),
		may("quantiles", quantiles()),
		may("cap", duration()),
	))
}

func trace() *Schema {
	return object(
		must("trace", about("the files, relative to the scenario", oneOrMore(text))),
		may("start", text()),
		must("columns", object(must("key", oneOrMore(text)), must("event_time", text()), may("arrival", text()),
			may("partition", text()), may("event", text()), may("origin", text()))),
		may("unit", choice("auto", "s", "ms", "us", "ns")),
		may("on_bad_row", choice("fail", "skip")),
		may("partitions", object(must("count", whole()))),
		may("keys", keys()),
		may("amount", amount()),
	)
}

func job() *Schema {
	return object(
		may("flink", flinkVersions()),
		may("input", about("what the source declares", choice("append", "changelog"))),
		may("parallelism", whole()),
		may("watermark", object(may("delay", duration()), may("interval", duration()), may("idle_after", duration()),
			may("per", choice("partition", "reader")))),
		may("checkpoint", object(may("interval", duration()), may("delivery", choice("at-least-once", "exactly-once")))),
		may("sink", choice(strategies.Retract.String(), strategies.Append.String(), strategies.Upsert.String())),
		may("state", choice("memory", "pebble")),
		may("mini_batch", object(must("latency", duration()), must("size", whole()))),
		may("table", about("what a target is kept in: memory, pebble or the address of a Postgres", text())),
		may("spark", object(
			may("trigger", text()), may("max_rows_per_trigger", whole()), may("no_data_batches", boolean()),
			may("watermark_policy", choice("min", "max")), may("inputs", whole()),
			may("cost", object(may("batch", duration()), may("rows_per_second", whole()))),
			may("shuffle", choice(scenarios.WholeRow, scenarios.KeyFirst)),
			may("restart", duration()),
			may("migrate", object(must("at", duration()), may("overlap", duration()))),
		)),
		may("failures", list(object(
			may("kind", choice(sim.FailureKinds()...)), may("at", duration()), may("random", whole()), may("down", duration()),
			may("for", duration()), may("by", duration()),
		))),
		may("catch_up_rate", rate()),
		may("retention", duration()),
		may("skew", whole()),
		may("adds", about("columns that the query adds, whose values are others when it is run again", list(object(
			must("column", text()), must("function", choice(stream.Functions...)))))),
	)
}

func after() *Schema {
	return object(
		may("window", object(must("size", duration()), may("sum", text()))),
		may("join", object(must("on", text()), must("within", duration()))),
	)
}

func require() *Schema {
	var classes []string
	for _, class := range strategies.StateClasses {
		classes = append(classes, "at most "+string(class))
	}
	fields := []field{
		may(scenarios.AppendOnly, &Schema{Enum: []any{true}}),
		may(scenarios.StateClass, choice(classes...)),
		may(scenarios.SameUnder, oneOrMore(func() *Schema { return choice(scenarios.Causes...) })),
		may(scenarios.Version, choice(scenarios.Versions...)),
	}
	for _, metric := range results.MetricNames() {
		fields = append(fields, may(metric, about("a bound such as <= 0", text())))
	}
	return object(fields...)
}

func expect() *Schema {
	one := append(scenarios.Overall[:len(scenarios.Overall):len(scenarios.Overall)], results.NotApplicable,
		results.Undetermined)
	fields := []field{may("verdict", either(choice(scenarios.Overall...), mapOf(choice(one...))))}
	for _, metric := range results.MetricNames() {
		fields = append(fields, may(metric, about("a bound, or the value itself", either(text(), number()))))
	}
	return object(fields...)
}
