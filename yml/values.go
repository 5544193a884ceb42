package yml

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deduplab/stream"
)

// Whole makes a reader of whole numbers within bounds.
func Whole(low, high int) func(string) (int, error) {
	return func(s string) (int, error) {
		v, err := strconv.Atoi(strings.ReplaceAll(s, "_", ""))
		if errors.Is(err, strconv.ErrSyntax) {
			return 0, fmt.Errorf("%q is not a whole number", s)
		}
		if err != nil || v < low || v > high {
			return 0, fmt.Errorf("%s must be from %d to %d", s, low, high)
		}
		return v, nil
	}
}

// Boolean reads true or false.
func Boolean(s string) (bool, error) {
	if s != "true" && s != "false" {
		return false, fmt.Errorf("%q is neither true nor false", s)
	}
	return s == "true", nil
}

// NonEmpty reads any text that is not empty.
func NonEmpty(s string) (string, error) {
	if s = strings.TrimSpace(s); s == "" {
		return "", errors.New("the text is empty")
	}
	return s, nil
}

// OneOf makes a reader of a choice.
func OneOf(names ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(names, s) {
			return "", fmt.Errorf("%q is not one of %s%s", s, strings.Join(names, ", "), stream.DidYouMean(s, names))
		}
		return s, nil
	}
}
