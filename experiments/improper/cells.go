package improper

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/experiments/study/cell"
)

// cells returns the study's units of work: what is known of each network, each training on it; the jobs of each
// workload, its schedulers, and each training.
func (s *settings) cells(study.Plan) (all []study.Cell, err error) {
	for _, name := range s.Networks {
		n := networkOf(name)
		input := map[string]any{"method": method, "network": n.Network, "bound": n.bound, "episodes": s.Episodes,
			"slots": s.Slots}
		known := maps.Clone(input)
		if n.solved() {
			known["exact"] = exactInput()
		}
		all = append(all, study.Cell{Key: "network/" + name + "/known", Input: known,
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return s.reference(ctx, b, n)
			}})
		for _, learner := range learners() {
			for seed := 1; seed <= s.NetSeeds; seed++ {
				own := map[string]any{"agent": learnerConfig(learner), "steps": s.NetSteps, "rows": netRows,
					"slots of training": netSlots}
				maps.Copy(own, input)
				all = append(all, study.Cell{Key: fmt.Sprintf("network/%s/%s/%d", name, word(learner), seed), Input: own,
					Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						return s.learnNet(ctx, b, n, learner, seed)
					}})
			}
		}
	}
	for _, name := range s.Workloads {
		w := workloadOf(name)
		input := map[string]any{"method": method, "workload": name, "estimates": w.estimates, "jobs": s.Jobs,
			"generator": generatorSeed}
		source := "workload/" + name + "/jobs"
		path := func(b *study.Bench) string { return filepath.Join(b.WorkOf(source), traceFile) }
		all = append(all,
			study.Cell{Key: source, Input: input, Run: func(_ context.Context, b *study.Bench) ([]study.Row, error) {
				return nil, w.write(filepath.Join(b.Work(), traceFile), s.Jobs, generatorSeed)
			}},
			study.Cell{Key: "workload/" + name + "/bases", Input: map[string]any{"method": method, "windows": s.Windows},
				After: []string{source}, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					return s.playBases(ctx, b, &w, path(b))
				}})
		for _, agent := range players() {
			for seed := 1; seed <= s.Seeds; seed++ {
				cfg, err := s.config(&w, agent, seed, traceFile)
				if err != nil {
					return nil, err
				}
				text, err := configs.Encode(&cfg)
				if err != nil {
					return nil, err
				}
				all = append(all, study.Cell{
					Key: fmt.Sprintf("workload/%s/%s/%d", name, word(agent),
						seed), Input: map[string]any{"method": method, "config": string(text),
						"windows": s.Windows}, After: []string{source},
					Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
						cfg := cfg
						cfg.Trace.File = path(b)
						if _, err := cell.Train(ctx, b, cfg, nil); err != nil {
							return nil, err
						}
						return s.playAgent(ctx, b, &w, agent, seed, filepath.Join(b.Work(), "run"), path(b))
					},
				})
			}
		}
	}
	return all, nil
}

// word returns a policy's name as a part of a key.
func word(policy string) string {
	return strings.ReplaceAll(strings.ReplaceAll(policy, ",", ""), " ", "-")
}
