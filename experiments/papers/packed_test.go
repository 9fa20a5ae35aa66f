package papers

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "pack the expected.csv of every experiment again")

// Binaries have the figures of every experiment in a sixth of the bytes. After a change of an expected.csv, -update packs it:
//
//	go test ./experiments/papers -run TestPackedFiguresAreThoseOfTheFiles -update
func TestPackedFiguresAreThoseOfTheFiles(t *testing.T) {
	for _, s := range All() {
		name := filepath.Join("..", strings.ReplaceAll(s.Name, "-", ""), "expected.csv")
		text, err := os.ReadFile(name)
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
		}
		if packed, err := s.ExpectedCSV(); err != nil || !bytes.Equal(packed, text) {
			t.Errorf("%s: expected.csv.zst is not expected.csv, packed (%v); go test ./experiments/papers -run TestPackedFiguresAreThoseOfTheFiles -update packs it", s.Name, err)
		}
	}
}
