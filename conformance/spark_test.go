package conformance

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSparkRecordings replays every recording of Spark batch by batch.
func TestSparkRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/spark*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings found: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			c, err := Read(file, f)
			if err != nil {
				t.Fatal(err)
			}
			diffs, err := Run(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range diffs {
				t.Errorf("%s\nwant: %s\ngot:  %s", d.Title(), d.Want, d.Got)
			}
		})
	}
}

// TestMurmur3 holds the hash against values that Spark's hash() is known to give.
func TestMurmur3(t *testing.T) {
	for _, c := range []struct {
		name string
		key  []sparkValue
		want int32
	}{
		{"hash(1)", []sparkValue{{typ: "int", n: 1}}, -559580957},
		{"hash(1L)", []sparkValue{{typ: "long", n: 1}}, -1712319331},
		{"hash('Spark', array(123), 2): an array is its elements in turn",
			[]sparkValue{{typ: "string", text: "Spark"}, {typ: "int", n: 123}, {typ: "int", n: 2}}, -1321691492},
		{"hash(null)", []sparkValue{{typ: "string", null: true}}, 42},
	} {
		hash := uint32(42)
		for i := range c.key {
			hash = c.key[i].murmur3(hash)
		}
		if int32(hash) != c.want {
			t.Errorf("%s is %d, want %d", c.name, int32(hash), c.want)
		}
	}
	zero, negative := sparkValue{typ: "double"}, sparkValue{typ: "double", f: math.Copysign(0, -1)}
	if zero.murmur3(42) != negative.murmur3(42) {
		t.Error("0.0 and -0.0 must be in one partition")
	}
}
