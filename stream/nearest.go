package stream

// DidYouMean returns ", did you mean X?" for the name nearest to the one written, or nothing when none is near.
func DidYouMean(written string, names []string) string {
	best, bestDistance := "", len(written)/2+1
	for _, name := range names {
		if d := editDistance(written, name); d < bestDistance {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return ", did you mean " + best + "?"
}

// editDistance is the number of single-character insertions, deletions and substitutions between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
