package stream

// DidYouMean returns ", did you mean X?" for the name nearest to the one written, or nothing when none is near.
func DidYouMean(written string, names []string) string {
	best := Nearest(written, names, len(written)/2)
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// Nearest returns the name nearest to the one written and at most so many edits away, empty when there is none.
func Nearest(written string, names []string, edits int) string {
	best := ""
	for _, name := range names {
		if d := editDistance(written, name); d <= edits {
			best, edits = name, d-1
		}
	}
	return best
}

// editDistance is the number of single characters inserted, deleted or replaced, and of neighbours swapped, between two
// names.
func editDistance(a, b string) int {
	above, row := make([]int, len(b)+1), make([]int, len(b)+1) // of the first i-1 and i characters of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row = row, next
	}
	return row[len(b)]
}
