package junit_test

import (
	"os"

	"deduplab/junit"
)

func ExampleWrite() {
	err := junit.Write(os.Stdout, []junit.Suite{{Name: "a.yaml", Cases: []junit.Case{
		{Name: "holds", File: "a.yaml", Line: 2},
		{Name: "does <not>", File: "a.yaml", Line: 9, Message: "emits", Details: "- +I {a: \x01\"b\"}\n"},
	}}, {Name: "b.yaml", Cases: []junit.Case{
		{Name: "the file is valid", File: "b.yaml", Line: 1, Message: "empty", Invalid: true},
	}}})
	if err != nil {
		panic(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites tests="3" failures="1" errors="1">
	//   <testsuite name="a.yaml" tests="2" failures="1">
	//     <testcase name="holds" classname="a.yaml" file="a.yaml" line="2"></testcase>
	//     <testcase name="does &lt;not&gt;" classname="a.yaml" file="a.yaml" line="9">
	//       <failure message="emits">- +I {a: &#34;b&#34;}&#xA;</failure>
	//     </testcase>
	//   </testsuite>
	//   <testsuite name="b.yaml" tests="1" failures="0" errors="1">
	//     <testcase name="the file is valid" classname="b.yaml" file="b.yaml" line="1">
	//       <error message="empty"></error>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
}
