package worlrtgs

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"

	"clustergym/experiments/study"
	"clustergym/lab/plan"
	"clustergym/simulator/dag/synth"
	"clustergym/simulator/sim"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// version is part of every cell's input. Raise it when a method changes: every cell is then computed again.
const version = 2

// searchVersion is part of the input of cells that use trained weights. Raising it computes them again without
// training.
const searchVersion = 3

// Study returns the study worl-rtgs, which compares WORL-RTGS-like plans with those of every other planner.
func Study() study.Study {
	return study.Of(study.Study{
		Name: "worl-rtgs",
		Title: "Plans of task graphs: WORL-RTGS-like against as many noisy plans of HEFT, whales, RTGS, list scheduling " +
			"and the optimum",
		Cite: "Du, Wu, Hou, Nie, Song: Efficient Scheduling for GPU-Based Neural Network Training via Hybrid " +
			"Reinforcement Learning and Metaheuristic Optimization, BDCC 9(11), 284, 2025",
		RunTimes: sim.Estimates{Mode: sim.EstimateExact}.Label() + ", given with the graphs",
		Takes:    "quick: under 2 minutes on two cores; full: an estimated 45 minutes of processor time",
	}, files, settingsOf, study.Parts[settings]{Cells: (*settings).cells, Values: (*settings).values})
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("worl-rtgs", files, p, settings{
		Graphs: 1, Seeds: 1, DRAS: 1, Plans: 3, Real: 1, Generator: plan.DefaultGeneratorConfig(),
		DRASAgent: defaultDRASAgent(),
	})
	if err == nil && p.Seeds > 0 {
		s.Seeds = p.Seeds
		s.Generators = min(s.Generators, p.Seeds)
	}
	return s, err
}

// newCell returns a cell with input, which gets the study's version.
func newCell(key string, input any, after []string,
	run func(ctx context.Context, b *study.Bench) ([]study.Row, error)) study.Cell {
	return study.Cell{Key: key, After: after, Run: run, Input: struct {
		Version int
		Of      any
	}{version, input}}
}

// trainings returns the cells that train networks.
func (s *settings) trainings() ([]study.Cell, error) {
	dras, err := s.drasInput()
	if err != nil {
		return nil, err
	}
	all := []study.Cell{newCell(drasKey, dras, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		return trainDRAS(ctx, b, &s.DRASAgent, s.DRAS)
	})}
	for k := range s.Generators {
		c := s.Generator
		all = append(all, newCell(generatorKey(k), c, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return trainGenerator(ctx, b, c, uint64(k+1), fmt.Sprint(k+1))
		}))
	}
	if s.Hopeful > 0 {
		c := s.Generator.Hopeful()
		c.Steps = s.Hopeful
		all = append(all, newCell(hopefulKey, c, nil, func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return trainGenerator(ctx, b, c, 1, "hopeful")
		}))
	}
	return all, nil
}

// cells returns the study's units of work: training first, then everything that uses what was trained.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	all, err := s.trainings()
	if err != nil {
		return nil, err
	}
	var training []string // keys of the cells that train
	for _, c := range all {
		training = append(training, c.Key)
	}
	add := func(key string, input any, after []string,
		run func(ctx context.Context, b *study.Bench) ([]study.Row, error)) *study.Cell {
		all = append(all, newCell(key, input, after, run))
		return &all[len(all)-1]
	}
	search := struct{ Version, Iterations, Whales, Generators, Hopeful, DRAS, Seeds int }{searchVersion, s.Iterations,
		s.Whales, s.Generators, s.Hopeful, s.DRAS, s.Seeds}
	for _, z := range s.Sizes {
		own := s.without(z)
		for _, family := range s.Families {
			for k := range z.Graphs {
				key := fmt.Sprintf("plan/%s/%dx%d/graph=%d", family, z.Tasks, z.GPUs, k)
				add(key, []any{family, z, k, search, plannerNames()}, training,
					func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						q, err := synth.FamilyProblem(family, z.Tasks, z.GPUs, k, true)
						if err != nil {
							return nil, err
						}
						labels := map[string]string{"family": family, "tasks": fmt.Sprint(z.Tasks), "GPUs": fmt.Sprint(z.GPUs),
							"graph": fmt.Sprint(k), "class": z.class()}
						return comparePlans(ctx, b, s, "plans", q, own.planners(), s.every(z), labels)
					})
			}
		}
	}
	if p.Data != "" {
		file, digest, err := recordedFile(p.Data)
		if err != nil {
			return nil, err
		}
		for _, kind := range recordedKinds {
			for k := range s.Real {
				add(fmt.Sprintf("real/%s/graph=%d", kind, k), []any{kind, k, digest, search}, training,
					func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						return planRecorded(ctx, b, s, file, kind, k)
					})
			}
		}
	}
	for k := range s.Tiny {
		add(fmt.Sprintf("tiny/graph=%d", k), []any{k, search}, training,
			func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return compareWithOptimum(ctx, b, s, k)
			})
	}
	for _, size := range s.Correlations {
		for _, family := range []string{"alibaba", "degree-1", "degree-3"} {
			for k := range s.Graphs {
				add(fmt.Sprintf("pcc/%s/%dx%d/graph=%d", family, size[0], size[1], k), []any{family, size, k, s.Plans}, nil,
					func(ctx context.Context, _ *study.Bench) ([]study.Row, error) {
						return correlate(ctx, family, size, k, s.Plans)
					})
			}
		}
	}
	for _, shape := range s.Shapes {
		for k := range s.Graphs {
			add(fmt.Sprintf("b/%g/graph=%d", shape, k), []any{shape, k, search}, training,
				func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return searchWithShape(ctx, b, s, shape, k)
				})
		}
	}
	for _, size := range s.Times {
		c := add(fmt.Sprintf("time/%dx%d", size[0], size[1]), []any{size}, nil,
			func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return measureTimes(ctx, b, size)
			})
		c.Alone = true
	}
	return all, nil
}

// trainGenerator trains a generator from seed and writes the weights to the cell's folder. name is its name in the
// table.
func trainGenerator(ctx context.Context, b *study.Bench, c plan.GeneratorConfig, seed uint64,
	name string) ([]study.Row, error) {
	g, err := plan.TrainGenerator(ctx, c, seed, b.Workers, func(step int, ratio float64) {
		b.Progress(int64(step), int64(c.Steps))
		b.Log("generator %s, step %d: makespans are %.4f times HEFT's", name, step, ratio)
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(b.Work(), "generator.safetensors"), g.Weights, 0o600); err != nil {
		return nil, err
	}
	return []study.Row{{Table: "generator", Labels: map[string]string{"generator": name}, Metric: "ratio", Value: g.Best}},
		nil
}
