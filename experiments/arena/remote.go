package arena

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"clustergym/agents/checkpoint"
	"clustergym/configs"
	"clustergym/env/metrics"
	"clustergym/experiments/brought"
	"clustergym/experiments/config"
	"clustergym/experiments/report"
	"clustergym/experiments/rundir"
	"clustergym/experiments/safefile"
	"clustergym/experiments/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/traces"
)

// GamesKind is the kind of the tasks that are games of an evaluation.
const GamesKind = "games"

// gamesFormat is the version of such tasks.
const gamesFormat = 1

// gamesTask is the input of such a task. Its needs are the files of Files by their keys, each in a folder, and "checkpoint/N".
type gamesTask struct {
	Format      int               `json:"format"`
	Base        string            `json:"base"` // the configuration of the world, YAML
	On          string            `json:"on"`   // that of the comparison: Base, or Base with other estimates
	Files       map[string]string `json:"files,omitempty"`
	Checkpoints int               `json:"checkpoints"`
	Windows     int               `json:"windows"`
	Games       []playedGame      `json:"games"`
}

// playedGame is a game whose contestant is counted among checkpoints and policies alone.
type playedGame struct {
	Contestant, Seed, Window int
}

// playedResult is its result. JSON would lose what is not a number.
type playedResult struct {
	Summary metrics.Summary
	Score   float64
}

// sharing is what the comparisons of one command share: a queue, and a folder that keeps results until the command is done.
type sharing struct {
	queue  *workqueue.Coordinator
	dir    string
	unlock func()
}

// newSharing opens the queue of opt, nil without one.
func newSharing(ctx context.Context, cfg *config.Config, opt *EvalOptions) (*sharing, error) {
	if opt.Queue == nil {
		return nil, nil
	}
	text, err := configs.Encode(cfg)
	if err != nil {
		return nil, err
	}
	of := []string{string(text)}
	for _, dir := range opt.Checkpoints {
		ckpt, _, err := rundir.CheckpointDir(dir)
		if err != nil {
			return nil, err
		}
		of = append(of, ckpt)
	}
	b, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(b)
	s := &sharing{dir: filepath.Join("runs", "eval-"+hex.EncodeToString(digest[:4]))}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if s.unlock, err = safefile.Lock(s.dir); errors.Is(err, safefile.ErrLocked) {
		return nil, fault.Mistakef("another process makes the same comparison in %s", s.dir)
	} else if err != nil {
		return nil, err
	}
	if s.queue, err = opt.Queue(ctx, s.dir); err != nil {
		s.unlock()
		return nil, err
	}
	return s, nil
}

// close ends the queue. The folder stays if the command does not end well, so that the same command goes on.
func (s *sharing) close(ctx context.Context, err error) error {
	defer s.unlock()
	if e := s.queue.Close(); e != nil {
		err = errors.Join(err, e)
	}
	if err == nil {
		return os.RemoveAll(s.dir)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: what was played is kept in %s, and the same command goes on", ctx.Err(), s.dir)
	}
	return err
}

// elsewhere plays games on other machines.
type elsewhere struct {
	*sharing
	task     gamesTask // without games
	needs    map[string]string
	external int // contestants after the checkpoints that the others do not know

	mu    sync.Mutex
	hands []*hand // of this machine, of no task in work
}

// mostTasks is the largest number of tasks of a comparison: enough to balance machines of different speed, and few enough that
// handing them out costs little.
const mostTasks = 512

// newElsewhere puts what the games need into the store of the queue. base is the configuration of the world, on that of the
// comparison.
func newElsewhere(ctx context.Context, s *sharing, base, on *config.Config, opt *EvalOptions, windows int) (*elsewhere, error) {
	x := &elsewhere{sharing: s, needs: map[string]string{}}
	if opt.External != nil {
		x.external = len(opt.External.Names)
	}
	base, err := withModel(base, on)
	if err != nil {
		return nil, err
	}
	x.task = gamesTask{Format: gamesFormat, Checkpoints: len(opt.Checkpoints), Windows: windows}
	for text, cfg := range map[*string]*config.Config{&x.task.Base: base, &x.task.On: on} {
		b, err := configs.Encode(cfg)
		if err != nil {
			return nil, err
		}
		*text = string(b)
	}
	files, err := brought.Files(base)
	if err != nil {
		return nil, err
	}
	if x.task.Files, err = brought.Put(ctx, s.queue, files, x.needs); err != nil {
		return nil, err
	}
	for i, dir := range opt.Checkpoints {
		if err := x.putCheckpoint(ctx, "checkpoint/"+strconv.Itoa(i), dir); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// withModel returns base with the estimates of on if these are of a model that is a file, so that the file is sent and loaded
// with the world.
func withModel(base, on *config.Config) (*config.Config, error) {
	if est := on.Estimates(); est.File != "" && base.Estimates() != est {
		b := *base
		b.Edit()
		return &b, b.Set(brought.Model + "=" + est.String())
	}
	return base, nil
}

// NewWorldOf is NewWorld on a worker. names are the result of brought.Put for the files of cfg. The world has no file that the
// task did not bring.
func NewWorldOf(ctx context.Context, cfg *config.Config, j *workqueue.Job, names map[string]string) (*World, error) {
	if err := brought.Check(cfg, names); err != nil {
		return nil, err
	}
	at, remove, err := brought.Place(j, names)
	if err != nil {
		return nil, err
	}
	defer remove() // the world has read its files
	return newWorldAt(ctx, cfg, at)
}

// putCheckpoint stores what is needed to play a checkpoint: the configuration of its run and its weights.
func (x *elsewhere) putCheckpoint(ctx context.Context, name, dir string) error {
	ckpt, run, err := rundir.CheckpointDir(dir)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "gymctl-checkpoint-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	to := filepath.Join(tmp, rundir.Checkpoints, filepath.Base(ckpt))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for from, to := range map[string]string{
		filepath.Join(run, rundir.ConfigFile):        filepath.Join(tmp, rundir.ConfigFile),
		filepath.Join(ckpt, checkpoint.ManifestName): filepath.Join(to, checkpoint.ManifestName),
		filepath.Join(ckpt, weightsFile):             filepath.Join(to, weightsFile),
	} {
		b, err := ordinary.Read(from, ordinary.Document)
		if err != nil {
			return &fault.Mistake{Err: err}
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			return err
		}
	}
	x.needs[name], err = x.queue.Put(ctx, tmp)
	return err
}

// play plays games on whichever machine takes them. Those of policies with a budget of time are played here at the end: they
// depend on how fast a machine is.
func (x *elsewhere) play(ctx context.Context, v *evaluation, cs []contestant, games []game, ended func(g game, r result)) error {
	var timed []game
	games = slices.DeleteFunc(slices.Clone(games), func(g game) bool {
		if cs[g.contestant].timed {
			timed = append(timed, g)
		}
		return cs[g.contestant].timed
	})
	if len(games) > 0 {
		if err := x.share(ctx, v, cs, games, ended); err != nil {
			return err
		}
	}
	if len(timed) == 0 {
		return nil
	}
	here := *v
	here.elsewhere, here.workers = nil, max(1, v.workers)
	resume, err := x.queue.Pause(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return here.each(ctx, cs, timed, ended)
}

// share plays games on whichever machine takes them.
func (x *elsewhere) share(ctx context.Context, v *evaluation, cs []contestant, games []game, ended func(g game, r result)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	size := (len(games) + mostTasks - 1) / mostTasks
	var mu sync.Mutex
	var wg sync.WaitGroup
	first, failure := len(games), error(nil)
	for from := 0; from < len(games); from += size {
		part := games[from:min(from+size, len(games))]
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := x.part(ctx, v, cs, part, ended); err != nil {
				mu.Lock()
				defer mu.Unlock()
				if failure == nil || from < first && !errors.Is(err, context.Canceled) {
					first, failure = from, err
				}
				stop()
			}
		}()
	}
	wg.Wait()
	return failure
}

// part plays the games of one task.
func (x *elsewhere) part(ctx context.Context, v *evaluation, cs []contestant, games []game, ended func(g game, r result)) error {
	in := x.task
	for _, g := range games {
		p := playedGame{g.contestant, g.seed, g.window}
		if g.contestant >= in.Checkpoints {
			p.Contestant -= x.external
		}
		in.Games = append(in.Games, p)
	}
	name := cs[games[0].contestant].name
	if w := games[0].window; w == wholePart {
		name += " whole"
	} else {
		name += " window " + strconv.Itoa(w)
	}
	t, err := workqueue.NewTask(GamesKind, name, in, x.needs)
	if err != nil {
		return err
	}
	var got []result
	kept := filepath.Join(x.dir, "games", t.Digest)
	if b, err := ordinary.Read(kept, ordinary.Document); err == nil {
		if got, err = decodeResults(b, len(games)); err == nil {
			for i, g := range games {
				ended(g, got[i])
			}
			return nil
		}
	}
	err = x.queue.Do(ctx, t, func(ctx context.Context, _ int) error {
		h := x.hand()
		got = got[:0]
		for _, g := range games {
			r, err := v.game(ctx, cs, h, g)
			if err != nil {
				return err
			}
			got = append(got, r)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.hands = append(x.hands, h)
		return x.keep(kept, got)
	}, func(res *workqueue.Result) error {
		var b []byte
		if err := json.Unmarshal(res.Value, &b); err != nil {
			return err
		}
		if got, err = decodeResults(b, len(games)); err != nil {
			return err
		}
		return x.keep(kept, got)
	})
	if err != nil {
		return err
	}
	for i, g := range games {
		ended(g, got[i])
	}
	return nil
}

// keep writes results down.
func (x *elsewhere) keep(name string, list []result) error {
	b, err := encodeResults(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return safefile.Write(name, b)
}

// hand returns a hand that nobody uses.
func (x *elsewhere) hand() *hand {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.hands); n > 0 {
		h := x.hands[n-1]
		x.hands = x.hands[:n-1]
		return h
	}
	return &hand{}
}

// encodeResults encodes results so that no bit of a number is lost.
func encodeResults(list []result) ([]byte, error) {
	var b bytes.Buffer
	played := make([]playedResult, len(list))
	for i, r := range list {
		played[i] = playedResult{r.Summary, r.score}
	}
	err := gob.NewEncoder(&b).Encode(played)
	return b.Bytes(), err
}

// decodeResults decodes n results.
func decodeResults(b []byte, n int) ([]result, error) {
	var played []playedResult
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&played); err != nil {
		return nil, err
	}
	if len(played) != n {
		return nil, fmt.Errorf("%d results for %d games", len(played), n)
	}
	list := make([]result, n)
	for i, p := range played {
		list[i] = result{p.Summary, p.Score}
	}
	return list, nil
}

// GamesHandler returns what a worker does with games. It keeps the last worlds.
func GamesHandler() workqueue.Handler {
	h := &gamesHandler{}
	return h.do
}

type gamesHandler struct {
	mu    sync.Mutex
	known []*knownGames // the last used first
}

// mostKnown is how many comparisons a worker keeps: one with its workload may take gigabytes.
const mostKnown = 2

// knownGames is a comparison that a worker can play.
type knownGames struct {
	key  string
	v    evaluation
	cs   []contestant
	free []*hand // of no task in work
}

func (h *gamesHandler) do(ctx context.Context, j *workqueue.Job) (out workqueue.Outcome, err error) {
	var in gamesTask
	if err := json.Unmarshal(j.Task.Input, &in); err != nil {
		return out, fmt.Errorf("the task cannot be read: %w", err)
	}
	if in.Format != gamesFormat {
		return out, fmt.Errorf("the task has the format %d, want %d", in.Format, gamesFormat)
	}
	k, hand, err := h.take(ctx, j, &in)
	if err != nil {
		return out, err
	}
	var list []result
	for i, g := range in.Games {
		if g.Contestant < 0 || g.Contestant >= len(k.cs) {
			return out, fmt.Errorf("the task wants contestant %d of %d", g.Contestant, len(k.cs))
		}
		r, err := k.v.game(ctx, k.cs, hand, game{g.Contestant, g.Seed, g.Window})
		if err != nil {
			return out, err
		}
		list = append(list, r)
		j.Progress(int64(i+1), int64(len(in.Games)))
	}
	h.mu.Lock()
	k.free = append(k.free, hand)
	h.mu.Unlock()
	b, err := encodeResults(list)
	if err != nil {
		return out, err
	}
	out.Value, out.Proof = b, b
	return out, nil
}

// take returns the comparison of a task, and a hand that nobody uses.
func (h *gamesHandler) take(ctx context.Context, j *workqueue.Job, in *gamesTask) (*knownGames, *hand, error) {
	what := *in
	what.Games = nil
	b, err := json.Marshal([]any{what, j.Task.Needs})
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, k := range h.known {
		if k.key != string(b) {
			continue
		}
		h.known = slices.Insert(slices.Delete(h.known, i, i+1), 0, k)
		if n := len(k.free); n > 0 {
			last := k.free[n-1]
			k.free = k.free[:n-1]
			return k, last, nil
		}
		return k, &hand{}, nil
	}
	k, err := know(ctx, j, in)
	if err != nil {
		return nil, nil, err
	}
	k.key = string(b)
	h.known = slices.Insert(h.known, 0, k)
	if len(h.known) > mostKnown {
		h.known = slices.Delete(h.known, mostKnown, len(h.known)) // which frees it
	}
	return k, &hand{}, nil
}

// know makes the comparison of a task.
func know(ctx context.Context, j *workqueue.Job, in *gamesTask) (k *knownGames, err error) {
	base, err := config.Decode("base", []byte(in.Base))
	if err != nil {
		return nil, err
	}
	on, err := config.Decode("on", []byte(in.On))
	if err != nil {
		return nil, err
	}
	for _, cfg := range []*config.Config{&base, &on} { // the coordinator has checked its own
		if err := cfg.Validate(); err != nil {
			return nil, &fault.Mistake{Err: err}
		}
	}
	if est := on.Estimates(); est.File != "" && est != base.Estimates() {
		return nil, errors.New("the task compares with the estimates of a model and has not brought it; a worker opens no file of its own for a task")
	}
	w, err := NewWorldOf(ctx, &base, j, in.Files)
	if err != nil {
		return nil, err
	}
	k = &knownGames{}
	w.Settings = on.Env.Settings
	opt := EvalOptions{}
	for i := range in.Checkpoints {
		dir := j.Needs["checkpoint/"+strconv.Itoa(i)]
		if dir == "" {
			return nil, fmt.Errorf("the task names %d checkpoints and has not brought the one with number %d", in.Checkpoints, i)
		}
		opt.Checkpoints = append(opt.Checkpoints, dir)
	}
	if k.cs, err = w.contestants(&on, &opt); err != nil {
		return nil, err
	}
	for i := range k.cs {
		if k.cs[i].kind == report.KindExternal {
			return nil, errors.New("the task names external policies")
		}
	}
	k.v = evaluation{world: w, cfg: &on.Eval, part: traces.Test, windows: in.Windows, seeds: on.Eval.Seeds, workers: 1}
	return k, nil
}
