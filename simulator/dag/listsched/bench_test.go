package listsched

import (
	"context"
	"fmt"
	"testing"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

func drawn(tb testing.TB, tasks, gpus int, links string) *dag.Problem {
	tb.Helper()
	src := rng.Stream(1, "listsched/bench")
	p, err := synth.Platform(synth.PlatformConfig{GPUs: gpus, Speeds: "spread", Links: links, Bandwidth: 2000}, src)
	if err != nil {
		tb.Fatal(err)
	}
	c := synth.DefaultConfig()
	c.Tasks = tasks
	q, err := synth.Problem(c, p, "bench", src)
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

func BenchmarkPlanners(b *testing.B) {
	for _, size := range [][2]int{{100, 50}, {1000, 50}, {10_000, 50}, {10_000, 500}} {
		for _, links := range []string{"equal", "random"} {
			q := drawn(b, size[0], size[1], links)
			p := New(q, Options{})
			for _, k := range []struct {
				name string
				plan func() *dag.Plan
			}{
				{"heft", func() *dag.Plan { return p.HEFT(true) }}, {"heft-noinsert", func() *dag.Plan { return p.HEFT(false) }},
				{"cpop", p.CPOP}, {"peft", p.PEFT}, {"eft-index", p.EFTIndex},
			} {
				b.Run(fmt.Sprintf("%s/%dx%d/%s", k.name, size[0], size[1], links), func(b *testing.B) {
					k.plan()
					b.ReportAllocs()
					for b.Loop() {
						k.plan()
					}
					b.ReportMetric(float64(b.N)*float64(size[0])/b.Elapsed().Seconds(), "tasks/s")
				})
			}
		}
	}
}

func BenchmarkOptimum(b *testing.B) {
	for _, n := range []int{8, 10, 12, 14} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				nodes, proven := 0, 0
				for k := range 10 {
					src := rng.Stream(uint64(k), "listsched/optimum")
					p, err := synth.Platform(synth.PlatformConfig{GPUs: 3 + k%3, Speeds: "spread", Links: "random", Bandwidth: 2000},
						src)
					if err != nil {
						b.Fatal(err)
					}
					c := synth.DefaultConfig()
					c.Tasks, c.Degree, c.CCR = n, 1+float64(k%3), 0.5+float64(k%2)
					q, err := synth.Problem(c, p, "bench", src)
					if err != nil {
						b.Fatal(err)
					}
					x, err := Optimum(context.Background(), q, Options{}, 0)
					if err != nil {
						b.Fatal(err)
					}
					nodes += x.Nodes
					if x.Proven {
						proven++
					}
				}
				b.ReportMetric(float64(nodes), "nodes")
				b.ReportMetric(float64(proven), "proven")
			}
		})
	}
}

func TestPlanningAgainAllocatesNothing(t *testing.T) {
	q := drawn(t, 300, 20, "random")
	p := New(q, Options{})
	p.HEFT(true)
	if n := testing.AllocsPerRun(5, func() { p.HEFT(true) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
