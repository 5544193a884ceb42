package gen_test

import (
	"slices"
	"strings"
	"testing"

	"deduplab/gen"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*gen.Spec)
		want  []string // lines of the error; nil: none
	}{
		{"valid", func(*gen.Spec) {}, nil},
		{"shape", func(s *gen.Spec) { s.Start, s.Duration, s.Rate, s.EventTime.Field = -1, 0, 0, "" }, []string{
			"start: 1969-12-31T23:59:59.999Z lies before 1970",
			"duration: 0 ms must be positive",
			"rate: 0 rows a second must be above 0 and at most 1000000",
			"event_time: the field has no name",
		}},
		{"too many events", func(s *gen.Spec) { s.Rate, s.Duration = 1e6, 8*hour }, []string{
			"rate: 1e+06 rows a second for 28800000 ms make 2.88e+10 events, more than 1.72e+10",
			"outage[0].flush: 500 rows a second must exceed the partition's own 500000, or the backlog never ends",
		}},
		{"load", func(s *gen.Spec) {
			s.Load = gen.Load{
				Steps: []gen.LoadStep{{From: 5, Times: 0}, {From: 5, Times: 2}},
				Sine:  &gen.Sine{Amplitude: 2}, Burst: &gen.Burst{Every: 5, For: 5, Times: 2000},
			}
		}, []string{
			`load.steps[0].times: 0 must be from 0.001 to 1000`,
			`load.steps[1].from: 5 ms must be after the step before it, and below 4 years`,
			`load.sine.period: 0 ms must be from 1 s to 4 years`,
			`load.sine.amplitude: 2 must be above 0 and at most 1`,
			`load.sine.peak: 0 ms does not lie within the period of 0 ms`,
			`load.burst.times: 2000 must be from 0.001 to 1000`,
			`load.burst.for: 5 ms must be positive and below the 5 ms of every`,
			`load: needs one of steps, sine and burst, has 3`,
		}},
		{"copies", func(s *gen.Spec) {
			s.Partitions, s.Outage, s.Silent = 1, nil, nil
			s.Duplicates = []gen.Duplicate{
				{Origin: "a", Copies: gen.Copies{Count: 1 << 24, Geometric: 0.5}, OtherPartition: true},
				{Origin: "b", Copies: gen.Copies{Zipf: &gen.Zipf{S: 11}}},
				{Origin: "c", Copies: gen.Copies{Zipf: &gen.Zipf{N: 1<<24 - 1, S: 1}}},
				{Origin: "d", Flood: &gen.Flood{At: 1, From: 5, To: 5}},
			}
		}, []string{
			`duplicates[0].copies: 16777216 must be from 1 to 16777215`,
			`duplicates[0].copies: the geometric mean 0.5 must be from 1 to 1000`,
			`duplicates[0].copies: needs one of a number, geometric and zipf, has 2`,
			`duplicates[0].partition: there is no other partition`,
			`duplicates[1].copies: the cap 0 of zipf must be from 1 to 16777215`,
			`duplicates[1].copies: the exponent 11 of zipf must be from 0 to 10`,
			`duplicates[3].range: from 5 ms to 5 ms: the end must lie after the start`,
			`duplicates[3].at: 1 ms lies before the end of the range, 5 ms`,
			`duplicates[3].speed: 0 rows a second must be from 0.001 to 1e9`,
			`duplicates: the rules can make 16777217 rows of one event, more than 16777216`,
		}},
		{"reuse and what rows are", func(s *gen.Spec) {
			s.Fields[0].Reuse = &gen.Reuse{Rate: 0.6}
			s.Fields[1].Reuse = &gen.Reuse{Rate: 1, Constant: true, After: gen.Delay{Low: 5}}
			s.Fields = append(s.Fields, gen.Field{Name: "attempt", Retry: true})
			s.PartitionBy, s.Duplicates[0].Where.Field = "attempt", "attempt"
			s.Duplicates[1].Change = []string{"attempt"}
		}, []string{
			`fields[0] "order_id": the rate 0.6 of reuse must be from 0 to 0.5, or there are too few ids of one's own`,
			`fields[1] "quantity": reuse is for a uuid`,
			`fields[1] "quantity": a constant id is not one of an earlier event, so there is no after`,
			`partitions.by: field "attempt" is 0 in all originals, so it cannot pick a partition`,
			`duplicates[0].where: field "attempt" is not a number`,
			`duplicates[1].change: "attempt" is not drawn by chance, so a copy cannot draw it anew`,
		}},
		{"load above the flush", func(s *gen.Spec) { s.Load = gen.Load{Steps: []gen.LoadStep{{Times: 100}}} }, []string{
			`outage[0].flush: 500 rows a second must exceed the partition's own 500, or the backlog never ends`,
		}},
		{"fields", func(s *gen.Spec) {
			s.Fields[1].Name = "order_id"
			s.Fields[2].Faker = "x"
			s.Fields = append(s.Fields, gen.Field{Int: &[2]int64{2, 1}}, gen.Field{Name: "created_at", UUID: true})
		}, []string{
			`fields[1] "order_id": the name stands twice`,
			`fields[2] "price": needs exactly one of uuid, int, decimal, faker, sequence, zipf, choice, text, ` +
				`timestamp, retry and position, has 2`,
			`fields[4]: the field has no name`,
			`fields[4] "": the upper bound 1 lies below the lower bound 2`,
			`fields[5] "created_at": this is the event-time column, which is declared by event_time alone`,
		}},
		{"faker", func(s *gen.Spec) {
			for _, template := range []string{"{firstnam}", "{year}", "{word", "{number:x,y}"} {
				s.Fields = append(s.Fields, gen.Field{Name: template, Faker: template})
			}
		}, []string{
			`fields[4] "{firstnam}": gofakeit has no function {firstnam}`,
			`fields[5] "{year}": gofakeit's {year} depends on today's date, so runs would differ`,
			`fields[6] "{word": faker template "{word" has a { without a }`,
			`fields[7] "{number:x,y}": faker template "{number:x,y}": min field could not parse to int value`,
		}},
		{"fields of other kinds", func(s *gen.Spec) {
			far := int64(1<<63 - 1)
			s.Fields = append(s.Fields,
				gen.Field{Name: "a", Sequence: &far}, gen.Field{Name: "b", Zipf: &gen.Zipf{S: 11}},
				gen.Field{Name: "c", Choice: []gen.Choice{{Text: "x"}}}, gen.Field{Name: "d", Text: -1},
				gen.Field{Name: "e", Stamp: "now", Null: 1.5}, gen.Field{Name: "f", Stamp: gen.Sent})
			s.Key, s.PartitionBy = append(s.Key, "f"), "f"
			s.Duplicates[0].Change = []string{"a", "e"}
		}, []string{
			`fields[4] "a": the sequence begins at 9223372036854775807, too near to the largest number`,
			`fields[5] "b": the 0 ranks of zipf must be from 1 to 2^40`,
			`fields[5] "b": the exponent 11 of zipf must be from 0 to 10`,
			`fields[6] "c": the weight 0 of "x" must be above 0 and at most 1e9`,
			`fields[7] "d": a text of -1 letters must have from 1 to 65536`,
			`fields[8] "e": there is no moment "now" (there are: created, sent)`,
			`fields[8] "e": the share 1.5 of NULL must be from 0 to 1`,
			`key: field "f" is a moment, of which a key cannot be made`,
			`partitions.by: field "f" is a moment, which cannot pick a partition`,
			`duplicates[0].change: "a" is not drawn by chance, so a copy cannot draw it anew`,
			`duplicates[0].change: "e" is not drawn by chance, so a copy cannot draw it anew`,
		}},
		{"key", func(s *gen.Spec) { s.Key = []string{"id", "order_id", "order_id"} }, []string{
			`key: there is no field "id" (there are: order_id, quantity, price, customer)`,
			`key: field "order_id" stands twice`,
		}},
		{"no key", func(s *gen.Spec) { s.Key, s.Duplicates = nil, nil }, []string{
			`key: needs at least one field (there are: order_id, quantity, price, customer)`,
		}},
		{"partitions", func(s *gen.Spec) {
			s.PartitionBy = "id"
			s.Silent[0] = gen.Silence{Partition: 2, From: -1}
			s.Outage[0].Flush = 5
		}, []string{
			`partitions.by: there is no field "id" (there are: order_id, quantity, price, customer)`,
			`silent[0].partition: 2 does not exist, there are 2`,
			`silent[0].from: -1 ms is negative`,
			`silent[0].for: 0 ms must be positive`,
			`outage[0].flush: 5 rows a second must exceed the partition's own 5, or the backlog never ends`,
		}},
		{"sources", func(s *gen.Spec) {
			s.PartitionShare = []float64{0.6, 0.3}
			s.Slow = []gen.Slow{{Partition: 2, From: -1, For: -2, Delay: gen.Delay{Low: -3}}}
			s.Finished = []gen.Finish{{Partition: 1, At: 8 * hour}, {Partition: 1, At: -1}}
			s.Clock = []gen.Clock{{Skew: 1 << 38, Drift: 10_001}, {Partition: -1, Skew: -s.Start - 1}, {Partition: 0}}
		}, []string{
			`partitions.share: the shares add up to 90 %, not to 100 %`,
			`slow[0].partition: 2 does not exist, there are 2`,
			`slow[0].from: -1 ms is negative`,
			`slow[0].for: -2 ms is negative`,
			`slow[0].delay: -3 ms is negative`,
			`finished[0].at: 28800000 ms does not lie within the duration of 28800000 ms`,
			`finished[1].partition: 1 is finished already`,
			`finished[1].at: -1 ms does not lie within the duration of 28800000 ms`,
			`clock[0].skew: 274877906944 ms is more than 4 years`,
			`clock[0].drift: 10001 ppm must be from -10000 to 10000`,
			`clock[1].partition: -1 does not exist, there are 2`,
			`clock[1].skew: -1767225600001 ms is more than 4 years`,
			`clock[2].partition: 0 has a clock already`,
		}},
		{"clock before 1970", func(s *gen.Spec) { s.Start, s.Clock = 5, []gen.Clock{{Skew: -6}} }, []string{
			`clock[0].skew: -6 ms makes the clock start before 1970`,
		}},
		{"shares", func(s *gen.Spec) { s.PartitionShare = []float64{1.5, -0.5} }, []string{
			`partitions.share: that of partition 0, 1.5, must be above 0 and at most 1`,
			`partitions.share: that of partition 1, -0.5, must be above 0 and at most 1`,
		}},
		{"number of shares", func(s *gen.Spec) { s.PartitionShare = []float64{1} }, []string{
			`partitions.share: has 1 shares for 2 partitions`,
		}},
		{"share above the flush", func(s *gen.Spec) {
			s.PartitionShare, s.Outage[0].Flush = []float64{0.1, 0.9}, 8
		}, []string{
			`outage[0].flush: 8 rows a second must exceed the partition's own 9, or the backlog never ends`,
		}},
		{"event time", func(s *gen.Spec) { s.EventTime.Resolution, s.EventTime.Null = -1, 1.5 }, []string{
			`event_time.resolution: -1 ms must be from 0 to 4 years`,
			`event_time.nulls: the share 1.5 must be from 0 to 1`,
		}},
		{"hot", func(s *gen.Spec) {
			s.Fields[0].Hot, s.Fields[1].Hot = &gen.Hot{Share: 0.2, Keys: 3}, &gen.Hot{Keys: 1<<20 + 1}
			s.Fields = append(s.Fields, gen.Field{Name: "n", Sequence: new(int64), Hot: &gen.Hot{Share: 1, Keys: 1}})
		}, []string{
			`fields[1] "quantity": the share 0 of hot must be above 0 and at most 1`,
			`fields[1] "quantity": the 1048577 keys of hot must be from 1 to 1048576`,
			`fields[4] "n": the field is not drawn by chance, so it has no hot values`,
			`duplicates[3].new_id: the key has no uuid field that could be made anew, never NULL and never hot`,
		}},
		{"hot or used again", func(s *gen.Spec) {
			s.Fields[0].Hot, s.Fields[0].Reuse = &gen.Hot{Share: 0.2, Keys: 3}, &gen.Reuse{Rate: 0.1}
			s.Duplicates = nil
		}, []string{
			`fields[0] "order_id": an id is either used again or hot, not both`,
			`partitions.by: "order_id" is an id that is used again, which cannot pick the partition where one is silent ` +
				`or finished; name another field`,
		}},
		{"long slowness", func(s *gen.Spec) { s.Slow = []gen.Slow{{Delay: gen.Delay{Low: 1 << 38}}} }, []string{
			`duration: a span of 274877906944 ms is longer than 2^37 ms, about 4 years; a long delay needs a cap`,
		}},
		{"duplicates", func(s *gen.Spec) {
			s.Key, s.PartitionBy = []string{"quantity"}, "quantity"
			s.Duplicates[0].Where = &gen.Where{Field: "customer", Op: "=", Value: 1}
			s.Duplicates[1].Origin, s.Duplicates[1].Rate = "", 1.5
			s.Duplicates[2].Change = []string{"created_at", "quantity", "color"}
		}, []string{
			`duplicates[0].where: field "customer" is not a number`,
			`duplicates[0].where: unknown operator "=" (there are: < <= > >= == !=)`,
			`duplicates[1].origin: is missing`,
			`duplicates[1].rate: 1.5 must be from 0 to 1`,
			`duplicates[2].change: "created_at" is the event time, for which there is restamp`,
			`duplicates[2].change: "quantity" is part of the key, for which there is new_id`,
			`duplicates[2].change: there is no field "color" (there are: order_id, quantity, price, customer)`,
			`duplicates[3].new_id: the key has no uuid field that could be made anew, never NULL and never hot`,
		}},
		{"too many rules", func(s *gen.Spec) { s.Duplicates = slices.Repeat(s.Duplicates, 16) }, []string{
			`duplicates: 64 rules are more than the 63 that there can be`,
		}},
		{"delays", func(s *gen.Spec) {
			s.Transport = gen.Delay{Low: -1, Cap: -2}
			s.Duplicates[1].Delay = gen.Delay{Kind: gen.Lognormal, Low: 5, High: 5, P1: 0.5, P2: 1}
			s.Duplicates[2].Delay = gen.Delay{Kind: gen.Uniform, Low: 2, High: 1}
			s.Duplicates[3].Delay = gen.Delay{Kind: 99}
		}, []string{
			`transport: -1 ms is negative`,
			`transport: the cap of -2 ms is negative`,
			`duplicates[1].delay: lognormal quantiles 5 ms and 5 ms must be positive and increase`,
			`duplicates[1].delay: lognormal probabilities 0.5 and 1 must lie between 0 and 1 and increase`,
			`duplicates[2].delay: uniform from 2 ms to 1 ms: the end lies before the start`,
			`duplicates[3].delay: unknown kind of delay 99`,
		}},
		{"delays of other kinds", func(s *gen.Spec) {
			s.Transport = gen.Delay{Kind: gen.Exponential}
			s.Duplicates[0].Delay = gen.Delay{Kind: gen.Pareto, Alpha: -1}
			s.Duplicates[1].Delay = gen.Delay{Kind: gen.Pareto, Low: 5, P2: 0.9, High: 5}
			s.Duplicates[2].Delay = gen.Delay{Kind: gen.Mixture, Mixture: []gen.Part{{}, {Share: 0.5, Delay: gen.Delay{
				Kind: gen.Step, Then: &gen.Delay{Low: -1}}}}}
			s.Duplicates[3].Delay = gen.Delay{Kind: gen.Empirical, Quantiles: []gen.Quantile{
				{P: 0.9, At: 5}, {P: 0.9, At: 6}, {P: 0.95, At: 4}}}
		}, []string{
			`transport: the exponential mean of 0 ms must be positive`,
			`duplicates[0].delay: the pareto minimum of 0 ms must be positive`,
			`duplicates[0].delay: the pareto alpha -1 must be above 0 and at most 100`,
			`duplicates[1].delay: the pareto quantile 5 ms must be above the minimum 5 ms`,
			`duplicates[2].delay.mixture[0].share: 0 must be above 0 and at most 1`,
			`duplicates[2].delay.mixture[1].delay.step.then: -1 ms is negative`,
			`duplicates[2].delay: the shares of the mixture add up to 50 %, not to 100 %`,
			`duplicates[3].delay: the quantiles do not say where they end: max is missing`,
			`duplicates[3].delay: the quantile probabilities 0.9 and 0.9 must lie from 0 to 1 and increase`,
			`duplicates[3].delay: the higher quantile must not be the shorter span, but 4 ms is less than 6 ms`,
		}},
		{"tail without an end", func(s *gen.Spec) { s.Transport = gen.Delay{Kind: gen.Pareto, Low: 1, Alpha: 0.1} }, []string{
			`duration: a span of 1099511627776 ms is longer than 2^37 ms, about 4 years; a long delay needs a cap`,
		}},
		{"horizon", func(s *gen.Spec) { s.Duplicates[2].Delay = gen.Delay{Low: 1 << 38} }, []string{
			`duration: a span of 274877906944 ms is longer than 2^37 ms, about 4 years; a long delay needs a cap`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := ordersSpec()
			test.spoil(&spec)
			_, err := gen.New(spec, 1)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if want := strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
