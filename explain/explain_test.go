package explain

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"deduplab/scenarios"
	"deduplab/strategies"
	"deduplab/strategies/sqlshape"
)

var update = flag.Bool("update", false, "write the golden pages anew")

// page makes the page of a strategy over the article's table.
func page(t *testing.T, name string, given map[string]string) *Page {
	t.Helper()
	s, err := strategies.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	complete, examples := Complete(s, given, Orders)
	args, faults := s.Resolve(complete, Orders)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	p := New(s, args, strategies.Job{Schema: Orders})
	p.Example(examples)
	return p
}

func printed(t *testing.T, p *Page) string {
	t.Helper()
	var b strings.Builder
	if err := p.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden compares whole pages: two strategies, and one query.
func TestGolden(t *testing.T) {
	shape, err := sqlshape.Recognise(`SET 'table.exec.state.ttl' = '2 h';
CREATE TABLE out (order_id STRING, price DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'format' = 'json');
INSERT INTO out
SELECT /*+ STATE_TTL('orders' = '1h') */ order_id, price
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY created_at DESC) AS rn FROM orders)
WHERE rn = 1;`)
	if err != nil {
		t.Fatal(err)
	}
	query, err := OfQuery(shape)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*Page{
		"ptf": page(t, "ptf", nil), "nontime": page(t, "nontime", map[string]string{"ttl": "2h"}), "query": query,
	} {
		file, got := "testdata/"+name+".golden", printed(t, p)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, []byte(got)) {
			t.Errorf("%s differs; go test ./explain -update writes it anew. Got\n%s", file, got)
		}
	}
}

// TestPages holds all pages to their width, and to what every page must have.
func TestPages(t *testing.T) {
	for _, name := range strategies.Names() {
		p := page(t, name, nil)
		code := strings.Split(p.Code, "\n")
		for line := range strings.SplitSeq(printed(t, p), "\n") {
			isCode := slices.ContainsFunc(code, func(c string) bool { return strings.TrimRight("  "+c, " ") == line })
			if utf8.RuneCountInString(line) > width && !isCode {
				t.Errorf("%s: wider than %d: %s", name, width, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s: space at the end of %q", name, line)
			}
		}
		if p.Code == "" || p.Plan.Operator == "" || len(p.Topics) != len(strategies.Topics) {
			t.Errorf("%s: the page is not complete: %+v", name, p)
		}
		b, err := json.Marshal(p)
		var again Page
		if err == nil {
			err = json.Unmarshal(b, &again)
		}
		if err != nil || printed(t, &again) != printed(t, p) {
			t.Errorf("%s: the JSON does not hold the page: %v", name, err)
		}
	}
}

// TestDownstream asks who takes a result, and what to know of a yes.
func TestDownstream(t *testing.T) {
	for _, test := range []struct {
		strategy string
		given    map[string]string
		consumer string
		answer   string
	}{
		{"rowtime-asc", nil, "interval join", "yes"},
		{"rowtime-desc", nil, "ML_PREDICT, VECTOR_SEARCH", "no: it does not take updates"},
		{"rowtime-desc", nil, "retract sink", "yes"},
		{"nontime", nil, "interval join", "yes, but +U comes undeclared: FLINK-40368"},
		{"nontime", nil, "upsert sink", "yes, and happens to be right: it keeps the last row of a key"},
		{"nontime", map[string]string{"order_by": "order_id asc"}, "interval join", "yes"},
		{"nontime-to-changelog", map[string]string{"order_by": "price asc"}, "append-only sink",
			"yes, but UPDATE_AFTER comes without UPDATE_BEFORE: FLINK-40368"},
		{"nontime-to-changelog", nil, "interval join", "no: the result has no time column to go by"},
		{"ptf", nil, "interval join", "yes, as a regular join: the time column is no time attribute any more"},
		{"ptf", nil, "window join", "no: the result has no time attribute"},
		{"ptf", nil, "lateral snapshot join", "yes"},
		{"select-distinct", nil, "append-only sink", "no: Table sink doesn't support consuming update changes which is " +
			"produced by node GroupAggregate(groupBy=[order_id, quantity, price, created_at])"},
	} {
		p := page(t, test.strategy, test.given)
		i := slices.IndexFunc(p.Downstream, func(d Downstream) bool { return d.Consumer == test.consumer })
		if i < 0 {
			t.Fatalf("%s: no consumer %s", test.strategy, test.consumer)
		}
		if got := p.Downstream[i].Answer(); got != test.answer {
			t.Errorf("%s, %s: %s; want %s", test.strategy, test.consumer, got, test.answer)
		}
	}
}

// TestRefusedQuery is a query that the planner refuses for its input.
func TestRefusedQuery(t *testing.T) {
	shape, err := sqlshape.Recognise(`CREATE TABLE orders (order_id STRING, created_at TIMESTAMP(3),
  WATERMARK FOR created_at AS created_at) WITH ('connector' = 'kafka', 'format' = 'debezium-json');
SELECT window_start, window_end, order_id, MIN(created_at) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(created_at),
  INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, order_id`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := OfQuery(shape)
	if err != nil {
		t.Fatal(err)
	}
	if text := printed(t, p); !strings.Contains(text, "nobody can: ") {
		t.Errorf("the page does not tell that the query is refused:\n%s", text)
	}
}

// TestJobOfQuery runs the scenario that a page tells through the loader: it must plan the same operator.
func TestJobOfQuery(t *testing.T) {
	const query = "SELECT order_id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY created_at " +
		"ASC) AS rn FROM orders) WHERE rn = 1;"
	const batch = "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'table.exec.mini-batch.allow-latency' = '5 s';"
	create := func(format string) string {
		return "CREATE TABLE orders (order_id STRING, price DECIMAL(10, 2), created_at TIMESTAMP_LTZ(3), WATERMARK FOR " +
			"created_at AS created_at - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'format' = '" + format + "');"
	}
	const upsert = "CREATE TABLE out (order_id STRING PRIMARY KEY NOT ENFORCED, price DECIMAL(10, 2)) WITH ('connector' " +
		"= 'upsert-kafka'); INSERT INTO out "
	for _, test := range []struct {
		name, sql, job string
		leftOut        bool
	}{
		{"plain", query, "", false},
		{"changelog", create("debezium-json") + query, "job: {input: changelog, watermark: {delay: 5s}}", true},
		{"mini-batch", batch + create("json") + query,
			"job: {watermark: {delay: 5s}, mini_batch: {latency: 5s, size: 1073741824}}", true},
		{"sink", create("json") + upsert + query, "job: {watermark: {delay: 5s}, sink: upsert}", false},
		{"all", batch + create("debezium-json") + upsert + query, "job: {input: changelog, watermark: {delay: 5s}, " +
			"mini_batch: {latency: 5s, size: 1073741824}, sink: upsert}", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape, err := sqlshape.Recognise(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			p, err := OfQuery(shape)
			if err != nil {
				t.Fatal(err)
			}
			if p.Query.Job != test.job {
				t.Errorf("job %q, want %q", p.Query.Job, test.job)
			}
			text := printed(t, p)
			if left := strings.Contains(text, "facts are left out"); left != test.leftOut ||
				left == strings.Contains(text, "1 STATE") {
				t.Errorf("summary and facts: left out %v, want %v:\n%s", left, test.leftOut, text)
			}
			s, err := scenarios.Load("x.yaml", []byte("scenario: x\nseed: 1\nworkload:\n  duration: 1m\n  rate: 1/s\n"+
				"  fields:\n    order_id: {uuid: true}\n    price: {decimal: [2.00, 500.00]}\n  key: order_id\n"+
				"  event_time: {field: created_at}\n"+p.Query.Job+"\nstrategies:\n  "+p.Query.Entry+"\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			e := s.Strategies[0]
			plan := e.Strategy.Plan(e.Args, strategies.Job{Schema: s.Workload.Schema, Version: s.Job.Flink,
				Input: s.Job.Input, MiniBatch: s.Job.MiniBatch, Sink: s.Job.Sink})
			if plan.Operator != p.Plan.Operator || plan.Runtime != p.Plan.Runtime {
				t.Errorf("the scenario plans %s, %s, the page tells %s, %s", plan.Operator, plan.Runtime, p.Plan.Operator,
					p.Plan.Runtime)
			}
		})
	}
}
