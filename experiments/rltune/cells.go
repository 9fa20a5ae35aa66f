package rltune

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"clustergym/configs"
	"clustergym/env/queuerank"
	"clustergym/experiments/study"
	"clustergym/experiments/study/cell"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/workload"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Policies of the tables, beside the bases.
const (
	itself   = "base"                    // the base policy
	best     = "best base"               // the base with the least mean wait on validation windows
	placed   = "base, programme"         // the integer programme places, nothing is learned
	easy     = "base, EASY"              // jobs are back-filled, nothing is learned
	fits     = "first fit, programme"    // by hand: the first job of the queue that can start, or the first
	smallest = "smallest fit, programme" // by hand: the job of the fewest GPUs that can start, or of the fewest
	learned  = "agent"                   // RLTune's: the network chooses, the integer programme places
	unplaced = "agent, first way"        // placed as base policies are
	filled   = "agent, EASY"             // jobs are back-filled while the chosen one is held
	uniform  = "random, programme"
	// commits to no job: every job that fits starts, in the order of the base, on as many nodes as it finds GPUs
	elsewhere = "skip, any nodes"
)

// handmade are the policies that are played beside agents.
var handmade = []string{itself, placed, easy, fits, smallest, uniform, elsewhere}

// traceFile is where a workload's cell leaves its jobs.
const traceFile = "jobs.csv"

// config returns the run that trains an agent, or that its rivals play in.
func (s *settings) config(w *workloadSpec, rung string, b base, seed int, path string) (config.Config, error) {
	c := s.Agent
	c.Cluster, c.Seed = w.Cluster, uint64(seed)
	c.Trace.File, c.Trace.Format = path, workload.FormatCSV
	c.Env.Args = append(slices.Clone(c.Env.Args), fmt.Sprintf("window=%d", w.Window), fmt.Sprintf("load=%g", w.Load),
		"base="+b.order, "estimates="+rung)
	c.Train.Steps = s.Steps
	c.PPO.Steps = min(c.PPO.Steps, w.Window)
	every := s.Steps / 10
	c.Train.LogEvery, c.Train.EvalEvery, c.Train.CheckpointEvery = every, every, every
	c.Eval.Policies = nil // the study compares policies itself
	return c, nil
}

// cells returns the study's units of work: for each workload its jobs, the bases, trainings, and what is played on the
// queue of each base that has agents.
func (s *settings) cells(p study.Plan) ([]study.Cell, error) {
	specs, _, err := s.given(p)
	if err != nil {
		return nil, err
	}
	var all []study.Cell
	for i := range specs {
		more, err := s.cellsOf(&specs[i])
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// cellsOf returns the units of work of a workload.
func (s *settings) cellsOf(w *workloadSpec) ([]study.Cell, error) {
	input := map[string]any{"method": method, "digest": ""}
	shown := *w
	if w.File != "" {
		digest, err := workload.HashFile(context.Background(), nil, w.File)
		if err != nil {
			return nil, err
		}
		input["digest"], shown.File = digest, filepath.Base(w.File)
	}
	input["workload"] = shown
	place, err := configs.Encode(&s.Agent.Env) // in which everybody plays
	if err != nil {
		return nil, err
	}
	with := func(key string, v any) map[string]any {
		more := maps.Clone(input)
		more[key], more["env"] = v, string(place)
		return more
	}
	source := "jobs/" + w.Name
	all := []study.Cell{{Key: source, Input: input, Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
		jobs, err := w.write(ctx, filepath.Join(b.Work(), traceFile))
		if err != nil {
			return nil, err
		}
		return describe(w, jobs), nil
	}}}
	for _, rung := range rungs {
		chosen := fmt.Sprintf("bases/%s/%s", w.Name, rung)
		all = append(all, study.Cell{
			Key: chosen, Input: with("bases", baseNames()), After: []string{source},
			Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
				return s.playBases(ctx, b, w, rung, filepath.Join(b.WorkOf(source), traceFile))
			},
		})
		for _, name := range s.Agents {
			of := baseOf(name)
			var trained []string
			for seed := 1; seed <= s.Seeds; seed++ {
				if !of.asks && rung != rungs[0] { // it is the same agent on every rung
					trained = append(trained, trainKey(w, rungs[0], of, seed))
					continue
				}
				cfg, err := s.config(w, rung, of, seed, traceFile)
				if err != nil {
					return nil, err
				}
				text, err := configs.Encode(&cfg)
				if err != nil {
					return nil, err
				}
				key := trainKey(w, rung, of, seed)
				trained = append(trained, key)
				if cfg, err = cfg.Fold(); err != nil {
					return nil, err
				}
				all = append(all, trainCell(key, with("config", string(text)), source, cfg))
			}
			all = append(all, study.Cell{
				Key: fmt.Sprintf("play/%s/%s/%s", w.Name, rung,
					name), Input: with("policies", handmade), After: append([]string{source, chosen}, trained...),
				Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
					var runs []string
					for _, key := range trained {
						runs = append(runs, filepath.Join(b.WorkOf(key), "run"))
					}
					rows, err := s.playAll(ctx, b, w, rung, of, filepath.Join(b.WorkOf(source), traceFile), runs)
					return append(rows, bestOf(b.Rows(chosen), of)...), err
				},
			})
		}
	}
	return all, nil
}

func trainKey(w *workloadSpec, rung string, of base, seed int) string {
	return fmt.Sprintf("train/%s/%s/%s/%d", w.Name, rung, of.name, seed)
}

// trainCell returns the cell that trains an agent by cfg on the jobs that the cell source has written.
func trainCell(key string, input any, source string, cfg config.Config) study.Cell {
	return study.Cell{Key: key, Input: input, After: []string{source},
		Run: func(ctx context.Context, b *study.Bench) ([]study.Row, error) {
			cfg := cfg
			cfg.Trace.File = filepath.Join(b.WorkOf(source), traceFile)
			_, err := cell.Train(ctx, b, cfg, nil)
			return nil, err
		}}
}

// describe returns what the jobs of w are like. There is at least one.
func describe(w *workloadSpec, jobs []traces.Job) []study.Row {
	gpus, hours := 0.0, 0.0
	runs := make([]float64, 0, len(jobs))
	for i := range jobs {
		gpus += float64(jobs[i].GPUs)
		hours += jobs[i].Work.Hours()
		runs = append(runs, jobs[i].Work.Hours())
	}
	slices.Sort(runs)
	n := float64(len(jobs))
	row := study.RowOf("jobs", map[string]string{"workload": w.Name})
	return []study.Row{row("gpus", gpus/n), row("jobs", n), row("median_h", runs[len(runs)/2]), row("run_h", hours/n)}
}

// bestOf returns the rows of the best base as rows beside base of.
func bestOf(rows []study.Row, of base) (all []study.Row) {
	for _, r := range rows {
		if r.Table == "bases" && r.Labels["policy"] == best {
			r.Table, r.Labels = "play", study.With(r.Labels, "base", of.name)
			all = append(all, r)
		}
	}
	return all
}

// load returns the scenario of w on a rung.
func (s *settings) load(ctx context.Context, w *workloadSpec, rung string, b base,
	path string) (*arena.Scenario, error) {
	cfg, err := s.config(w, rung, b, 1, path)
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.Fold(); err != nil {
		return nil, err
	}
	return arena.NewScenarioContext(ctx, &cfg)
}

// changed returns w with other settings.
func changed(w *arena.Scenario, change func(c *queuerank.Config)) *arena.Scenario {
	own, c := *w, *w.Settings.(*queuerank.Config)
	change(&c)
	own.Settings = &c
	return &own
}

// outside returns the scheduler that plays elsewhere.
func outside(of base, rung string) (schedulers.Policy, error) {
	c := schedulers.DefaultConfig()
	c.Order, c.Admission, c.Placement, c.Estimates = of.order, "skip", "pack", sim.MustEstimates(rung)
	return schedulers.New(c)
}
