package measure

// PerID says how the rows are spread over the ids.
type PerID struct {
	Mean      float64    `json:"mean"` // rows an id
	Max       int        `json:"max"`
	Histogram []IDBucket `json:"histogram"`
	// Worst are those with the most rows, at most 10, where there are copies; of two with as many the one that came first.
	Worst []ID `json:"worst"`
	// WorstShare is the part of all copies that the worst ids make.
	WorstShare float64 `json:"worst_share"`
}

// IDBucket counts the ids with more rows than the bucket before it, up to and including its own.
type IDBucket struct {
	UpTo int `json:"up_to"`
	IDs  int `json:"ids"`
	Rows int `json:"rows"`
}

// ID is an id and how many rows have it.
type ID struct {
	ID   string `json:"id"`
	Rows int    `json:"rows"`
}

const worstIDs = 10

// idBuckets are the bounds of the buckets.
var idBuckets = []int{1, 2, 3, 5, 10, 100, 1000, 10_000, 100_000, 1 << 40}
