package assess

import (
	"context"
	"fmt"
	"math"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/lab/tune"
	"clustergym/ops/incumbent"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// Cut is where a record is cut in two. What learns sees the jobs that were submitted before Half, and nothing of the
// others.
type Cut struct {
	Half      time.Duration // by the clock of Options.Jobs
	Spec      cluster.Spec  // the nodes as the closest model divides them
	Placement string
	Largest   int         // GPUs of the largest gang of the record
	Hold      *tuned.Hold // as fitted; nil = not asked for
}

// Trainer returns the run folder or checkpoint of an agent that has learned from what comes before a cut.
type Trainer func(ctx context.Context, c *Cut) (dir string, err error)

// Learned is what was fitted or trained on the first half of the record and is judged on the second, beside rivals
// that had nothing to learn: the closest model, the other order that was best in the first half, and hold with its
// usual weights.
type Learned struct {
	Before   int      `json:"first_half_jobs"`
	After    int      `json:"second_half_jobs"` // counted in Policies
	Blocks   int      `json:"blocks"`           // of the second half
	Block    float64  `json:"block_s"`
	Policies []Policy `json:"policies"`
	// Hold are the fitted weights, and Fit how they were found: costs are mean waits of the first half.
	Hold  *tuned.Hold  `json:"hold,omitempty"`
	Fit   *tune.Fitted `json:"fit,omitempty"`
	Agent string       `json:"agent,omitempty"` // its folder
}

// LeastLearned is how many counted jobs each half needs for something to be learned from one and judged on the other.
const LeastLearned = 100

// fitting is how long weights are looked for: some three hundred plays of the first half.
var fitting = tune.Settings{Generations: 12, Population: 24, Windows: 1, Every: 1, Seed: seed}

// learner fits, trains and judges.
type learner struct {
	*assessor
	cut  Cut
	half incumbent.Halves
	bins *bins // of the second half
	out  *Learned
	of   []statistic.Replicated // what is compared with the model, and where it stands in out.Policies
	at   []int
}

// learned fits and trains what the options ask for.
func (a *assessor) learned() error {
	if !a.opt.Tune && a.opt.Agent == nil {
		return nil
	}
	h := a.past.Halves()
	if len(h.First) < LeastLearned || len(h.Second) < LeastLearned {
		return fault.Mistakef("%s: the halves of the record have %d and %s with a start; to learn from one and be judged on "+
			"the other takes %d in each: give a longer record, or leave %s and %s out", a.opt.File, len(h.First),
			plain.Count(len(h.Second), "job", "jobs"), LeastLearned, fault.Key("tune"), fault.Key("agent"))
	}
	l := &learner{assessor: a, half: h, bins: newBins(a.past, incumbent.Halves{Second: h.Second, Warm: h.Half})}
	l.cut = Cut{Half: h.Half, Spec: a.past.Spec, Placement: a.opt.Placement}
	for i := range a.past.Jobs {
		l.cut.Largest = max(l.cut.Largest, a.past.Jobs[i].GPUs)
	}
	l.out = &Learned{Before: len(h.First), After: len(h.Second), Blocks: l.bins.blocks,
		Block: l.bins.width.Seconds() * float64(l.bins.length)}
	a.out.Learned = l.out
	l.add("recorded", "recorded", "", a.real, 0, "")
	best := &a.fitted[0]
	l.add(best.Name, "incumbent", a.limitsOr(best.NeedsLimits()), a.model, best.Unstarted, best.Text)
	if at := l.bestBefore(); at > 0 {
		p := &a.out.Policies[at]
		l.add(p.Name, "rival", p.Knows, a.plays[at].waits, p.Never, p.says)
	}
	if err := l.weights(); err != nil {
		return err
	}
	if err := l.agent(); err != nil {
		return err
	}
	statistic.JudgeAll(l.of, false)
	for k, at := range l.at {
		l.out.Policies[at].Verdict = l.of[k].Verdict
	}
	return nil
}

// bestBefore returns the other order with the shortest mean wait in the first half, −1 = none.
func (l *learner) bestBefore() int {
	at, least := -1, math.Inf(1)
	for i := range l.plays {
		if p := &l.assessor.out.Policies[i]; p.Role == "rival" && p.Never == 0 {
			if m := incumbent.Mean(l.plays[i].waits, l.half.First); m < least {
				at, least = i, m
			}
		}
	}
	return at
}

// add adds a policy to the table, compared with the model unless it is the record or the model itself.
func (l *learner) add(name, role, knows string, waits []float64, never int, says string) {
	x := l.rowOf(l.bins, name, role, knows, waits, never, says)
	if role != "recorded" && role != "incumbent" {
		e, c := l.effectOf(l.bins, "learned "+role+" "+name, waits)
		x.Effect = e
		l.of, l.at = append(l.of, c.Replicated), append(l.at, len(l.out.Policies))
	}
	l.out.Policies = append(l.out.Policies, x)
}

// forecasts are what hold and agents know of run times.
var forecasts = sim.Estimates{Mode: sim.EstimateHistory}

// weights plays hold, and fits its weights if that is asked for.
func (l *learner) weights() error {
	usual := tuned.SteadyHold(forecasts)
	if err := l.hold("default", &usual); err != nil || !l.opt.Tune {
		return err
	}
	before := l.past.Before(l.half.Half)
	trial := func(ctx context.Context, all []tune.Weights) ([]float64, error) {
		cost := make([]float64, len(all))
		return cost, par.For(ctx, l.opt.Workers, len(all), func(_, i int) error {
			s, err := l.played(ctx, before, &all[i].Hold)
			if err != nil {
				return err
			}
			if cost[i] = incumbent.Mean(before.Waits(s), l.half.First); s.Unstarted > 0 {
				cost[i] = math.Inf(1)
			}
			return nil
		})
	}
	start := tune.Weights{Policy: incumbent.Hold, Hold: usual}
	got, fit, err := tune.Fit(l.ctx, &start, &fitting, trial, func(generation, all int) {
		l.opt.Progress(fmt.Sprintf("fitting %s to the first half: generation %d of %d", incumbent.Hold, generation, all))
	})
	if err != nil {
		return err
	}
	l.out.Hold, l.out.Fit, l.cut.Hold = &got.Hold, fit, &got.Hold
	return l.hold("tuned", &got.Hold)
}

// hold plays hold with weights on the whole record and adds it to the table.
func (l *learner) hold(role string, w *tuned.Hold) error {
	s, err := l.played(l.ctx, l.past, w)
	if err == nil {
		l.add(incumbent.Hold, role, knows(incumbent.Hold, forecasts), l.past.Waits(s), s.Unstarted,
			"Weighing length, size and age of jobs, by forecasts and with weights fitted to the first half,")
	}
	return err
}

func (l *learner) played(ctx context.Context, past *incumbent.Past, w *tuned.Hold) (*incumbent.Schedule, error) {
	sch, err := incumbent.Weighed(w, l.opt.Placement, forecasts)
	if err != nil {
		return nil, err
	}
	return past.Play(ctx, sch, forecasts)
}

// agent trains an agent, if that is asked for, and plays it.
func (l *learner) agent() error {
	if l.opt.Agent == nil {
		return nil
	}
	dir, err := l.opt.Agent(l.ctx, &l.cut)
	if err != nil {
		return err
	}
	l.opt.Progress("playing the agent")
	p, err := steer.Open(&steer.Choice{Policy: dir}, mirror.Layout{Spec: l.past.Spec})
	if err != nil {
		return err
	}
	s, err := p.Simulated(l.ctx)
	if err != nil {
		return err
	}
	got, err := l.past.Play(l.ctx, s, sim.Estimates{Mode: sim.EstimateNone}, s)
	if err != nil {
		return err
	}
	l.out.Agent = dir
	l.add(p.Name, "agent", "forecasts", l.past.Waits(got), got.Unstarted, "An agent that was trained on the first half")
	return nil
}

// bestLearned returns the fitted policy or the agent with the shortest mean wait. A certain gain comes before a shorter
// wait. It returns nil if neither starts all jobs.
func (a *assessor) bestLearned() *Policy {
	if a.out.Learned == nil {
		return nil
	}
	var best *Policy
	for i := range a.out.Learned.Policies {
		p := &a.out.Learned.Policies[i]
		if p.Role != "tuned" && p.Role != "agent" || p.Never > 0 || p.Of == nil {
			continue
		}
		if best == nil || a.certain(p) && !a.certain(best) || a.certain(p) == a.certain(best) && p.Mean < best.Mean {
			best = p
		}
	}
	return best
}

// learnedWords says what was learned and what it would do.
func (a *assessor) learnedWords(say func(format string, args ...any)) {
	p := a.bestLearned()
	switch l := a.out.Learned; {
	case l == nil:
	case p == nil || *p.Percent >= 0:
		say("What was fitted to the first half of the record would not make the second half's waits shorter.")
	case a.certain(p):
		say("%s would make the second half's %s %s.", p.says, long(l.Policies[0].Mean), within(*p.Of, p.Then))
	default:
		say("What was fitted to the first half of the record is not shown to help in the second.")
	}
}
