package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/arena"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/traces"
)

// ground is what weights are compared on.
type ground interface {
	// draw chooses with r what a generation plays, before its weights are drawn.
	draw(r *rand.Rand, generation int)
	// costs returns what each of the policies costs in the generation; less is better.
	costs(ctx context.Context, ref schedulers.Config, plays []schedulers.Config) ([]float64, error)
	// rate returns the mean JCT of a policy over that of the reference. By this the result is chosen among generations.
	rate(ctx context.Context, play schedulers.Config) (float64, error)
	// head says in words on what the ratios of rate were found.
	head() string
}

// windows are drawn from the training part for every generation, and the validation windows choose among generations.
type windows struct {
	t     *tuner
	envs  map[traces.Part]*par.Local[sched.Arena]
	refs  []float64 // mean JCT of the reference on the validation windows
	valid []env.Episode
	eps   []env.Episode // of the generation
}

// newWindows plays the rules on the validation windows, the reference last, and returns their mean JCTs too.
func newWindows(ctx context.Context, t *tuner, names []string) (*windows, map[string]float64, error) {
	w := &windows{t: t, envs: map[traces.Part]*par.Local[sched.Arena]{}}
	n := t.scenario.Taken.Windows.Count(traces.Validation)
	if n == 0 {
		_, err := t.scenario.Taken.Windows.At(traces.Validation, 0, 0)
		return nil, nil, err
	}
	for i := range n {
		w.valid = append(w.valid,
			env.Episode{Seed: env.EpisodeSeed(rng.At(t.opt.Seed, rng.Hash("tune/validation")), i), Window: i})
	}
	rules := map[string]float64{}
	for _, name := range names {
		r, err := t.cfg.Rival(name)
		if err != nil {
			return nil, nil, err
		}
		played, err := w.play(ctx, traces.Validation, []schedulers.Config{r.Sched}, w.valid)
		if err != nil {
			return nil, nil, err
		}
		w.refs, rules[name] = played[0], statistic.Mean(played[0])
	}
	return w, rules, nil
}

func (w *windows) head() string {
	return fmt.Sprintf("%d validation windows", len(w.valid))
}

func (w *windows) draw(r *rand.Rand, _ int) {
	w.eps = make([]env.Episode, w.t.opt.Windows)
	for i := range w.eps {
		w.eps[i] = env.Episode{Seed: r.Uint64(), Window: -1}
	}
}

func (w *windows) costs(ctx context.Context, ref schedulers.Config, plays []schedulers.Config) ([]float64, error) {
	jct, err := w.play(ctx, traces.Training, append([]schedulers.Config{ref}, plays...), w.eps)
	if err != nil {
		return nil, err
	}
	cost := make([]float64, len(plays))
	for i := range cost {
		for k, x := range jct[i+1] {
			if jct[0][k] > 0 { // jobs without work finish at once, under any weights
				cost[i] += x / jct[0][k]
			}
		}
	}
	return cost, nil
}

func (w *windows) rate(ctx context.Context, play schedulers.Config) (float64, error) {
	jct, err := w.play(ctx, traces.Validation, []schedulers.Config{play}, w.valid)
	if err != nil {
		return 0, err
	}
	return statistic.Mean(jct[0]) / statistic.Mean(w.refs), nil
}

// chunk is how many windows a task plays, so that no worker waits long for another.
const chunk = 25

// play returns the mean JCT of each policy on each episode, in seconds.
func (w *windows) play(ctx context.Context, part traces.Part, policies []schedulers.Config,
	eps []env.Episode) ([][]float64, error) {
	out := make([][]float64, len(policies))
	for i := range out {
		out[i] = make([]float64, len(eps))
	}
	if w.envs[part] == nil {
		w.envs[part] = &par.Local[sched.Arena]{Make: func() (sched.Arena, error) { return w.t.scenario.NewEnv(part, 1) }}
	}
	parts := (len(eps) + chunk - 1) / chunk
	w.t.jobs += float64(len(policies)*len(eps)) * float64(w.t.scenario.Taken.Windows.Length())
	err := w.envs[part].For(ctx, w.t.opt.Workers, len(policies)*parts, func(e sched.Arena, i int) error {
		p, err := schedulers.New(policies[i/parts])
		if err != nil {
			return err
		}
		from := i % parts * chunk
		for k := from; k < min(from+chunk, len(eps)); k++ {
			sum := jct{env: e}
			p.Reseed(eps[k].Seed)
			if err := e.Simulate(ctx, eps[k], p, &sum); err != nil {
				return fmt.Errorf("%s on window %d: %w", p.Name(), eps[k].Window, err)
			}
			out[i/parts][k] = sum.mean()
		}
		return nil
	})
	return out, err
}

// streams are tuning draws, other ones for every generation, of which the first choose among generations. Of a recorded
// workload they are stretches of the training part: the search would else learn the one history of the whole part.
type streams struct {
	t      *tuner
	trials *arena.Trials
	ref    float64 // mean JCT of the reference on the draws that choose
	from   int     // the first draw of the generation
}

// More draws are played where weights are hardest to tell apart: choosing times as many choose among generations as
// compare the weights of one, and the check plays checking times eval.streams.draws.
const (
	choosing = 4
	checking = 4
)

// mostGenerations bounds the number of draws of a search.
const mostGenerations = 100_000

func newStreams(ctx context.Context, t *tuner, ref schedulers.Config) (*streams, error) {
	s := &streams{t: t}
	own := *t.cfg
	own.Eval.Seed = t.opt.Seed
	var err error
	n := t.opt.draws()
	s.trials, err = t.scenario.Trials(ctx, &own, traces.Training, n*(choosing+mostGenerations))
	if err != nil {
		return nil, err
	}
	s.ref, err = s.mean(ctx, ref)
	return s, err
}

func (s *streams) head() string {
	return fmt.Sprintf("%d tuning draws", choosing*s.t.opt.draws())
}

func (s *streams) draw(_ *rand.Rand, generation int) {
	s.from = (choosing + generation) * s.t.opt.draws()
}

// costs plays half of the draws with all policies and the other half with the better half of them, from which the
// distribution moves to the best quarter. The JCT of a draw is divided by that of the reference: the queues of draws
// differ by a factor of ten, and the longest would decide all.
func (s *streams) costs(ctx context.Context, ref schedulers.Config, plays []schedulers.Config) ([]float64, error) {
	n := s.t.opt.draws()
	first := (n + 1) / 2
	cost, order := make([]float64, len(plays)), make([]int, len(plays))
	for i := range order {
		order[i] = i
	}
	if err := s.add(ctx, ref, plays, order, s.from, s.from+first, cost); err != nil || first == n {
		return cost, err
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	left := order[:(len(plays)+1)/2]
	for _, i := range order[len(left):] {
		cost[i] = math.Inf(1)
	}
	return cost, s.add(ctx, ref, plays, left, s.from+first, s.from+n, cost)
}

// add adds what some of the policies cost on draws.
func (s *streams) add(ctx context.Context, ref schedulers.Config, plays []schedulers.Config, some []int,
	from, until int, cost []float64) error {
	all := []schedulers.Config{ref}
	for _, i := range some {
		all = append(all, plays[i])
	}
	played, err := s.play(ctx, all, from, until)
	if err != nil {
		return err
	}
	for k, i := range some {
		for d, x := range played[k+1] {
			if played[0][d] > 0 { // jobs without work finish at once, under any weights
				cost[i] += x / played[0][d]
			}
		}
	}
	return nil
}

func (s *streams) rate(ctx context.Context, play schedulers.Config) (float64, error) {
	mean, err := s.mean(ctx, play)
	return mean / s.ref, err
}

// mean returns the mean JCT of a policy on the draws that choose.
func (s *streams) mean(ctx context.Context, play schedulers.Config) (float64, error) {
	played, err := s.play(ctx, []schedulers.Config{play}, 0, choosing*s.t.opt.draws())
	if err != nil {
		return 0, err
	}
	return s.trials.Mean(played[0]), nil
}

func (s *streams) play(ctx context.Context, plays []schedulers.Config, from, until int) ([][]float64, error) {
	s.t.count(s.trials, len(plays), until-from)
	return s.trials.Play(ctx, s.t.opt.Workers, plays, from, until)
}

// count counts the jobs of some policies on n draws.
func (t *tuner) count(of *arena.Trials, policies, n int) {
	counted, warm := of.Jobs()
	if of.Log() {
		n = 1
	}
	t.jobs += float64(policies*n) * float64(counted+warm)
}

// check plays validation draws, or the validation part, with the weights that were found, those at the beginning, and
// the rules.
func (t *tuner) check(ctx context.Context, names []string, p *point, start []float64, r *Report) error {
	n := checking * t.cfg.Eval.Streams.Filled().Draws
	trials, err := t.scenario.Trials(ctx, t.cfg, traces.Validation, n)
	if err != nil {
		return err
	}
	plays := []schedulers.Config{t.with(p.Best), t.with(start)}
	for _, name := range names {
		rival, err := t.cfg.Rival(name)
		if err != nil {
			return err
		}
		plays = append(plays, rival.Sched)
	}
	t.count(trials, len(plays), n)
	played, err := trials.Play(ctx, t.opt.Workers, plays, 0, n)
	if err != nil {
		return err
	}
	r.Best, r.Start, r.Rules = trials.Mean(played[0]), trials.Mean(played[1]), map[string]float64{}
	check := trials.Compare(policyname.Short(t.policy), beginning, played[0], played[1])
	r.Check, r.Log = &check, trials.Log()
	for i, name := range names {
		r.Rules[name] = trials.Mean(played[2+i])
		r.Rivals = append(r.Rivals, trials.Compare(policyname.Short(t.policy), name, played[0], played[2+i]))
	}
	statistic.JudgeAll(r.Rivals, false)
	return nil
}

// beginning is what the weights at the beginning are called in Report.Check.
const beginning = "the weights at the beginning"
