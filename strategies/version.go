package strategies

import (
	"fmt"
	"slices"
	"strings"

	"deduplab/stream"
)

// Version is the version of Flink whose rules hold. The recordings are of Flink23, and "" stands for it; the others
// differ from it only where the public record fixes how.
type Version string

// The versions.
const (
	Flink23 Version = "2.3"

	// Flink20 is the last version before FLINK-37005 (apache/flink#26051, under review in February 2025): rowtime ASC
	// ran as RowTimeDeduplicateFunction, which does not wait for the watermark, keeps late rows and corrects its
	// result, and was declared updating. The planner's insert-only shortcut for a top-1, and with it the fault of
	// FLINK-40368, came with the same change. That it came with 2.1 rests on IndustryFusion/DigitalTwin#893: EXPLAIN
	// says [I,UB,UA,D] for a non-time top-1 in 1.20.4 and [I] in 2.1.0 and 2.3.0, and the branch is in the source of
	// 2.1 and later, not of 2.0 and earlier. Processing-time ASC was insert-only before, too.
	//
	// It has neither TO_CHANGELOG, which came with 2.3 (FLIP-564, FLINK-39258), nor process table functions, which were
	// announced with 2.1 (FLIP-440; FLINK-37423 has 2.1.0 for its fix version). Parts of the latter may be in the
	// source of 2.0, undocumented.
	Flink20 Version = "2.0"

	// AfterFLINK40368 is a version to come: 2.3 with apache/flink#28980, which takes a top-1 for insert-only if it is
	// ordered by one time attribute alone and leaves all others at ALL_CHANGES, [I,UB,UA,D]. That pull request is open
	// and no fix version is published; FLINK-39966 (apache/flink#28505), the same test in another place of the planner,
	// has been merged.
	AfterFLINK40368 Version = "after-FLINK-40368"
)

// Versions lists the versions, the default first.
var Versions = []Version{Flink23, Flink20, AfterFLINK40368}

// ParseVersion reads the name of a version.
func ParseVersion(s string) (Version, error) {
	names := make([]string, len(Versions))
	for i, v := range Versions {
		names[i] = string(v)
	}
	if !slices.Contains(names, s) {
		return "", fmt.Errorf("%q is not one of %s%s", s, strings.Join(names, ", "), stream.DidYouMean(s, names))
	}
	return Version(s), nil
}

// String is the name used in scenarios.
func (v Version) String() string {
	if v == "" {
		return string(Flink23)
	}
	return string(v)
}

// rowtimeAscWaits reports whether rowtime ASC waits for the watermark instead of correcting its result: FLINK-37005.
func (v Version) rowtimeAscWaits() bool { return v != Flink20 }

// mistakesRank reports whether the planner takes any top-1 for insert-only that is not ordered by one single
// descending column, a Rank too: FLINK-40368, flink nontime-price-asc/price-change.
func (v Version) mistakesRank() bool { return v != Flink20 && v != AfterFLINK40368 }

// toChangelog is why a version does not have TO_CHANGELOG; empty if it does.
func (v Version) toChangelog() string {
	if v == Flink20 {
		return "Flink 2.0 has no TO_CHANGELOG: it came with 2.3 (FLIP-564)"
	}
	return ""
}

// processTableFunctions is why a version does not have process table functions; empty if it does.
func (v Version) processTableFunctions() string {
	if v == Flink20 {
		return "Flink 2.0 has no process table functions: they came with 2.1 (FLIP-440)"
	}
	return ""
}

// refusedFor refuses a plan for a reason, if there is one, ahead of all others.
func (p Plan) refusedFor(reason string) Plan {
	if reason != "" {
		p.Refused = reason
	}
	return p
}

// Spark is the version whose micro-batch queries were recorded.
const Spark = "4.3.0"
