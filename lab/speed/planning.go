package speed

import (
	"context"
	"fmt"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/listsched"
	"clustergym/simulator/dag/synth"
)

// planning measures planners of task graphs and the evaluation of plans in tasks per second, on random graphs of mean
// degree 3 and processors of different speeds.
func (b *bench) planning(ctx context.Context) error {
	for _, size := range [][2]int{{1000, 50}, {5000, 50}} {
		n := b.size(size[0])
		for _, links := range []string{"equal", "random"} {
			src := rng.Stream(1, "bench/planning")
			platform, err := synth.Platform(synth.PlatformConfig{GPUs: size[1], Speeds: "spread", Links: links, Bandwidth: 2000},
				src)
			if err != nil {
				return err
			}
			c := synth.DefaultConfig()
			c.Tasks = n
			q, err := synth.Problem(c, platform, "bench", src)
			if err != nil {
				return err
			}
			p := listsched.New(q, listsched.Options{})
			e, proc := dag.NewEvaluator(q, nil), make([]int32, n)
			for i := range proc {
				proc[i] = int32(src.IntN(size[1]))
			}
			for _, k := range []struct {
				name string
				mark float64
				do   func()
			}{
				{"heft", 100_000, func() { p.HEFT(true) }}, {"peft", 0, func() { p.PEFT() }},
				{"evaluation of a plan", 0, func() { e.Makespan(proc) }},
			} {
				row := Row{
					Group: "planning", What: fmt.Sprintf("task graph of %d tasks, links %s", n,
						links), Cluster: fmt.Sprintf("pool:%d", size[1]),
					Policy: k.name, Unit: "tasks/s",
				}
				if size[0] == 1000 {
					row.Mark = k.mark
				}
				if err := b.measure(ctx, row, func(context.Context) (int, error) { k.do(); return n, nil }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
