package strategies

import "strings"

var _ = register(&Strategy{
	Name:   "select-distinct-key",
	Engine: "flink-sql",
	About:  "SELECT DISTINCT over the key columns: which keys there are, without their rows",
	Loses: "It keeps the key and throws the other columns away, and with a TTL sends -U/+U for each copy to keep " +
		"downstream state alive.",
	Facts:  selectDistinctKeyFacts,
	Params: []Param{ttlParam, hintParam, phasesParam},
	Plan: func(args Args, job Job) Plan {
		p := groupPlan(args, job, job.keyBytes(), -1)
		p.Code = distinctCode(args, job, strings.Join(job.keyNames(), ", "))
		p.Output, p.Finding = KeyOnly, distinctFinding
		return job.plannedGroup(p)
	},
})

// selectDistinctKeyFacts is what is known of the strategy.
var selectDistinctKeyFacts = []Fact{
	{TopicState, "the key columns of each key", "select-distinct-key/many-keys"},
	{TopicState, "each copy restarts the TTL, so a key that is seen often enough never " +
		"expires", "select-distinct-key/retract-ttl-chain"},
	{TopicState, "a STATE_TTL hint is honoured, and wins over " +
		"table.exec.state.ttl", "select-distinct-key/state-ttl-hint-over-config"},
	{TopicState, "an expired entry stays in memory until the operator uses its state " +
		"again", "select-distinct-key/ttl-physical-cleanup"},
	confluentTTL,
	{TopicChangelog, "declared [I,UB,UA], for an upsert sink [I,UA], with or without a TTL; an append-only sink " +
		"refuses it", "select-distinct-key/upsert-ttl-chain"},
	{TopicChangelog, "without a TTL a copy sends nothing", "select-distinct-key/in-order-dup"},
	{TopicChangelog, "with a TTL each copy sends -U/+U of the same key, to keep it alive " +
		"downstream", "select-distinct-key/retract-ttl-chain"},
	{TopicLate, "no lateness test: rows below the watermark are taken", "select-distinct-key/late"},
	{TopicLatency, "at once, with the first arrival of a key", "select-distinct-key/in-order-dup"},
	{TopicLatency, "with mini-batch when the clock reaches a multiple of the " +
		"interval", "select-distinct-key/mini-batch"},
	{TopicLatency, "two phases: the local batch counts rows, the global one the entries it is " +
		"handed", "select-distinct-key/mini-batch-size"},
	commitLatency,
	{TopicDeterminism, "processing time: closed; the result is a set, whatever the order of " +
		"arrival", "select-distinct-key/out-of-order"},
	{TopicDeterminism, "watermarks: closed; they are not asked", "select-distinct-key/late"},
	{TopicDeterminism, "idleness: closed, as the watermark is not asked", "select-distinct-key/late"},
	{TopicDeterminism, "state TTL: open; whether a key is sent as +U or as +I again depends on " +
		"it", "select-distinct-key/ttl-refresh"},
	opensReplay,
	callsNoFunction,
	{TopicLoses, "no key: but all columns that are not part of it", "select-distinct-key/price-change"},
	{TopicLeaks, "a key that rested for one TTL comes out as +I again", "select-distinct-key/ttl-at"},
	{TopicLeaks, "with a TTL, whatever stores each change it is handed as a row holds every " +
		"copy", "select-distinct-key/retract-ttl-chain"},
}
