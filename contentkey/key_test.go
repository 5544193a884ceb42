package contentkey_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deduplab/contentkey"
)

// recording is what Spark made of the rows; its origin is conformance/spark.
type recording struct {
	EqualKeys                [][]int `json:"equal_keys"`
	EqualKeysWithoutCoalesce [][]int `json:"equal_keys_without_coalesce"`
	Rows                     []struct {
		What                  string
		Values                map[string]json.RawMessage
		BytesHex              string `json:"bytes_hex"`
		SHA256                string
		SHA256WithoutCoalesce string `json:"sha256_without_coalesce"`
		SHA256NewYork         string `json:"sha256_new_york_session"`
	}
}

var recordedTypes = []struct {
	name string
	typ  contentkey.Type
}{
	{"s1", contentkey.String}, {"s2", contentkey.String}, {"i", contentkey.Bigint}, {"d", contentkey.Double},
	{"dec", contentkey.Decimal(4)}, {"ts", contentkey.Timestamp}, {"b", contentkey.Boolean},
}

func load(t *testing.T) recording {
	data, err := os.ReadFile("testdata/content-key.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recording
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// row casts the recorded values in a session's zone.
func row(t *testing.T, values map[string]json.RawMessage, session *time.Location) []contentkey.Value {
	var row []contentkey.Value
	for _, c := range recordedTypes {
		raw := string(values[c.name])
		if raw == "null" {
			row = append(row, contentkey.Value{Null: true})
			continue
		}
		if raw[0] == '"' {
			if err := json.Unmarshal(values[c.name], &raw); err != nil {
				t.Fatal(err)
			}
		}
		v, err := c.typ.Cast(raw, session)
		if err != nil {
			t.Fatal(err)
		}
		row = append(row, v)
	}
	return row
}

// TestRecording holds every byte against Spark's.
func TestRecording(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	r := load(t)
	if len(r.Rows) != 64 {
		t.Fatalf("%d rows", len(r.Rows))
	}
	var sums, bare []string
	for n, recorded := range r.Rows {
		v := row(t, recorded.Values, time.UTC)
		if got := hex.EncodeToString([]byte(contentkey.Canonical(v))); got != recorded.BytesHex {
			t.Errorf("%d %s: bytes %s, want %s", n, recorded.What, got, recorded.BytesHex)
		}
		if got := contentkey.Sum(v); got != recorded.SHA256 {
			t.Errorf("%d %s: key %s", n, recorded.What, got)
		}
		if got := contentkey.SumWithoutSentinel(v); got != recorded.SHA256WithoutCoalesce {
			t.Errorf("%d %s: key without the sentinel %s", n, recorded.What, got)
		}
		if recorded.SHA256NewYork != "" {
			if got := contentkey.Sum(row(t, recorded.Values, newYork)); got != recorded.SHA256NewYork {
				t.Errorf("%d %s: key in New York %s", n, recorded.What, got)
			}
		}
		sums, bare = append(sums, contentkey.Sum(v)), append(bare, contentkey.SumWithoutSentinel(v))
	}
	if got := groups(sums); !reflect.DeepEqual(got, r.EqualKeys) {
		t.Errorf("equal keys %v, want %v", got, r.EqualKeys)
	}
	if got := groups(bare); !reflect.DeepEqual(got, r.EqualKeysWithoutCoalesce) {
		t.Errorf("equal keys without the sentinel %v, want %v", got, r.EqualKeysWithoutCoalesce)
	}
}

// groups lists the rows that share a key, where there are two or more.
func groups(sums []string) [][]int {
	var all [][]int
	for i, s := range sums {
		var group []int
		for j, other := range sums {
			if s == other {
				group = append(group, j)
			}
		}
		if len(group) > 1 && group[0] == i {
			all = append(all, group)
		}
	}
	return all
}

func TestCast(t *testing.T) {
	for _, c := range []struct{ typ, given, want string }{
		{"bigint", "007", "7"},
		{"double", "1", "1.0"},
		{"double", "-123456.75", "-123456.75"},
		{"double", "1e23", "1.0E23"},
		{"double", "-12345678", "-1.2345678E7"},
		{"decimal(20,2)", "-0.00", "0.00"},
		{"decimal(3)", "1e2", "100.000"},
		{"timestamp", "2024-03-10T12:00:00.1234567Z", "2024-03-10 12:00:00.123456"},
		{"timestamp", "+12000-02-29T00:00:00Z", "+12000-02-29 00:00:00"},
		{"boolean", "TRUE", "true"},
		{"string", " as is ", " as is "},
		{"bigint", "1.0", `error: "1.0" is not a bigint: write one like 42`},
		{"double", "one", `error: "one" is not a double: write one like 1.5`},
		{"decimal(2)", "1/3", `error: "1/3" is not a decimal: write one like 1.50`},
		{"timestamp", "noon", `error: "noon" is not a timestamp: write one like 2024-03-10T12:00:00Z`},
		{"timestamp", "2024-13-10T12:00:00Z",
			`error: "2024-13-10T12:00:00Z" is not a timestamp: write one like 2024-03-10T12:00:00Z`},
		{"boolean", "yes", `error: "yes" is not a boolean: write one like true`},
	} {
		typ, err := contentkey.ParseType(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		v, err := typ.Cast(c.given, time.UTC)
		got := v.Text
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s: %s, want %s", c.typ, c.given, got, c.want)
		}
	}
	if _, err := contentkey.ParseType("int"); err == nil || !strings.Contains(err.Error(), `no type "int"`) {
		t.Errorf("unknown type: %v", err)
	}
}

func TestCompare(t *testing.T) {
	field := func(typ contentkey.Type, given string) contentkey.Field {
		if given == "NULL" {
			return contentkey.Field{Name: "f", Type: typ, Value: contentkey.Value{Null: true}}
		}
		v, err := typ.Cast(given, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		return contentkey.Field{Name: "f", Type: typ, Given: given, Value: v}
	}
	s := contentkey.String
	for _, c := range []struct {
		a, b contentkey.Field
		want string
	}{
		{field(s, "a"), field(s, "a"), ""},
		{field(s, "NULL"), field(s, "NULL"), ""},
		{field(s, "a"), field(s, "b"), "differs"},
		{field(s, "NULL"), field(s, "b"), "differs: one is NULL"},
		{field(s, "NULL"), field(s, ""), "differs: NULL is not the empty string"},
		{field(s, "null"), field(s, "NULL"), `differs: NULL is not the text "null"`},
		{field(s, "\u0000"), field(s, "NULL"), "collides: the value is the sentinel that stands for NULL"},
		{field(s, "café"), field(s, "cafe\u0301"), "differs: the same letters, composed (NFC)"},
		{field(s, "a "), field(s, "a"), "differs: blanks"},
		{field(s, "ABC"), field(s, "abc"), "differs: upper and lower case"},
		{field(contentkey.Bigint, "1"), field(contentkey.Double, "1"), "differs: one number written in two ways, 1 and 1"},
		{field(contentkey.Double, "0.0"), field(contentkey.Double, "-0.0"), "differs: one number"},
		{field(contentkey.Decimal(2), "1.5"), field(contentkey.Decimal(2), "1.50"), `same: both are cast to "1.50"`},
	} {
		got := ""
		if all := contentkey.Compare(contentkey.Row{c.a}, contentkey.Row{c.b}); len(all) > 0 {
			got = all[0].Why
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%v and %v: %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

func TestTraps(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	night := contentkey.Field{Name: "at", Type: contentkey.Timestamp, Given: "2024-11-03T05:30:00Z"}
	night.Value, _ = night.Type.Cast(night.Given, newYork)
	got := fmt.Sprint(contentkey.Traps(contentkey.Row{
		{Name: "sep", Value: contentkey.Value{Text: "a\u001fb"}},
		{Name: "nul", Value: contentkey.Value{Text: "\u0000"}},
		{Name: "none", Value: contentkey.Value{Null: true}},
		night,
	}, newYork))
	for _, want := range []string{"{sep holds the separator", "{nul is the sentinel",
		"{at is written in the session's zone", "2024-11-03T06:30:00Z has the same key"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %q", got, want)
		}
	}
}

func TestVisible(t *testing.T) {
	if got := contentkey.Visible("a\u001fb\u0000\tcafe\u0301\u200d東"); got != `a␟b␀\u0009cafe\u0301\u200d東` {
		t.Error(got)
	}
}

// TestInjective: rows without separators and sentinels in their values have equal texts only if they are equal.
func TestInjective(t *testing.T) {
	value := rapid.Custom(func(t *rapid.T) contentkey.Value {
		if rapid.Bool().Draw(t, "null") {
			return contentkey.Value{Null: true}
		}
		return contentkey.Value{Text: rapid.StringMatching(`[ab ]{0,2}`).Draw(t, "text")}
	})
	rows := rapid.SliceOfN(value, 3, 3)
	rapid.Check(t, func(t *rapid.T) {
		a, b := rows.Draw(t, "a"), rows.Draw(t, "b")
		if same := contentkey.Canonical(a) == contentkey.Canonical(b); same != reflect.DeepEqual(a, b) {
			t.Fatalf("same text: %v", same)
		}
	})
}
