package sim_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// endless generates n jobs one by one, each with its own model, at a load of about half of 64 GPUs.
type endless struct{ n, i uint64 }

func (e *endless) Next(j *traces.Job) error {
	if e.i == e.n {
		return io.EOF
	}
	x := rng.At(5, e.i)
	*j = traces.Job{
		ID: fmt.Sprint(e.i), Submit: time.Duration(e.i) * second, Work: time.Duration(1 + x%20*uint64(second)),
		GPUs: 1 + int(x>>32%5), GPUMilli: 1000,
		MaxGPUs: 8,
		Profile: &traces.Profile{GradientBytes: int64(1 + x%1000_000), Compute: ms,
			Speeds: map[string]float64{"": 1 + float64(x%7)}},
	}
	e.i++
	return nil
}

// A run needs memory for the jobs in the system, not for all jobs of the trace.
func TestMemoryIsBoundedByTheJobsInTheSystem(t *testing.T) {
	n := uint64(60_000)
	if *long {
		n = 5_000_000
	}
	cfg := sim.DefaultConfig()
	cfg.Comm, cfg.Checkpoint = "ring", second
	s, err := sim.New(cfg, short(t, "8x8"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&endless{n: n}); err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most, next := heap(), uint64(0), n/10
	highest := sim.Job(0)
	err = sim.Run(ctx, s, newGreedy(t, "first-fit"), watch(func(v *sim.View, p *sim.Point) error {
		for _, e := range p.Events {
			highest = max(highest, e.Job)
		}
		if uint64(v.Ended()) >= next {
			next += n / 10
			most = max(most, heap())
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	// The tables of models take up to 16,384 gangs and 4,096 models.
	if grown := int64(most) - int64(before); grown > 8<<20 || highest > 200 || s.View().Ended() != int(n) {
		t.Errorf("%d jobs took %d bytes and numbers up to %d", s.View().Ended(), grown, highest)
	}
}
