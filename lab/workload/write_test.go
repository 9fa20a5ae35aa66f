package workload

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"clustergym/internal/fault"
	"clustergym/traces"
)

func TestCreateFileReplacesAsAWhole(t *testing.T) {
	dir := t.TempDir()
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	left := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	path := filepath.Join(dir, "out.txt")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	o, err := CreateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "new"); err != nil {
		t.Fatal(err)
	}
	o.Discard()
	o.Discard()
	if read(path) != "old" || left() != 1 {
		t.Errorf("after Discard: %q and %d files, want the old one alone", read(path), left())
	}
	if o, err = CreateFile(path); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "new"); err != nil {
		t.Fatal(err)
	}
	if read(path) != "old" {
		t.Error("the file changed before Commit")
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	o.Discard()
	st, err := os.Stat(path)
	if err != nil || read(path) != "new" || left() != 1 || st.Mode().Perm() != 0o640 {
		t.Errorf("after Commit: %q, %d files, mode %v (%v); want the new content with the old mode", read(path), left(),
			st.Mode(), err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if o, err = CreateFile(link); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(o, "through"); err != nil {
		t.Fatal(err)
	}
	if err := o.Commit(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 || read(path) != "through" {
		t.Errorf("a link was replaced instead of its target (%v)", err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "no", "where")} {
		_, err := CreateFile(bad)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok {
			t.Errorf("CreateFile(%s): %v, want a fault.Mistake", bad, err)
		}
	}
	if o, err = CreateFile(os.DevNull); err != nil {
		t.Fatal(err)
	} else if err := o.Commit(); err != nil {
		t.Errorf("a device: %v", err)
	}
}

func TestPackedFilesAreReadBackAndRepeat(t *testing.T) {
	for _, ext := range []string{".gz", ".zst", ""} {
		path := filepath.Join(t.TempDir(), "jobs.csv"+ext)
		var first []byte
		for range 2 {
			o, err := CreateFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(o, native); err != nil {
				t.Fatal(err)
			}
			if err := o.Commit(); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if first != nil && !bytes.Equal(first, b) {
				t.Errorf("%q: equal content gave other bytes", ext)
			}
			first = b
		}
		if packed := string(first) != native; packed != (ext != "") {
			t.Errorf("%q: packed is %v", ext, packed)
		}
		f, err := traces.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(f); err != nil || string(b) != native {
			t.Errorf("%q: read back %q (%v)", ext, b, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
