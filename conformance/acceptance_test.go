package conformance

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deduplab/strategies"
	"deduplab/stream"
)

// acceptance is one answer of the planner: whether a consumer takes a query.
type acceptance struct {
	Query         string
	Consumer      strategies.Consumer
	Accepted      bool
	Declared      []string
	QueryDeclared []string `json:"query_declared"`
	Error         string
}

// variants are what may follow a query's id.
var variants = map[string]map[string]string{
	"ttl": {"table.exec.state.ttl": "1 h"},
	"mini-batch": {"table.exec.mini-batch.enabled": "true", "table.exec.mini-batch.allow-latency": "5 s",
		"table.exec.mini-batch.size": "100"},
}

var recordedColumns = Columns{{"order_id", "STRING"}, {"quantity", "INT"}, {"price", "DECIMAL(10, 2)"},
	{"created_at", "TIMESTAMP_LTZ(3)"}}

// TestAcceptance asks the lab every question that was put to the planner.
func TestAcceptance(t *testing.T) {
	b, err := os.ReadFile("testdata/flink/_acceptance.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []acceptance
	if err := json.Unmarshal(b, &table); err != nil {
		t.Fatal(err)
	}
	sinks := map[strategies.Consumer]string{strategies.AppendSink: "append", strategies.RetractSink: "retract",
		strategies.UpsertSink: "upsert (PRIMARY KEY (order_id) NOT ENFORCED)"}
	for _, want := range table {
		t.Run(want.Query+"/"+string(want.Consumer), func(t *testing.T) {
			plan := acceptancePlan(t, want.Query, "retract")
			mode := plan.Declared
			if mode.Has(stream.UpdateAfter) {
				mode = mode.Without(stream.UpdateBefore) // the bare query is planned for nobody who needs it
			}
			if !slices.Equal(mode.Names(), want.QueryDeclared) {
				t.Errorf("query declared %v, recorded %v", mode.Names(), want.QueryDeclared)
			}
			ok, declared, reason := strategies.Accepts(plan, want.Consumer)
			if ok != want.Accepted || ok && !slices.Equal(declared.Names(), want.Declared) {
				t.Errorf("accepted %t %v, recorded %t %v", ok, declared.Names(), want.Accepted, want.Declared)
			}
			if !ok && substance(reason) != substance(want.Error) {
				t.Errorf("reason %q, recorded %q", substance(reason), substance(want.Error))
			}
			if sink, isSink := sinks[want.Consumer]; isSink {
				plan := acceptancePlan(t, want.Query, sink)
				if plan.Refused == "" != want.Accepted {
					t.Errorf("for the sink refused: %q, recorded accepted %t", plan.Refused, want.Accepted)
				}
				if want.Accepted && !slices.Equal(plan.Changelog.Names(), want.Declared) {
					t.Errorf("for the sink declared %v, recorded %v", plan.Changelog.Names(), want.Declared)
				}
			}
		})
	}
}

func acceptancePlan(t *testing.T, query, sink string) strategies.Plan {
	t.Helper()
	id, variant, _ := strings.Cut(query, "#")
	sql := ""
	if strings.Contains(id, "top2") {
		sql = "WHERE rn <= 2"
	}
	c := &Case{Strategy: id, SQL: &sql, Consumer: sink, Columns: recordedColumns, Config: variants[variant]}
	schema, err := c.schema()
	if err != nil {
		t.Fatal(err)
	}
	_, plan, err := c.plan(schema)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

var (
	exceptionName = regexp.MustCompile(`^\w+Exception: `)
	nodeDetail    = regexp.MustCompile(`(strategy|select)=\[[^\]]*\](, )?`)
)

// substance strips a reason of what the lab words otherwise: names of tables, details of nodes, advice.
func substance(reason string) string {
	reason = exceptionName.ReplaceAllString(reason, "")
	reason = strings.ReplaceAll(reason, " 'sink_table'", "")
	reason = nodeDetail.ReplaceAllString(reason, "")
	reason = strings.TrimSuffix(strings.ReplaceAll(reason, ", )", ")"), ".")
	if strings.Contains(reason, "differs from the primary key") {
		return "the upsert key differs from the primary key"
	}
	return reason
}
