package strategies

var flatMapGroupsFacts, latestWinsFacts, latestWinsAggregateFacts, transformWithStateFacts []Fact
