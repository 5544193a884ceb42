package sqlshape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"deduplab/strategies"
)

const (
	article = "CREATE TABLE orders (order_id STRING NOT NULL, price DECIMAL(10, 2), created_at TIMESTAMP_LTZ(3) NOT " +
		"NULL METADATA FROM 'timestamp', proc AS PROCTIME(), WATERMARK FOR `created_at` AS `created_at`) WITH " +
		"('connector' = 'faker');"
	ranked = "SELECT order_id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY %s) AS rn " +
		"FROM orders) WHERE rn = 1"
)

// by is the top-1 query by an order.
func by(order string) string { return fmt.Sprintf(ranked, order) }

// entry is a shape in one line.
func entry(s Shape) string {
	var given []string
	for name, value := range s.Params {
		given = append(given, name+": "+value)
	}
	slices.Sort(given)
	line := s.Strategy
	if len(given) > 0 {
		line += " {" + strings.Join(given, "; ") + "}"
	}
	if s.Consumer != "" {
		line += " > " + string(s.Consumer)
	}
	return line
}

// TestRecognise writes the recorded shapes in other ways.
func TestRecognise(t *testing.T) {
	for _, test := range []struct{ name, sql, want string }{
		{"the article's query", article + `
SELECT order_id, price, created_at
FROM (
  SELECT *, ROW_NUMBER()
    OVER (PARTITION BY order_id
          ORDER BY created_at ASC) AS row_num
  FROM orders
)
WHERE row_num = 1;`, "rowtime-asc"},
		{"the article's favourite", `SELECT * FROM TO_CHANGELOG((SELECT order_id, quantity, price FROM
  (SELECT *, ROW_NUMBER()
    OVER (PARTITION BY order_id
          ORDER BY order_id ASC) AS row_num
  FROM orders_with_duplicates)
WHERE row_num = 1));`, "nontime-to-changelog {order_by: order_id asc}"},
		{"the article's function", `CREATE FUNCTION EXACT_DEDUPLICATION
    AS 'com.confluent.developer.ptf.ExactDeduplication';
SELECT * FROM EXACT_DEDUPLICATION(
  input => TABLE orders_with_duplicates PARTITION BY order_id,
  uid   => 'exact-dedup-orders'
);`, "ptf"},
		{"the article's tables", `CREATE VIEW v AS (SELECT * FROM orders UNION ALL SELECT * FROM orders WHERE price < 100);
CREATE TABLE copies (WATERMARK FOR ` + "`created_at` AS `created_at`" + `) DISTRIBUTED BY (order_id) INTO 2 BUCKETS
AS (SELECT * FROM v);
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY created_at DESC) AS n FROM copies)
WHERE n = 1`,
			"rowtime-desc"},
		{"the review's statement set", `EXECUTE STATEMENT SET BEGIN
  -- send late events to dead letter queue
  INSERT INTO dlq SELECT * FROM input WHERE rowtime <= CURRENT_WATERMARK(rowtime);
  INSERT INTO results
    SELECT window_start, window_end, COUNT(*)
    FROM TUMBLE((SELECT * FROM input WHERE rowtime > CURRENT_WATERMARK(rowtime)), DESCRIPTOR(rowtime),
      INTERVAL '1' HOUR)
    GROUP BY window_start, window_end;
END;`, "late-dlq {branch: dlq; main: none}"},
		{"case, comments, aliases", `select o.ORDER_ID /* a comment; with a ) */ from (
  select t.*, row_number ( ) over ( partition by t.ORDER_ID -- the key
  order by t.PRICE desc nulls last ) as "rn" from orders as t) o
where ( o."rn" = 1 )`, "nontime {order_by: PRICE desc}"},
		{"order without direction", by("price"), "nontime {order_by: price asc}"},
		{"processing time inline", by("PROCTIME()"), "proctime-asc"},
		{"processing time of a view", `CREATE TEMPORARY VIEW v AS SELECT *, PROCTIME() AS pt FROM orders;
SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY pt DESC) rn FROM v) t WHERE 1 = rn`,
			"proctime-desc"},
		{"with", `WITH r AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY created_at) AS rn FROM orders)
SELECT order_id FROM r WHERE rn <= 1`, "rowtime-asc"},
		{"top 3", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY price DESC) AS rn FROM " +
			"orders) WHERE rn < 4", "nontime {order_by: price desc; top: 3}"},
		{"settings", "SET 'table.exec.state.ttl' = '90 min'; SET 'table.exec.rank.topn-cache-size' = '5';" + by("price ASC"),
			"nontime {cache: 5; order_by: price asc; ttl: 1h30m}"},
		{"Confluent's setting", "SET 'sql.state-ttl' = '2 hours';" + by("created_at ASC"), "rowtime-asc {ttl: 2h}"},
		{"a bare setting", "SET table.exec.state.ttl = 7200000;" + by("created_at ASC"), "rowtime-asc {ttl: 2h}"},
		{"no watermark", "CREATE TABLE orders (order_id STRING, price INT, created_at TIMESTAMP(3)) WITH ('connector' = " +
			"'x');" +
			by("created_at ASC"), "nontime {order_by: created_at asc}"},
		{"Confluent Cloud's event time", by("$rowtime"), "rowtime-asc"},
		{"a source of changes", "CREATE TABLE orders (order_id STRING, PRIMARY KEY (order_id) NOT ENFORCED) WITH " +
			"('connector' = 'upsert-kafka'); SELECT * FROM orders", "changelog-normalize {events_duplicate: true}"},
		{"cast", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY ts) AS rn FROM (SELECT *, " +
			"CAST(created_at AS TIMESTAMP(3)) AS ts FROM orders)) WHERE rn = 1", "nontime {order_by: ts asc}"},
		{"another table", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY user_id, page ORDER BY created_at) " +
			"AS rn FROM clicks) WHERE rn = 1", "rowtime-asc"},
		{"distinct rows", article + "SELECT DISTINCT order_id, price, created_at FROM orders", "select-distinct"},
		{"distinct *", "SELECT DISTINCT * FROM orders", "select-distinct"},
		{"distinct key", article + "SELECT DISTINCT order_id, price FROM orders", "select-distinct-key"},
		{"group by", "SELECT order_id FROM orders GROUP BY order_id", "select-distinct-key"},
		{"minimum", "SELECT order_id, MIN(o.price) FROM orders o GROUP BY order_id", "group-by-min {column: price}"},
		{"named window arguments", "SELECT window_start, window_end, order_id, MIN(price) p FROM TUMBLE(DATA => TABLE " +
			"orders, TIMECOL => DESCRIPTOR(created_at), SIZE => INTERVAL '1' MINUTES) GROUP BY order_id, window_start, " +
			"window_end",
			"tumble-agg {size: 1m}"},
		{"mini-batch", "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'table.exec.mini-batch.allow-latency' = '5 s'; " +
			by("created_at ASC"), "rowtime-asc"},
		{"one phase", "SET 'table.optimizer.agg-phase-strategy' = 'ONE_PHASE'; SELECT window_start, window_end, order_id, " +
			"MIN(price) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(created_at), INTERVAL '0.5' SECOND)) GROUP BY " +
			"window_start, window_end, order_id", "tumble-agg {phases: one; size: 500ms}"},
		{"insert into Kafka", article + "CREATE TABLE out (order_id STRING) WITH ('connector' = 'kafka', 'format' = " +
			"'json');INSERT INTO out (order_id) " + by("created_at DESC"), "rowtime-desc > append-sink"},
		{"insert into upsert-kafka", "CREATE TABLE out (id STRING PRIMARY KEY NOT ENFORCED) WITH ('connector' = " +
			"'upsert-kafka');INSERT INTO `c`.`d`.`out` " + by("price ASC"), "nontime {order_by: price asc} > upsert-sink"},
		{"insert on conflict", "CREATE TABLE out (id STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = " +
			"'upsert-kafka');INSERT INTO out SELECT DISTINCT * FROM orders ON CONFLICT DO DEDUPLICATE",
			"select-distinct > upsert-sink-on-conflict-deduplicate"},
		{"temporal sort", "SELECT * FROM (" + by("price ASC") + ") ORDER BY created_at",
			"nontime {order_by: price asc} > temporal-sort"},
		{"match", "SELECT * FROM (" + by("price ASC") + ") MATCH_RECOGNIZE (PARTITION BY order_id ORDER BY created_at " +
			"MEASURES A.created_at AS a PATTERN (A B) DEFINE B AS TRUE) AS m", "nontime {order_by: price asc} > " +
			"match-recognize"},
		{"temporal join", "SELECT * FROM (" + by("created_at ASC") + ") q LEFT JOIN rates FOR SYSTEM_TIME AS OF " +
			"q.created_at AS r ON q.price = r.price", "rowtime-asc > event-time-temporal-join-left"},
		{"join of a view", "CREATE VIEW d AS " + by("created_at ASC") + "; SELECT * FROM shipments s JOIN d ON " +
			"s.order_id = d.order_id AND s.t < d.created_at + INTERVAL '1' HOUR", "rowtime-asc > interval-join"},
		{"count", "SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY price) AS rn FROM " +
			"orders) WHERE rn = 1", "nontime {order_by: price asc} > group-aggregate"},
		{"nothing", "SELECT * FROM orders WHERE price > 5", "pass-through"},
		{"two bounds", strings.Replace(by("created_at"), "rn = 1", "rn = 1 AND rn <= 3", 1), "rowtime-asc"},
		{"two bounds, the other way", strings.Replace(by("price"), "rn = 1", "rn <= 3 AND rn < 3", 1),
			"nontime {order_by: price asc; top: 2}"},
		{"cast in place", article + "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY " +
			"created_at) AS rn FROM (SELECT order_id, price, CAST(created_at AS TIMESTAMP_LTZ(3)) AS created_at FROM orders)) " +
			"WHERE rn = 1", "nontime {order_by: created_at asc}"},
		{"cast in place, no table", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY created_at) " +
			"AS rn FROM (SELECT id, CAST(created_at AS TIMESTAMP_LTZ(3)) AS created_at FROM clicks)) WHERE rn = 1",
			"nontime {order_by: created_at asc}"},
		{"a view with a comment", "CREATE VIEW c.d.v COMMENT 'x' AS " + by("created_at") + "; SELECT * FROM c.d.v",
			"rowtime-asc"},
		{"key not enforced", "CREATE TABLE t (id STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'x'); " +
			"SELECT * FROM t", "pk-not-enforced"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape, err := Recognise(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			if got := entry(shape); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestNone has queries that are none of the shapes, and the reason that is given.
func TestNone(t *testing.T) {
	for _, test := range []struct{ name, sql, reason string }{
		{"empty", " \n-- nothing\n", "there is no SQL"},
		{"garbage", "lorem ipsum dolor", "lorem is not the beginning of a query"},
		{"update", "UPDATE orders SET price = 1", "UPDATE is not the beginning of a query"},
		{"settings only", "SET 'a' = 'b'; CREATE TABLE t (a INT);", "no query, only settings and tables"},
		{"view only", "CREATE VIEW v AS SELECT DISTINCT a FROM t", "no query that reads them"},
		{"unclosed bracket", "SELECT DISTINCT (a FROM t", "line 1: this ( is never closed"},
		{"unopened bracket", "SELECT a)\nFROM t", "line 1: this ) closes nothing"},
		{"unclosed string", "\nSELECT 'a", "line 2: this ' is never closed"},
		{"unclosed comment", "SELECT /* a", "this comment is never closed"},
		{"no select", "INSERT INTO t VALUES (1)", "expected SELECT"},
		{"no columns", "SELECT FROM t", "SELECT names no column"},
		{"a join", "SELECT * FROM a JOIN b ON a.x = b.x", "joins tables and deduplicates none"},
		{"no row number filter", "SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM t", "keeps all of " +
			"them"},
		{"no filter around", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM t)",
			"WHERE rn = 1 is missing"},
		{"the second", strings.Replace(by("price"), "rn = 1", "rn = 2", 1), "keeps the row number 2"},
		{"all but the first", strings.Replace(by("price"), "rn = 1", "rn > 1", 1), "expected rn = 1 or rn <= n"},
		{"between", strings.Replace(by("price"), "rn = 1", "rn BETWEEN 1 AND 2", 1), "expected rn = 1 or rn <= n"},
		{"rank", strings.Replace(by("price"), "ROW_NUMBER", "RANK", 1), "RANK is not ROW_NUMBER"},
		{"no partition", strings.Replace(by("price"), "PARTITION BY order_id ", "", 1), "no PARTITION BY"},
		{"no order", strings.Replace(by("price"), " ORDER BY price", "", 1), "no ORDER BY"},
		{"nulls last", by("price ASC NULLS LAST"), "NULLS LAST is not recorded"},
		{"expression", by("price * 2"), "is an expression"},
		{"two by processing time", by("proc, price"), "not recorded"},
		{"unknown column", article + by("prise"), "no column prise, did you mean price?"},
		{"qualify", "SELECT * FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1", "QUALIFY is not recorded"},
		{"limit", by("price") + " LIMIT 5", "a deduplication with LIMIT is not recorded"},
		{"over an aggregate", strings.Replace(by("price"), "FROM orders", "FROM (SELECT order_id, MIN(price) AS price FROM "+
			"orders GROUP BY order_id)", 1), "stands over another aggregation"},
		{"maximum", "SELECT a, MAX(b) FROM t GROUP BY a", "MAX(... is not recorded"},
		{"two minima", "SELECT a, MIN(b), MIN(c) FROM t GROUP BY a", "2 minima"},
		{"old window", "SELECT a, MIN(b) FROM t GROUP BY a, TUMBLE(created_at, INTERVAL '1' HOUR)", "the old way"},
		{"window without key", "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(created_at), " +
			"INTERVAL '1' HOUR)) GROUP BY window_start, window_end", "no key beside the window"},
		{"hop", "SELECT a, MIN(b) FROM TABLE(HOP(TABLE t, DESCRIPTOR(created_at), INTERVAL '1' HOUR, INTERVAL '2' HOUR)) " +
			"GROUP BY window_start, window_end, a", "several windows of HOP"},
		{"lateness of another kind", "SELECT * FROM t WHERE created_at < CURRENT_WATERMARK(created_at)", "none of those " +
			"recorded"},
		{"no partition of a function", "SELECT * FROM f(TABLE t)", "no table with PARTITION BY"},
		{"exists", "SELECT * FROM o WHERE EXISTS (SELECT 1 FROM p WHERE p.x = o.x)",
			"EXISTS (SELECT ...) in WHERE is a join"},
		{"not exists", "SELECT * FROM o WHERE a = 1 AND NOT EXISTS (SELECT 1 FROM p)", "NOT EXISTS (SELECT ...) in WHERE"},
		{"in", "SELECT * FROM o WHERE x IN (SELECT x FROM p)", "IN (SELECT ...) in WHERE is a join"},
		{"not in", "SELECT * FROM o WHERE x NOT IN (SELECT x FROM p)", "NOT IN (SELECT ...) in WHERE is a join"},
		{"equals a query", "SELECT * FROM o WHERE x = (SELECT MAX(x) FROM p)", "a subquery in WHERE is a join"},
		{"subquery among columns", "SELECT a, (SELECT MAX(x) FROM p) AS m FROM o", "a subquery in the SELECT list"},
		{"exists beside the rank", by("created_at") + " AND EXISTS (SELECT 1 FROM p)", "EXISTS (SELECT ...) in WHERE"},
		{"in below the rank", strings.Replace(by("created_at"), "FROM orders", "FROM orders WHERE x IN (SELECT x FROM p)", 1),
			"IN (SELECT ...) in WHERE"},
		{"in within a view", "CREATE VIEW v AS SELECT * FROM o WHERE x IN (SELECT x FROM p); SELECT DISTINCT * FROM v",
			"IN (SELECT ...) in WHERE"},
		{"exists in a key's table", "CREATE TABLE t (id STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'x'); " +
			"SELECT * FROM t WHERE id IN (SELECT id FROM u)", "IN (SELECT ...) in WHERE"},
		{"having a query", "SELECT a FROM o GROUP BY a HAVING MIN(b) > (SELECT 1)", "a subquery in HAVING"},
		{"sample", "SELECT * FROM orders TABLESAMPLE BERNOULLI(10)", "TABLESAMPLE takes a part"},
		{"sample with alias", "SELECT DISTINCT * FROM orders AS o TABLESAMPLE SYSTEM(5)", "TABLESAMPLE takes a part"},
		{"pivot", "SELECT * FROM orders PIVOT (SUM(a) FOR b IN (1))", "PIVOT behind a table"},
		{"last value", "SELECT order_id, LAST_VALUE(price) OVER (PARTITION BY order_id ORDER BY created_at) AS p FROM orders",
			"LAST_VALUE OVER is another window function"},
		{"count over", "SELECT *, COUNT(*) OVER (PARTITION BY order_id ORDER BY created_at) AS c FROM orders",
			"COUNT OVER is another window function"},
		{"count over with filter", "SELECT * FROM (SELECT *, COUNT(*) OVER (PARTITION BY order_id ORDER BY created_at) AS " +
			"c FROM orders) WHERE c = 1", "COUNT OVER is another window function"},
		{"lag below the rank", strings.Replace(by("created_at"), "FROM orders", "FROM (SELECT *, LAG(price, 1) OVER "+
			"(PARTITION BY a ORDER BY created_at) AS l FROM orders)", 1), "LAG OVER is another window function"},
		{"distinct on", "SELECT DISTINCT ON (order_id) order_id, price FROM orders", "DISTINCT ON is not Flink SQL"},
		{"two row numbers", strings.Replace(by("created_at"), " AS rn", " AS rn, ROW_NUMBER() OVER (PARTITION BY price "+
			"ORDER BY created_at) AS rn2", 1), "must be computed on the same window"},
		{"row number and count", strings.Replace(by("created_at"), " AS rn", " AS rn, COUNT(*) OVER (PARTITION BY order_id) "+
			"AS c", 1), "must be computed on the same window"},
		{"row number in an expression", strings.Replace(by("created_at"), " AS rn", " - 1 AS rn", 1),
			"stands within a larger expression"},
		{"frame", by("created_at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"), "ROWS BETWEEN gives the ROW_NUMBER a " +
			"frame"},
		{"rollup", "SELECT order_id FROM orders GROUP BY ROLLUP (order_id)", "GROUP BY ROLLUP groups each row several"},
		{"grouping sets", "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())", "GROUP BY GROUPING groups each row several"},
		{"rank and join", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY created_at) " +
			"AS rn FROM orders) o JOIN p ON o.x = p.x WHERE o.rn = 1", "a Rank followed by a Join"},
		{"or", strings.Replace(by("price"), "rn = 1", "rn = 1 AND a = 1 OR b = 1", 1), "joined by OR"},
		{"inner limit", strings.Replace(by("price"), "FROM orders", "FROM orders LIMIT 5", 1), "with LIMIT is not recorded"},
		{"union", "SELECT * FROM a UNION SELECT * FROM b", "UNION compares whole rows"},
		{"union of two ranks", "CREATE VIEW v AS " + by("price") + "; SELECT * FROM v UNION ALL SELECT * FROM v",
			"with UNION ALL is not recorded"},
		{"subquery behind union all", "SELECT DISTINCT * FROM (SELECT * FROM a UNION ALL SELECT * FROM b WHERE x IN " +
			"(SELECT x FROM c))", "IN (SELECT ...) in WHERE"},
		{"aggregate further in", "SELECT * FROM (SELECT COUNT(*) AS c FROM orders)", "aggregate of the whole stream"},
		{"aggregate in an expression", "SELECT COALESCE(SUM(price), 0) FROM orders", "aggregates the whole stream"},
		{"join further in", "SELECT * FROM (SELECT a.x FROM a JOIN b ON a.x = b.x)", "reads a join"},
		{"rank over a join further in", strings.Replace(by("created_at"), "FROM orders", "FROM (SELECT a.* FROM a JOIN b ON "+
			"a.x = b.x)", 1), "the deduplication reads a join"},
		{"renamed by a view", "CREATE VIEW v (a, b) AS SELECT b, a FROM t; SELECT DISTINCT a FROM v",
			"other names in brackets"},
		{"renamed by an alias", "SELECT DISTINCT a FROM t AS u (a, b)", "other names in brackets"},
		{"cast beside *", article + "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY " +
			"created_at) AS rn FROM (SELECT *, CAST(created_at AS TIMESTAMP_LTZ(3)) AS created_at FROM orders)) WHERE rn = 1",
			"stands twice"},
		{"not selected", strings.Replace(by("price"), "FROM orders", "FROM (SELECT order_id FROM orders)", 1),
			"the subquery has no column price"},
		{"empty column", "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS rn FROM (SELECT a,,b,1 " +
			"FROM t)) WHERE rn = 2", ""},
		{"bad duration", "SET 'table.exec.state.ttl' = 'long';" + by("created_at"), `"long" is no duration`},
		{"too deep", strings.Repeat("SELECT * FROM (", 100) + "SELECT 1" + strings.Repeat(")", 100), "nested more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			shape, err := Recognise(test.sql)
			if err == nil {
				t.Fatalf("recognised as %s", entry(shape))
			}
			if !strings.Contains(err.Error(), test.reason) {
				t.Errorf("reason %q does not hold %q", err, test.reason)
			}
		})
	}
}

// TestNotes holds the recogniser to saying what has no effect and what it assumes.
func TestNotes(t *testing.T) {
	for _, test := range []struct{ sql, note string }{
		{by("created_at"), "no CREATE TABLE orders: assumed are created_at"},
		{by("ts"), "if ts is your event-time attribute"},
		{"SELECT /*+ STATE_TTL('orders' = '1h') */ * FROM (" + by("price") + ")", "silently ignored"},
		{strings.Replace(by("price"), "SELECT *", "SELECT /*+ STATE_TTL('orders'='1h') */ *", 1), "silently ignored"},
		{"SET 'table.exec.state.ttl' = '1 h'; SELECT * FROM f(TABLE t PARTITION BY a)", "the page assumes 2h"},
		{"SET 'table.exec.state.ttl' = '1 h'; SELECT * FROM t", "does nothing here"},
		{"SELECT DISTINCT a FROM t; SELECT * FROM t", "of 2 queries this is the one in line 1"},
	} {
		shape, err := Recognise(test.sql)
		if err != nil {
			t.Fatal(test.sql, err)
		}
		if all := strings.Join(shape.Notes, "\n"); !strings.Contains(all, test.note) {
			t.Errorf("%s\nnotes %q do not hold %q", test.sql, all, test.note)
		}
	}
}

// TestOwnCode reads the code that the strategies print.
func TestOwnCode(t *testing.T) {
	given := map[string]map[string]string{
		"nontime":              {"order_by": "price asc, quantity desc", "ttl": "1h"},
		"nontime-to-changelog": {"order_by": "order_id asc"},
		"window-topn":          {"order_by": "price asc", "size": "10s"},
		"group-by-min":         {"column": "price", "hint": "1h"},
		"rowtime-asc":          {"ttl": "2h"},
		"window-dedup":         {"keep": "last"},
		"late-dlq":             {"main": "window-dedup"},
	}
	for _, name := range strategies.Names() {
		s, _ := strategies.Lookup(name)
		if s.Engine != "flink-sql" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args, faults := s.Resolve(given[name], Orders)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			shape, err := Recognise(s.Plan(args, strategies.Job{Schema: Orders, WatermarkDelay: 5000}).Code)
			if err != nil {
				t.Fatal(err)
			}
			if shape.Strategy != name || shape.Job.WatermarkDelay != 5000 {
				t.Errorf("recognised as %s, watermark delay %d", entry(shape), shape.Job.WatermarkDelay)
			}
			for param, value := range given[name] {
				if shape.Params[param] != value {
					t.Errorf("%s = %q, want %q", param, shape.Params[param], value)
				}
			}
		})
	}
}

// TestNoise hands in much that is no SQL: it must neither hang nor panic.
func TestNoise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"SELECT ", "FROM ", "(", ")", "ROW_NUMBER() OVER (", "PARTITION BY ", "ORDER BY " +
		"", "a", ".", ",", "'",
		"`", "/*", "*/", "--", "\n", "WHERE ", "rn = 1 ", "WITH ", "AS ", "TABLE(", "=>", ";", "\xff", "0", "JOIN ",
		"CREATE TABLE "}
	var mixed strings.Builder
	for mixed.Len() < MaxBytes-100 {
		mixed.WriteString(pieces[random.IntN(len(pieces))])
	}
	bytes := make([]byte, MaxBytes)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	fill := func(s string) string { return strings.Repeat(s, (MaxBytes-64)/len(s)/2) }
	var views strings.Builder
	views.WriteString("CREATE VIEW v0 AS SELECT * FROM t;")
	for i := range 60 {
		fmt.Fprintf(&views, "CREATE VIEW v%d AS SELECT * FROM v%d a JOIN v%d b ON a.x = b.x;", i+1, i, i)
	}
	for name, sql := range map[string]string{
		"mixed": mixed.String(), "bytes": string(bytes), "brackets": fill("(") + fill(")"), "commas": "SELECT " +
			"" + fill("a,") + "b",
		"columns": "SELECT DISTINCT " + fill("a1,b2,") + "c FROM t",
		"group":   "SELECT a FROM t GROUP BY " + fill("a,b,"),
		"where": "SELECT * FROM t WHERE " +
			"" + strings.Repeat("(", 200_000) + "CURRENT_WATERMARK(a)" + strings.Repeat(")", 200_000),
		"ands": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) rn FROM t) WHERE " +
			"" + fill("a = 1 AND ") + "rn = 1",
		"joins":    "SELECT * FROM t " + fill("JOIN t ON a = b "),
		"queries":  fill("SELECT * FROM t;"),
		"long":     "SELECT " + strings.Repeat("a", 900_000) + " FROM t",
		"views":    views.String() + "SELECT * FROM v60",
		"columns2": article + "SELECT DISTINCT " + strings.Repeat("a", 200) + fill(",xxxxxxxxxx") + " FROM orders",
	} {
		begin := time.Now()
		shape, err := Recognise(sql)
		if spent := time.Since(begin); spent > 20*time.Second {
			t.Errorf("%s: %v", name, spent)
		}
		t.Logf("%s: %s %.80v, %v", name, shape.Strategy, err, time.Since(begin))
	}
	if _, err := Recognise(strings.Repeat(" ", MaxBytes+1)); err == nil {
		t.Error("a text that is too long was read")
	}
}

// FuzzRecognise looks for SQL that makes the recogniser panic, and for shapes that cannot be planned.
func FuzzRecognise(f *testing.F) {
	f.Add(article + by("created_at ASC"))
	f.Add("WITH a AS (" + by("price DESC NULLS LAST") + ") SELECT * FROM TO_CHANGELOG(TABLE a)")
	f.Add("SELECT window_start, window_end, a, MIN(b) FROM TABLE(TUMBLE((SELECT * FROM t WHERE CURRENT_WATERMARK(c) " +
		"IS NULL OR c > CURRENT_WATERMARK(c)), DESCRIPTOR(c), INTERVAL '1' DAY)) GROUP BY window_start, window_end, a")
	f.Add("CREATE TABLE t (a INT, b DECIMAL(10,2), PRIMARY KEY (a) NOT ENFORCED) LIKE u; INSERT INTO t (a) SELECT * " +
		"FROM f(x => TABLE u PARTITION BY (a, b)) q JOIN r FOR SYSTEM_TIME AS OF q.t ON q.a = r.a")
	f.Fuzz(func(t *testing.T, sql string) {
		shape, err := Recognise(sql)
		if err != nil {
			return
		}
		s, err := strategies.Find(shape.Strategy)
		if err != nil {
			t.Fatal(err)
		}
		args, faults := s.Resolve(shape.Params, shape.Job.Schema)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		s.Plan(args, shape.Job)
	})
}
