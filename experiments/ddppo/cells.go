package ddppo

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"clustergym/env/queuerank"
	"clustergym/experiments/study"
	"clustergym/lab/workload"
)

// Keys of the cells that others read.
const source, indexed = "log", "index"

func trainKey(rung string, replicas, seed int) string {
	return fmt.Sprintf("train/%s/%d/%d", rung, replicas, seed)
}

func tuneKey(rung string, seed int) string { return fmt.Sprintf("key/%s/%d", rung, seed) }

// planned are the cells of a form while they are made.
type planned struct {
	*settings
	input map[string]any              // that of every cell that reads the index
	from  []string                    // the cell that makes the log, none = it is recorded
	log   func(b *study.Bench) string // the log's file
	cells []study.Cell
}

// cells returns the study's units of work: the log and the index of its jobs, trainings and keys, what is played on the
// held-out weeks, then the cells that measure time: passes over the whole log, samples a second, and the straggler.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	file, err := recorded(p)
	if err != nil {
		return nil, err
	}
	all := &planned{settings: s, input: map[string]any{"method": method}}
	if err := all.logs(file); err != nil {
		return nil, err
	}
	all.learners()
	all.held()
	all.add(all.on("equal", s.agent(map[string]any{"steps": nil, "updates": s.Updates, "replicas": s.Replicas}), nil,
		s.compare))
	all.passes()
	for _, n := range s.Replicas {
		all.alone(all.on(fmt.Sprintf("speed/%d", n), s.agent(map[string]any{"steps": s.SpeedSteps}), nil,
			func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
				return s.speed(ctx, b, x, n)
			}))
	}
	all.alone(all.on("straggler", s.agent(map[string]any{"steps": nil, "envs": nil, "straggler": s.Straggler}), nil,
		s.straggle))
	return all.cells, nil
}

// agent returns the part of an input that says how an agent is trained, with changes; nil takes a key away.
func (s *settings) agent(changes map[string]any) map[string]any {
	in := map[string]any{"ppo": s.PPO, "envs": s.Envs, "window": s.Window, "reward": s.Reward, "load": s.Load,
		"steps": s.Steps}
	maps.Copy(in, changes)
	maps.DeleteFunc(in, func(_ string, v any) bool { return v == nil })
	return in
}

// add adds a cell.
func (p *planned) add(c study.Cell) { p.cells = append(p.cells, c) }

// alone adds a cell that measures time.
func (p *planned) alone(c study.Cell) {
	c.Alone = true
	p.add(c)
}

// on returns a cell that runs on the open index, with more of an input and after more cells.
func (p *planned) on(key string, more map[string]any, after []string,
	run func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error)) study.Cell {
	own := maps.Clone(p.input)
	maps.Copy(own, more)
	return study.Cell{Key: key, Input: own, After: append([]string{indexed}, after...),
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			x, err := p.open(filepath.Join(b.WorkOf(indexed), indexFile), b.Rows(indexed))
			if err != nil {
				return nil, err
			}
			defer x.Close() //nolint:errcheck // open for reading only
			return run(ctx, b, x)
		}}
}

// logs adds the cells of the log, unless it is that of file, and of its index.
func (p *planned) logs(file string) (err error) {
	s, jobs := p.settings, 0
	p.log = func(*study.Bench) string { return file }
	if file == "" {
		p.input["log"], p.input["seed"], jobs = s.Log, s.Seed, s.Log.Jobs
		p.from = []string{source}
		p.log = func(b *study.Bench) string { return filepath.Join(b.WorkOf(source), logFile) }
		p.add(study.Cell{Key: source, Input: maps.Clone(p.input),
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return nil, s.write(ctx, b, filepath.Join(b.Work(), logFile))
			}})
	} else if p.input["digest"], err = workload.HashFile(context.Background(), nil, file); err != nil {
		return err
	}
	p.input["parts"] = []int{s.Held, s.Warm, s.Archive}
	p.add(study.Cell{Key: indexed, Input: maps.Clone(p.input), After: p.from,
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			path := filepath.Join(b.Work(), indexFile)
			rows, err := makeIndex(ctx, b, p.log(b), path, jobs)
			if err != nil {
				return nil, err
			}
			x, err := s.open(path, rows)
			if err != nil {
				return nil, err
			}
			defer x.Close() //nolint:errcheck // open for reading only
			more, err := x.greatest()
			return append(rows, more...), err
		}})
	return nil
}

// learners adds the cells of trainings and of tuned keys.
func (p *planned) learners() {
	s := p.settings
	for _, rung := range rungs {
		for _, n := range s.trainedOn(rung) {
			for seed := 1; seed <= s.Seeds; seed++ {
				p.add(p.on(trainKey(rung, n, seed), s.agent(nil), nil,
					func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
						return s.train(ctx, b, x,
							job{rung: rung, replicas: n, envs: s.Envs, seed: uint64(seed), steps: s.Steps, workers: b.Workers})
					}))
			}
		}
		for seed := 1; seed <= s.Seeds; seed++ {
			p.add(p.on(tuneKey(rung, seed), s.agent(nil), nil,
				func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
					return s.tune(ctx, b, x, rung, uint64(seed))
				}))
		}
	}
}

// held adds the cells of the held-out weeks, one for each rule, agent and key.
func (p *planned) held() {
	s := p.settings
	for _, rung := range rungs {
		for i := range rules {
			r := &rules[i]
			p.add(p.on(fmt.Sprintf("held/%s/rule-%d", rung, i), map[string]any{"policy": r.policy}, nil,
				func(ctx context.Context, _ *study.Bench, x *index) ([]study.Row, error) {
					return s.heldOut(ctx, x, rung, map[string]string{"policy": r.name}, r, nil)
				}))
		}
		for seed := 1; seed <= s.Seeds; seed++ {
			for _, n := range s.trainedOn(rung) {
				trained := trainKey(rung, n, seed)
				labels := map[string]string{"policy": replicated(n), "seed": fmt.Sprint(seed)}
				p.add(p.on(fmt.Sprintf("held/%s/agent/%d/%d", rung, n, seed), nil, []string{trained},
					func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
						return s.heldOut(ctx, x, rung, labels, nil,
							func(e *queuerank.Env) (queuerank.Chooser, error) { return s.network(b.WorkOf(trained), e) })
					}))
			}
			key := tuneKey(rung, seed)
			labels := map[string]string{"policy": tunedPolicy, "seed": fmt.Sprint(seed)}
			p.add(p.on(fmt.Sprintf("held/%s/key/%d", rung, seed), nil, []string{key},
				func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
					return s.heldOut(ctx, x, rung, labels, nil,
						func(e *queuerank.Env) (queuerank.Chooser, error) { return byKey(e, keyIn(b.Rows(key))), nil })
				}))
		}
	}
}

// passes adds the cells of passes over the whole log: by the agent of the most replicas, and by some rules.
func (p *planned) passes() {
	s := p.settings
	last := s.Predicted[len(s.Predicted)-1]
	trained := trainKey(predicted, last, 1)
	p.alone(p.on("pass/agent", nil, append([]string{trained}, p.from...),
		func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
			return s.pass(ctx, b, x, p.log(b), nil, replicated(last), b.WorkOf(trained))
		}))
	for i := range rules {
		r := &rules[i]
		if !slices.Contains([]string{"FCFS", "SJF", "EASY"}, r.name) {
			continue
		}
		p.alone(p.on("pass/"+r.name, nil, p.from, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
			return s.pass(ctx, b, x, p.log(b), r, r.name, "")
		}))
	}
}

// replicated names an agent of n replicas.
func replicated(n int) string { return fmt.Sprintf("%s, N = %d", agentPolicy, n) }
