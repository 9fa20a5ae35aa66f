package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"clustergym/agents/train"
	"clustergym/experiments/workload"
	"clustergym/internal/par"
)

// The names in the folder of several seeds, beside config.yaml and a run directory for each seed.
const (
	seedsFile   = "seeds.json"
	seedResults = "results"
	seedsReport = "eval/seeds.json"
)

// seedPlan is seeds.json: what makes a folder one of several seeds.
type seedPlan struct {
	First uint64 `json:"first"`
	Seeds int    `json:"seeds"`
}

// maxSeeds bounds TrainSeeds.
const MaxSeeds = 1000

// seedDir is the run directory of one seed.
func seedDir(dir string, seed uint64) string { return filepath.Join(dir, fmt.Sprintf("seed-%d", seed)) }

// readSeeds is the plan of the folder dir; ok is false where it is none of several seeds.
func readSeeds(dir string) (p seedPlan, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, seedsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, &workload.InputError{Err: err}
	}
	if err := json.Unmarshal(b, &p); err != nil || p.Seeds < 1 || p.Seeds > MaxSeeds {
		return p, false, workload.Mistake("%s is no list of seeds, as this program writes it", filepath.Join(dir, seedsFile))
	}
	return p, true, nil
}

// SeedsOf is the number of seeds in a folder that TrainSeeds made, 0 where dir is something else.
func SeedsOf(dir string) (int, error) {
	p, _, err := readSeeds(dir)
	return p.Seeds, err
}

// RunsOf are the run directories of a folder that TrainSeeds made, else dir itself.
func RunsOf(dir string) ([]string, error) {
	p, ok, err := readSeeds(dir)
	if err != nil || !ok {
		return []string{dir}, err
	}
	var runs []string
	for i := range p.Seeds {
		runs = append(runs, seedDir(dir, p.First+uint64(i)))
	}
	return runs, nil
}

// TrainSeeds trains as cfg says on so many seeds, cfg.Seed and those that follow, side by side on opt.Workers
// goroutines in all, and puts the results together. opt.RunDir is the folder of all; every seed has a run directory in
// it, equal to that of Train with this seed where that can be repeated. Resumed, what is finished is left alone, and the others go on.
//
// opt.Tick gets the sums of all steps, opt.Say one line for whatever opt.Log and opt.Best would be told.
func TrainSeeds(ctx context.Context, cfg Config, seeds int, opt TrainOptions) (*SeedsReport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &workload.InputError{Err: err}
	}
	if seeds < 1 || seeds > MaxSeeds {
		return nil, workload.Mistake("seeds: got %d, want 1 to %d", seeds, MaxSeeds)
	}
	if err := UseKernels(cfg.Kernels); err != nil {
		return nil, err
	}
	unlock, err := enterSeeds(&cfg, seeds, &opt)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if opt.World == nil {
		if opt.World, err = NewWorld(&cfg); err != nil {
			return nil, err
		}
	}
	s := &seedRuns{cfg: cfg, opt: opt, seeds: seeds, at: make([]train.Progress, seeds), results: make([]TrainResult, seeds)}
	if note := cfg.note(); note != "" {
		s.say("note      each of these runs %s", note)
	}
	side := min(max(1, opt.Workers), seeds)
	err = par.For(ctx, side, seeds, func(worker, i int) error {
		// What is left over of the workers goes to the first.
		workers := opt.Workers / side
		if worker < opt.Workers%side {
			workers++
		}
		return s.run(ctx, i, max(1, workers))
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w; what was trained is saved, continue with --resume %s", ErrInterrupted, opt.RunDir)
	}
	if err != nil {
		return nil, err
	}
	r := newSeedsReport(&cfg, opt.RunDir, s.results)
	if r.IQM == nil {
		return r, nil
	}
	return r, writeJSON(filepath.Join(opt.RunDir, filepath.FromSlash(seedsReport)), r)
}

// enterSeeds makes and locks the folder, or locks one that is there and fits.
func enterSeeds(cfg *Config, seeds int, opt *TrainOptions) (unlock func(), err error) {
	if !opt.Resume {
		if err := vacant(opt.RunDir); err != nil {
			return nil, err
		}
		if opt.World, err = NewWorld(cfg); err != nil { // a trace that cannot be read leaves no folder behind
			return nil, err
		}
		if unlock, err = createRun(opt.RunDir, cfg); err != nil {
			return nil, err
		}
		if err := errors.Join(os.Remove(filepath.Join(opt.RunDir, Checkpoints)), writeJSON(filepath.Join(opt.RunDir, seedsFile), seedPlan{cfg.Seed, seeds})); err != nil {
			unlock()
			return nil, err
		}
		return unlock, nil
	}
	p, ok, err := readSeeds(opt.RunDir)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, workload.Mistake("%s holds no %s: it is not a folder of several seeds", opt.RunDir, seedsFile)
	}
	if p.Seeds != seeds {
		return nil, workload.Mistake("seeds: got %d, want the %d that %s began with", seeds, p.Seeds, opt.RunDir)
	}
	if err := sameRun(opt.RunDir, cfg); err != nil {
		return nil, err
	}
	if unlock, err = lockRun(opt.RunDir); err != nil {
		return nil, err
	}
	if err := writeConfig(opt.RunDir, cfg); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// seedRuns are the runs under way.
type seedRuns struct {
	cfg   Config
	opt   TrainOptions
	seeds int

	mu      sync.Mutex       // of what follows, and of calls of opt's hooks
	at      []train.Progress // by seed
	results []TrainResult
}

func (s *seedRuns) say(format string, args ...any) {
	if s.opt.Say != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opt.Say(format, args...)
	}
}

// run trains the seed of place i, or takes over what it ended with before.
func (s *seedRuns) run(ctx context.Context, i, workers int) error {
	cfg, opt := s.cfg, s.opt
	cfg.Seed += uint64(i)
	opt.RunDir, opt.Workers = seedDir(s.opt.RunDir, cfg.Seed), workers
	stored := filepath.Join(s.opt.RunDir, seedResults, fmt.Sprintf("seed-%d.json", cfg.Seed))
	if s.opt.Resume {
		done, err := readResult(stored, &cfg)
		if err != nil {
			return err
		}
		if done != nil && done.Step >= cfg.Train.Steps && (done.Eval != nil || opt.NoEval) {
			s.say("seed %d: done before", cfg.Seed)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.results[i] = *done
			return nil
		}
	}
	_, err := os.Stat(filepath.Join(opt.RunDir, ConfigFile))
	opt.Resume = err == nil
	opt.Say = nil
	opt.Tick = func(p train.Progress) { s.tick(i, p) }
	opt.Log = func(r train.Record, rate float64) {
		s.say("seed %d: step %8d of %d  return %8s  %6.0f steps/s", cfg.Seed, r.Step, cfg.Train.Steps, meanReturn(r.Return), rate)
	}
	opt.Best = func(step int64, score string, best bool) {
		if best {
			s.say("seed %d: step %8d  %s  (best so far)", cfg.Seed, step, score)
		}
	}
	opt.Game = nil
	r, err := Train(ctx, cfg, opt)
	if err != nil {
		return fmt.Errorf("seed %d: %w", cfg.Seed, err)
	}
	s.mu.Lock()
	s.results[i] = *r
	s.mu.Unlock()
	s.say("seed %d: done", cfg.Seed)
	return writeJSON(stored, r)
}

// tick tells the steps of all seeds together, and the mean of their returns.
func (s *seedRuns) tick(i int, p train.Progress) {
	if s.opt.Tick == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[i] = p
	sum, n := train.Progress{Steps: p.Steps * int64(s.seeds)}, 0.0
	for _, q := range s.at {
		sum.Step += q.Step
		if q.Step > 0 {
			sum.Return += q.Return
			n++
		}
	}
	sum.Return /= n
	s.opt.Tick(sum)
}

// readResult is what a run ended with, nil where it has not.
func readResult(name string, cfg *Config) (*TrainResult, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	var r struct {
		TrainResult
		Eval json.RawMessage `json:"eval"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, workload.Mistake("%s: %v; remove it to go on", name, err)
	}
	if len(r.Eval) > 0 {
		var c Comparison = new(Report)
		if !cfg.simulated() {
			c = new(EpisodeReport)
		}
		if err := json.Unmarshal(r.Eval, c); err != nil {
			return nil, workload.Mistake("%s: %v; remove it to go on", name, err)
		}
		r.TrainResult.Eval = c
	}
	return &r.TrainResult, nil
}

// writeJSON replaces a file, in a folder that may have to be made.
func writeJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return writeAside(name, append(b, '\n'))
}
