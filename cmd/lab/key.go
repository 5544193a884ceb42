package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // --zone works on machines without zone files

	"github.com/spf13/cobra"

	"deduplab/contentkey"
)

func newKey() *cobra.Command {
	var zone string
	other := -1
	cmd := &cobra.Command{
		Use:   "key FIELD=VALUE ... [--other FIELD=VALUE ...]",
		Short: "make the content key of a row, and show what two rows have in common",
		Long: `key makes the deduplication key of a row from its content, byte for byte as a Spark job does: each field cast
to text, NULL as U+0000 (shown ␀), joined by the unit separator U+001F (shown ␟), SHA-256. Fields stand in the order given.

  FIELD=VALUE        text
  FIELD:TYPE=VALUE   bigint, double, decimal(20,4), timestamp (as RFC 3339) or boolean
  FIELD              NULL
  \u001f             in a value: any character by its number; a backslash is written \\

The fields after --other are those of a second row; those it leaves out are as in the first.`,
		Example: `  lab key account=a-17 amount_minor:bigint=500 currency=EUR client_seq:bigint=9
  lab key amount:bigint=1 --other amount:double=1
  lab key at:timestamp=2024-11-03T05:30:00Z --other at:timestamp=2024-11-03T06:30:00Z --zone America/New_York`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			session, err := time.LoadLocation(zone)
			if err != nil || zone == "Local" {
				return fmt.Errorf("--zone: there is no time zone %q; write one like UTC or America/New_York", zone)
			}
			if other < 0 {
				other = len(args)
			}
			return showKeys(cmd.OutOrStdout(), args[:other], args[other:], session)
		},
	}
	cmd.Flags().StringVar(&zone, "zone", "UTC", "time zone of the Spark session, in which timestamps are written")
	cmd.Flags().BoolFunc("other", "the fields after it belong to a second row", func(string) error {
		if other >= 0 {
			return fmt.Errorf("stands twice")
		}
		other = cmd.Flags().NArg() // the fields so far
		return nil
	})
	return cmd
}

// showKeys writes the key of one row, or of two and what they have in common.
func showKeys(w io.Writer, one, two []string, session *time.Location) error {
	a, err := readFields(one, session)
	if err != nil {
		return err
	}
	if len(a) == 0 {
		return fmt.Errorf("the first row has no fields")
	}
	changed, err := readFields(two, session)
	if err != nil {
		return err
	}
	b := slices.Clone(a)
	for _, f := range changed {
		i := slices.IndexFunc(a, func(g contentkey.Field) bool { return g.Name == f.Name })
		if i < 0 {
			return fmt.Errorf("--other: the first row has no field %q", f.Name)
		}
		b[i] = f
	}
	if len(changed) == 0 {
		showKey(w, "", a)
		showNotes(w, "note", contentkey.Traps(a, session))
		return nil
	}
	showKey(w, "one   ", a)
	showKey(w, "other ", b)
	showNotes(w, "field", contentkey.Compare(a, b))
	notes := contentkey.Traps(a, session)
	for _, n := range contentkey.Traps(b, session) {
		if !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	showNotes(w, "note", notes)
	switch same := contentkey.Sum(a.Values()) == contentkey.Sum(b.Values()); {
	case same && slices.Equal(a, b):
		fmt.Fprintln(w, "\nThe rows are equal, and so are their keys.")
	case same:
		fmt.Fprintln(w, "\nThe keys are EQUAL: the second row is dropped as a duplicate of the first.")
	default:
		fmt.Fprintln(w, "\nThe keys DIFFER: both rows stay.")
	}
	return nil
}

// showKey writes the text that is hashed and the hash.
func showKey(w io.Writer, which string, row contentkey.Row) {
	values := row.Values()
	fmt.Fprintf(w, "%stext  %s\n", which, contentkey.Visible(contentkey.Canonical(values)))
	fmt.Fprintf(w, "%skey   %s\n", which, contentkey.Sum(values))
}

func showNotes(w io.Writer, what string, notes []contentkey.Difference) {
	for i, n := range notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s %s: %s\n", what, n.Field, n.Why)
	}
}

// fieldForm is FIELD, FIELD=VALUE or FIELD:TYPE=VALUE.
var fieldForm = regexp.MustCompile(`(?s)^([^:=]+)(?::([^=]*))?(=.*)?$`)

// readFields reads the fields of a row.
func readFields(args []string, session *time.Location) (contentkey.Row, error) {
	var row contentkey.Row
	for _, arg := range args {
		m := fieldForm.FindStringSubmatch(arg)
		if m == nil {
			return nil, fmt.Errorf("%q is not a field: write one like currency=EUR or amount:bigint=500", arg)
		}
		f := contentkey.Field{Name: m[1], Type: contentkey.String, Value: contentkey.Value{Null: m[3] == ""}}
		if slices.ContainsFunc(row, func(g contentkey.Field) bool { return g.Name == f.Name }) {
			return nil, fmt.Errorf("field %s stands twice", f.Name)
		}
		var err error
		if m[2] != "" {
			if f.Type, err = contentkey.ParseType(m[2]); err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		if !f.Value.Null {
			if f.Given, err = unescape(m[3][1:]); err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
			if f.Value, err = f.Type.Cast(f.Given, session); err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		row = append(row, f)
	}
	return row, nil
}

var escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|\\)?`)

// unescape replaces \u001f and \\ by what they stand for.
func unescape(s string) (string, error) {
	var err error
	s = escape.ReplaceAllStringFunc(s, func(e string) string {
		switch {
		case e == `\\`:
			return `\`
		case e == `\`:
			err = fmt.Errorf(`%q: a backslash is written \\, a character by its number like \u001f`, s)
			return e
		}
		n, _ := strconv.ParseUint(strings.TrimPrefix(e, `\u`), 16, 16)
		return string(rune(n))
	})
	return s, err
}
