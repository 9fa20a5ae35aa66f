package synth

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"clustergym/internal/rng"
)

// habits is how users repeat their jobs. Bursts of a profile with habits have users, tasks (traces.Job.Name) and levels
// of run time that go on from those before; when the bursts come, how long and how large they are, and which run times
// there are in all stays as it is without.
//
// The level of a burst is a normal number, the sum of four whose variances add up to 1, turned into a quantile.
type habits struct {
	session float64 // probability that a burst is of the same user as the one before of its virtual cluster and size
	recurs  float64 // probability that a burst repeats its user's last task of that size
	team    float64 // share of the variance that drifts with the virtual cluster …
	days    float64 // … and the days in which its correlation falls by the factor e
	user    float64 // share of the variance that stays with the user
	task    float64 // share of the variance that stays with the task; the rest is of the burst
	beat    float64 // share of the variance of the beat's run times that drifts …
	ticks   float64 // … and the number of ticks in which its correlation falls by the factor e
}

// tilt says how the run times of a virtual cluster's jobs with a number of GPUs differ from those of all jobs of the
// class: mean and standard deviation of their normal scores.
type tilt struct {
	gpus       int
	mean, wide float64
}

// burst is a burst of which the user, the task and the level of run times are still to be chosen.
type burst struct {
	stream  int32
	from, n int32   // its jobs in generator.raw
	at      float64 // start
	base    float64 // level that its jobs have now
	z       float64 // normal score of its level to be
}

// repeat gives all bursts, and the beat, users' habits.
func (g *generator) repeat(h *habits) {
	byVC := make(map[*vc][]*burst, len(g.p.vcs))
	for i := range g.begun {
		v := g.streams[g.begun[i].stream].vc
		byVC[v] = append(byVC[v], &g.begun[i])
	}
	for i := range g.p.vcs {
		v := &g.p.vcs[i]
		all := byVC[v]
		slices.SortStableFunc(all, func(a, b *burst) int { return cmp.Compare(a.at, b.at) })
		g.choose(v, h, all)
		g.level(v, all)
	}
	r := rng.Stream(g.seed, "synth/habits/beat")
	drift := newDrift(r)
	for i := range g.raw {
		if j := &g.raw[i]; g.streams[j.stream].vc == nil {
			j.level = math.Log(at(levelP, g.p.beat.work,
				phi(math.Sqrt(h.beat)*drift.after(1/h.ticks)+math.Sqrt(1-h.beat)*r.NormFloat64()), 0))
		}
	}
}

// drift is a normal number that forgets where it was.
type drift struct {
	r *rand.Rand
	z float64
}

func newDrift(r *rand.Rand) *drift { return &drift{r, r.NormFloat64()} }

// after returns the number some time later, counted in units in which its correlation falls by the factor e.
func (d *drift) after(t float64) float64 {
	keep := math.Exp(-t)
	d.z = keep*d.z + math.Sqrt(1-keep*keep)*d.r.NormFloat64()
	return d.z
}

// choose chooses users, tasks and the scores of levels for the bursts of v, in order of their starts.
func (g *generator) choose(v *vc, h *habits, all []*burst) {
	type of struct{ user, stream int32 }
	type task struct {
		number int32
		z      float64
	}
	var (
		r       = rng.Stream(g.seed, "synth/habits/"+v.name)
		ranks   = harmonic(v.users)
		users   = make([]float64, v.users) // their part of the score
		numbers = make([]int32, v.users)   // of tasks so far
		active  = map[int32][]int{}        // by stream: users from the most active, so that each has sizes of its own
		latest  = map[int32]int32{}        // by stream: the user of the burst before
		tasks   = map[of]task{}            // the last ones
		team    = newDrift(r)
		before  float64
	)
	for i := range users {
		users[i] = r.NormFloat64()
	}
	rest := math.Sqrt(1 - h.team - h.user - h.task)
	for _, b := range all {
		if active[b.stream] == nil {
			active[b.stream] = r.Perm(v.users)
		}
		user, ok := latest[b.stream]
		if !ok || r.Float64() >= h.session {
			user = int32(active[b.stream][sort.SearchFloat64s(ranks, r.Float64()*ranks[len(ranks)-1])])
			latest[b.stream] = user
		}
		t, ok := tasks[of{user, b.stream}]
		if !ok || r.Float64() >= h.recurs {
			numbers[user]++
			t = task{numbers[user], r.NormFloat64()}
			tasks[of{user, b.stream}] = t
		}
		b.z = math.Sqrt(h.team)*team.after((b.at-before)/(h.days*86400)) + math.Sqrt(h.user)*users[user] +
			math.Sqrt(h.task)*t.z + rest*r.NormFloat64()
		before = b.at
		for i := b.from; i < b.from+b.n; i++ {
			g.raw[i].user, g.raw[i].task = user, t.number
		}
	}
}

// level gives the bursts of v the levels that their scores stand for. Those of one-GPU jobs are mapped by rank onto the
// virtual cluster's own table, short bursts and campaigns apart, so that it has these levels whoever was active.
func (g *generator) level(v *vc, all []*burst) {
	var few, bulk []*burst
	for _, b := range all {
		s := &g.streams[b.stream]
		switch {
		case s.gpus > 1:
			z := b.z
			if i := slices.IndexFunc(v.tilts, func(t tilt) bool { return t.gpus == s.gpus }); i >= 0 {
				z = v.tilts[i].mean + v.tilts[i].wide*z
			}
			g.move(b, math.Log(at(workP, g.p.work[s.class].work, phi(z), 0)))
		case b.n >= bulkLength && len(v.bulk) > 0:
			bulk = append(bulk, b)
		default:
			few = append(few, b)
		}
	}
	g.rank(few, v.few)
	g.rank(bulk, v.bulk)
}

// rank gives each of the bursts the level of its rank in the table.
func (g *generator) rank(bursts []*burst, table []float64) {
	slices.SortStableFunc(bursts, func(a, b *burst) int { return cmp.Compare(a.z, b.z) })
	for i, b := range bursts {
		g.move(b, math.Log(at(levelP, table, (float64(i)+0.5)/float64(len(bursts)), 0)))
	}
}

// move moves the run times of a burst to another level; they keep their ratios.
func (g *generator) move(b *burst, base float64) {
	for i := b.from; i < b.from+b.n; i++ {
		g.raw[i].level += base - b.base
	}
}
