package arena

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/bridge/budget"
	"clustergym/bridge/server"
	"clustergym/bridge/wire"
	"clustergym/configs"
	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/plain"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/report"
	"clustergym/lab/stream"
	"clustergym/simulator/metrics"
	"clustergym/traces"
)

// EvalEnv is the id of the environment through which policies in other programs play the windows or streams of an
// evaluation.
const EvalEnv = "eval"

// External describes policies in other programs that play the windows of an evaluation over the bridge. Where it plays
// streams, each takes the place of a window; a program sees neither which jobs count nor how many come.
type External struct {
	Names   []string      // what they call themselves: the argument policy of env "eval"
	Timeout time.Duration // the evaluation stops waiting when none of them has finished a window for this long
	// Once lets each policy begin each window once: a window that it leaves after a step is not played again, and the
	// policy has no result. Otherwise a policy can begin a window again that it left, as after a crash, and could try
	// until it likes what it gets. Begun, if not nil, is called once, when the first policy takes its first step.
	Once  bool
	Begun func() error
	// Serve serves f until ctx is done, and returns when everything it started has ended.
	Serve func(ctx context.Context, f server.Factory) error
}

// Validate reports every fault.
func (x *External) Validate() error {
	var l fault.List
	l.Add(len(x.Names) > 0, "external", x.Names, "the name of a policy, or several")
	for i, n := range x.Names {
		l.Add(n != "" && len(n) <= 100 && !strings.ContainsFunc(n, func(r rune) bool { return r < ' ' || r == 0x7f }),
			"external", n, "a name of up to 100 printable characters")
		l.Add(!slices.Contains(x.Names[:i], n), "external", n, "names that differ")
	}
	l.Add(x.Timeout > 0, "external_timeout", x.Timeout, "a time above 0s")
	return l.Err()
}

// externals assigns windows to external policies and collects the results. Safe for concurrent use.
type externals struct {
	r      *runner
	opt    *External
	listed server.Listing
	budget *budget.Budget // of the server; nil = there is no limit

	mu       sync.Mutex
	policies map[string]*externalPolicy
	open     int           // policies that have windows left
	over     bool          // nothing counts any more
	told     bool          // External.Begun was called
	progress chan struct{} // holds one token after a window was finished
}

// externalPolicy holds the results of one policy.
type externalPolicy struct {
	players []int     // by window: how many players play it now
	begun   []bool    // by window: a step was taken
	done    []*result // by window, without infos
	left    int
	broken  string // with External.Once, why the policy has no result; "" = it can have one
}

var _ server.Factory = (*externals)(nil)

func newExternals(r *runner, opt *External) (*externals, error) {
	x := &externals{r: r, opt: opt, policies: map[string]*externalPolicy{}, open: len(opt.Names),
		progress: make(chan struct{}, 1)}
	for _, name := range opt.Names {
		x.policies[name] = &externalPolicy{players: make([]int, r.episodes), begun: make([]bool, r.episodes),
			done: make([]*result, r.episodes), left: r.episodes}
	}
	e, err := r.open()
	if err != nil {
		return nil, err
	}
	x.listed = server.Listing{
		ID: EvalEnv, Spec: e.Spec(),
		Kwargs: []envs.Kwarg{{Name: "policy", Type: "string", Default: "", Want: "one of " + strings.Join(opt.Names, ", "),
			Doc: "the policy that plays"}},
	}
	x.listed.SHA, err = r.scenario.sha(r.cfg, r.part, r.episodes)
	return x, errors.Join(err, e.Close())
}

// sha returns a hash of everything that decides the first n episodes of an evaluation on a part.
func (w *Scenario) sha(cfg *config.Config, part traces.Part, n int) (string, error) {
	args := w.About.Args()
	args.Settings, args.Split = w.judged(), envs.SplitNames[part]
	text, err := configs.Encode(struct {
		Seed    uint64 `yaml:"seed"`
		Windows int    `yaml:"windows"`
	}{cfg.Eval.Seed, n})
	if cfg.Streamed() {
		text, err = configs.Encode(struct {
			Seed    uint64        `yaml:"seed"`
			Streams stream.Config `yaml:"streams"`
		}{cfg.Eval.Seed, cfg.Eval.Streams.Filled()})
	}
	if err != nil {
		return "", err
	}
	episodes, err := args.SHA(w.Workload)
	return envs.ScenarioSHA(EvalEnv, episodes+"\n"+string(text), nil), err
}

// UseBudget implements server.Budgeted.
func (x *externals) UseBudget(b *budget.Budget) { x.budget = b }

// List implements server.Factory.
func (x *externals) List() []server.Listing { return []server.Listing{x.listed} }

// Make implements server.Factory.
func (x *externals) Make(ctx context.Context, id string, kwargs wire.Map, n int) (*server.Made, error) {
	if id != EvalEnv {
		return nil, &wire.Error{Code: wire.UnknownEnv, Msg: "an evaluation serves its " + x.r.unit() + "s only",
			Got: fmt.Sprintf("%.60q", id), Want: EvalEnv}
	}
	for _, p := range kwargs {
		if p.Key != "policy" {
			return nil, &wire.Error{Code: wire.BadKwargs, Msg: "argument of " + EvalEnv, Got: fmt.Sprintf("%.60q", p.Key),
				Want: "policy"}
		}
	}
	name, e := kwargs.Str("policy", "")
	if e != nil {
		return nil, &wire.Error{Code: wire.BadKwargs, Msg: "argument policy", Got: e.Got, Want: e.Want}
	}
	if name == "" && len(x.opt.Names) == 1 {
		name = x.opt.Names[0]
	}
	p := x.policies[name]
	if p == nil {
		return nil, &wire.Error{Code: wire.BadKwargs, Msg: "argument policy", Got: fmt.Sprintf("%.100q", name),
			Want: nearest.OneOf(name, x.opt.Names)}
	}
	x.mu.Lock()
	left, broken := p.left, p.broken
	x.mu.Unlock()
	if broken != "" {
		return nil, wire.Errorf(wire.BadKwargs, "policy %s %s", name, broken)
	}
	if left == 0 {
		return nil, wire.Errorf(wire.BadKwargs, "policy %s has played all its %ss", name, x.r.unit())
	}
	account := x.budget.Account()
	if err := envs.ReserveEnvs(account, EvalEnv, n, x.r.memory()); err != nil {
		return nil, err
	}
	meta := map[string]any{"policy": name, "windows": left}
	if x.r.streams != nil {
		meta["streams"] = left
	}
	m := &server.Made{SHA: x.listed.SHA, Meta: meta}
	defer func() {
		if m.Account == nil {
			account.Release()
		}
	}()
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := x.newEnv(p)
		if err != nil {
			return nil, err
		}
		m.Envs = append(m.Envs, e)
	}
	m.Account = account
	return m, nil
}

// newEnv opens an environment for a player of p.
func (x *externals) newEnv(p *externalPolicy) (*evalEnv, error) {
	inner, err := x.r.open()
	if err != nil {
		return nil, err
	}
	on := inner.(sched.Arena)
	e := &evalEnv{x: x, policy: p, inner: envs.NewServedEnv(x.r.scenario.About, x.r.settings(), on), window: -1}
	if x.r.streams != nil {
		e.stream = x.r.measure(on)
		e.inner.Also(e.stream)
	}
	return e, nil
}

// spare is no window of the evaluation: a player has none left to play, and what it plays instead does not count.
const spare = -1

// take returns the next window for a player of p: the first that no player plays, else the first unfinished one. If all
// are finished it returns window 0, which then does not count. With External.Once it is the first that no player has
// begun or is about to begin, else spare.
func (x *externals) take(p *externalPolicy) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.opt.Once {
		if p.broken != "" {
			return 0, fmt.Errorf("%w: the policy %s", env.ErrEpisode, p.broken)
		}
		for i := range p.done {
			if p.done[i] == nil && !p.begun[i] && p.players[i] == 0 {
				p.players[i]++
				return i, nil
			}
		}
		return spare, nil
	}
	window := -1
	for i := range p.done {
		if p.done[i] == nil && (window < 0 || p.players[i] < p.players[window]) {
			window = i
		}
	}
	window = max(0, window)
	p.players[window]++
	return window, nil
}

// giveUp returns a window that was not played to its end.
func (x *externals) giveUp(p *externalPolicy, window int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.players[window]--
	if x.opt.Once && p.begun[window] && p.done[window] == nil && p.broken == "" && !x.over {
		unit := x.r.unit()
		p.broken = fmt.Sprintf("left %s %d before its end, and each %s is played once", unit, window, unit)
		x.open--
		x.moved()
	}
}

// step records that a window is being played.
func (x *externals) step(p *externalPolicy, window int) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.begun[window] = true
	if x.told || x.opt.Begun == nil {
		return nil
	}
	x.told = true
	return x.opt.Begun()
}

// moved wakes wait.
func (x *externals) moved() {
	select {
	case x.progress <- struct{}{}:
	default:
	}
}

// finish records the result of a window. If several players play one window, the first result counts.
func (x *externals) finish(p *externalPolicy, window int, got *result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.players[window]--
	if p.done[window] != nil {
		return
	}
	p.done[window] = got
	if p.left--; p.left == 0 && p.broken == "" {
		x.open--
	}
	x.moved()
	x.r.tick()
}

// errServed ends a server that is no longer needed.
var errServed = errors.New("all external policies have played")

// beside returns results, with what the policies of opt have played meanwhile; nil opt = there are none.
func (r *runner) beside(ctx context.Context, opt *External) (played [][][]result, whole []metrics.Summary, err error) {
	if opt == nil {
		return r.results(ctx)
	}
	x, err := newExternals(r, opt)
	if err != nil {
		return nil, nil, err
	}
	err = x.run(ctx, func(ctx context.Context) (err error) {
		played, whole, err = r.results(ctx)
		return err
	})
	if err == nil {
		x.report(played)
	}
	return played, whole, err
}

// run serves while other, the rest of the evaluation, plays, and until the external policies have finished or have
// timed out.
func (x *externals) run(ctx context.Context, other func(context.Context) error) error {
	serving, stop := context.WithCancelCause(ctx)
	playing, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var failure error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failure = x.opt.Serve(serving, x)
		if failure == nil && serving.Err() == nil {
			failure = errors.New("the server of external policies has ended")
		}
		if failure != nil {
			giveUp()
		}
	}()
	err := other(playing)
	if err == nil {
		err = x.wait(playing)
	}
	x.mu.Lock()
	x.over = true // sessions that end with the server leave nothing
	x.mu.Unlock()
	stop(errServed)
	<-ended
	if failure != nil && ctx.Err() == nil {
		return failure
	}
	return err
}

// wait returns when every policy has finished, or when none has finished a window within the timeout.
func (x *externals) wait(ctx context.Context) error {
	patience := time.NewTimer(x.opt.Timeout)
	defer patience.Stop()
	for {
		x.mu.Lock()
		open := x.open
		x.mu.Unlock()
		if open == 0 {
			return nil
		}
		select {
		case <-x.progress:
			patience.Reset(x.opt.Timeout)
		case <-patience.C:
			return nil // the policies that have not finished are missing
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// report copies the results of the external policies into played, and records how far the unfinished ones came.
func (x *externals) report(played [][][]result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.r.policies {
		of := &x.r.policies[i]
		if of.kind != report.KindExternal {
			continue
		}
		p := x.policies[of.name]
		if of.missing = p.broken; p.broken == "" && p.left > 0 {
			unit := x.r.unit()
			of.missing = fmt.Sprintf("finished %d of %s", len(p.done)-p.left, plain.Count(len(p.done), unit, unit+"s"))
		}
		if of.missing != "" {
			continue
		}
		row := make([]result, len(p.done))
		for w, got := range p.done {
			row[w] = *got
		}
		played[i] = [][]result{row}
	}
}

// evalEnv plays the windows of an evaluation: each reset begins the next one. It has no snapshots, because a window is
// played once.
type evalEnv struct {
	x      *externals
	policy *externalPolicy
	inner  *envs.ServedEnv
	stream *watching // what is measured of streams, nil = windows are played
	window int       // the window being played, -1 = none
	taken  bool      // a step of it was taken
}

var (
	_ env.Env       = (*evalEnv)(nil)
	_ env.Renderer  = (*evalEnv)(nil)
	_ env.Painter   = (*evalEnv)(nil)
	_ server.Caller = (*evalEnv)(nil)
	_ server.Caller = (*envs.ServedEnv)(nil)
)

// Spec implements env.Env.
func (e *evalEnv) Spec() env.Spec { return e.inner.Spec() }

// Reset implements env.Env. It ignores the seed of the episode, because every player gets the same windows.
func (e *evalEnv) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	e.leave()
	if ep.Split != "" || ep.Window > 0 {
		return fmt.Errorf("%w: an evaluation chooses its windows itself; want neither split nor window", env.ErrEpisode)
	}
	for undecided := 0; ; undecided++ {
		window, err := e.x.take(e.policy)
		if err != nil {
			return err
		}
		own := e.x.r.episode(max(0, window))
		if window == spare {
			own.Split = env.SplitValidation // so that it tells nothing of the windows that count
		}
		own.Task = ep.Task // the environment refuses tasks
		err = e.inner.Reset(ctx, own, ts)
		if err == nil || window == spare {
			e.window, e.taken = window, false
			return err
		}
		if !errors.Is(err, sched.ErrUndecided) || undecided == len(e.policy.done) {
			e.x.giveUp(e.policy, window)
			return err
		}
		e.x.finish(e.policy, window, e.result(nil)) // the window was played to its end without the policy
	}
}

// result is what was measured of the window or stream that has ended, with the info of its last time step.
func (e *evalEnv) result(info []float64) *result {
	if e.stream != nil {
		return e.x.r.streamed(e.stream)
	}
	s := e.inner.Metrics()
	return &result{Summary: s, outcome: outcome{score: e.x.r.scenario.About.Metric.Of(&s, info)}}
}

// leave returns the current window unfinished.
func (e *evalEnv) leave() {
	if e.window >= 0 {
		e.x.giveUp(e.policy, e.window)
		e.window = -1
	}
}

// Step implements env.Env.
func (e *evalEnv) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	if e.window >= 0 && !e.taken {
		if err := e.x.step(e.policy, e.window); err != nil {
			return err
		}
		e.taken = true
	}
	if err := e.inner.Step(ctx, a, ts); err != nil {
		return err
	}
	if ts.Kind.Last() && e.window >= 0 {
		e.x.finish(e.policy, e.window, e.result(ts.Info))
		e.window = -1
	}
	return nil
}

// Close implements env.Env.
func (e *evalEnv) Close() error {
	e.leave()
	return e.inner.Close()
}

// Render implements env.Renderer.
func (e *evalEnv) Render(w io.Writer, mode string) error { return e.inner.Render(w, mode) }

// Paint implements env.Painter.
func (e *evalEnv) Paint(dst *image.RGBA) error { return e.inner.Paint(dst) }

// FrameRate implements env.Painter.
func (e *evalEnv) FrameRate() int { return e.inner.FrameRate() }

// Call implements server.Caller.
func (e *evalEnv) Call(method string, args wire.Map) (any, error) { return e.inner.Call(method, args) }
