package sweep

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"clustergym/configs"
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/par"
	"clustergym/internal/safefile"
	"clustergym/internal/shortage"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/report"
	"clustergym/lab/run"
	"clustergym/lab/rundir"
	"clustergym/simulator/sim"
)

// The names in a sweep's folder, beside a folder trial-N for each trial.
const (
	sweepFile  = "sweep.yaml"
	baseFile   = "base.yaml"
	trialsFile = "trials.jsonl"
)

// Options are the arguments of a sweep that its configuration does not contain.
type Options struct {
	Dir     string
	Resume  bool
	Workers int
	Now     rundir.Clock
	Say     func(format string, args ...any) // one line for people; nil = silent
	Queue   workqueue.Opener                 // lets other machines train; nil = none
}

// TrialLine is one line of trials.jsonl, the source of truth of a sweep: the result of a trial on a rung.
type TrialLine struct {
	Trial  int            `json:"trial"`
	Rung   int            `json:"rung"`
	Steps  int64          `json:"steps"`
	Set    map[string]any `json:"set"`
	Metric string         `json:"metric,omitempty"` // that of best.json
	Scores []float64      `json:"scores,omitempty"` // by seed: the best validation so far
	Score  *float64       `json:"score"`            // IQM of the scores; null where the trial failed
	Error  string         `json:"error,omitempty"`
}

// Report is the result of a sweep: the document of gymctl sweep --json.
type Report struct {
	Name   string      `json:"name"`
	Dir    string      `json:"dir"`
	Metric string      `json:"metric"`
	Higher bool        `json:"higher_is_better"`
	Rungs  []int64     `json:"rungs"`  // steps
	Trials []TrialLine `json:"trials"` // each on its last rung, the best first
	Best   []string    `json:"best"`   // run directories of the best trial

	Estimates sim.Estimates `json:"estimates,omitzero"` // the environment's, unset where trials differ in it
	Rung      string        `json:"rung,omitempty"`     // theirs
}

// Read returns the configuration of the sweep in dir and its base.
func Read(dir string) (Config, config.Config, error) {
	c, base := Default(), config.Default()
	data, err := ordinary.Read(filepath.Join(dir, sweepFile), ordinary.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return c, base, fault.Mistakef("%s holds no %s: it is not the folder of a sweep", dir, sweepFile)
	}
	if err == nil {
		err = configs.DecodeBytes(sweepFile, data, &c)
	}
	if err != nil {
		return c, base, &fault.Mistake{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	data, err = ordinary.Read(filepath.Join(dir, baseFile), ordinary.Settings)
	if err == nil {
		base, err = config.Decode(baseFile, data)
	}
	if err != nil {
		return c, base, &fault.Mistake{Err: fmt.Errorf("%s: %w", dir, err)}
	}
	return c, base, nil
}

// sweep is a running search.
type sweep struct {
	cfg      Config
	opt      Options
	scenario *arena.Scenario // that all trials share; nil if each has its own, or none
	trials   []trial
	rungs    []int64
	queue    *workqueue.Coordinator // nil = no other machine helps
	wait     *shortage.Wait         // for space on the disk

	mu    sync.Mutex
	file  *os.File
	lines map[[2]int]TrialLine // by trial and rung
}

// Run searches around base as cfg says, or continues the search in opt.Dir. If ctx is cancelled, Run returns
// fault.ErrInterrupted after a checkpoint of every run.
func Run(ctx context.Context, cfg Config, base config.Config, opt Options) (*Report, error) {
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	s := &sweep{cfg: cfg, opt: opt, lines: map[[2]int]TrialLine{}}
	if s.opt.Say == nil {
		s.opt.Say = func(string, ...any) {}
	}
	s.wait = shortage.Patient(ctx, s.opt.Say)
	var err error
	if s.trials, err = cfg.trials(base); err != nil {
		return nil, err
	}
	first := &s.trials[0].cfg
	if err := config.UseKernels(first.Kernels); err != nil {
		return nil, err
	}
	s.rungs = cfg.Budgets(first.Train.Steps)
	if !cfg.changesWorld() {
		if s.scenario, err = arena.NewScenario(first); err != nil {
			return nil, err
		}
	}
	unlock, err := s.enter(base)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if opt.Queue != nil {
		s.queue, err = opt.Queue(ctx)
	}
	if err == nil {
		err = s.search(ctx)
	}
	if s.queue != nil {
		err = errors.Join(err, s.queue.Close())
	}
	if e := s.file.Close(); err == nil {
		err = e
	}
	if ctx.Err() != nil {
		return nil, fault.Errorf("%w; what was trained is saved, continue with %s %s", fault.ErrInterrupted,
			fault.Key("resume"),
			opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	return s.report()
}

// changesWorld returns whether trials differ in workload, cluster or environment.
func (c *Config) changesWorld() bool {
	for key := range c.Space {
		for _, section := range []string{"trace", "cluster", "env"} {
			if key == section || strings.HasPrefix(key, section+".") {
				return true
			}
		}
	}
	return false
}

// enter makes and locks the folder, or locks an existing one and reads its results.
func (s *sweep) enter(base config.Config) (unlock func(), err error) {
	dir := s.opt.Dir
	name := filepath.Join(dir, trialsFile)
	if !s.opt.Resume {
		for _, f := range []string{sweepFile, trialsFile, rundir.ConfigFile} {
			if _, err := os.Stat(filepath.Join(dir, f)); err == nil {
				return nil, fault.Mistakef("%s holds a sweep or a run already; continue a sweep with %s %s, or name another %s",
					dir, fault.Key("resume"), dir, fault.Key("dir"))
			}
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	if unlock, err = rundir.Lock(dir); err != nil {
		return nil, err
	}
	if s.opt.Resume {
		err = s.read(name)
	} else {
		err = s.describe(dir, base)
	}
	if err == nil {
		s.file, err = os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// describe writes the configuration of the sweep and its base.
func (s *sweep) describe(dir string, base config.Config) error {
	b, err := configs.Encode(&base)
	if err == nil {
		err = safefile.Write(filepath.Join(dir, baseFile), b)
	}
	if err != nil {
		return err
	}
	if b, err = configs.Encode(&s.cfg); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(dir, sweepFile), b)
}

// read reads the lines of a sweep and cuts off an incomplete line that a crash left.
func (s *sweep) read(name string) error {
	data, err := ordinary.Read(name, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fault.Mistake{Err: err}
	}
	size, row := 0, 0
	for text := range bytes.Lines(data) {
		row++
		var l TrialLine
		if text[len(text)-1] != '\n' {
			break
		}
		if err := json.Unmarshal(text, &l); err != nil || l.Trial < 0 || l.Trial >= len(s.trials) || l.Rung < 0 ||
			l.Rung >= len(s.rungs) {
			return fault.Mistakef("%s:%d: no line of this sweep; remove it to go on", name, row)
		}
		if had, has := jsonOf(l.Set), jsonOf(s.trials[l.Trial].set); had != has || l.Steps != s.rungs[l.Rung] {
			return fault.Mistakef("%s:%d: trial %d was drawn as %s with %d steps, and now as %s with %d; begin another sweep",
				name, row, l.Trial, had, l.Steps, has, s.rungs[l.Rung])
		}
		s.lines[[2]int{l.Trial, l.Rung}] = l
		size += len(text)
	}
	if size < len(data) {
		return safefile.Write(name, data[:size])
	}
	return nil
}

// jsonOf returns v as JSON with sorted keys.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// search trains on all rungs.
func (s *sweep) search(ctx context.Context) error {
	alive := make([]int, len(s.trials))
	for i := range alive {
		alive[i] = i
	}
	for rung := range s.rungs {
		if err := s.climb(ctx, rung, alive); err != nil {
			return err
		}
		if err := s.sort(); err != nil {
			return err
		}
		var better []int
		for _, l := range s.ranked(rung, alive) {
			if l.Score != nil {
				better = append(better, l.Trial)
			}
		}
		if len(better) == 0 {
			return fmt.Errorf("every trial failed, trial %d with: %s", alive[0], s.lines[[2]int{alive[0], rung}].Error)
		}
		keep := (len(alive) + s.cfg.Halving.Keep - 1) / s.cfg.Halving.Keep
		alive = better[:min(keep, len(better))]
	}
	return nil
}

// climb trains the trials that have no result on the rung yet, several runs in parallel.
func (s *sweep) climb(ctx context.Context, rung int, alive []int) error {
	type job struct{ trial, seed int }
	type state struct {
		left    int
		metric  string
		scores  []float64
		failure error
	}
	var jobs []job
	states := map[int]*state{}
	for _, t := range alive {
		if _, done := s.lines[[2]int{t, rung}]; done {
			continue
		}
		states[t] = &state{left: s.cfg.Seeds, scores: make([]float64, s.cfg.Seeds)}
		for k := range s.cfg.Seeds {
			jobs = append(jobs, job{t, k})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	side := min(max(1, s.opt.Workers), len(jobs))
	if s.queue != nil {
		side = len(jobs) // most of them wait for a machine
	}
	return par.For(ctx, side, len(jobs), func(_, i int) error {
		j := jobs[i]
		r, err := s.train(ctx, j.trial, j.seed, s.rungs[rung], max(1, s.opt.Workers/side))
		if err != nil && ctx.Err() != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		st := states[j.trial]
		if err != nil && st.failure == nil {
			st.failure = fmt.Errorf("seed %d: %w", s.trials[j.trial].cfg.Seed+uint64(j.seed), err)
		}
		if err == nil {
			st.metric, st.scores[j.seed] = r.Best.Metric, r.Best.Value
		}
		if st.left--; st.left > 0 {
			return nil
		}
		l := TrialLine{Trial: j.trial, Rung: rung, Steps: s.rungs[rung], Set: s.trials[j.trial].set}
		if st.failure != nil {
			l.Error = st.failure.Error()
			s.opt.Say("trial %3d  %8d steps  failed: %v  %s", l.Trial, l.Steps, st.failure, jsonOf(l.Set))
		} else {
			score := statistic.IQM(st.scores)
			l.Metric, l.Scores, l.Score = st.metric, st.scores, &score
			s.opt.Say("trial %3d  %8d steps  score %s  %s", l.Trial, l.Steps, rundir.ShowScore(l.Metric, score), jsonOf(l.Set))
		}
		return s.write(l)
	})
}

// write appends a line and syncs the file.
func (s *sweep) write(l TrialLine) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if _, err := s.wait.Writer(s.file.Name(), s.file).Write(append(b, '\n')); err != nil {
		return err
	}
	s.lines[[2]int{l.Trial, l.Rung}] = l
	return s.file.Sync()
}

// sort puts the lines in order of rungs and trials. They were written in the order in which trials ended, which depends
// on the machines.
func (s *sweep) sort() error {
	var all []byte
	for _, key := range slices.SortedFunc(maps.Keys(s.lines),
		func(a, b [2]int) int { return cmp.Or(a[1]-b[1], a[0]-b[0]) }) {
		b, err := json.Marshal(s.lines[key])
		if err != nil {
			return err
		}
		all = append(append(all, b...), '\n')
	}
	name := filepath.Join(s.opt.Dir, trialsFile)
	if had, err := ordinary.Read(name, ordinary.Document); err == nil && bytes.Equal(had, all) {
		return nil
	}
	if err := s.wait.Do(name, func() error { return safefile.Write(name, all) }); err != nil {
		return err
	}
	// The open file is the one that was replaced.
	old := s.file
	var err error
	s.file, err = os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o644)
	return errors.Join(err, old.Close())
}

func (s *sweep) trialDir(t int) string { return filepath.Join(s.opt.Dir, fmt.Sprintf("trial-%d", t)) }

// train trains one seed of one trial up to step until.
func (s *sweep) train(ctx context.Context, t, seed int, until int64, workers int) (*run.TrainResult, error) {
	cfg := s.trials[t].cfg
	cfg.Seed += uint64(seed)
	opt := run.TrainOptions{RunDir: run.SeedDir(s.trialDir(t), cfg.Seed), Workers: workers, Scenario: s.scenario,
		Until:  until,
		NoEval: true, Tags: "sb3", Now: s.opt.Now}
	_, err := os.Stat(filepath.Join(opt.RunDir, rundir.ConfigFile))
	opt.Resume = err == nil
	return run.TrainOn(ctx, s.queue, fmt.Sprintf("trial %d seed %d to step %d", t, cfg.Seed, until), cfg, opt)
}

// ranked returns the lines of trials on a rung, best first; failed trials come last.
func (s *sweep) ranked(rung int, trials []int) []TrialLine {
	var all []TrialLine
	for _, t := range trials {
		if l, ok := s.lines[[2]int{t, rung}]; ok {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b TrialLine) int {
		order := 0
		switch {
		case a.Score != nil && b.Score != nil:
			if order = cmp.Compare(*a.Score, *b.Score); rundir.HigherIsBetter(a.Metric) {
				order = -order
			}
		case a.Score != nil:
			order = -1
		case b.Score != nil:
			order = 1
		}
		return cmp.Or(order, a.Trial-b.Trial)
	})
	return all
}

// report ranks the trials, those of the highest rung first.
func (s *sweep) report() (*Report, error) {
	r := &Report{Name: s.cfg.Name, Dir: s.opt.Dir, Rungs: s.rungs}
	for i := range s.trials {
		c := &s.trials[i].cfg
		if est := c.Estimates(); i == 0 {
			r.Estimates = est
		} else if est != r.Estimates {
			r.Estimates = sim.Estimates{}
			break
		}
	}
	r.Rung = report.RungOf(r.Estimates)
	last := map[int]int{}
	for key := range s.lines { // a maximum: their order does not matter
		last[key[0]] = max(last[key[0]], key[1])
	}
	for rung := len(s.rungs) - 1; rung >= 0; rung-- {
		var here []int
		for _, t := range slices.Sorted(maps.Keys(last)) {
			if last[t] == rung {
				here = append(here, t)
			}
		}
		r.Trials = append(r.Trials, s.ranked(rung, here)...)
	}
	best := r.Trials[0]
	r.Metric, r.Higher = best.Metric, rundir.HigherIsBetter(best.Metric)
	for k := range s.cfg.Seeds {
		r.Best = append(r.Best, run.SeedDir(s.trialDir(best.Trial), s.trials[best.Trial].cfg.Seed+uint64(k)))
	}
	return r, nil
}

// In reports whether dir is the folder of a sweep.
func In(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, sweepFile))
	return err == nil
}

// Lines returns the whole lines of trials.jsonl in the folder of a sweep, none if no trial has ended. The sweep may be
// going on.
func Lines(dir string) ([]TrialLine, error) {
	data, err := ordinary.Read(filepath.Join(dir, trialsFile), ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	var all []TrialLine
	for text := range bytes.Lines(data) {
		var l TrialLine
		if text[len(text)-1] != '\n' || json.Unmarshal(text, &l) != nil {
			break
		}
		all = append(all, l)
	}
	return all, nil
}

// Results returns how many lines trials.jsonl has at the end, if no trial fails.
func (c *Config) Results() int {
	all, alive := 0, c.Trials
	for range c.Halving.Rungs {
		all += alive
		alive = (alive + c.Halving.Keep - 1) / c.Halving.Keep
	}
	return all
}
