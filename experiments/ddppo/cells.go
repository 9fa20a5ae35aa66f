package ddppo

import (
	"context"
	"fmt"
	"path/filepath"

	"clustergym/env/queuerank"
	"clustergym/experiments/study"
	"clustergym/experiments/workload"
)

// cells returns the study's units of work: the log and the index of its jobs, trainings and keys, what is played on the held-out weeks, then the
// cells that measure time: passes over the whole log, samples a second, and the straggler.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	file, err := recorded(p)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	const source, indexed = "log", "index"
	input := map[string]any{"method": method}
	jobs := 0
	logIn := func(*study.Bench) string { return file }
	var before []string
	if file == "" {
		input["log"], input["seed"], jobs = s.Log, s.Seed, s.Log.Jobs
		before = []string{source}
		logIn = func(b *study.Bench) string { return filepath.Join(b.WorkOf(source), logFile) }
		all = append(all, study.Cell{Key: source, Input: clone(input), Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			return nil, s.write(ctx, b, filepath.Join(b.Work(), logFile))
		}})
	} else if input["digest"], err = workload.HashFile(context.Background(), nil, file); err != nil {
		return nil, err
	}
	input["parts"] = []int{s.Held, s.Warm, s.Archive}
	all = append(all, study.Cell{Key: indexed, Input: clone(input), After: before, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		path := filepath.Join(b.Work(), indexFile)
		rows, err := makeIndex(ctx, b, logIn(b), path, jobs)
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
	// on returns the cell that runs on the open index.
	on := func(key string, more map[string]any, after []string, run func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error)) study.Cell {
		own := clone(input)
		for k, v := range more {
			own[k] = v
		}
		return study.Cell{Key: key, Input: own, After: append([]string{indexed}, after...), Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			x, err := s.open(filepath.Join(b.WorkOf(indexed), indexFile), b.Rows(indexed))
			if err != nil {
				return nil, err
			}
			defer x.Close() //nolint:errcheck // open for reading only
			return run(ctx, b, x)
		}}
	}
	agent := map[string]any{"ppo": s.PPO, "envs": s.Envs, "window": s.Window, "reward": s.Reward, "load": s.Load, "steps": s.Steps}
	trainKey := func(rung string, n, seed int) string { return fmt.Sprintf("train/%s/%d/%d", rung, n, seed) }
	for _, rung := range rungs {
		for _, n := range s.trainedOn(rung) {
			for seed := 1; seed <= s.Seeds; seed++ {
				o := job{rung: rung, replicas: n, envs: s.Envs, seed: uint64(seed), steps: s.Steps}
				all = append(all, on(trainKey(rung, n, seed), agent, nil, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
					o := o
					o.workers = b.Workers
					return s.train(ctx, b, x, o)
				}))
			}
		}
		for seed := 1; seed <= s.Seeds; seed++ {
			all = append(all, on(fmt.Sprintf("key/%s/%d", rung, seed), agent, nil, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
				return s.tune(ctx, b, x, rung, uint64(seed))
			}))
		}
	}
	for _, rung := range rungs {
		for i := range rules {
			r := &rules[i]
			all = append(all, on(fmt.Sprintf("held/%s/rule-%d", rung, i), map[string]any{"policy": r.policy}, nil, func(ctx context.Context, _ *study.Bench, x *index) ([]study.Row, error) {
				return s.heldOut(ctx, x, rung, map[string]string{"policy": r.name}, r, nil)
			}))
		}
		for seed := 1; seed <= s.Seeds; seed++ {
			for _, n := range s.trainedOn(rung) {
				trained := trainKey(rung, n, seed)
				labels := map[string]string{"policy": replicated(n), "seed": fmt.Sprint(seed)}
				all = append(all, on(fmt.Sprintf("held/%s/agent/%d/%d", rung, n, seed), nil, []string{trained}, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
					return s.heldOut(ctx, x, rung, labels, nil, func(e *queuerank.Env) (queuerank.Chooser, error) { return s.network(b.WorkOf(trained), e) })
				}))
			}
			key := fmt.Sprintf("key/%s/%d", rung, seed)
			labels := map[string]string{"policy": tunedPolicy, "seed": fmt.Sprint(seed)}
			all = append(all, on(fmt.Sprintf("held/%s/key/%d", rung, seed), nil, []string{key}, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
				return s.heldOut(ctx, x, rung, labels, nil, func(e *queuerank.Env) (queuerank.Chooser, error) { return byKey(e, keyIn(b.Rows(key))), nil })
			}))
		}
	}
	all = append(all, on("equal", map[string]any{"ppo": s.PPO, "envs": s.Envs, "window": s.Window, "reward": s.Reward, "load": s.Load, "updates": s.Updates, "replicas": s.Replicas}, nil, s.compare))
	passes := []*rule{nil}
	for i := range rules {
		switch rules[i].name {
		case "FCFS", "SJF", "EASY":
			passes = append(passes, &rules[i])
		}
	}
	last := s.Predicted[len(s.Predicted)-1]
	trained := trainKey(predicted, last, 1)
	for _, r := range passes {
		key, name, after := "pass/agent", replicated(last), append([]string{trained}, before...)
		if r != nil {
			key, name, after = "pass/"+r.name, r.name, before
		}
		c := on(key, nil, after, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
			dir := ""
			if r == nil {
				dir = b.WorkOf(trained)
			}
			return s.pass(ctx, b, x, logIn(b), r, name, dir)
		})
		c.Alone = true
		all = append(all, c)
	}
	for _, n := range s.Replicas {
		c := on(fmt.Sprintf("speed/%d", n), map[string]any{"ppo": s.PPO, "envs": s.Envs, "window": s.Window, "reward": s.Reward, "load": s.Load, "steps": s.SpeedSteps}, nil, func(ctx context.Context, b *study.Bench, x *index) ([]study.Row, error) {
			return s.speed(ctx, b, x, n)
		})
		c.Alone = true
		all = append(all, c)
	}
	c := on("straggler", map[string]any{"ppo": s.PPO, "window": s.Window, "reward": s.Reward, "load": s.Load, "straggler": s.Straggler}, nil, s.straggle)
	c.Alone = true
	return append(all, c), nil
}

// replicated names an agent of n replicas.
func replicated(n int) string { return fmt.Sprintf("%s, N = %d", agentPolicy, n) }

func clone(m map[string]any) map[string]any {
	own := make(map[string]any, len(m))
	for k, v := range m {
		own[k] = v
	}
	return own
}
