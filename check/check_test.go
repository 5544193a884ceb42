package check_test

import (
	"os"
	"strings"
	"testing"

	"deduplab/check"
)

var report = &check.Report{Schema: check.Schema, Files: []check.File{
	{Path: "scenarios/a.yaml", Name: "a", Cases: []check.Case{
		{Kind: check.Expectation, Name: "ptf leaked <= 0", Line: 9, Status: check.Failed, Message: "it is 3",
			Details: []string{"leaked at 2h: id=`x`, 100 % ```odd```"}},
		{Kind: check.Baseline, Name: "baseline results/a.json", Status: check.Differs, Message: "missing"},
	}},
	{Path: "b.yaml", Cases: []check.Case{{Kind: check.Semantics, Name: "holds", Line: 2, Status: check.OK}}},
}}

func ExampleReport_Text() {
	_ = report.Text(os.Stdout)
	// Output:
	// FAIL  scenarios/a.yaml:9: ptf leaked <= 0: it is 3
	//       leaked at 2h: id=`x`, 100 % ```odd```
	// DIFF  scenarios/a.yaml: baseline results/a.json: missing
	// ok    b.yaml (1 checked)
	// 1 ok, 1 failed, 1 differs
}

func ExampleReport_Annotations() {
	_ = report.Annotations(os.Stdout)
	// Output:
	// ::error file=scenarios/a.yaml,line=9,title=lab check%3A expectation::ptf leaked <= 0: it is 3%0Aleaked at 2h: id=`x`, 100 %25 ```odd```
	// ::error file=scenarios/a.yaml,line=1,title=lab check%3A baseline::baseline results/a.json: missing
}

func ExampleReport_Markdown() {
	_ = report.Markdown(os.Stdout)
	// Output:
	// ### lab check: 1 ok, 1 failed, 1 differs
	//
	// | file | checked | result |
	// |---|---|---|
	// | scenarios/a.yaml | 2 | 0 ok, 1 failed, 1 differs |
	// | b.yaml | 1 | 1 ok |
	//
	// **FAIL** scenarios/a.yaml:9: ptf leaked &lt;= 0: it is 3
	//
	// ````
	// leaked at 2h: id=`x`, 100 % ```odd```
	// ````
	//
	// **DIFF** scenarios/a.yaml: baseline results/a.json: missing
}

// What a file is called or holds cannot end an annotation, or begin one.
func TestAnnotationsEscape(t *testing.T) {
	var b strings.Builder
	evil := &check.Report{Files: []check.File{{Path: "a,b:c%\n::error::x", Cases: []check.Case{
		{Kind: check.Validity, Name: "n", Status: check.Invalid, Message: "one\r\n::warning::two"},
	}}}}
	if err := evil.Annotations(&b); err != nil {
		t.Fatal(err)
	}
	want := "::error file=a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3Ax,line=1,title=lab check%3A validity::n: one%0D%0A::warning::two\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
