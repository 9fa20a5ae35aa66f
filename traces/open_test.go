package traces

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func packed(t *testing.T, text string) (gz, zst []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), e.EncodeAll([]byte(text), nil)
}

func put(t *testing.T, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenFileUnpacksByContentNotByName(t *testing.T) {
	text := strings.Repeat("submit_time,duration,num_gpu\n1,2,3\n", 5000)
	gz, zst := packed(t, text)
	two := append(bytes.Clone(gz), gz...) // gzip files may be concatenated
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"plain.gz", []byte(text), text}, {"packed.csv", gz, text}, {"a.gz", gz, text}, {"a.zst", zst, text},
		{"b.txt", zst, text},
		{"two.gz", two, text + text}, {"empty", nil, ""}, {"tiny", []byte("a"), "a"},
		{"skippable.zst", append([]byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9}, zst...), text},
	} {
		f, err := OpenFile(put(t, c.name, c.b))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := io.ReadAll(f)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %d bytes, %v; want %d", c.name, len(got), err, len(c.want))
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: close: %v", c.name, err)
		}
	}
}

func TestATraceCutShortIsAnErrorAtEveryLength(t *testing.T) {
	text := strings.Repeat("0,1,1\n12,34,5\n", 300)
	gz, zst := packed(t, text)
	for name, b := range map[string][]byte{"gzip": gz, "zstd": zst} {
		for n := 4; n < len(b); n++ {
			f, err := OpenFile(put(t, "cut", b[:n]))
			if err == nil {
				_, err = io.ReadAll(f)
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "the "+name+" stream is cut short or damaged") ||
				!strings.Contains(err.Error(), "cut:") {
				t.Fatalf("%s of %d bytes cut to %d: %v", name, len(b), n, err)
			}
		}
	}
	gz[len(gz)-6] ^= 1 // the checksum
	f, err := OpenFile(put(t, "bad", gz))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadAll(f); !errors.Is(err, gzip.ErrChecksum) {
		t.Errorf("a wrong checksum: %v", err)
	}
}

func TestAMissingFileIsOneClearSentence(t *testing.T) {
	_, err := OpenFile("no/such.csv")
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "trace no/such.csv: there is no such file") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	if _, err := OpenFile(dir); err == nil || !strings.Contains(err.Error(), "this is a folder") {
		t.Errorf("%v", err)
	}
}
