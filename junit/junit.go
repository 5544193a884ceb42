// Package junit writes test results in the XML that CI systems read.
package junit

import (
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf8"
)

// Suite is one file or folder of tests.
type Suite struct {
	Name  string
	Cases []Case
}

// Case is one test. It failed if it has a Message, or could not be run if it is Invalid, too.
type Case struct {
	Name, File string
	Line       int
	Message    string // one line
	Details    string
	Invalid    bool
}

type xmlSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr,omitempty"`
	Suites   []xmlSuite `xml:"testsuite"`
}

type xmlSuite struct {
	Name     string    `xml:"name,attr"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Errors   int       `xml:"errors,attr,omitempty"`
	Cases    []xmlCase `xml:"testcase"`
}

type xmlCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	File    string      `xml:"file,attr,omitempty"`
	Line    int         `xml:"line,attr,omitempty"`
	Failure *xmlFailure `xml:"failure"`
	Error   *xmlFailure `xml:"error"`
}

type xmlFailure struct {
	Message string `xml:"message,attr"`
	Details string `xml:",chardata"`
}

// Write writes the results. They bear no times: the same results are the same bytes.
func Write(w io.Writer, suites []Suite) error {
	var out xmlSuites
	for _, s := range suites {
		suite := xmlSuite{Name: clean(s.Name), Tests: len(s.Cases)}
		for _, c := range s.Cases {
			test := xmlCase{Name: clean(c.Name), Class: suite.Name, File: clean(c.File), Line: c.Line}
			switch details := (&xmlFailure{clean(c.Message), clean(c.Details)}); {
			case c.Invalid:
				suite.Errors++
				test.Error = details
			case c.Message != "":
				suite.Failures++
				test.Failure = details
			}
			suite.Cases = append(suite.Cases, test)
		}
		out.Tests, out.Failures = out.Tests+suite.Tests, out.Failures+suite.Failures
		out.Errors += suite.Errors
		out.Suites = append(out.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// clean leaves out what XML cannot hold.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == utf8.RuneError || r == '\uFFFE' || r == '\uFFFF' {
			return -1
		}
		return r
	}, s)
}
