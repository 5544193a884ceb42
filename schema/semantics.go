package schema

// semantics describes what semantics.Load reads.
func semantics() *Schema {
	counts := func(names ...string) *Schema {
		if names == nil {
			return either(whole(), mapOf(whole()))
		}
		var fields []field
		for _, name := range names {
			fields = append(fields, may(name, whole()))
		}
		return either(whole(), object(fields...))
	}
	row := func() *Schema { return mapOf(scalar()) }
	marked := func() *Schema { return &Schema{Types: []string{"boolean", "null"}} }
	emits := func() *Schema { return either(list(either(text(), row())), whole(), text()) }
	step := object(
		may("at", scalar()), may("reader", whole()), may("row", row()),
		may("rows", either(list(row()), object(must("count", whole()), may("every", duration()), must("row", row())))),
		may("watermark", scalar()),
		may("clock", scalar()), may("checkpoint", marked()), may("restore", marked()), may("idle", marked()),
		may("end", marked()), may("emits", about("the changes, such as \"+I {order_id: a}\"", emits())),
		may("emits_any_order", boolean()), may("side_output", emits()),
		may("state", object(
			may("entries", counts()), may("cached", whole()), may("buffered", whole()), may("live", whole()),
			may("timers", counts("event", "proc")), may("late_dropped", whole()), may("records", whole()),
			may("tombstones", whole()),
		)),
		may("error", boolean()),
	)
	test := object(
		must("name", text()), may("about", text()), may("columns", mapOf(text())), may("key", oneOrMore(text)),
		may("event_time", text()),
		may("job", object(
			may("flink", flinkVersions()), may("input", choice("append", "changelog")),
			may("sink", choice("retract", "append", "upsert", "upsert-kafka")),
			may("mini_batch", object(must("latency", duration()), must("size", whole()), may("compact", boolean()))),
			may("insert_update_after_sensitive", boolean()), may("readers", whole()),
		)),
		may("refused", boolean()),
		may("declared", oneOrMore(func() *Schema { return choice("I", "UB", "UA", "D") })),
		must("strategy", strategy()),
		may("steps", list(step)),
	)
	s := object(must("tests", list(test)))
	s.Title = "semantics tests of lab"
	return s
}
