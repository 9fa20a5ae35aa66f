package texttable

import (
	"strings"
	"testing"
)

func TestColumnsLineUp(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, []string{"name", "größe", "n"}, [][]string{{"a", "1.5", "10"}, {"longer", "–", ""}}, 1); err !=
		nil {
		t.Fatal(err)
	}
	want := "name    größe   n\n------  -----  --\na         1.5  10\nlonger      –\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
