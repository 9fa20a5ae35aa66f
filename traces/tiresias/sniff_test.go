package tiresias_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"testing"

	"clustergym/traces"
	"clustergym/traces/tiresias"
)

func TestSniffFindsItsFilesAmongAllRecordedOnes(t *testing.T) {
	found, files := 0, 0
	err := filepath.WalkDir(recorded, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := traces.OpenFile(path)
		if err != nil {
			return err
		}
		defer f.Close()
		head, err := io.ReadAll(io.LimitReader(f, 1<<16))
		if err != nil {
			return err
		}
		files++
		got, want := tiresias.Sniff(head), e.Name() == "60_job.csv"
		if got != want {
			t.Errorf("%s: %v", path, got)
		}
		if got {
			found++
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("recorded traces not at hand: looked for in ../shared, beside this repository, of which it is no part")
	}
	if err != nil || found == 0 {
		t.Errorf("%d of %d files recognised: %v", found, files, err)
	}
}
