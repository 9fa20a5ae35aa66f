package arena

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/predictors"
	"clustergym/lab/report"
	"clustergym/lab/stream"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// streamed is a workload whose windows are streams, by number.
type streamed struct {
	envs.Windows // of the workload
	predicts     interface {
		Predictor(est sim.Estimates) (predict.Maker, error)
	}
	of      *stream.Streams
	part    traces.Part // of the streams; others have spare ones
	spare   *stream.Streams
	offered float64
}

// At implements sched.Windows. In another part than that of the streams there is one that does not count, for players
// that have played all of them.
func (s *streamed) At(part traces.Part, _ uint64, i int) (traces.Window, error) {
	if part != s.part && s.spare != nil {
		return s.spare.At(context.Background(), 0)
	}
	return s.of.At(context.Background(), i)
}

// Predictor implements sched.Foresight.
func (s *streamed) Predictor(est sim.Estimates) (predict.Maker, error) {
	return s.predicts.Predictor(est)
}

// Offered implements sched.Offering.
func (s *streamed) Offered() float64 { return s.offered }

// streams are what a runner plays in place of windows.
type streams struct {
	*stream.Streams
	source *envs.Source
	own    *streamed        // the windows of source
	settle *report.Settling // nil for a recorded stream
	blocks *report.Blocks   // nil for draws
}

// streaming returns a runner of the streams of a part: draws of the generator whose seeds come from the stream called
// name, or the recorded part.
func (w *Scenario) streaming(ctx context.Context, cfg *config.Config, part traces.Part, name string,
	workers int) (*runner, error) {
	r := &runner{scenario: w, cfg: cfg, part: part, windows: true, seeds: 1, workers: workers}
	s, err := w.streams(ctx, cfg, part, name)
	if err != nil {
		return nil, err
	}
	r.streams, r.episodes = s, s.Count()
	first := rng.At(cfg.Eval.Seed, rng.Hash("eval streams"))
	r.episode = func(i int) env.Episode { return env.Episode{Seed: env.EpisodeSeed(first, i), Window: i} }
	r.open = func() (env.Env, error) { return w.open(r.settings(), s.source, part) }
	r.local.Make = r.worker
	return r, nil
}

// settings returns those of the environments in which r plays.
func (r *runner) settings() envs.Settings {
	if r.streams != nil {
		return r.scenario.About.Streamed(r.scenario.judged())
	}
	return r.scenario.judged()
}

// memory returns an upper bound on the bytes of an environment.
func (r *runner) memory() float64 {
	x := r.scenario.Extent()
	if r.streams != nil {
		x.Jobs = r.streams.Most()
	}
	return r.scenario.About.Memory(r.settings(), x)
}

// measure returns what measures the streams that e plays.
func (r *runner) measure(e sched.Arena) *watching {
	w := &watching{Measure: new(stream.Measure), arena: e}
	if b := r.streams.blocks; b != nil {
		w.bins = b.Bins
	}
	return w
}

// streamed returns the result of the stream that w has measured.
func (r *runner) streamed(w *watching) *result {
	got := &result{stream: summedUp(w.Measure, w.window())}
	got.score = got.stream.mean(summed(r.scenario.About.Metric.Key))
	return got
}

// streams returns the streams of a part, with a warm-up after which the queue has settled.
func (w *Scenario) streams(ctx context.Context, cfg *config.Config, part traces.Part,
	name string) (s *streams, err error) {
	base, ok := w.Source.Windows.(interface {
		envs.Windows
		sched.Offering
		sched.Foresight
	})
	if !ok {
		return nil, fmt.Errorf("arena: windows of type %T have no streams", w.Source.Windows)
	}
	s = &streams{}
	of := &streamed{Windows: base, part: part, offered: base.Offered()}
	if w.Generated() {
		of.predicts = predictors.Fresh{Model: w.Model}
		c := cfg.Eval.Streams.Filled()
		if s.settle, err = w.settle(ctx, c, cfg.Eval.Seed, of); errors.Is(err, stream.ErrAtOnce) {
			return nil, fault.Mistakef("trace.synth.profile %s: %w", cfg.Trace.Synth.Profile, stream.ErrAtOnce)
		} else if err != nil {
			return nil, err
		}
		c.Warm = s.settle.Warm
		s.Streams = stream.Generated(c, w.Draw, w.Kept(), cfg.Eval.Seed, name)
		of.spare = stream.Generated(c, w.Draw, w.Kept(), cfg.Eval.Seed, stream.Spare)
	} else {
		of.predicts = base
		if s.Streams, err = stream.Recorded(w.Taken.Windows, part); err != nil {
			return nil, &fault.Mistake{Err: fmt.Errorf("%s: %w", w.Trace.File, err)}
		}
		if part == traces.Test {
			if of.spare, err = stream.Recorded(w.Taken.Windows, traces.Validation); err != nil {
				of.spare = nil // too short for one
			}
		}
		if s.blocks, err = w.block(ctx, of, s.Streams); err != nil {
			return nil, err
		}
	}
	of.of = s.Streams
	src := *w.Source
	src.Windows = of
	s.source, s.own = &src, of
	return s, nil
}

// settle finds how many jobs the warm-up of draws needs: it plays pilot draws by FIFO skip, whose queue is longer than
// those of rules that know run times and settles no earlier, and truncates the waits, averaged over pilots, by MSER-5.
func (w *Scenario) settle(ctx context.Context, c stream.Config, seed uint64, of *streamed) (*report.Settling, error) {
	pilot, n := stream.Pilots(c, w.Draw, w.Kept(), seed)
	play, err := w.piloted(of, pilot, w.unaware("fifo+skip"), w.judged())
	if err != nil {
		return nil, err
	}
	waits := make([]float64, n)
	for i := range pilot.Count() {
		m, _, err := play(ctx, env.Episode{Seed: rng.At(seed, uint64(i)), Window: i}, 1)
		if err != nil {
			return nil, err
		}
		for k, j := range m.Jobs() {
			waits[k] += j.Wait
		}
	}
	out := &report.Settling{Least: c.Warm, Warm: c.Warm, Pilots: pilot.Count(), PilotJobs: n}
	out.MSER, out.Settled = statistic.MSER(waits, mserBatch)
	if out.MSER > out.Warm {
		out.Warm = (out.MSER + 99) / 100 * 100
	}
	return out, nil
}

// piloted returns what plays a stream by a scheduler and measures it, in bins of time.
func (w *Scenario) piloted(of *streamed, streams *stream.Streams, h schedulers.Config, settings envs.Settings) (
	func(ctx context.Context, ep env.Episode, bins int) (*stream.Measure, *sched.Window, error), error) {
	own := *of
	own.of, own.part = streams, traces.Test
	src := *w.Source
	src.Windows = &own
	e, err := w.open(w.About.Streamed(settings), &src, traces.Test)
	if err != nil {
		return nil, err
	}
	rule, err := schedulers.New(h)
	if err != nil {
		return nil, err
	}
	a := e.(sched.Arena)
	seen := &watching{Measure: new(stream.Measure), arena: a}
	return func(ctx context.Context, ep env.Episode, bins int) (*stream.Measure, *sched.Window, error) {
		seen.bins = bins
		seen.Reset()
		if err := a.Simulate(ctx, ep, rule, seen); err != nil {
			return nil, nil, fmt.Errorf("%s on pilot stream %d: %w", rule.Name(), ep.Window, err)
		}
		return seen.Measure, a.(interface{ Window() *sched.Window }).Window(), nil
	}, nil
}

// Bins of a recorded stream: some jobs in each, and no more than the bootstrap needs.
const (
	binJobs  = 5
	mostBins = 2000
	// blockTimes is how many autocorrelation times of the queue a block is long.
	blockTimes = 5
)

// block finds how long the blocks of a recorded stream must be: several times what its queue remembers under FIFO skip,
// which remembers longer than rules with shorter queues.
func (w *Scenario) block(ctx context.Context, of *streamed, s *stream.Streams) (*report.Blocks, error) {
	play, err := w.piloted(of, s, w.unaware("fifo+skip"), w.judged())
	if err != nil {
		return nil, err
	}
	b := &report.Blocks{Bins: max(1, min(mostBins, s.Counted()/binJobs))}
	m, _, err := play(ctx, env.Episode{}, b.Bins)
	if err != nil {
		return nil, err
	}
	queue := make([]float64, len(m.System()))
	for i, n := range m.System() {
		queue[i] = float64(n)
	}
	b.Autocorrelation = statistic.AutocorrelationTime(queue)
	b.Length = int(math.Ceil(blockTimes * b.Autocorrelation))
	b.Hours = m.Span().Hours() * float64(b.Length) / float64(b.Bins)
	return b, nil
}

// mserBatch is the 5 of MSER-5.
const mserBatch = 5

// watching begins a measurement when an episode begins.
type watching struct {
	*stream.Measure
	arena sched.Arena
	bins  int
	begun bool
}

// Observe implements sim.Observer.
func (w *watching) Observe(v *sim.View, p *sim.Point) error {
	if !w.begun {
		w.begun = true
		w.begin()
	}
	return w.Measure.Observe(v, p)
}

// Reset is called when an episode begins through the environment.
func (w *watching) Reset() { w.begun = false }

func (w *watching) begin() {
	win := w.window()
	first, until := win.Warm, win.Warm+win.Counted
	end := win.Traced[min(until, len(win.Traced)-1)].Submit
	w.Begin(first, win.Counted, win.Traced[first].Submit, end, w.bins)
}

// window returns the stream that is played.
func (w *watching) window() *sched.Window {
	return w.arena.(interface{ Window() *sched.Window }).Window()
}

// binned is what is summed up of the counted jobs that arrive in a stretch of time. Times are in seconds.
type binned struct {
	Jobs, Arrived                              int // counted jobs that have ended, and all
	JCT, Wait, FirstWait, Slowdown, BSLD, Cost float64
}

// streamResult is what a policy reaches on one stream.
type streamResult struct {
	Bins       []binned // one, or those of a recorded stream
	System     []int    // jobs in the system at the edges of bins
	JCT99      float64  // seconds
	Span       float64  // hours in which the counted jobs arrive
	Use        float64  // share of the GPU time of that span
	Offered    float64  // load of the counted jobs
	After      float64
	Unfinished int
}

// summedUp sums up what was measured of a stream.
func summedUp(m *stream.Measure, win *sched.Window) *streamResult {
	out := &streamResult{Bins: make([]binned, m.Bins), System: slices.Clone(m.System()), Span: m.Span().Hours(),
		Use: m.Use(), After: m.After(), Unfinished: m.Unfinished()}
	jcts := make([]float64, 0, m.Counted)
	hours := 0.0
	for k := range m.Jobs() {
		j, t := &m.Jobs()[k], &win.Traced[win.Warm+k]
		b := &out.Bins[m.Bin(t.Submit)]
		b.Arrived++
		hours += t.GPUHours()
		if !j.Ended {
			continue
		}
		b.Jobs++
		b.JCT += j.JCT
		b.Wait += j.Wait
		b.FirstWait += j.FirstWait
		b.Slowdown += j.Slowdown
		b.BSLD += j.BoundedSlowdown
		b.Cost += j.Cost
		jcts = append(jcts, j.JCT)
	}
	if m.Span() > 0 {
		out.Offered = hours / (float64(win.GPUs) * m.Span().Hours())
	}
	if slices.Sort(jcts); len(jcts) > 0 {
		out.JCT99 = statistic.Quantile(jcts, .99)
	}
	return out
}

// mean returns the mean over jobs of what of sums up.
func (s *streamResult) mean(of func(*binned) float64) float64 {
	sum, n := 0.0, 0
	for i := range s.Bins {
		sum += of(&s.Bins[i])
		n += s.Bins[i].Jobs
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

// summed returns what sums up the metric of the environment.
func summed(key string) func(*binned) float64 {
	switch key {
	case "bounded_slowdown":
		return func(b *binned) float64 { return b.BSLD }
	case "comm_cost":
		return func(b *binned) float64 { return b.Cost }
	default:
		return func(b *binned) float64 { return b.JCT }
	}
}

// streamable says why a policy cannot play streams, "" if it can.
func streamable(p *policy) string {
	if p.knows && strings.HasPrefix(p.name, "hindsight") {
		return "searches whole windows for a schedule and cannot play streams: leave it out, or set eval.protocol to windows"
	}
	return ""
}
