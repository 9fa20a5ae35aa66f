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
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/par"
	"clustergym/internal/safefile"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// The names in the folder of several seeds, beside config.yaml and a run directory for each seed.
const (
	seedsFile   = "seeds.json"
	seedResults = "results"
	seedsReport = "eval/seeds.json"
)

// seedPlan is seeds.json, which marks a folder of several seeds.
type seedPlan struct {
	First uint64 `json:"first"`
	Seeds int    `json:"seeds"`
}

// MaxSeeds is the largest number of seeds that TrainSeeds takes.
const MaxSeeds = 1000

// SeedDir returns the run directory of one seed.
func SeedDir(dir string, seed uint64) string { return filepath.Join(dir, fmt.Sprintf("seed-%d", seed)) }

// readSeeds returns the plan of the folder dir; ok is false if it is not a folder of several seeds.
func readSeeds(dir string) (p seedPlan, ok bool, err error) {
	b, err := ordinary.Read(filepath.Join(dir, seedsFile), ordinary.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return p, false, nil
	}
	if err != nil {
		return p, false, &fault.Mistake{Err: err}
	}
	if err := json.Unmarshal(b, &p); err != nil || p.Seeds < 1 || p.Seeds > MaxSeeds {
		return p, false, fault.Mistakef("%s is no list of seeds, as this program writes it", filepath.Join(dir, seedsFile))
	}
	return p, true, nil
}

// SeedsOf returns the number of seeds in a folder that TrainSeeds made, 0 for any other folder.
func SeedsOf(dir string) (int, error) {
	p, _, err := readSeeds(dir)
	return p.Seeds, err
}

// Begun reports whether there is a run in dir already, or a folder of so many seeds. Anything else that is there is the
// user's mistake.
func Begun(dir string, seeds int) (bool, error) {
	if _, err := os.Stat(filepath.Join(dir, rundir.ConfigFile)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	had, err := SeedsOf(dir)
	if err == nil && had != seeds {
		kinds := map[bool]string{true: "a single run", false: fmt.Sprintf("%d seeds", had)}
		err = fault.Mistakef("%s: %s holds %s; name another %s", fault.Key("continue"), dir, kinds[had == 0],
			fault.Key("run-dir"))
	}
	return err == nil, err
}

// RunsOf returns the run directories in a folder that TrainSeeds made, else dir itself.
func RunsOf(dir string) ([]string, error) {
	p, ok, err := readSeeds(dir)
	if err != nil || !ok {
		return []string{dir}, err
	}
	var runs []string
	for i := range p.Seeds {
		runs = append(runs, SeedDir(dir, p.First+uint64(i)))
	}
	return runs, nil
}

// TrainSeeds trains cfg with several consecutive seeds from cfg.Seed on, in parallel on opt.Workers goroutines in
// total, and combines the results. opt.RunDir is the folder of all runs; each run directory in it is equal to that of
// Train with the same seed if the run can be repeated. On resume, finished runs stay as they are and the others
// continue.
//
// opt.Tick receives the total steps of all seeds; opt.Say receives one line for each event that opt.Log or opt.Best
// would receive.
func TrainSeeds(ctx context.Context, cfg config.Config, seeds int, opt TrainOptions) (*SeedsReport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if seeds < 1 || seeds > MaxSeeds {
		return nil, fault.Mistakef("seeds: got %d, want 1 to %d", seeds, MaxSeeds)
	}
	if err := config.UseKernels(cfg.Kernels); err != nil {
		return nil, err
	}
	unlock, err := enterSeeds(&cfg, seeds, &opt)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if opt.Scenario == nil {
		if opt.Scenario, err = arena.NewScenario(&cfg); err != nil {
			return nil, err
		}
	}
	s := &seedRuns{cfg: cfg, opt: opt, seeds: seeds, at: make([]train.Progress, seeds),
		results: make([]TrainResult, seeds)}
	if note := cfg.Note(); note != "" {
		s.say("note      each of these runs %s", note)
	}
	if !opt.Resume && opt.Say != nil && cfg.Simulated() {
		choices, err := opt.Scenario.DescribeChoices(ctx, &cfg)
		if err != nil {
			return nil, err
		}
		for _, line := range opt.Scenario.LeftOut() {
			s.say("left out: %s", line)
		}
		for _, line := range opt.Chosen {
			s.say("chosen    %s", line)
		}
		arena.Say(s.say, choices...)
	}
	side := min(max(1, opt.Workers), seeds)
	if opt.Queue != nil {
		if s.queue, err = opt.Queue(ctx); err != nil {
			return nil, err
		}
		side = seeds // most of them wait for a machine
	}
	err = par.For(ctx, side, seeds, func(worker, i int) error {
		// The first seeds get the remaining workers.
		workers := opt.Workers / side
		if worker < opt.Workers%side {
			workers++
		}
		return s.run(ctx, i, max(1, workers))
	})
	if s.queue != nil {
		err = errors.Join(err, s.queue.Close())
	}
	if ctx.Err() != nil {
		return nil, fault.Errorf("%w; what was trained is saved, continue with %s %s", fault.ErrInterrupted,
			fault.Key("resume"),
			opt.RunDir)
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

// enterSeeds makes and locks the folder, or locks an existing one with the same plan.
func enterSeeds(cfg *config.Config, seeds int, opt *TrainOptions) (unlock func(), err error) {
	if !opt.Resume {
		if err := rundir.Vacant(opt.RunDir); err != nil {
			return nil, err
		}
		if opt.Scenario == nil {
			if opt.Scenario, err = arena.NewScenario(cfg); err != nil { // an unreadable trace must not leave a folder behind
				return nil, err
			}
		}
		if unlock, err = rundir.Create(opt.RunDir, cfg); err != nil {
			return nil, err
		}
		if err := errors.Join(os.Remove(filepath.Join(opt.RunDir, rundir.Checkpoints)),
			writeJSON(filepath.Join(opt.RunDir, seedsFile), seedPlan{cfg.Seed, seeds})); err != nil {
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
		return nil, fault.Mistakef("%s holds no %s: it is not a folder of several seeds", opt.RunDir, seedsFile)
	}
	if p.Seeds != seeds {
		return nil, fault.Mistakef("seeds: got %d, want the %d that %s began with", seeds, p.Seeds, opt.RunDir)
	}
	if err := sameRun(opt.RunDir, cfg); err != nil {
		return nil, err
	}
	if unlock, err = rundir.Lock(opt.RunDir); err != nil {
		return nil, err
	}
	if err := rundir.WriteConfig(opt.RunDir, cfg); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// seedRuns are the running trainings.
type seedRuns struct {
	cfg   config.Config
	opt   TrainOptions
	seeds int
	queue *workqueue.Coordinator // nil = no other machine helps

	mu      sync.Mutex       // protects the fields below and calls of opt's hooks
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

// run trains seed number i, or returns the result of a finished run.
func (s *seedRuns) run(ctx context.Context, i, workers int) error {
	cfg, opt := s.cfg, s.opt
	cfg.Seed += uint64(i)
	opt.RunDir, opt.Workers = SeedDir(s.opt.RunDir, cfg.Seed), workers
	stored := filepath.Join(s.opt.RunDir, seedResults, fmt.Sprintf("seed-%d.json", cfg.Seed))
	if s.opt.Resume {
		done, err := readResult(stored)
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
	_, err := os.Stat(filepath.Join(opt.RunDir, rundir.ConfigFile))
	opt.Resume = err == nil
	opt.Say = nil
	opt.Tick = func(p train.Progress) { s.tick(i, p) }
	opt.Log = func(r train.Record, rate float64) {
		s.say("seed %d: step %8d of %d  return %8s  %6.0f steps/s", cfg.Seed, r.Step, cfg.Train.Steps,
			meanReturn(report.Number(r.Return)), rate)
	}
	opt.Best = func(step int64, score string, best bool) {
		if best {
			s.say("seed %d: step %8d  %s  (best so far)", cfg.Seed, step, score)
		}
	}
	opt.Game = nil
	r, err := TrainOn(ctx, s.queue, fmt.Sprintf("seed %d", cfg.Seed), cfg, opt)
	if err != nil {
		return fmt.Errorf("seed %d: %w", cfg.Seed, err)
	}
	s.mu.Lock()
	s.results[i] = *r
	s.mu.Unlock()
	s.say("seed %d: done", cfg.Seed)
	return writeJSON(stored, r)
}

// tick reports the steps of all seeds together and the mean of their returns.
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

// readResult returns the result of a run, nil if it has not ended.
func readResult(name string) (*TrainResult, error) {
	b, err := ordinary.Read(name, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	var r struct {
		TrainResult
		Eval json.RawMessage `json:"eval"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fault.Mistakef("%s: %v; remove it to go on", name, err)
	}
	if len(r.Eval) > 0 {
		c, err := report.Read(r.Eval)
		if err != nil {
			return nil, fault.Mistakef("%s: %v; remove it to go on", name, err)
		}
		r.TrainResult.Eval = c
	}
	return &r.TrainResult, nil
}

// writeJSON replaces a file and makes its folder if necessary.
func writeJSON(name string, v any) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return safefile.WriteJSON(name, v)
}
