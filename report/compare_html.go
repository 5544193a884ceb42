package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"deduplab/compare"
	"deduplab/results"
)

//go:embed compare.tmpl
var compareTemplate string

var compareParsed = template.Must(template.New("compare").Funcs(template.FuncMap{
	"count": count, "list": list, "anchor": anchor, "mark": mark, "kind": kind, "dashed": dashed, "cell": cellText,
	"delta": deltaText, "requirement": requirement, "seeds": seedsOf,
}).Parse(compareTemplate))

// comparePage is what the template reads.
type comparePage struct {
	*compare.Comparison
	Title, Answer string
	Strategies    []comparedStrategy
	Style         template.CSS
}

type comparedStrategy struct {
	compare.Strategy
	Lead    string
	Missing []string // columns that do not have it
}

// CompareHTML writes a comparison as one page that needs nothing else.
func CompareHTML(w io.Writer, c *compare.Comparison) error {
	var names []string
	for _, column := range c.Columns {
		names = append(names, column.Name)
	}
	p := comparePage{Comparison: c, Title: list(names), Style: template.CSS(pageStyle)}
	switch n := int64(len(c.Flips)); {
	case n > 0:
		p.Answer = results.FormatNumber(n, "verdict") + " flipped"
	case len(c.Strategies) > 0:
		p.Answer = "No verdict flipped; " + results.FormatNumber(int64(len(c.Strategies)), "strategy") + " changed in numbers"
		p.Answer = strings.Replace(p.Answer, "strategys", "strategies", 1)
	default:
		p.Answer = "No difference"
	}
	for _, s := range c.Strategies {
		x := comparedStrategy{Strategy: s}
		headline := 0
		for i, in := range s.In {
			if !in {
				x.Missing = append(x.Missing, names[i])
			}
		}
		for _, m := range s.Metrics {
			if m.Headline {
				headline++
			}
		}
		x.Lead = fmt.Sprintf("%s of %s that differ", results.FormatNumber(int64(headline), "headline metric"), count(int64(len(s.Metrics))))
		p.Strategies = append(p.Strategies, x)
	}
	var b bytes.Buffer
	if err := compareParsed.Execute(&b, p); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// seedsOf names the seeds of a run.
func seedsOf(r *results.Run) string {
	if n := len(r.Seeds); n > 0 {
		return fmt.Sprintf("%d to %d", r.Seeds[0], r.Seeds[n-1])
	}
	return fmt.Sprint(r.Seed)
}

// ReadRun reads a run back, from results.json or from the page that HTML wrote.
func ReadRun(text []byte) (*results.Run, error) {
	const open, end = `<script type="application/json" id="results">`, `</script>`
	if start := bytes.Index(text, []byte(open)); start >= 0 {
		text = text[start+len(open):]
		if stop := bytes.Index(text, []byte(end)); stop >= 0 {
			text = text[:stop]
		}
	}
	var r results.Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("neither a results.json nor a report.html of lab run: %w", err)
	}
	if r.Schema != results.Schema {
		return nil, fmt.Errorf("schema %q is not %s: run the scenario again with this version of lab", r.Schema,
			results.Schema)
	}
	return &r, nil
}
