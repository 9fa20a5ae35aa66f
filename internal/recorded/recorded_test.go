package recorded

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// beside makes a checkout with recorded data beside it, and moves into a folder of the checkout.
func beside(t *testing.T) (data string) {
	t.Helper()
	top := t.TempDir()
	inside, data := filepath.Join(top, "checkout", "env", "sim"), filepath.Join(top, "shared", "runs")
	for _, dir := range []string{inside, data} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(top, "checkout", "go.mod"), "module checkout\n")
	t.Chdir(inside)
	return data
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRowsAreReadPlainAndPacked(t *testing.T) {
	data := beside(t)
	const table = "job,end\na,3\nb,4.5\n"
	write(t, filepath.Join(data, "plain.csv"), table)
	f, err := os.Create(filepath.Join(data, "packed.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	if _, err := z.Write([]byte(table)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runs/plain.csv", "runs/packed.csv.gz"} {
		rows := Rows(t, name)
		if got := fmt.Sprint(rows); got != "[map[end:3 job:a] map[end:4.5 job:b]]" {
			t.Errorf("%s: %s", name, got)
		}
		if Whole(t, rows[0]["end"]) != 3 || Number(t, rows[1]["end"]) != 4.5 {
			t.Errorf("%s: other numbers in %v", name, rows)
		}
	}
}

func TestATestWithoutTheFolderIsSkipped(t *testing.T) {
	beside(t)
	skipped := false
	t.Run("without", func(t *testing.T) {
		defer func() { skipped = t.Skipped() }()
		Open(t, "other/plain.csv")
		t.Error("a file of a folder that does not exist was opened")
	})
	if !skipped {
		t.Error("the test ran on")
	}
}
