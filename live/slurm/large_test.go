package slurm

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/live"
)

// many returns a document with n jobs that wait, made of a recorded one.
func many(tb testing.TB, release string, n int) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", release, "squeue.json")) //nolint:gosec // of these tests
	if err != nil {
		tb.Fatal(err)
	}
	var one string
	lines := strings.Split(string(text), "\n")
	for _, l := range lines {
		if strings.Contains(l, `"name": "typed2"`) {
			one = strings.TrimSuffix(l, ",")
		}
	}
	var b bytes.Buffer
	b.WriteString(lines[0] + "\n")
	for i := range n {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString(strings.Replace(strings.Replace(one, `"job_id": 52`, fmt.Sprintf(`"job_id": %d`, 1000+i), 1),
			`"typed2"`, fmt.Sprintf(`"train %d"`, i%500), 1))
	}
	b.WriteString("\n" + lines[len(lines)-2] + "\n")
	return b.Bytes()
}

func large(tb testing.TB, release string, n int) *replay {
	r := recorded(tb, release)
	r.out["squeue --json"] = string(many(tb, release, n))
	return r
}

func TestTenThousandJobs(t *testing.T) {
	raced.Alone(t)
	r := large(t, "24.11", 10_000)
	s, err := r.cluster(Options{}).Observe(t.Context())
	if err != nil || len(s.Jobs) != 10_000 || s.Job("1000") == nil {
		t.Fatalf("%v", err)
	}
	actions := make([]live.Action, 1000)
	for i := range actions {
		actions[i] = live.Action{Op: live.RankJob, Job: s.Jobs[i].ID, Score: int64(i)}
	}
	for i, res := range r.cluster(Options{}).Act(t.Context(), actions) {
		if res.Err != nil {
			t.Fatalf("%s: %v", actions[i], res.Err)
		}
	}
	if len(r.wrote) != 1000 {
		t.Errorf("%d lines", len(r.wrote))
	}
}

// Only one job of the document is held at a time.
func TestDecodingIsAStream(t *testing.T) {
	raced.Alone(t)
	text := many(t, "22.05", 10_000)
	var before, after runtime.MemStats
	most := uint64(0)
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	_, err := readJobs(io.LimitReader(bytes.NewReader(text), int64(len(text))), func(*record) error {
		if n++; n%2000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			most = max(most, after.HeapAlloc-min(after.HeapAlloc, before.HeapAlloc))
		}
		return nil
	})
	if err != nil || n != 10_000 || most > 4<<20 {
		t.Errorf("%v: %d jobs of %d MB, %d KiB held", err, n, len(text)>>20, most>>10)
	}
}

func BenchmarkObserveTenThousand(b *testing.B) {
	for _, release := range []string{"22.05", "24.11"} {
		b.Run(release, func(b *testing.B) {
			r := large(b, release, 10_000)
			b.SetBytes(int64(len(r.out["squeue --json"])))
			b.ReportAllocs()
			for b.Loop() {
				if s, err := r.cluster(Options{}).Observe(b.Context()); err != nil || len(s.Jobs) != 10_000 {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzReadJobs(f *testing.F) {
	for _, release := range []string{"22.05", "23.02", "24.11"} {
		f.Add(string(many(f, release, 2)))
	}
	f.Add(`{"jobs": [{"job_id": 1, "job_state": ["PENDING"], "array_job_id": 1, "array_task_string": "1-9%2"}], "meta": {"slurm": {"release": "1"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r := recorded(t, "22.05")
		r.out["squeue --json"] = text
		if s, err := r.cluster(Options{MaxJobs: 1000}).Observe(t.Context()); err == nil {
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

func FuzzShow(f *testing.F) {
	r := recorded(f, "22.05")
	f.Add(r.out["scontrol -d show job"], r.out["scontrol -a show node"], r.out["scontrol show config"])
	f.Fuzz(func(t *testing.T, jobs, nodes, conf string) {
		r := recorded(t, "22.05")
		r.out["scontrol -d show job"], r.out["scontrol -a show node"], r.out["scontrol show config"] = jobs, nodes, conf
		if s, err := r.cluster(Options{Text: true, MaxJobs: 1000}).Observe(t.Context()); err == nil {
			if err := s.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
