package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/arena"
	"clustergym/lab/catalog"
	"clustergym/lab/config"
	"clustergym/lab/decisionlog"
	"clustergym/lab/decisionlog/record"
	"clustergym/lab/rundir"
	"clustergym/ops/steer"
	"clustergym/simulator/policyname"
	"clustergym/traces"
)

// canReplay reports whether a run's decisions can be shown, and otherwise why not.
func canReplay(dir string, cfg *config.Config) (ok bool, why string) {
	switch {
	case !cfg.Simulated():
		return false, cfg.Env.ID + " has no cluster to show."
	case cfg.Agent != "ppo" && cfg.Agent != "ddqn":
		return false, "Agent " + cfg.Agent + " has no scores for jobs."
	}
	if _, _, err := rundir.CheckpointDir(dir); err != nil {
		return false, noCheckpoint(dir, err)
	}
	return true, ""
}

func noCheckpoint(dir string, err error) string {
	if errors.Is(err, checkpoint.ErrNone) {
		return dir + " has no checkpoint yet: the first comes with the first validation."
	}
	return err.Error()
}

// player plays windows with checkpoints, one at a time: a page must not take more of the machine than one core.
type player struct {
	kernels func(set string) error // nil = those in use

	busy     sync.Mutex // held while playing; guards the fields below
	key      string     // of scenario
	scenario *arena.Scenario
	used     time.Time // when scenario was

	mu    sync.Mutex // guards the fields below
	done  map[string]result
	order []string // keys of done, the oldest first
	size  int
}

// result is what playing came to.
type result struct {
	bytes   []byte
	windows int // of the part of the workload
}

// mostKept is how many bytes of results are kept.
const mostKept = 64 << 20

// cached returns the result called key, or makes it. Others wait meanwhile.
func (p *player) cached(ctx context.Context, key string, compute func() (result, error)) (result, error) {
	if r, ok := p.kept(key); ok {
		return r, nil
	}
	p.busy.Lock()
	defer p.busy.Unlock()
	if r, ok := p.kept(key); ok { // another request has made it
		return r, nil
	}
	if err := ctx.Err(); err != nil {
		return result{}, err
	}
	r, err := compute()
	if err == nil {
		p.keep(key, r)
	}
	return r, err
}

func (p *player) kept(key string) (result, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.done[key]
	return r, ok
}

// keep keeps a result, if need be in place of older ones.
func (p *player) keep(key string, r result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(r.bytes) > mostKept {
		return
	}
	if p.done == nil {
		p.done = map[string]result{}
	}
	for p.size+len(r.bytes) > mostKept {
		p.size -= len(p.done[p.order[0]].bytes)
		delete(p.done, p.order[0])
		p.order = p.order[1:]
	}
	p.done[key], p.order, p.size = r, append(p.order, key), p.size+len(r.bytes)
}

// open returns the configuration of a run and its scenario. Callers hold p.busy.
func (p *player) open(ctx context.Context, dir string) (config.Config, *arena.Scenario, error) {
	cfg, err := rundir.ReadConfig(dir)
	if err != nil {
		return cfg, nil, err
	}
	if p.kernels != nil {
		if err := p.kernels(cfg.Kernels); err != nil {
			return cfg, nil, err
		}
	}
	same := config.For(cfg.Env.ID)
	same.Trace, same.Cluster, same.Env = cfg.Trace, cfg.Cluster, cfg.Env
	key, err := configs.Encode(&same)
	if err != nil {
		return cfg, nil, err
	}
	p.used = time.Now()
	if p.scenario == nil || p.key != string(key) {
		p.scenario = nil // before another takes its memory
		of := cfg        // the configuration that is shown has no openers
		ordinaryFiles(&of)
		w, err := arena.NewScenarioContext(ctx, &of)
		if err != nil {
			return cfg, nil, err
		}
		p.key, p.scenario = string(key), w
	}
	return cfg, p.scenario, nil
}

// ordinaryFiles makes cfg, which others wrote, open ordinary files only: a pipe would hold up all pages.
func ordinaryFiles(cfg *config.Config) {
	for _, of := range []struct {
		name string
		from **traces.Files
	}{{cfg.Trace.File, &cfg.Trace.FileFrom}, {cfg.Trace.Profiles, &cfg.Trace.ProfilesFrom}} {
		if of.name != "" && !strings.HasPrefix(of.name, catalog.Prefix) { // a public trace lies in the user's own folder
			*of.from = traces.OrdinaryFiles()
		}
	}
}

// rest drops the workload if nothing was played for long: a training that somebody looked at once needs the memory.
func (p *player) rest() {
	if p.busy.TryLock() {
		defer p.busy.Unlock()
		if time.Since(p.used) > keepCurves {
			p.scenario = nil
		}
	}
}

// checkpointOf returns the checkpoint of a run that is shown: the best one, else the newest. name names it and what it
// plays, also where another run has taken the folder.
func checkpointOf(dir string) (ckpt, name string, err error) {
	ckpt, _, err = rundir.CheckpointDir(dir)
	if errors.Is(err, checkpoint.ErrNone) {
		err = fault.Mistakef("%s", noCheckpoint(dir, err))
	}
	if err != nil {
		return "", "", err
	}
	name = ckpt
	for _, f := range []string{filepath.Join(dir, rundir.ConfigFile), filepath.Join(ckpt, checkpoint.ManifestName)} {
		i, err := os.Stat(f)
		if err != nil {
			return "", "", fault.Mistakef("%s: %v", f, ordinary.Reason(err))
		}
		name += fmt.Sprintf("\x00%d %d", i.Size(), i.ModTime().UnixNano())
	}
	return ckpt, name, nil
}

// replay returns the log of the decisions in a window, and how many windows there are.
func (p *player) replay(ctx context.Context, dir string, part traces.Part, window int) (result, error) {
	ckpt, name, err := checkpointOf(dir)
	if err != nil {
		return result{}, err
	}
	return p.cached(ctx, fmt.Sprintf("replay %d %d %s", part, window, name), func() (result, error) {
		cfg, w, err := p.open(ctx, dir)
		if err != nil {
			return result{}, err
		}
		n, err := w.Windows(&cfg, part)
		if err != nil {
			return result{}, err
		}
		var b bytes.Buffer
		if err := record.Play(ctx, w, cfg, ckpt, part, window, policyname.Slots("sjf"), &b); err != nil {
			return result{}, err
		}
		if b.Len() > decisionlog.MaxBytes {
			return result{}, fault.Mistakef("the log of this window has more than %d MB", decisionlog.MaxBytes>>20)
		}
		return result{b.Bytes(), n}, nil
	})
}

// standings returns how the checkpoint of a run and its baselines do on its validation windows.
func (p *player) standings(ctx context.Context, dir string,
	encode func(*arena.ValidationScores) ([]byte, error)) ([]byte,
	error) {
	ckpt, name, err := checkpointOf(dir)
	if err != nil {
		return nil, err
	}
	r, err := p.cached(ctx, "standings "+name, func() (result, error) {
		cfg, w, err := p.open(ctx, dir)
		if err != nil {
			return result{}, err
		}
		if !cfg.Simulated() {
			return result{}, fault.Mistakef("%s has no validation windows on which heuristics play", cfg.Env.ID)
		}
		s, err := w.ValidationScores(ctx, &cfg, ckpt, 1)
		if err != nil {
			return result{}, err
		}
		b, err := encode(s)
		return result{bytes: b}, err
	})
	return r.bytes, err
}

// storyOf returns the log of decisions that a log of steer tells, and how many lines the file has.
func storyOf(path string) ([]byte, int, error) {
	var b bytes.Buffer
	n, err := steer.Story(path, &b)
	if err != nil {
		return nil, 0, fault.Mistakef("%s: %v", filepath.Base(path), ordinary.Reason(err))
	}
	return b.Bytes(), n, nil
}

// logOf returns a log of decisions that is a file.
func logOf(path string) ([]byte, error) {
	i, err := ordinary.Stat(path)
	if err != nil {
		return nil, fault.Mistakef("%s: %v", filepath.Base(path), ordinary.Reason(err))
	}
	if i.Size() > decisionlog.MaxBytes {
		return nil, fault.Mistakef("%s has %d MB, want at most %d", filepath.Base(path), i.Size()>>20,
			decisionlog.MaxBytes>>20)
	}
	b, err := ordinary.Read(path, decisionlog.MaxBytes)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	b = decisionlog.Whole(b)
	if err := decisionlog.Read(bytes.NewReader(b), func(*decisionlog.Line) error { return nil }); err != nil {
		return nil, fault.Mistakef("%s: %w", filepath.Base(path), err)
	}
	return b, nil
}
