package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/live/livetest"
	"clustergym/ops/incumbent"
	"clustergym/ops/steer"
	"clustergym/simulator/sim"
)

// written writes the log of a cluster of 512 GPUs on which n jobs came and were started first come, first served, with
// a look every minute.
func written(tb testing.TB, n int) (file string, bytes int64) {
	tb.Helper()
	src := rand.New(rand.NewPCG(3, 3))
	nodes := make([]steer.NodeLine, 64)
	for i := range nodes {
		nodes[i] = steer.NodeLine{Name: fmt.Sprintf("g%02d", i), GPUs: 8}
	}
	l := &Log{Cluster: "large", Nodes: nodes, From: livetest.Epoch, To: livetest.Epoch}
	at := time.Duration(0)
	for i := range n {
		at += time.Duration(src.ExpFloat64() * 17e9)
		work := time.Duration(60+src.IntN(60)*src.IntN(60)) * time.Second
		l.Jobs = append(l.Jobs, &Job{
			ID: fmt.Sprint(i), User: fmt.Sprint("u",
				src.IntN(50)), GPUs: 1 << src.IntN(5), Limit: 2 * work, Submit: livetest.Epoch.Add(at),
			Start: livetest.Epoch.Add(at),
			Again: livetest.Epoch, End: livetest.Epoch.Add(work),
		})
	}
	r, err := newReplay(l, time.Hour, nil)
	if err != nil {
		tb.Fatal(err)
	}
	sch, err := incumbent.Rule("fifo+skip", "first-fit", sim.MustEstimates("none"))
	if err != nil {
		tb.Fatal(err)
	}
	s, err := r.Play(tb.Context(), sch, sim.Estimates{Mode: sim.EstimateNone})
	if err != nil {
		tb.Fatal(err)
	}
	minutes := int((at + 4*time.Hour) / time.Minute)
	lines := make([]steer.Line, minutes)
	put := func(at time.Duration, add func(x *steer.Line)) {
		if k := int(at/time.Minute) + 1; k < minutes {
			add(&lines[k])
		}
	}
	for i, j := range r.of {
		line := steer.JobLine{ID: j.ID, User: j.User, GPUs: j.GPUs, Limit: j.Limit.Seconds(), Submit: j.Submit}
		put(r.Jobs[i].Submit, func(x *steer.Line) { x.Arrived = append(x.Arrived, line) })
		line.Start = r.zero.Add(s.Starts[i])
		put(s.Starts[i], func(x *steer.Line) { x.Started = append(x.Started, line) })
		line.End = line.Start.Add(r.Jobs[i].Work)
		put(s.Starts[i]+r.Jobs[i].Work, func(x *steer.Line) { x.Ended = append(x.Ended, line) })
	}
	lines[0].Nodes = nodes
	file = filepath.Join(tb.TempDir(), "steer.jsonl")
	f, err := os.Create(file)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range lines {
		x := &lines[i]
		x.Observed = livetest.Epoch.Add(time.Duration(i) * time.Minute)
		x.At, x.Cluster, x.Policy, x.Mode, x.Digest = x.Observed, "large", "sjf+skip", steer.Shadow, "0123456789abcdef"
		b, err := json.Marshal(x)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(append(b, '\n')); err != nil {
			tb.Fatal(err)
		}
		bytes += int64(len(b)) + 1
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return file, bytes
}

// The jobs are in memory, and lines are not: a log with many looks at nothing needs no more than the jobs do.
func TestMemoryFollowsJobs(t *testing.T) {
	raced.Alone(t)
	file, size := written(t, 2000)
	held := func() uint64 {
		l, err := Read(t.Context(), []string{file})
		if err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(l)
		return m.HeapAlloc
	}
	few := held()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is read below
	w := bufio.NewWriter(f)
	for i := range 30_000 {
		at := livetest.Epoch.Add(1000*time.Hour + time.Duration(i)*time.Minute).Format(time.RFC3339)
		if _,
			err := fmt.Fprintf(w,
			`{"at":%q,"observed":%q,"cluster":"large","policy":"sjf+skip","mode":"shadow","digest":"x","waiting":0,"running":0,"free_gpus":512,"took_s":0.01}`+"\n", at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if many := held(); many > few+2<<20 {
		t.Errorf("%d bytes for a log of %d bytes, %d with 30,000 looks more", few, size, many)
	}
}

// BenchmarkRead reads a log of 100,000 jobs.
func BenchmarkRead(b *testing.B) {
	file, size := written(b, 100_000)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(b.Context(), []string{file}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuild makes the report of a log of 100,000 jobs.
func BenchmarkBuild(b *testing.B) {
	file, _ := written(b, 100_000)
	l, err := Read(b.Context(), []string{file})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Build(b.Context(), l,
			Options{Choice: choice("sjf+skip", "history"), Estimates: sim.MustEstimates("history"), Limit: time.Hour,
				Asks: 5000})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Agreement.Again.Of), "asked")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
}
