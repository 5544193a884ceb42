// Package schema describes the lab's files as JSON Schema, for editors that complete and check them: scenarios and
// semantics tests, as their loaders read them, and results.json. The loaders are stricter: they know what a schema
// cannot say, such as which columns there are. The schemas are committed under docs/schema; a test keeps them current
// and holds the fields of every object against those that the loaders know.
package schema

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/google/jsonschema-go/jsonschema"

	"deduplab/results"
	"deduplab/strategies"
)

// Schema is a JSON Schema.
type Schema = jsonschema.Schema

// draft is the version of JSON Schema that editors understand best.
const draft = "http://json-schema.org/draft-07/schema#"

var schemas = map[string]func() (*Schema, error){
	"scenario":  func() (*Schema, error) { return scenario(), nil },
	"semantics": func() (*Schema, error) { return semantics(), nil },
	"results":   ofResults,
}

// Names lists what there is a schema of.
func Names() []string { return []string{"scenario", "semantics", "results"} }

// Of makes the schema of a kind of file.
func Of(name string) (*Schema, error) {
	s, err := schemas[name]()
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", name, err)
	}
	s.Schema = draft
	return s, nil
}

// Write writes the schema of a kind of file.
func Write(w io.Writer, name string) error {
	s, err := Of(name)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// ofResults is made from the Go types.
func ofResults() (*Schema, error) {
	s, err := jsonschema.For[results.Run](nil)
	if err == nil {
		s.Title = "results.json of a run of lab"
	}
	return s, err
}

// field is a field of an object.
type field struct {
	name   string
	schema *Schema
	must   bool
}

func must(name string, s *Schema) field { return field{name, s, true} }
func may(name string, s *Schema) field  { return field{name, s, false} }

// object has these fields and no others.
func object(fields ...field) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: &Schema{Not: &Schema{}}}
	for _, f := range fields {
		s.Properties[f.name] = f.schema
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if f.must {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

// mapOf is an object with names of one's own.
func mapOf(s *Schema) *Schema { return &Schema{Type: "object", AdditionalProperties: s} }

func list(of *Schema) *Schema { return &Schema{Type: "array", Items: of} }

// oneOrMore is a single one, or a list with at least one.
func oneOrMore(of func() *Schema) *Schema {
	least := 1
	return either(of(), &Schema{Type: "array", Items: of(), MinItems: &least})
}

func bounds(of *Schema) *Schema {
	two := 2
	return &Schema{Type: "array", Items: of, MinItems: &two, MaxItems: &two}
}

func either(of ...*Schema) *Schema { return &Schema{AnyOf: of} }
func ref(name string) *Schema      { return &Schema{Ref: "#/$defs/" + name} }

// about is a schema that says what the field means.
func about(text string, s *Schema) *Schema { s.Description = text; return s }

func choice(values ...string) *Schema {
	s := &Schema{}
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

func text() *Schema    { return &Schema{Type: "string"} }
func boolean() *Schema { return &Schema{Type: "boolean"} }
func whole() *Schema   { return &Schema{Type: "integer"} }
func number() *Schema  { return &Schema{Type: "number"} }
func scalar() *Schema  { return &Schema{Types: []string{"string", "number", "boolean", "null"}} }
func duration() *Schema {
	return &Schema{Type: "string", Pattern: "^[0-9]", Examples: []any{"2h", "90s", "40ms"}}
}
func rate() *Schema {
	return &Schema{Type: "string", Pattern: "^[0-9].*/[smhd]$", Examples: []any{"10/s"}}
}
func share() *Schema {
	return &Schema{Types: []string{"string", "number"}, Examples: []any{"0.4%", 0.004}}
}

// strategy is its name, or the name with its parameters, and texts besides them.
func strategy(besides ...string) *Schema {
	var names []string
	all := object()
	for _, name := range strategies.Names() {
		s, _ := strategies.Lookup(name)
		names = append(names, name)
		var fields []field
		for _, name := range besides {
			fields = append(fields, may(name, text()))
		}
		for _, p := range s.Params {
			fields = append(fields, may(p.Name, about(p.About, param(p))))
		}
		all.Properties[name] = about(s.About, either(object(fields...), &Schema{Type: "null"}))
		all.PropertyOrder = append(all.PropertyOrder, name)
	}
	one := 1
	all.MinProperties, all.MaxProperties = &one, &one
	return either(choice(names...), all)
}

func param(p strategies.Param) *Schema {
	switch p.Kind {
	case strategies.Duration, strategies.OptionalDuration:
		return text()
	case strategies.Int:
		return whole()
	case strategies.Bool:
		return boolean()
	case strategies.Enum:
		return choice(p.Values...)
	case strategies.Columns:
		return either(text(), list(text()))
	case strategies.Spans:
		return either(text(), mapOf(text()))
	case strategies.Tiers:
		return list(either(text(), mapOf(&Schema{Types: []string{"object", "null"}})))
	}
	return text()
}

func flinkVersions() *Schema {
	s := &Schema{Enum: []any{}}
	for _, v := range strategies.Versions {
		s.Enum = append(s.Enum, string(v))
	}
	s.Enum = append(s.Enum, 2.3, 2.0) // written without quotes they are numbers
	return about("the version of Flink whose rules hold", s)
}
