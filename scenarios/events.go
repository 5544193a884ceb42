package scenarios

import (
	"slices"

	"deduplab/gen"
	"deduplab/yml"
)

// eventKind is a ready-made kind of event: what a workload that names it need not say itself.
type eventKind struct {
	fields    []gen.Field
	key       []string
	eventTime string
}

// eventKinds are the ready-made kinds, none of which is taken from anybody's schema: they have the shape of one, with
// an id or a natural key, a few skewed columns and a number to sum.
var eventKinds = map[string]eventKind{
	"order": {
		fields: []gen.Field{
			{Name: "order_id", UUID: true},
			{Name: "customer_id", Zipf: &gen.Zipf{N: 100_000, S: 0.8}},
			{Name: "product", Zipf: &gen.Zipf{N: 10_000, S: 1}},
			{Name: "quantity", Int: &[2]int64{1, 9}},
			{Name: "price", Decimal: &[2]int64{200, 50_000}},
		},
		key: []string{"order_id"}, eventTime: "created_at",
	},
	"payment": {
		fields: []gen.Field{
			{Name: "payment_id", UUID: true},
			{Name: "account", Zipf: &gen.Zipf{N: 1_000_000, S: 0.7}},
			{Name: "method", Choice: []gen.Choice{
				{Text: "card", Weight: 6}, {Text: "wallet", Weight: 3}, {Text: "transfer", Weight: 1},
			}},
			{Name: "amount", Decimal: &[2]int64{50, 200_000}},
			{Name: "sent_at", Stamp: gen.Sent},
		},
		key: []string{"payment_id"}, eventTime: "paid_at",
	},
	"clickstream": {
		fields: []gen.Field{
			{Name: "event_id", UUID: true},
			{Name: "user_id", Zipf: &gen.Zipf{N: 1_000_000, S: 1}},
			{Name: "page", Zipf: &gen.Zipf{N: 5000, S: 1}},
			{Name: "action", Choice: []gen.Choice{
				{Text: "view", Weight: 80}, {Text: "click", Weight: 17}, {Text: "buy", Weight: 3},
			}},
			{Name: "sent_at", Stamp: gen.Sent},
		},
		key: []string{"event_id"}, eventTime: "clicked_at",
	},
	"sensor": {
		fields: []gen.Field{
			{Name: "sensor_id", Int: &[2]int64{1, 10_000}},
			{Name: "reading", Sequence: new(int64(1))},
			{Name: "temperature", Decimal: &[2]int64{-2000, 4500}},
			{Name: "battery", Int: &[2]int64{0, 100}, Null: 0.05},
		},
		key: []string{"sensor_id", "reading"}, eventTime: "measured_at",
	},
}

// events reads the name of a ready-made kind of event.
func (l *loader) events(spec *gen.Spec) func(*yml.Node) {
	return func(n *yml.Node) {
		names := make([]string, 0, len(eventKinds))
		for name := range eventKinds {
			names = append(names, name)
		}
		slices.Sort(names)
		name := ""
		yml.Value(l.Reader, &name, yml.OneOf(names...))(n)
		if kind, ok := eventKinds[name]; ok {
			spec.Fields, spec.Key = slices.Clone(kind.fields), slices.Clone(kind.key)
			spec.EventTime.Field = kind.eventTime
		}
	}
}
