// Package sim is the runtime that a strategy runs in, and the ledger that judges it.
//
// What happens to a row:
//
//	gen.Stream        makes it, in order of arrival
//	Feed.Next         reads it as the job's source does, tells its event time to the Source, which makes the watermarks,
//	                  and puts it into a Batch, with Marks for the watermarks, checkpoints and samples between rows
//	Task.Row          hands it to the subtask of its key group, in runs of up to 64 rows
//	Operator.Rows     decides, with its Table of keyed state, and tells its Ctx: Emit, Update, Drop or Hold
//	Task.Drain        gives these Changes out, in order of processing time
//	Ledger.Book       enters them: fates, causes, latency, digests
//	Ledger.Result     fills in the numbers of results.Strategy
//
// A Feed is read once for all strategies of a run; the package lab drives a Task and a Ledger for each of them. The
// watermark of an operator is that of Flink's StatusWatermarkValve over the readers: see [Source], [Multiplexer] and
// [Valve]. What an operator may see of the world is in [Operator] and [Ctx].
//
// State lives in [Table], in memory or, with a [Cold] store behind it, on disk; timers wait in a [Wheel]; the cache of
// Flink's Rank is an [LRU].
package sim
