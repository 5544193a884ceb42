package report

import (
	"bytes"
	"testing"
)

func TestTerminalGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Terminal(&b, sample(t)); err != nil {
		t.Fatal(err)
	}
	golden(t, "terminal.golden", b.Bytes())
}
