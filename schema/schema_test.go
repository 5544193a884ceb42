package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"deduplab/schema"
)

var update = flag.Bool("update", false, "write docs/schema anew")

func TestCommitted(t *testing.T) {
	for _, name := range schema.Names() {
		var b bytes.Buffer
		if err := schema.Write(&b, name); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("../docs/schema", name+".json")
		if *update {
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if committed, err := os.ReadFile(path); err != nil || !bytes.Equal(committed, b.Bytes()) {
			t.Errorf("%s is not current (%v): run go test ./schema -update", path, err)
		}
	}
}

// validate holds the YAML of a file against a schema.
func validate(t *testing.T, name string, src []byte) error {
	t.Helper()
	s, err := schema.Of(name)
	if err != nil {
		t.Fatal(err)
	}
	s.Schema = "" // the validator knows another draft, in which what is used here means the same
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := yaml.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return resolved.Validate(v)
}

// Every file that the lab ships is valid by its schema, and begins with a comment that says where that is.
func TestShipped(t *testing.T) {
	err := filepath.WalkDir("../scenarios", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := "semantics"
		if bytes.Contains(src, []byte("\nscenario:")) {
			name = "scenario"
		}
		if err := validate(t, name, src); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		first, _, _ := strings.Cut(string(src), "\n")
		target, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		want, _ := filepath.Abs("../docs/schema/" + name + ".json")
		if got, _ := filepath.Abs(filepath.Join(filepath.Dir(path), target)); !ok || got != want {
			t.Errorf("%s does not begin with the place of its schema: %s", path, first)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
