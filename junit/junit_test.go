package junit_test

import (
	"os"

	"deduplab/junit"
)

func ExampleWrite() {
	err := junit.Write(os.Stdout, []junit.Suite{{Name: "a.yaml", Cases: []junit.Case{
		{Name: "holds", File: "a.yaml", Line: 2},
		{Name: "does <not>", File: "a.yaml", Line: 9, Message: "emits", Details: "- +I {a: \x01\"b\"}\n"},
	}}})
	if err != nil {
		panic(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <testsuites tests="2" failures="1">
	//   <testsuite name="a.yaml" tests="2" failures="1">
	//     <testcase name="holds" classname="a.yaml" file="a.yaml" line="2"></testcase>
	//     <testcase name="does &lt;not&gt;" classname="a.yaml" file="a.yaml" line="9">
	//       <failure message="emits">- +I {a: &#34;b&#34;}&#xA;</failure>
	//     </testcase>
	//   </testsuite>
	// </testsuites>
}
