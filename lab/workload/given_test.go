package workload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"clustergym/internal/fault"
)

type dated struct{ name, file string }

func TestGivenSaysWhatTheFolderHas(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "a"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "a", "one.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all := []dated{{"made", ""}, {"one", "a/one.csv"}, {"two", "a/two.csv"}}
	of := func(d *dated) (string, *string) { return d.name, &d.file }
	for _, c := range []struct {
		data         string
		all          []dated
		want, absent []string
		fails        string
	}{
		{"", all, []string{""}, []string{"one", "two"}, ""},
		{data, all, []string{"", filepath.Join(data, "a", "one.csv")}, []string{"two"}, ""},
		{data, all[:1], []string{""}, nil, ""},
		{data, all[2:], nil, nil, "data folder " + data + ": it has none of " + filepath.Join("a", "two.csv")},
	} {
		given, absent, err := Given(c.data, c.all, of)
		var files []string
		for _, d := range given {
			files = append(files, d.file)
		}
		var input *fault.Mistake
		switch {
		case c.fails != "":
			if err == nil || err.Error() != c.fails || !errors.As(err, &input) {
				t.Errorf("%q: got %v, want %q", c.data, err, c.fails)
			}
		case err != nil || !slices.Equal(files, c.want) || !slices.Equal(absent, c.absent):
			t.Errorf("%q: %q, absent %q, %v", c.data, files, absent, err)
		}
	}
	if all[1].file != "a/one.csv" {
		t.Error("Given changed the workloads that it was given")
	}
}
