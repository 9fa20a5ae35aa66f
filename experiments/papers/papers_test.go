package papers

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/nets/kernel"
)

// untrained are experiments without a trained network, whose figures are the same with all kernels of the processor.
var untrained = []string{"estimates", "rlscheduler"}

// long are the experiments whose quick forms take longest, so that none of them is begun when all others have ended.
var long = []string{"ddppo", "lookahead", "topdrl", "meta-scheduler", "worl-rtgs", "dally"}

func longestFirst(all []study.Study) []study.Study {
	place := func(s study.Study) int {
		if i := slices.Index(long, s.Name); i >= 0 {
			return i
		}
		return len(long)
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b study.Study) int { return place(a) - place(b) })
}

// The quick form of every experiment gives the figures of its expected.csv to nine digits with AVX-512, the kernels of
// the recorded run. With other kernels trained networks differ in the last bits, and the figures need only exist: all
// but a few, such as the samples after which a gain was reached that another training does not reach.
// CLUSTERGYM_PAPERS_DATA names a folder of recorded workloads: then the experiments with figures of "quick --data" are
// run with it.
func TestQuickFormsGiveTheFiguresThatAreWrittenDown(t *testing.T) {
	if os.Getenv("CLUSTERGYM_PAPERS") == "" {
		t.Skip("takes minutes: make papers sets CLUSTERGYM_PAPERS")
	}
	data := os.Getenv("CLUSTERGYM_PAPERS_DATA")
	for _, s := range longestFirst(All()) {
		if text, err := s.ExpectedCSV(); err != nil {
			t.Fatal(err)
		} else if data != "" && !strings.Contains(string(text), "\nquick --data,") {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // an experiment for each processor: alone, each would leave one idle while its longest cell ends
			dir := filepath.Join(t.TempDir(), "out")
			r, err := study.Run(t.Context(), s,
				study.Options{Plan: study.Plan{Quick: true, Data: data, Workers: 1}, Dir: dir, Say: t.Logf})
			if err != nil {
				t.Fatal(err)
			}
			d := r.Deviation()
			same := kernel.Set() == "avx512" || slices.Contains(untrained, s.Name) && runtime.GOARCH == "amd64"
			if d == nil || d.Figures < 20 || len(d.Missing)*50 > d.Figures || same && len(d.Missing) > 0 || d.Commit == "" {
				t.Fatalf("beside expected.csv: %+v", d)
			}
			if d.Equal != d.Figures && same {
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

func TestAnUnknownExperimentIsNamedWithTheKnownOnes(t *testing.T) {
	for name, want := range map[string]string{
		"topdlr": `experiment "topdlr" is unknown; did you mean topdrl?`,
		"x":      `experiment "x" is unknown, want one of worl-rtgs, topdrl, dally, meta-scheduler, rlscheduler, rltune, lwf, a-srpt, improper, ddppo, estimates, lookahead`,
	} {
		var input *fault.Mistake
		if _, err := Run(t.Context(), name, study.Options{}); !errors.As(err, &input) || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
