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
	"clustergym/distributed/workqueue"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/par"
	"clustergym/internal/safefile"
	"clustergym/lab/brought"
	"clustergym/lab/config"
	"clustergym/lab/rundir"
	"clustergym/lab/stream"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

// GamesKind is the kind of the tasks that are games of an evaluation.
const GamesKind = "games"

// gamesFormat is the version of such tasks.
const gamesFormat = 1

// gamesTask is the input of such a task. Its needs are the files of Files by their keys, each in a folder, and
// "checkpoint/N".
type gamesTask struct {
	Format      int               `json:"format"`
	Base        string            `json:"base"` // the configuration of the scenario, YAML
	On          string            `json:"on"`   // that of the comparison: Base, or Base with other estimates
	Files       map[string]string `json:"files,omitempty"`
	Checkpoints int               `json:"checkpoints"`
	Windows     int               `json:"windows"`
	Games       []playedGame      `json:"games"`
}

// playedGame is a game whose policy is counted without external ones.
type playedGame struct {
	Policy  int `json:"Contestant"`
	Seed    int
	Episode int `json:"Window"`
}

// playedResult is its result. JSON would lose what is not a number.
type playedResult struct {
	Summary metrics.Summary
	Score   float64
	Stream  *streamResult // nil = a window was played
}

// remote plays the games of one runner on this machine and on others.
type remote struct {
	*sharing
	task     gamesTask // without games
	needs    map[string]string
	external int // policies after the checkpoints that the others do not have
}

// sharing is what the runners of one command share: a queue, and a folder that keeps results until the command is done.
type sharing struct {
	queue  *workqueue.Coordinator
	dir    string
	unlock func()
}

// mostTasks is the largest number of tasks of a comparison: enough to balance machines of different speed, and few
// enough that handing them out costs little.
const mostTasks = 512

// share lets other machines play the games of runners, whose scenario has the configuration base, if opt has a queue.
// done ends that; it is called with the command's error and returns it.
func share(ctx context.Context, base *config.Config, opt *EvalOptions, runners ...*runner) (done func(error) error,
	err error) {
	if opt.Queue == nil {
		return func(err error) error { return err }, nil
	}
	s, err := newSharing(ctx, base, opt)
	if err != nil {
		return nil, err
	}
	for _, r := range runners {
		if r.remote, err = s.remote(ctx, base, opt, r); err != nil {
			return nil, s.close(ctx, err)
		}
	}
	return func(err error) error { return s.close(ctx, err) }, nil
}

// newSharing opens the queue of opt.
func newSharing(ctx context.Context, cfg *config.Config, opt *EvalOptions) (*sharing, error) {
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

// close ends the queue. The folder stays if the command does not end well, so that the same command continues.
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

// remote puts what the games of r need into the store of the queue.
func (s *sharing) remote(ctx context.Context, base *config.Config, opt *EvalOptions, r *runner) (*remote, error) {
	x := &remote{sharing: s, needs: map[string]string{}}
	if opt.External != nil {
		x.external = len(opt.External.Names)
	}
	base, err := withModel(base, r.cfg)
	if err != nil {
		return nil, err
	}
	x.task = gamesTask{Format: gamesFormat, Checkpoints: len(opt.Checkpoints), Windows: r.episodes}
	for text, cfg := range map[*string]*config.Config{&x.task.Base: base, &x.task.On: r.cfg} {
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

// withModel returns base with the estimates of on if these are of a model that is a file, so that the file is sent and
// loaded with the scenario.
func withModel(base, on *config.Config) (*config.Config, error) {
	if est := on.Estimates(); est.File != "" && base.Estimates() != est {
		b := *base
		b.Edit()
		return &b, b.Set(brought.Model + "=" + est.String())
	}
	return base, nil
}

// NewScenarioOf is NewScenario on a worker. names are the result of brought.Put for the files of cfg. The scenario has
// no file that the task did not bring.
func NewScenarioOf(ctx context.Context, cfg *config.Config, j *workqueue.Job,
	names map[string]string) (*Scenario, error) {
	if err := brought.Check(cfg, names); err != nil {
		return nil, err
	}
	at, remove, err := brought.Place(j, names)
	if err != nil {
		return nil, err
	}
	defer remove() // the scenario has read its files
	return newWorldAt(ctx, cfg, at)
}

// putCheckpoint stores what is needed to play a checkpoint: the configuration of its run and its weights.
func (x *remote) putCheckpoint(ctx context.Context, name, dir string) error {
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

// run plays games on whichever machine takes them. Those of policies with a budget of time are played here at the end:
// they depend on how fast a machine is.
func (x *remote) run(ctx context.Context, r *runner, games []game, ended func(g game, got result)) error {
	var timed, shared []game
	for _, g := range games {
		if r.policies[g.policy].timed {
			timed = append(timed, g)
		} else {
			shared = append(shared, g)
		}
	}
	if err := x.share(ctx, r, shared, ended); err != nil || len(timed) == 0 {
		return err
	}
	resume, err := x.queue.Pause(ctx)
	if err != nil {
		return err
	}
	defer resume()
	return r.here(ctx, timed, ended)
}

// share plays games on whichever machine takes them. All tasks wait for a machine at once.
func (x *remote) share(ctx context.Context, r *runner, games []game, ended func(g game, got result)) error {
	size := max(1, (len(games)+mostTasks-1)/mostTasks)
	tasks := slices.Collect(slices.Chunk(games, size))
	return par.For(ctx, len(tasks), len(tasks), func(_, i int) error { return x.do(ctx, r, tasks[i], ended) })
}

// do plays the games of one task.
func (x *remote) do(ctx context.Context, r *runner, games []game, ended func(g game, got result)) error {
	in := x.task
	for _, g := range games {
		p := playedGame{g.policy, g.seed, g.episode}
		if g.policy >= in.Checkpoints {
			p.Policy -= x.external
		}
		in.Games = append(in.Games, p)
	}
	name := r.policies[games[0].policy].name
	if i := games[0].episode; i == wholePart {
		name += " whole"
	} else {
		name += " " + r.unit() + " " + strconv.Itoa(i)
	}
	t, err := workqueue.NewTask(GamesKind, name, in, x.needs)
	if err != nil {
		return err
	}
	kept := filepath.Join(x.dir, "games", t.Digest)
	b, err := ordinary.Read(kept, ordinary.Document)
	got, bad := decodeResults(b, len(games))
	if err != nil || bad != nil {
		keep := func(b []byte) error {
			if got, err = decodeResults(b, len(games)); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
				return err
			}
			return safefile.Write(kept, b)
		}
		err = x.queue.Do(ctx, t, func(ctx context.Context, _ int) error {
			b, err := r.encoded(ctx, games, func(int) {})
			if err != nil {
				return err
			}
			return keep(b)
		}, func(res *workqueue.Result) error {
			var b []byte
			if err := json.Unmarshal(res.Value, &b); err != nil {
				return err
			}
			return keep(b)
		})
		if err != nil {
			return err
		}
	}
	for i, g := range games {
		ended(g, got[i])
	}
	return nil
}

// encoded plays the games of one task and returns their results so that no bit of a number is lost.
func (r *runner) encoded(ctx context.Context, games []game, ended func(n int)) ([]byte, error) {
	played := make([]playedResult, len(games))
	for i, g := range games {
		got, err := r.play(ctx, g)
		if err != nil {
			return nil, err
		}
		played[i] = playedResult{got.Summary, got.score, got.stream}
		ended(i + 1)
	}
	var b bytes.Buffer
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
		list[i] = result{Summary: p.Summary, outcome: outcome{score: p.Score}, stream: p.Stream}
	}
	return list, nil
}

// GamesHandler returns what a worker does with games. It keeps the last scenarios.
func GamesHandler() workqueue.Handler {
	h := &gamesHandler{}
	return h.do
}

type gamesHandler struct {
	mu    sync.Mutex
	known []knownGames // the last used first
}

// mostKnown is how many comparisons a worker keeps: one with its workload may take gigabytes.
const mostKnown = 2

// knownGames is a comparison that a worker can play.
type knownGames struct {
	key    string
	runner *runner
}

func (h *gamesHandler) do(ctx context.Context, j *workqueue.Job) (out workqueue.Outcome, err error) {
	var in gamesTask
	if err := json.Unmarshal(j.Task.Input, &in); err != nil {
		return out, fmt.Errorf("the task cannot be read: %w", err)
	}
	if in.Format != gamesFormat {
		return out, fmt.Errorf("the task has the format %d, want %d", in.Format, gamesFormat)
	}
	r, err := h.take(ctx, j, &in)
	if err != nil {
		return out, err
	}
	var games []game
	for _, g := range in.Games {
		if g.Policy < 0 || g.Policy >= len(r.policies) {
			return out, fmt.Errorf("the task is for policy %d of %d", g.Policy, len(r.policies))
		}
		games = append(games, game{g.Policy, g.Seed, g.Episode})
	}
	b, err := r.encoded(ctx, games, func(n int) { j.Progress(int64(n), int64(len(games))) })
	out.Value, out.Proof = b, b
	return out, err
}

// take returns the runner of a task.
func (h *gamesHandler) take(ctx context.Context, j *workqueue.Job, in *gamesTask) (*runner, error) {
	what := *in
	what.Games = nil
	b, err := json.Marshal([]any{what, j.Task.Needs})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var k knownGames
	if i := slices.IndexFunc(h.known, func(k knownGames) bool { return k.key == string(b) }); i >= 0 {
		k = h.known[i]
		h.known = slices.Delete(h.known, i, i+1)
	} else {
		r, err := know(ctx, j, in)
		if err != nil {
			return nil, err
		}
		k = knownGames{string(b), r}
	}
	h.known = slices.Insert(h.known, 0, k)
	if len(h.known) > mostKnown {
		h.known = slices.Delete(h.known, mostKnown, len(h.known)) // which frees it
	}
	return k.runner, nil
}

// know makes the runner of a task.
func know(ctx context.Context, j *workqueue.Job, in *gamesTask) (*runner, error) {
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
		return nil,
			errors.New(
				"the task compares with the estimates of a model and has not brought it; a worker opens no file of its own for a " +
					"task")
	}
	w, err := NewScenarioOf(ctx, &base, j, in.Files)
	if err != nil {
		return nil, err
	}
	w.Settings = on.Env.Settings
	opt := EvalOptions{}
	for i := range in.Checkpoints {
		dir := j.Needs["checkpoint/"+strconv.Itoa(i)]
		if dir == "" {
			return nil, fmt.Errorf("the task names %d checkpoints and has not brought the one with number %d", in.Checkpoints, i)
		}
		opt.Checkpoints = append(opt.Checkpoints, dir)
	}
	var r *runner
	if on.Streamed() {
		r, err = w.streaming(ctx, &on, traces.Test, stream.Test, 1)
	} else {
		r, err = w.runner(&on, traces.Test, in.Windows, 1)
	}
	if err != nil {
		return nil, err
	}
	return r, r.join(ctx, &opt)
}
