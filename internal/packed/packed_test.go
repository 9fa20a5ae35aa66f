//go:build unix

package packed

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// zeros are as many as are read, of which almost nothing was packed.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestABombIsRefused(t *testing.T) {
	t.Parallel()
	b := &bounded{zeros{}, &counted{r: bytes.NewReader(nil)}, 0}
	n, err := io.Copy(io.Discard, b)
	if err == nil || n > maxFree || !strings.Contains(err.Error(), "has more than 1073741824 bytes") {
		t.Errorf("%d bytes, then %v", n, err)
	}
}

func TestArchivesThatLeadOutAreRefused(t *testing.T) {
	t.Parallel()
	pack := func(write func(w *tar.Writer)) io.Reader {
		var b bytes.Buffer
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(z)
		write(w)
		if err := errors.Join(w.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	entry := func(w *tar.Writer, h tar.Header, content string) {
		h.Size, h.Mode = int64(len(content)), 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		want    string
		headers []tar.Header
	}{
		{"leads out of it", []tar.Header{{Name: "../x", Typeflag: tar.TypeReg}}},
		{"leads out of it", []tar.Header{{Name: "/etc/x", Typeflag: tar.TypeReg}}},
		{"leads out of it", []tar.Header{{Name: "a/../../x", Typeflag: tar.TypeReg}}},
		{"leads out of it", []tar.Header{{Name: "a/..", Typeflag: tar.TypeDir}}},
		{"neither a file nor a folder", []tar.Header{{Name: "a", Linkname: "/etc", Typeflag: tar.TypeSymlink}}},
		{"neither a file nor a folder", []tar.Header{{Name: "a", Linkname: "b", Typeflag: tar.TypeLink}}},
		{"neither a file nor a folder", []tar.Header{{Name: "a", Typeflag: tar.TypeChar}}},
		{"neither a file nor a folder", []tar.Header{{Name: "a", Typeflag: tar.TypeFifo}}},
		{"want names in order, each once",
			[]tar.Header{{Name: "b", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}}},
		{"want names in order, each once",
			[]tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "./a", Typeflag: tar.TypeReg}}},
		{"a: ", []tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "a/b", Typeflag: tar.TypeReg}}},
	} {
		dir := t.TempDir()
		_, err := Unpack(pack(func(w *tar.Writer) {
			for _, h := range c.headers {
				entry(w, h, "")
			}
		}), filepath.Join(dir, "in"), Folder)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.headers, err, c.want)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
			t.Errorf("%v: %d files", err, len(list))
		}
	}
	// A link that is there already leads nowhere either.
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "in"), 0o700),
		os.Symlink(dir, filepath.Join(dir, "in", "out"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(pack(func(w *tar.Writer) { entry(w, tar.Header{Name: "out/x", Typeflag: tar.TypeReg}, "x") }),
		filepath.Join(dir, "in"), Folder); err == nil || there(filepath.Join(dir, "x")) {
		t.Errorf("got %v", err)
	}
	if _, err := Unpack(strings.NewReader("not zstd at all"), filepath.Join(dir, "y"), Folder); err == nil {
		t.Error("nonsense was unpacked")
	}
}

func FuzzUnpack(f *testing.F) {
	dir := f.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700),
		os.WriteFile(filepath.Join(dir, "a", "c"), []byte("hello"), 0o600)); err != nil {
		f.Fatal(err)
	}
	list, err := Entries(dir)
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeTar(context.Background(), &b, list); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		parent := t.TempDir()
		_ = readTar(bytes.NewReader(data), filepath.Join(parent, "in"))
		if list, err := os.ReadDir(parent); err != nil || len(list) != 1 {
			t.Errorf("%v: files beside the folder: %v", err, list)
		}
	})
}

func there(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
