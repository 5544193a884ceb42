package lab_test

import (
	"context"
	"testing"

	"deduplab/lab"
	"deduplab/scenarios"
)

// BenchmarkOrders runs the shipped experiment with all its strategies and replays.
func BenchmarkOrders(b *testing.B) {
	for b.Loop() {
		s, err := scenarios.Read("../scenarios/orders.yaml")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := lab.Run(context.Background(), s, lab.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
