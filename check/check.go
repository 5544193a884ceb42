// Package check writes what lab check has found: as text, JSON, Markdown for a job summary, annotations of GitHub
// Actions and JUnit XML. All of them are functions of a [Report], byte for byte.
package check

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"deduplab/junit"
)

// Schema names the version of the JSON.
const Schema = "deduplab/check/1"

// Report is all that was checked, file by file in a fixed order.
type Report struct {
	Schema string `json:"schema"`
	Files  []File `json:"files"`
}

// File is a scenario or a file of semantics tests.
type File struct {
	Path  string `json:"path"`
	Name  string `json:"name,omitempty"` // of the scenario
	Cases []Case `json:"cases"`
}

// Case is one thing that was checked.
type Case struct {
	Kind   Kind   `json:"kind"`
	Name   string `json:"name"`
	Line   int    `json:"line,omitempty"` // of the file, from 1; 0: none
	Status Status `json:"status"`
	// Message is one line: what is wrong, or what was accepted. Details are the lines that belong to it.
	Message string   `json:"message,omitempty"`
	Details []string `json:"details,omitempty"`
}

// Kind of a case.
type Kind string

// The kinds.
const (
	Expectation Kind = "expectation"
	Baseline    Kind = "baseline"
	Semantics   Kind = "semantics"
	Validity    Kind = "validity" // of the file itself
)

// Status is what became of a case.
type Status string

// The statuses.
const (
	OK       Status = "ok"
	Accepted Status = "accepted" // a new baseline was written
	Failed   Status = "failed"
	Differs  Status = "differs" // from the baseline, which may be missing too
	Invalid  Status = "invalid"
)

// Bad reports whether something is wrong.
func (s Status) Bad() bool { return s == Failed || s == Differs || s == Invalid }

// Count counts the cases of a status.
func (r *Report) Count(s Status) int {
	n := 0
	for _, f := range r.Files {
		for _, c := range f.Cases {
			if c.Status == s {
				n++
			}
		}
	}
	return n
}

// Bad reports whether something is wrong with a file.
func (f *File) Bad() bool {
	for _, c := range f.Cases {
		if c.Status.Bad() {
			return true
		}
	}
	return false
}

// Add adds a file with what was checked of it; one without a case is left out.
func (r *Report) Add(f File) {
	if len(f.Cases) > 0 {
		r.Files = append(r.Files, f)
	}
}

// Summary counts the cases in one line.
func (r *Report) Summary() string {
	parts := []string{fmt.Sprintf("%d ok", r.Count(OK))}
	for _, s := range []Status{Accepted, Failed, Differs, Invalid} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// Text writes a line for each file that is fine, and all that is wrong or was accepted.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Files {
		if !f.Bad() {
			fmt.Fprintf(&b, "ok    %s (%d checked)\n", f.Path, len(f.Cases))
		}
		for _, c := range f.Cases {
			if c.Status == OK {
				continue
			}
			fmt.Fprintf(&b, "%-5s %s: %s\n", words[c.Status], place(f, c), c.title())
			for _, line := range c.Details {
				fmt.Fprintf(&b, "      %s\n", line)
			}
		}
	}
	fmt.Fprintln(&b, r.Summary())
	_, err := io.WriteString(w, b.String())
	return err
}

var words = map[Status]string{OK: "ok", Accepted: "new", Failed: "FAIL", Differs: "DIFF", Invalid: "BAD"}

func place(f File, c Case) string {
	if c.Line == 0 {
		return f.Path
	}
	return fmt.Sprintf("%s:%d", f.Path, c.Line)
}

func (c Case) title() string {
	if c.Message == "" {
		return c.Name
	}
	return c.Name + ": " + c.Message
}

// JSON writes the report as it is.
func (r *Report) JSON(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Markdown writes the report for a job summary: a table of the files, and below it what is wrong.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### lab check: %s\n\n| file | checked | result |\n|---|---|---|\n", r.Summary())
	for _, f := range r.Files {
		one := Report{Files: []File{f}}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", cell(f.Path), len(f.Cases), one.Summary())
	}
	for _, f := range r.Files {
		for _, c := range f.Cases {
			if c.Status == OK {
				continue
			}
			fmt.Fprintf(&b, "\n**%s** %s: %s\n", words[c.Status], cell(place(f, c)), cell(c.title()))
			if len(c.Details) > 0 {
				fence := fence(c.Details)
				fmt.Fprintf(&b, "\n%s\n%s\n%s\n", fence, strings.Join(c.Details, "\n"), fence)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell makes text that means nothing in Markdown.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "*", "\\*", "_", "\\_", "`", "\\`", "[",
		"\\[").Replace(s)
}

// fence is longer than any row of backquotes in the lines.
func fence(lines []string) string {
	fence := "```"
	for strings.Contains(strings.Join(lines, "\n"), fence) {
		fence += "`"
	}
	return fence
}

// Annotations writes what is wrong as the workflow commands of GitHub Actions, which shows them at their line.
func (r *Report) Annotations(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Files {
		for _, c := range f.Cases {
			if !c.Status.Bad() {
				continue
			}
			text := strings.Join(append([]string{c.title()}, c.Details...), "\n")
			fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", property(f.Path), max(c.Line, 1),
				property("lab check: "+string(c.Kind)), data(text))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// data and property escape what ends a workflow command, or a part of it.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string { return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s)) }

// JUnit writes the report as JUnit XML: a suite a file.
func (r *Report) JUnit(w io.Writer) error {
	var suites []junit.Suite
	for _, f := range r.Files {
		suite := junit.Suite{Name: f.Path}
		for _, c := range f.Cases {
			test := junit.Case{Name: c.Name, File: f.Path, Line: c.Line}
			if c.Status.Bad() {
				test.Message, test.Details = c.title(), strings.Join(c.Details, "\n")
				test.Invalid = c.Status == Invalid
			}
			suite.Cases = append(suite.Cases, test)
		}
		suites = append(suites, suite)
	}
	return junit.Write(w, suites)
}
