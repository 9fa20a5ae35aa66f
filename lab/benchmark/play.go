package benchmark

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"clustergym/agents"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/safefile"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/workload"
	"clustergym/nets/kernel"
)

// The splits: sets of windows that are played.
const (
	Development = "development" // public
	Sealed      = "sealed"      // drawn from the version's secret
)

// Options are the arguments of Play.
type Options struct {
	Dir     string  // where results are kept, and taken from if they are there
	Tasks   []*Task // nil = all
	Secret  *Secret // plays the sealed windows; nil = the development windows
	Workers int     // goroutines; affects only speed
	Kernels string  // set of float32 kernels, "" = auto

	Say  func(format string, args ...any)
	Game func(task string, done, all int)
}

// Results are what one policy reaches. They are the file results.json in the folder of gymctl benchmark run.
type Results struct {
	Format  int          `json:"format"`
	Version int          `json:"version"` // of the benchmark
	Split   string       `json:"split"`
	Sealed  string       `json:"sealed,omitempty"` // the commitment of the secret from which sealed windows are drawn
	Policy  Policy       `json:"policy"`
	Hash    string       `json:"policy_hash"` // of everything by which it plays
	Kernels string       `json:"kernels"`     // set of float32 kernels that an agent played with, "" for others
	Tasks   []TaskResult `json:"tasks"`
}

// resultsFormat is the version of results.json and of rows.
const resultsFormat = 1

// TaskResult is what a policy reaches on one task.
type TaskResult struct {
	Task   string      `json:"task"`
	Hash   string      `json:"task_hash"`
	Policy string      `json:"plays"`            // what plays: the rule, the first checkpoint or the program
	Files  []string    `json:"hashes,omitempty"` // of the checkpoints or models, one for each run
	Seeds  []uint64    `json:"seeds,omitempty"`  // that the checkpoints' runs learned with
	Steps  []int64     `json:"steps,omitempty"`  // that the checkpoints have learned for
	Knows  bool        `json:"knows,omitempty"`  // it knows the windows beforehand, or what no agent sees
	Tries  int         `json:"tries,omitempty"`  // how often a program has begun to play, if more than once
	Values [][]float64 `json:"values"`           // the metric: [run][window]
}

// Means returns the mean of each run over its windows.
func (r *TaskResult) Means() []float64 {
	means := make([]float64, len(r.Values))
	for i, row := range r.Values {
		means[i] = statistic.Mean(row)
	}
	return means
}

// byUnit returns the means over runs of each window, draw or block.
func (r *TaskResult) byUnit() []float64 {
	out := make([]float64, len(r.Values[0]))
	for _, row := range r.Values {
		for i, x := range row {
			out[i] += x / float64(len(r.Values))
		}
	}
	return out
}

// Task returns the result on the task called name, or nil if the task was not played.
func (r *Results) Task(name string) *TaskResult {
	if i := slices.IndexFunc(r.Tasks, func(t TaskResult) bool { return t.Task == name }); i >= 0 {
		return &r.Tasks[i]
	}
	return nil
}

// The names in a folder of results.
const (
	planFile    = "plan.json"
	resultsFile = "results.json"
	partsDir    = "parts"
)

// plan says what a folder is about. A folder takes no other policy, version or split.
type plan struct {
	Version int    `json:"version"`
	Split   string `json:"split"`
	Sealed  string `json:"sealed,omitempty"` // the commitment of the secret
	Policy  Policy `json:"policy"`
	Files   string `json:"files,omitempty"` // hash of an external policy's files
	Kernels string `json:"kernels,omitempty"`
}

// interrupted returns the error of a play that was interrupted.
func (o *Options) interrupted() error {
	return fmt.Errorf("%w; what was played is kept in %s, and the same command goes on", fault.ErrInterrupted, o.Dir)
}

// Play plays a policy on tasks and returns the results on all tasks in opt.Dir. What opt.Dir has is not played again,
// so that an interrupted call is continued by the same call, to the same bytes; more tasks may be added later. Tasks
// for which the policy has nothing to play with are left out. If ctx is cancelled, Play keeps all finished runs and
// returns fault.ErrInterrupted.
func (v *Version) Play(ctx context.Context, p *Policy, opt Options) (*Results, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if opt.Kernels == "" {
		opt.Kernels = kernel.Auto
	}
	if err := config.UseKernels(opt.Kernels); err != nil {
		return nil, err
	}
	tasks := opt.Tasks
	if tasks == nil {
		tasks, _ = v.Match()
	}
	g := &playing{v: v, policy: p, opt: opt, alone: len(tasks) == 1}
	if p.Kind == KindExternal && len(tasks) != 1 {
		return nil, fault.Mistakef("a program plays one task at a time: name it by %s", fault.Key("tasks"))
	}
	unlock, err := g.enter()
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &Results{Format: resultsFormat, Version: v.Version, Split: g.plan.Split, Sealed: g.plan.Sealed, Policy: *p,
		Kernels: g.plan.Kernels}
	for i := range v.Tasks {
		t := &v.Tasks[i]
		var res *TaskResult
		if slices.Contains(tasks, t) {
			res, err = g.task(ctx, t)
		} else {
			res, err = g.kept(t)
		}
		if ctx.Err() != nil {
			return nil, opt.interrupted()
		}
		if err != nil {
			return nil, err
		}
		if res != nil {
			r.Tasks = append(r.Tasks, *res)
		}
	}
	if len(r.Tasks) == 0 {
		return nil, &fault.Mistake{Err: &noneError{p.Name}}
	}
	r.Hash = r.policyHash(g.plan.Files)
	if err := v.check(r); err != nil {
		return nil, fault.Mistakef("%s: %w; remove what is wrong there to play it again", opt.Dir, err)
	}
	return r, safefile.WriteJSON(filepath.Join(opt.Dir, resultsFile), r)
}

// noneError says that a policy plays no task.
type noneError struct{ policy string }

func (e *noneError) Error() string { return fmt.Sprintf("policy %s plays none of the tasks", e.policy) }

// policyHash returns the hash of what a policy plays with.
func (r *Results) policyHash(files string) string {
	type part struct {
		Task, Plays string
		Files       []string
	}
	of := struct {
		Kind  string
		Set   []string
		Files string
		Tasks []part
	}{Kind: r.Policy.Kind, Set: r.Policy.Set, Files: files}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		pt := part{Task: t.Task, Files: t.Files}
		if r.Policy.Kind == KindRule {
			pt.Plays = t.Policy
		}
		of.Tasks = append(of.Tasks, pt)
	}
	return hashJSON(of)
}

// playing is a call of Play.
type playing struct {
	v      *Version
	policy *Policy
	opt    Options
	plan   plan
	alone  bool // there is one task
}

// enter makes, or locks and checks, the folder.
func (g *playing) enter() (unlock func(), err error) {
	g.plan = plan{Version: g.v.Version, Split: Development, Policy: *g.policy}
	if g.opt.Secret != nil {
		g.plan.Split, g.plan.Sealed = Sealed, g.opt.Secret.Commitment()
	}
	if g.policy.Kind == KindCheckpoint || g.policy.Kind == KindModel {
		g.plan.Kernels = kernel.Set()
	}
	if g.policy.Kind == KindExternal {
		var all []string
		for _, f := range g.policy.Files {
			h, err := hashFile(f)
			if err != nil {
				return nil, err
			}
			all = append(all, h)
		}
		g.plan.Files = hashJSON(all)
	}
	if err := os.MkdirAll(filepath.Join(g.opt.Dir, partsDir), 0o755); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	unlock, err = safefile.Lock(g.opt.Dir)
	if errors.Is(err, safefile.ErrLocked) {
		return nil, fault.Mistakef("another process plays in %s", g.opt.Dir)
	}
	if err != nil {
		return nil, err
	}
	name := filepath.Join(g.opt.Dir, planFile)
	want, err := json.MarshalIndent(&g.plan, "", " ")
	if err != nil {
		unlock()
		return nil, err
	}
	want = append(want, '\n')
	had, err := ordinary.Read(name, ordinary.Document)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = safefile.Write(name, want)
	case err == nil && string(had) != string(want):
		err = fault.Mistakef(
			"%s holds the results of another policy, version, split or set of kernels (%s); name another folder", g.opt.Dir,
			planFile)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// say reports a line for people.
func (g *playing) say(format string, args ...any) {
	if g.opt.Say != nil {
		g.opt.Say(format, args...)
	}
}

// part is the file of one run of a task; values are those of one play, or of all plays of a policy that draws.
type part struct {
	Hash   string      `json:"task_hash"`
	Policy string      `json:"plays"`
	File   string      `json:"hash,omitempty"`
	Seed   uint64      `json:"seed,omitempty"`
	Step   int64       `json:"step,omitempty"`
	Knows  bool        `json:"knows,omitempty"`
	Tries  int         `json:"tries,omitempty"`
	Values [][]float64 `json:"values"`
	Seal   string      `json:"seal,omitempty"` // of a part on sealed windows, see seal
}

// seal returns a keyed hash of a part and of its folder's plan. Only somebody who has the secret can compute it, so
// parts that were edited or copied from another folder are refused.
func (g *playing) seal(t *Task, run int, p *part) string {
	if g.opt.Secret == nil {
		return ""
	}
	plain := *p
	plain.Seal = ""
	m := hmac.New(sha256.New, g.opt.Secret.Seed[:])
	m.Write([]byte(hashJSON([]any{g.plan, t.Name, run, plain})))
	return hex.EncodeToString(m.Sum(nil))
}

func (g *playing) partFile(t *Task, run int) string {
	return filepath.Join(g.opt.Dir, partsDir, t.Name, strconv.Itoa(run)+".json")
}

// readPart returns a part that is kept, nil if there is none.
func (g *playing) readPart(t *Task, run int) (*part, error) {
	b, err := ordinary.Read(g.partFile(t, run), ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	var p part
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fault.Mistakef("%s: %v; remove it to play this run again", g.partFile(t, run), err)
	}
	if p.Hash != t.Hash {
		return nil, fault.Mistakef("%s is of another task than version %d has; remove it to play this run again",
			g.partFile(t, run), g.v.Version)
	}
	if !hmac.Equal([]byte(p.Seal), []byte(g.seal(t, run, &p))) {
		return nil,
			fault.Mistakef(
				"%s was not played here on the windows of the secret, or was changed; remove it to play this run again",
				g.partFile(t, run))
	}
	return &p, nil
}

// kept returns what the folder has of a task that is not to be played, nil if that is nothing or not whole.
func (g *playing) kept(t *Task) (*TaskResult, error) {
	b, err := ordinary.Read(filepath.Join(g.opt.Dir, partsDir, t.Name, "runs"), 64)
	if err != nil {
		return nil, nil //nolint:nilerr // it has not begun
	}
	n, err := strconv.Atoi(string(b))
	if err != nil || n < 1 || n > maxRuns {
		return nil, fault.Mistakef("%s is no number of runs", filepath.Join(g.opt.Dir, partsDir, t.Name, "runs"))
	}
	res := &TaskResult{Task: t.Name, Hash: t.Hash}
	for i := range n {
		p, err := g.readPart(t, i)
		if err != nil || p == nil {
			return nil, err
		}
		res.add(p)
	}
	return res, nil
}

// add adds a run.
func (r *TaskResult) add(p *part) {
	if r.Policy == "" {
		r.Policy, r.Knows, r.Tries = p.Policy, p.Knows, p.Tries
	}
	if p.File != "" {
		r.Files = append(r.Files, p.File)
	}
	if p.Seed > 0 || p.Step > 0 {
		r.Seeds, r.Steps = append(r.Seeds, p.Seed), append(r.Steps, p.Step)
	}
	r.Values = append(r.Values, p.Values...)
}

// task plays the policy on one task, nil if there is nothing to play with.
func (g *playing) task(ctx context.Context, t *Task) (*TaskResult, error) {
	cfg, err := t.Config()
	if err != nil {
		return nil, err
	}
	if why := g.unplayed(t, &cfg); why != "" {
		g.say("%s: left out: %s", t.Name, why)
		return g.kept(t)
	}
	cfg.Eval.Policies, cfg.Kernels = nil, g.opt.Kernels
	runs, err := g.runs(t, &cfg)
	if err != nil || runs == nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if err := os.MkdirAll(filepath.Join(g.opt.Dir, partsDir, t.Name), 0o755); err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	if err := safefile.Write(filepath.Join(g.opt.Dir, partsDir, t.Name, "runs"), []byte(strconv.Itoa(len(runs)))); err !=
		nil {
		return nil, err
	}
	res := &TaskResult{Task: t.Name, Hash: t.Hash}
	var scenario *arena.Scenario
	for i := range runs {
		p, err := g.readPart(t, i)
		if err != nil {
			return nil, err
		}
		c := &runs[i]
		if p != nil && (p.File != c.hash || p.Seed != c.seed || p.Step != c.step) {
			return nil, fault.Mistakef("%s was not played by what %s now has; name another folder", g.partFile(t, i), c.from)
		}
		if p != nil && c.rule != "" && p.Policy != c.rule {
			return nil, fault.Mistakef("%s was played by %s, and the rule is %s; name another folder", g.partFile(t, i),
				p.Policy, c.rule)
		}
		if p == nil {
			if scenario == nil {
				if scenario, err = g.scenario(ctx, t, &cfg); err != nil {
					return nil, err
				}
			}
			if p, err = g.play(ctx, t, &cfg, scenario, c, i, len(runs)); err != nil {
				return nil, err
			}
			p.Seal = g.seal(t, i, p)
			if err := safefile.WriteJSON(g.partFile(t, i), p); err != nil {
				return nil, err
			}
		}
		res.add(p)
	}
	return res, nil
}

// unplayed says why t cannot be played here, "" if it can.
func (g *playing) unplayed(t *Task, cfg *config.Config) string {
	if t.Track != Recorded {
		return ""
	}
	if g.opt.Secret != nil {
		return "everybody has its trace, so that it has no sealed part"
	}
	if _, err := workload.Located(cfg.Trace.File); err != nil {
		return err.Error()
	}
	return ""
}

// runs returns what plays t, one for each run, nil if there is nothing; cfg gets what decides how it plays.
func (g *playing) runs(t *Task, cfg *config.Config) ([]contender, error) {
	runs := []contender{{}}
	cfg.Trace.AcceptLeftOut = t.Track == Recorded // the task says which jobs it has
	switch g.policy.Kind {
	case KindRule:
		for _, s := range g.policy.Set {
			if err := cfg.Set(s); err != nil {
				return nil, fault.Mistakef("set %s: %w", s, err)
			}
		}
		name, err := g.policy.rule(g.v, t, cfg)
		if err != nil {
			return nil, err
		}
		if name == "" {
			g.say("%s: left out, no such policy there", t.Name)
			return nil, nil
		}
		rival, err := cfg.Rival(name)
		if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		cfg.Eval.Policies, runs[0].rule = []string{name}, rival.Name
	case KindCheckpoint, KindModel:
		find, hash, what := g.policy.dirs, hashCheckpoint, "run"
		if g.policy.Kind == KindModel {
			find, hash, what = g.policy.files, hashModel, "model"
		}
		from, err := find(t, g.alone)
		if err != nil {
			return nil, err
		}
		if len(from) == 0 {
			g.say("%s: left out, there is no %s for it", t.Name, what)
			return nil, nil
		}
		return contenders(t, from, hash)
	}
	return runs, nil
}

// contender is what plays one run of a task.
type contender struct {
	rule string // by its name, else
	from string // a run, a checkpoint or a model, with
	fingerprint
}

// fingerprint tells what a checkpoint or a model is.
type fingerprint struct {
	hash string
	seed uint64 // that a checkpoint's run learned with
	step int64  // that it has learned for, 0 = unknown
}

// contenders returns the runs or models of a task, each of which counts once.
func contenders(t *Task, from []string, hash func(name string) (fingerprint, error)) ([]contender, error) {
	var all []contender
	for _, name := range from {
		f, err := hash(name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(all, func(c contender) bool { return c.hash == f.hash }); i >= 0 {
			return nil, fault.Mistakef("task %s: %s and %s are the same agent, which counts once", t.Name, all[i].from, name)
		}
		all = append(all, contender{from: name, fingerprint: f})
	}
	return all, nil
}

// scenario returns the scenario of the windows to be played, after the development windows were found to be those of
// the version. It sets the seeds of cfg.
func (g *playing) scenario(ctx context.Context, t *Task, cfg *config.Config) (*arena.Scenario, error) {
	w, err := arena.NewScenarioContext(ctx, cfg)
	if err != nil {
		return nil, err
	}
	plain, err := t.Config()
	if err != nil {
		return nil, err
	}
	if err := t.check(w, &plain); err != nil || g.opt.Secret == nil {
		return w, err
	}
	g.opt.Secret.seal(cfg, t)
	return arena.NewScenarioContext(ctx, cfg)
}

// play plays one run of a task.
func (g *playing) play(ctx context.Context, t *Task, cfg *config.Config, w *arena.Scenario, c *contender, i,
	of int) (*part, error) {
	opt := arena.EvalOptions{Scenario: w, Workers: g.opt.Workers}
	switch g.policy.Kind {
	case KindCheckpoint:
		opt.Checkpoints = []string{c.from}
	case KindModel:
		m, err := envs.ReadModel(c.from, "")
		if err != nil {
			return nil, err
		}
		m.Greedy = agents.AsGiven // as in every row of version 1
		opt.Models = []envs.Model{m}
	case KindExternal:
		var err error
		if opt.External, err = g.program(t); err != nil {
			return nil, err
		}
	}
	if g.opt.Game != nil {
		opt.Game = func(done, all int) { g.opt.Game(fmt.Sprintf("%s, run %d of %d", t.Name, i+1, of), done, all) }
	}
	all, err := arena.Scores(ctx, *cfg, opt)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.Name, err)
	}
	s := &all[0]
	for _, other := range all[1:] { // programs of one row
		s.Values = append(s.Values, other.Values...)
	}
	tries := 0
	if g.policy.Kind == KindExternal {
		if tries, err = g.tries(t); err != nil {
			return nil, err
		}
		if tries == 1 {
			tries = 0
		}
	}
	p, err := g.partOf(t, cfg, s)
	if err != nil {
		return nil, err
	}
	p.File, p.Seed, p.Step, p.Tries = c.hash, c.seed, c.step, tries
	return p, nil
}

// partOf returns the part of what s says.
func (g *playing) partOf(t *Task, cfg *config.Config, s *arena.Scored) (*part, error) {
	for _, row := range s.Values {
		if want := t.Units(cfg, g.plan.Split); len(row) != want {
			return nil, fmt.Errorf("task %s: %d %ss were played, want %d", t.Name, len(row), t.unit(), want)
		}
	}
	g.say("%s: %s, %s %s", t.Name, s.Name, metric(cfg).Title, shown(cfg, statistic.Mean(s.Values[0])))
	return &part{Hash: t.Hash, Policy: s.Name, Knows: s.Knows, Values: s.Values}, nil
}

// shown returns a value of cfg's metric as text.
func shown(cfg *config.Config, v float64) string {
	m := metric(cfg)
	return m.Show(v)
}

// ReadResults returns the results in a folder of Play.
func (v *Version) ReadResults(dir string) (*Results, error) {
	name := filepath.Join(dir, resultsFile)
	b, err := ordinary.Read(name, ordinary.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil,
			fault.Mistakef("%s holds no %s: it is no folder of gymctl benchmark run, or what it began is not finished", dir,
				resultsFile)
	}
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	r := &Results{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fault.Mistakef("%s: %v", name, err)
	}
	if err := errors.Join(v.check(r), v.possible(r)); err != nil {
		return nil, fault.Mistakef("%s: %w", name, err)
	}
	return r, nil
}
