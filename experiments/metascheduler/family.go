package metascheduler

import (
	"context"
	"fmt"
	"strconv"

	"clustergym/agents/maml"
	"clustergym/env"
	"clustergym/experiments/metascheduler/mbmpo"
	"clustergym/experiments/study"
	"clustergym/internal/rng"
)

// familyCells returns the cells of meta-learning over a family of workloads: one for each learner.
func (s *settings) familyCells() []study.Cell {
	var all []study.Cell
	f := s.Family
	f.Seeds, f.Methods = 0, nil // a cell does not depend on how many others there are
	for _, m := range s.Family.Methods {
		for seed := s.FirstSeed; seed < s.FirstSeed+s.Family.Seeds; seed++ {
			all = append(all, study.Cell{
				Key:   fmt.Sprintf("family/%s/seed=%d", m, seed),
				Input: input{Version: version, Settings: s.own(), What: "family/" + m, Family: &f, Seed: seed},
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.overFamily(ctx, b, m, seed)
				},
			})
		}
	}
	return all
}

// overFamily trains one learner on real episodes of workloads from workerplace.Env.SampleTask, adapts it to workloads
// of the family that it has not seen, and judges it there. There are no models.
func (s *settings) overFamily(ctx context.Context, b *study.Bench, method string, seed int) ([]study.Row, error) {
	f := &s.Family
	usual, _ := s.worlds(&theUsual)
	model, err := s.policy(usual, s.Width, rng.At(uint64(seed), rng.Hash("policy")))
	if err != nil {
		return nil, err
	}
	// The learners begin as those of the other tables: by imitation of the same few episodes.
	imitator := s.base()
	s.free(&imitator)
	first, err := mbmpo.New(imitator, usual, model, 1, uint64(seed))
	if err != nil {
		return nil, err
	}
	defer first.Close() //nolint:errcheck // the learner holds only memory
	if _, err := first.Begin(ctx); err != nil {
		return nil, err
	}
	c := s.base().Maml
	c.Tasks, c.InnerLR = f.Tasks, f.Rate
	if method == "joint" { // as many real episodes, all of them for learning
		c.Method, c.After = "joint", c.Before+c.After
	}
	world, err := maml.NewFamily(func() (env.Env, error) { return usual.Open() })
	if err != nil {
		return nil, err
	}
	l, err := maml.New(c, world, func() (maml.Model, error) { return model() }, 1,
		rng.At(uint64(seed), rng.Hash("family")))
	if err != nil {
		return nil, err
	}
	defer l.Close() //nolint:errcheck // the learner holds only memory
	copy(l.Params().Data, first.Params())
	steps := []int{0, 1, 3}
	var rows []study.Row
	judge := func(stage string) error {
		out, err := l.Judge(ctx, l.Params().Data, rng.At(rng.Hash("meta-scheduler/family"), s.TraceSeed), f.Judged, steps,
			f.Plays, nil)
		if err != nil {
			return err
		}
		for k, n := range steps {
			for i, o := range out[k] {
				rows = append(rows,
					study.Row{Table: "family", Metric: "jct_h", Value: -o.Greedy * hours(), Labels: map[string]string{
						"method": method, "stage": stage, "inner": strconv.Itoa(n), "window": strconv.Itoa(i), "seed": strconv.Itoa(seed),
					}})
			}
		}
		return nil
	}
	if err := judge("imitation"); err != nil {
		return nil, err
	}
	for k := range f.Steps {
		if _, err := l.Learn(ctx); err != nil {
			return nil, err
		}
		b.Progress(int64(k+1), int64(f.Steps))
	}
	return rows, judge("final")
}
