package schedulers_test

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// endless is a workload generated while it is read: n jobs, each with a different request.
type endless struct {
	r    *rand.Rand
	n, i int
	at   time.Duration
}

func (e *endless) Next(j *traces.Job) error {
	if e.i == e.n {
		return io.EOF
	}
	e.i++
	e.at += time.Duration(e.r.IntN(20)) * second
	*j = traces.Job{ID: "j", Submit: e.at, Work: time.Duration(1+e.r.IntN(400)) * second, GPUs: 1 + e.r.IntN(4),
		GPUMilli: 1000, CPUMilli: int64(e.i)}
	return nil
}

// Memory grows with the jobs in the system, not with the trace, even if no two jobs have the same request.
func TestMemoryIsBounded(t *testing.T) {
	if checked || raced.On {
		t.Skip("with the books checked after every change, or under the race detector, this takes too long")
	}
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 30, GPUs: 8, CPUs: 1000}}}}}
	for _, name := range []string{"fifo+strict", "sjf+skip", "srtf+skip", "fifo+strict+easy", "fifo+commit+easy",
		"fifo+strict+conservative"} {
		t.Run(name, func(t *testing.T) {
			used := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			n := 40_000
			if name == "srtf+skip" {
				n = 10_000 // each pass is planned exactly
			}
			h := scheduler(t, called(name))
			s, err := sim.New(sim.DefaultConfig(), spec)
			if err != nil {
				t.Fatal(err)
			}
			before := used()
			if err := s.Reset(&endless{r: rand.New(rand.NewPCG(7, 7)), n: n}); err != nil {
				t.Fatal(err)
			}
			if err := sim.Run(context.Background(), s, h); err != nil {
				t.Fatal(err)
			}
			after := used()
			runtime.KeepAlive(h)
			runtime.KeepAlive(s)
			if v := s.View(); v.Ended() != n {
				t.Fatalf("%d of %d jobs ended", v.Ended(), n)
			}
			if grown := int64(after) - int64(before); grown > 1<<20 {
				t.Errorf("%d KiB for a trace of %d jobs of which few wait or run at a time", grown>>10, n)
			}
		})
	}
}
