package schema_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"deduplab/gen"
	"deduplab/scenarios"
	"deduplab/schema"
	"deduplab/semantics"
)

// nobody is the name of a field that nothing has: the loaders answer with the names that there are.
const nobody = "zzqqzzqqzzqq"

// objects are places in the files: how to write nobody there, and where the object stands in the schema. A step of a
// path is the name of a field; | takes the n-th alternative, [] the entries of a list, {} the values of a mapping.
var objects = map[string][]struct{ src, path string }{
	"scenario": {
		{"@: 1", ""},
		{"workload: {@: 1}", "workload |0"},
		{"workload: {load: {@: 1}}", "workload |0 load"},
		{"workload: {load: {steps: [{@: 1}]}}", "workload |0 load steps []"},
		{"workload: {load: {sine: {@: 1}}}", "workload |0 load sine"},
		{"workload: {load: {burst: {@: 1}}}", "workload |0 load burst"},
		{"workload: {fields: {a: {@: 1}}}", "workload |0 fields {}"},
		{"workload: {fields: {a: {zipf: {@: 1}}}}", "workload |0 fields {} zipf"},
		{"workload: {event_time: {@: 1}}", "workload |0 event_time"},
		{"workload: {partitions: {@: 1}}", "workload |0 partitions"},
		{"workload: {silent: [{@: 1}]}", "workload |0 silent []"},
		{"workload: {outage: [{@: 1}]}", "workload |0 outage []"},
		{"workload: {fields: {a: {hot: {@: 1}}}}", "workload |0 fields {} hot"},
		{"workload: {fields: {a: {reuse: {@: 1}}}}", "workload |0 fields {} reuse"},
		{"workload: {slow: [{@: 1}]}", "workload |0 slow []"},
		{"workload: {finished: [{@: 1}]}", "workload |0 finished []"},
		{"workload: {clock: [{@: 1}]}", "workload |0 clock []"},
		{"workload: {duplicates: [{@: 1}]}", "workload |0 duplicates []"},
		{"workload: {duplicates: [{copies: {@: 1}}]}", "workload |0 duplicates [] copies |1"},
		{"workload: {duplicates: [{copies: {geometric: {@: 1}}}]}", "workload |0 duplicates [] copies |1 geometric"},
		{"workload: {duplicates: [{copies: {zipf: {@: 1}}}]}", "workload |0 duplicates [] copies |1 zipf"},
		{"workload: {keys: {a: {@: 1}}}", "workload |0 keys {} |2"},
		{"workload: {transport: {@: 1}}", "$delay |1"},
		{"workload: {transport: {exponential: {@: 1}}}", "$delay |1 exponential"},
		{"workload: {transport: {mixture: [{@: 1}]}}", "$delay |1 mixture []"},
		{"workload: {transport: {step: {@: 1}}}", "$delay |1 step"},
		{"workload: {trace: x, @: 1}", "workload |1"},
		{"workload: {trace: x, columns: {@: 1}}", "workload |1 columns"},
		{"job: {@: 1}", "job"},
		{"job: {watermark: {@: 1}}", "job watermark"},
		{"job: {checkpoint: {@: 1}}", "job checkpoint"},
		{"job: {mini_batch: {@: 1}}", "job mini_batch"},
		{"job: {spark: {@: 1}}", "job spark"},
		{"job: {spark: {cost: {@: 1}}}", "job spark cost"},
		{"job: {spark: {migrate: {@: 1}}}", "job spark migrate"},
		{"after: {@: 1}", "after"},
		{"after: {window: {@: 1}}", "after window"},
		{"after: {join: {@: 1}}", "after join"},
	},
	"semantics": {
		{"@: 1", ""},
		{"tests: [{@: 1}]", "tests []"},
		{"tests: [{job: {@: 1}}]", "tests [] job"},
		{"tests: [{job: {mini_batch: {@: 1}}}]", "tests [] job mini_batch"},
		{"tests: [{steps: [{@: 1}]}]", "tests [] steps []"},
		{"tests: [{steps: [{rows: {@: 1}}]}]", "tests [] steps [] rows |1"},
		{"tests: [{job: {sink: upsert-kafka}, steps: [{state: {@: 1}}]}]", "tests [] steps [] state"},
		{"tests: [{steps: [{state: {timers: {@: 1}}}]}]", "tests [] steps [] state timers |1"},
	},
}

// Every object of the schemas has the fields that the loader knows there, and no others.
func TestFields(t *testing.T) {
	for name, places := range objects {
		s, err := schema.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range places {
			known := loaderFields(t, name, strings.Replace(place.src, "@", nobody, 1))
			var described []string
			for field := range at(t, s, place.path).Properties {
				described = append(described, field)
			}
			slices.Sort(known)
			slices.Sort(described)
			if !slices.Equal(known, described) {
				t.Errorf("%s, %s: the loader knows %q, the schema %q", name, place.src, known, described)
			}
		}
	}
}

var hasFields = regexp.MustCompile(`unknown field "` + nobody + `" of [^;\n]*; it has ([^\n]*)`)

func loaderFields(t *testing.T, name, src string) []string {
	t.Helper()
	var err error
	if name == "scenario" {
		open := func([]string, gen.TraceSpec) (*gen.Trace, error) { return nil, nil }
		_, err = scenarios.Load("x.yaml", []byte(src), open)
	} else {
		_, err = semantics.Load("x.yaml", []byte(src))
	}
	if err == nil {
		t.Fatalf("%s: no fault", src)
	}
	m := hasFields.FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("%s: the loader does not say which fields there are: %v", src, err)
	}
	return strings.Split(m[1], ", ")
}

// at follows a path in a schema.
func at(t *testing.T, s *schema.Schema, path string) *schema.Schema {
	t.Helper()
	for step := range strings.FieldsSeq(path) {
		switch {
		case s == nil:
			t.Fatalf("the schema has no %s", path)
		case step == "[]":
			s = s.Items
		case step == "{}":
			s = s.AdditionalProperties
		case step[0] == '|':
			s = s.AnyOf[step[1]-'0']
		case step[0] == '$':
			s = s.Defs[step[1:]]
		default:
			s = s.Properties[step]
		}
	}
	if s == nil {
		t.Fatalf("the schema has no %s", path)
	}
	return s
}

// What the loaders refuse and a schema can see, it refuses too.
func TestRefused(t *testing.T) {
	const whole = "scenario: x\nworkload: {duration: 1m, rate: 1/s, events: order}\nstrategies: [ptf: {ttl: 2h}]\n"
	if err := validate(t, "scenario", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{
		{"scenario: x", "scenaro: x"}, {"rate: 1/s", "rate: fast"}, {"events: order", "events: orders"},
		{"ptf:", "pft:"}, {"ttl:", "tll:"}, {"strategies: [ptf: {ttl: 2h}]\n", ""},
		{"scenario: x", "scenario: x\nexpect: {ptf: {leakd: 0}}"}, {"scenario: x", "scenario: x\njob: {sink: retracts}"},
		{"scenario: x", "scenario: x\nrequire: {state.class: bounded}"},
	} {
		if err := validate(t, "scenario", []byte(strings.Replace(whole, edit[0], edit[1], 1))); err == nil {
			t.Errorf("%s in place of %s is valid by the schema", edit[1], edit[0])
		}
	}
}

// The schema of results.json comes from the Go types: it has the fields that a run writes.
func TestResults(t *testing.T) {
	s, err := schema.Of("results")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(at(t, s, "strategies [] latency_ms wait"))
	if err != nil || !strings.Contains(string(text), `"p9999"`) {
		t.Errorf("%s, %v", text, err)
	}
}
