package assess

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"clustergym/internal/par"
	"clustergym/internal/statistic"
	"clustergym/ops/incumbent"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

// rival is a policy that is played on the same jobs.
type rival struct {
	name  string
	role  string // rival or oracle
	knows sim.Estimates
	says  string // what it does, as the subject of "would make that …"
}

// rivals are the policies that stop no running job. What forecasts say follows from jobs that have ended by then.
func rivals(limits bool) []rival {
	forecasts, exact := sim.Estimates{Mode: sim.EstimateHistory}, sim.Estimates{Mode: sim.EstimateExact}
	all := []rival{
		{name: "sjf+strict+easy", role: "rival", knows: forecasts, says: "Starting short jobs first, by forecasts,"},
		{name: "sjf+skip", role: "rival", knows: forecasts,
			says: "Starting short jobs first, by forecasts, and whatever fits"},
		{name: "area+skip", role: "rival", knows: forecasts,
			says: "Starting jobs with little GPU time first, by forecasts,"},
		{name: "hold", role: "rival", knows: forecasts,
			says: "Weighing length, size and age of jobs, by forecasts,"},
		{name: "fifo+strict+easy", role: "rival", knows: forecasts,
			says: "First come, first served, with gaps filled by forecasts,"},
		{name: "fifo+skip", role: "rival", knows: sim.Estimates{Mode: sim.EstimateNone},
			says: "First come, first served, where whatever fits may start,"},
	}
	if limits {
		all = append(all, rival{name: "sjf+strict+easy", role: "rival", knows: incumbent.ByLimits,
			says: "Starting jobs with short limits first"})
	}
	return append(all,
		rival{name: "sjf+strict+easy", role: "oracle", knows: exact},
		rival{name: "sjf+skip", role: "oracle", knows: exact})
}

// play plays a rival on a past.
func (a *assessor) play(past *incumbent.Past, r *rival) (*incumbent.Schedule, error) {
	sch, err := incumbent.Rule(r.name, a.opt.Placement, r.knows)
	if r.name == incumbent.Hold {
		w := tuned.SteadyHold(r.knows) // for a cluster in operation
		sch, err = incumbent.Weighed(&w, a.opt.Placement, r.knows)
	}
	if err != nil {
		return nil, err
	}
	s, err := past.Play(a.ctx, sch, r.knows)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	return s, nil
}

// counted tells the progress of plays from several goroutines.
type counted struct {
	mu   sync.Mutex
	n    int
	all  int
	what string
	tell func(string)
}

func (c *counted) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.tell(fmt.Sprintf("%s: %d of %d, %s", c.what, c.n, c.all, name))
}

// policies plays the rivals and compares them with the best model of the incumbent.
func (a *assessor) policies() error {
	out := a.out
	out.Policies = append(out.Policies, a.row("recorded", "recorded", "", a.real, 0, ""))
	best := &a.fitted[0]
	out.Policies = append(out.Policies, a.row(best.Name, "incumbent", a.limitsOr(best.NeedsLimits()), a.model,
		best.Unstarted, best.Text))
	a.plays = []played{{"recorded", a.real, 0}, {best.Name, a.model, best.Unstarted}}
	all := rivals(a.past.HasLimits())
	got := make([]*incumbent.Schedule, len(all))
	count := &counted{all: len(all), what: "playing other orders", tell: a.opt.Progress}
	err := par.For(a.ctx, a.opt.Workers, len(all), func(_, i int) (err error) {
		got[i], err = a.play(a.past, &all[i])
		count.add(all[i].name)
		return err
	})
	if err != nil {
		return err
	}
	family, place := []statistic.Replicated(nil), []int(nil)
	for i := range all {
		r := &all[i]
		w := a.past.Waits(got[i])
		x := a.row(r.name, r.role, knows(r.name, r.knows), w, got[i].Unstarted, r.says)
		e, c := a.effect(r.name+" "+r.knows.String(), w)
		x.Effect = e
		if r.role == "rival" {
			family, place = append(family, c.Replicated), append(place, len(out.Policies))
		}
		x.unitsFor = c.UnitsFor
		out.Policies = append(out.Policies, x)
		a.plays = append(a.plays, played{r.name, w, got[i].Unstarted})
	}
	statistic.JudgeAll(family, false)
	for k, at := range place {
		out.Policies[at].Verdict = family[k].Verdict
	}
	if at := a.bestOf(); at > 0 {
		out.curves = append(out.curves, a.curve("then", got[at-2].Starts))
		if a.certain(&out.Policies[at]) {
			out.Best = out.Policies[at].Name
		}
	}
	return nil
}

// certain reports whether the gain of a policy is shown, after the number of rivals and the error of the model.
func (a *assessor) certain(p *Policy) bool {
	return p.Verdict == statistic.Ahead && p.CI != nil && p.CI[1] < 0 && p.Never == 0
}

// bestOf returns the rival with the shortest mean wait, first of those whose gain is certain; −1 = none.
func (a *assessor) bestOf() int {
	at := -1
	better := func(x, y *Policy) bool {
		if cx, cy := a.certain(x), a.certain(y); cx != cy {
			return cx
		}
		return x.Mean < y.Mean
	}
	for i := range a.out.Policies {
		if p := &a.out.Policies[i]; p.Role == "rival" && p.Never == 0 && (at < 0 || better(p, &a.out.Policies[at])) {
			at = i
		}
	}
	return at
}

func (a *assessor) row(name, role, knows string, w []float64, never int, says string) Policy {
	return a.rowOf(a.bins, name, role, knows, w, never, says)
}

// rowOf is row over the jobs of b.
func (a *assessor) rowOf(b *bins, name, role, knows string, w []float64, never int, says string) Policy {
	v := sortedOf(w, b.of)
	return Policy{Name: name, Role: role, Knows: knows, Effect: Effect{Mean: incumbent.Mean(w, b.of)},
		P90: statistic.Quantile(v, .9), Longest: statistic.Quantile(v, .99), Never: never, says: says}
}

// longer is by how much a wait must be longer for its job to be a loser, in seconds.
const longer = 60

// changes says who gains and who loses under the best of the rivals.
func (a *assessor) changes() {
	at := a.bestOf()
	if at < 0 {
		return
	}
	then := a.plays[at].waits
	c := &Changes{Policy: a.out.Policies[at].Name, Knows: a.out.Policies[at].Knows}
	all := a.changeOf(group{of: a.bins.of}, then)
	c.Losers, c.P95 = all.Losers, all.P95
	for _, g := range a.sized(a.bins.of) {
		c.Sizes = append(c.Sizes, a.changeOf(g, then))
	}
	for _, g := range a.largest(a.bins.of, byGroup) {
		c.Owners = append(c.Owners, a.changeOf(g, then))
	}
	for _, g := range a.largest(a.bins.of, byUser) {
		c.Users = append(c.Users, a.changeOf(g, then))
	}
	a.out.Changes = c
}

func (a *assessor) changeOf(g group, then []float64) Change {
	c := Change{Name: g.name, Jobs: len(g.of), Model: incumbent.Mean(a.model, g.of), Then: incumbent.Mean(then, g.of)}
	c.Change = c.Then - c.Model
	var more []float64
	for _, i := range g.of {
		if d := then[i] - a.model[i]; d > longer {
			more = append(more, d)
		}
	}
	slices.SortFunc(more, cmp.Compare[float64])
	if c.Losers = float64(len(more)) / float64(max(1, len(g.of))); len(more) > 0 {
		c.P95 = statistic.Quantile(more, .95)
	}
	if math.IsNaN(c.Change) {
		c.Change = 0
	}
	return c
}
