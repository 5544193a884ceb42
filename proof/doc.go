// Package proof holds the tests that show the strategies to be right beyond what was recorded of the real engine.
//
// TestRules compares every strategy, on random steps, with its rule written in the simplest way: maps and slices, a few
// lines each. TestRelations changes the steps or the world in a way that should not matter, such as a restart from a
// checkpoint, and says for every strategy whether it does matter; where it does, the smallest example stands beside it,
// because that is a property which users must know.
//
// Both find the smallest failing steps and print them as a YAML test for `lab test`.
package proof
