package papers

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"clustergym/experiments/run"
	"clustergym/experiments/study"
	"clustergym/nets/kernel"
)

// The quick form of every experiment gives what its expected.csv says, to nine digits: with the kernels of that run
// (AVX-512); with others trained networks differ in last bits, and figures need only be there.
func TestQuickFormsGiveTheFiguresThatAreWrittenDown(t *testing.T) {
	if os.Getenv("CLUSTERGYM_PAPERS") == "" {
		t.Skip("takes minutes: make papers sets CLUSTERGYM_PAPERS")
	}
	for _, s := range Papers() {
		t.Run(s.Name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			r, err := run.RunStudy(t.Context(), s, run.PaperOptions{Plan: study.Plan{Quick: true, Workers: runtime.GOMAXPROCS(0)}, Dir: dir, Say: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			d := r.Deviation()
			if d == nil || d.Figures < 20 || len(d.Missing) > 0 || d.Commit == "" {
				t.Fatalf("beside expected.csv: %+v", d)
			}
			if d.Equal != d.Figures && kernel.Set() == "avx512" {
				t.Errorf("%s", d)
			}
			for _, file := range []string{"table.txt", "index.html", "results.csv", "rows.csv"} {
				b, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || len(b) < 1000 || file == "index.html" && !strings.Contains(string(b), "<svg") {
					t.Errorf("%s: %v, %d bytes", file, err, len(b))
				}
			}
		})
	}
}
