package report

import (
	"bytes"
	"os"
	"testing"
)

func TestLook(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample(t)); err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/r.html", b.Bytes(), 0o644)
}
