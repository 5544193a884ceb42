package report

import "testing"

func TestTable(t *testing.T) {
	tab := table{right: map[int]bool{1: true}}
	tab.add("name", "n", "note")
	tab.add("größer", "1,234", "")
	tab.add("b")
	want := "name         n   note\n" +
		"größer   1,234\n" +
		"b\n"
	if got := tab.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWrap(t *testing.T) {
	want := "- one two\n" +
		"  three\n" +
		"  averyveryverylongword\n" +
		"  four\n"
	if got := wrap("- ", "one two three averyveryverylongword four", 10); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
