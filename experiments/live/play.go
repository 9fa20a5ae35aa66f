package live

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/experiments/arena"
	"clustergym/experiments/config"
	"clustergym/experiments/decisionlog"
	"clustergym/experiments/decisionlog/record"
	"clustergym/experiments/rundir"
	"clustergym/experiments/workload"
	"clustergym/traces"
)

// rivalRule is the rule whose choice a replay shows beside the agent's.
const rivalRule = "sjf@slots"

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

	busy  sync.Mutex // held while playing
	mu    sync.Mutex // guards the fields below
	key   string     // of world
	world *arena.World
	done  map[string][]byte
	order []string // keys of done, the oldest first
	size  int
}

// mostKept is how many bytes of results are kept.
const mostKept = 64 << 20

// cached returns the result called key, or makes it. Others wait meanwhile.
func (p *player) cached(ctx context.Context, key string, compute func() ([]byte, error)) ([]byte, error) {
	if b, ok := p.kept(key); ok {
		return b, nil
	}
	p.busy.Lock()
	defer p.busy.Unlock()
	if b, ok := p.kept(key); ok { // another request has made it
		return b, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := compute()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = map[string][]byte{}
	}
	for p.size+len(b) > mostKept && len(p.order) > 0 {
		p.size -= len(p.done[p.order[0]])
		delete(p.done, p.order[0])
		p.order = p.order[1:]
	}
	p.done[key], p.order, p.size = b, append(p.order, key), p.size+len(b)
	return b, nil
}

func (p *player) kept(key string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.done[key]
	return b, ok
}

// open returns the configuration of a run and its world. Callers hold p.busy.
func (p *player) open(ctx context.Context, dir string) (config.Config, *arena.World, error) {
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
	if p.world == nil || p.key != string(key) {
		p.world = nil // before another takes its memory
		w, err := arena.NewWorldContext(ctx, &cfg)
		if err != nil {
			return cfg, nil, err
		}
		p.key, p.world = string(key), w
	}
	return cfg, p.world, nil
}

// checkpointOf returns the checkpoint of a run that is shown: the best one, else the newest.
func checkpointOf(dir string) (string, error) {
	ckpt, _, err := rundir.CheckpointDir(dir)
	if errors.Is(err, checkpoint.ErrNone) {
		return "", workload.Mistake("%s", noCheckpoint(dir, err))
	}
	return ckpt, err
}

// replay returns the log of the decisions in a window, and how many windows there are.
func (p *player) replay(ctx context.Context, dir string, part traces.Part, window int) ([]byte, int, error) {
	ckpt, err := checkpointOf(dir)
	if err != nil {
		return nil, 0, err
	}
	n := 0
	name := string(rune('a'+int(part))) + "\x00" + ckpt + "\x00" + string(rune(window))
	b, err := p.cached(ctx, "replay\x00"+name, func() ([]byte, error) {
		cfg, w, err := p.open(ctx, dir)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := record.Play(ctx, w, cfg, ckpt, part, window, rivalRule, &b); err != nil {
			return nil, err
		}
		if b.Len() > decisionlog.MaxBytes {
			return nil, workload.Mistake("the log of this window has more than %d MB", decisionlog.MaxBytes>>20)
		}
		return b.Bytes(), nil
	})
	if err != nil {
		return nil, 0, err
	}
	p.busy.Lock()
	defer p.busy.Unlock()
	if cfg, w, err := p.open(ctx, dir); err == nil {
		n, _ = w.Windows(&cfg, part)
	}
	return b, n, nil
}

// standings returns how the checkpoint of a run and its rivals do on its validation windows.
func (p *player) standings(ctx context.Context, dir string, encode func(*arena.Standings) ([]byte, error)) ([]byte, error) {
	ckpt, err := checkpointOf(dir)
	if err != nil {
		return nil, err
	}
	return p.cached(ctx, "standings\x00"+ckpt, func() ([]byte, error) {
		cfg, w, err := p.open(ctx, dir)
		if err != nil {
			return nil, err
		}
		if !cfg.Simulated() {
			return nil, workload.Mistake("%s has no validation windows on which heuristics play", cfg.Env.ID)
		}
		s, err := w.Standings(ctx, &cfg, ckpt, 1)
		if err != nil {
			return nil, err
		}
		return encode(s)
	})
}

// logOf returns a log of decisions that is a file.
func logOf(path string) ([]byte, error) {
	i, err := os.Stat(path)
	if err != nil {
		return nil, workload.Mistake("%s: %v", filepath.Base(path), workload.Reason(err))
	}
	if i.Size() > decisionlog.MaxBytes {
		return nil, workload.Mistake("%s has %d MB, want at most %d", filepath.Base(path), i.Size()>>20, decisionlog.MaxBytes>>20)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	if err := decisionlog.Read(bytes.NewReader(b), func(*decisionlog.Line) error { return nil }); err != nil {
		return nil, workload.Mistake("%s: %w", filepath.Base(path), err)
	}
	return b, nil
}
