package schedulers_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var update = flag.Bool("update", false, "rewrite testdata")

// camera takes a snapshot of a run at every 20th point.
type camera struct {
	s      *sim.Simulator
	n      int
	digest []string
}

func (c *camera) Observe(*sim.View, *sim.Point) error {
	if c.n++; c.n%20 == 0 {
		c.digest = append(c.digest, fmt.Sprintf("%.12x", sha256.Sum256(c.s.AppendSnapshot(nil))))
	}
	return nil
}

// Snapshots of the simulator in the midst of a run keep their bytes under every order and every model of communication,
// since they lie in checkpoints and in the hands of clients.
func TestSnapshotsKeepTheirBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 13))
	var jobs []traces.Job
	at := time.Duration(0)
	for i := range 120 {
		at += time.Duration(r.IntN(90)) * second
		work := time.Duration(1+r.IntN(900)) * second
		jobs = append(jobs, traces.Job{
			ID: fmt.Sprint("j", i), User: fmt.Sprint("u", r.IntN(5)), Name: fmt.Sprint("n", r.IntN(9)), Submit: at, Work: work,
			Estimate: work + time.Duration(r.IntN(900))*second, GPUs: 1 << r.IntN(4), GPUMilli: 1000, Priority: r.IntN(3),
		})
	}
	spec, _, err := cluster.Parse("2x8")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	play := func(name string, cfg schedulers.Config, sc sim.Config) {
		cfg.Simulator(&sc)
		s, err := sim.New(sc, spec)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, err := schedulers.New(cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h.Reset(s.View())
		c := &camera{s: s}
		if err := sim.Run(context.Background(), s, h, c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lines = append(lines, name+" "+strings.Join(c.digest, " "))
	}
	for _, order := range schedulers.Orders() {
		if order == "exact" { // it takes fewer jobs
			continue
		}
		cfg := schedulers.DefaultConfig()
		cfg.Order = order
		play(order, cfg, sim.DefaultConfig())
	}
	for _, backfill := range policyname.Backfills() {
		cfg := schedulers.DefaultConfig()
		cfg.Backfill = backfill
		play("fifo+"+backfill, cfg, sim.DefaultConfig())
	}
	for _, order := range []string{"las", "srtf"} {
		sc := sim.DefaultConfig()
		sc.Restart, sc.Checkpoint = 30*second, 120*second
		sc.Failures.MTBF, sc.Failures.MTTR = 4*time.Hour, 10*time.Minute
		cfg := schedulers.DefaultConfig()
		cfg.Order = order
		play(order+" with failures", cfg, sc)
	}
	file := filepath.Join("testdata", "snapshots.txt")
	got := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(b), "\n")
	if len(want) != len(lines)+1 {
		t.Fatalf("%s has %d lines, want %d (-update rewrites)", file, len(want)-1, len(lines))
	}
	for i, l := range lines {
		if l != want[i] {
			t.Errorf("%s (-update rewrites): got\n  %s\nwant\n  %s", file, l, want[i])
		}
	}
}
