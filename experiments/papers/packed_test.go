package papers

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "pack the expected.csv of every experiment again")

// largest is the size in bytes from which on the figures of an experiment are in the repository in their packed form
// alone.
const largest = 1 << 20

// Binaries have the figures of every experiment in a sixth of the bytes. After a change of an expected.csv, -update
// packs it:
//
//	go test ./experiments/papers -run TestPackedFiguresAreThoseOfTheFiles -update
//
// A file of more than a megabyte, such as dally's, is then removed: zstd -dk expected.csv.zst unpacks it again.
func TestPackedFiguresAreThoseOfTheFiles(t *testing.T) {
	for _, s := range All() {
		name := filepath.Join("..", strings.ReplaceAll(s.Name, "-", ""), "expected.csv")
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			if text, err = s.ExpectedCSV(); err != nil || len(text) < largest {
				t.Errorf("%s: no expected.csv, and %d bytes of it packed (%v)", s.Name, len(text), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			s.Expected = z.EncodeAll(text, nil)
			if err := os.WriteFile(name+".zst", s.Expected, 0o644); err != nil {
				t.Fatal(err)
			}
			if len(text) >= largest {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if packed, err := s.ExpectedCSV(); err != nil || !bytes.Equal(packed, text) {
			t.Errorf(
				"%s: expected.csv.zst is not expected.csv, packed (%v); go test ./experiments/papers -run TestPackedFiguresAreThoseOfTheFiles -update packs it", s.Name, err)
		}
	}
}
