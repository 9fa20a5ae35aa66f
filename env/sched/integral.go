package sched

import (
	"math"
	"time"

	"clustergym/simulator/sim"
)

// account integrates a reward over simulated time, discounted to the time of the decision.
type account struct {
	reward Reward
	gamma  float64
	logG   float64 // ln(gamma) per nanosecond
	from   time.Duration
	cursor time.Duration
	sum    float64
}

func newAccount(r Reward, gamma float64, tau time.Duration) account {
	return account{reward: r, gamma: gamma, logG: math.Log(gamma) / float64(tau)}
}

// begin starts a transition at now.
func (a *account) begin(now time.Duration) { a.from, a.cursor, a.sum = now, now, 0 }

// weight returns the discount at time t.
func (a *account) weight(t time.Duration) float64 {
	if a.gamma == 1 || t <= a.from {
		return 1
	}
	return math.Exp(a.logG * float64(t-a.from))
}

// integral returns the integral of the discount over [from, to), in seconds.
func (a *account) integral(from, to time.Duration) float64 {
	if a.gamma == 1 {
		return (to - from).Seconds()
	}
	// Expm1 is accurate for short intervals.
	return a.weight(from) * math.Expm1(a.logG*float64(to-from)) / (a.logG * 1e9)
}

// point adds the reward up to p.
func (a *account) point(v *sim.View, p *sim.Point) {
	for i := range p.Events {
		e := &p.Events[i]
		a.advance(e.At)
		if lump := a.reward.Event(v, e); lump != 0 {
			a.sum += lump * a.weight(e.At)
		}
	}
	a.advance(p.Now)
}

func (a *account) advance(t time.Duration) {
	if t > a.cursor {
		if rate := a.reward.Rate(); rate != 0 {
			a.sum += rate * a.integral(a.cursor, t)
		}
		a.cursor = t
	}
}

// timeline is the reward of a whole run: rates, each valid from a time on, and lump sums. It records what a baseline
// earns on the same window at each time.
type timeline struct {
	at   []time.Duration
	rate []float64 // from at[i] to at[i+1]
	lump []float64 // at at[i]
	next int       // first entry not yet passed
	now  float64   // rate at present
}

func (l *timeline) reset() {
	l.at, l.rate, l.lump, l.next, l.now = l.at[:0], l.rate[:0], l.lump[:0], 0, 0
}

func (l *timeline) add(at time.Duration, rate, lump float64) {
	if n := len(l.at); n > 0 && l.at[n-1] == at {
		l.rate[n-1] = rate
		l.lump[n-1] += lump
		return
	}
	l.at, l.rate, l.lump = append(l.at, at), append(l.rate, rate), append(l.lump, lump)
}

// take returns what the baseline earns in [from, to], or up to its end, with a's discount. It moves past to. Lump sums
// at from were paid by the step before, unless this is the first call.
func (l *timeline) take(a *account, from, to time.Duration) (sum float64) {
	t := from
	for l.next < len(l.at) && l.at[l.next] <= to {
		at := max(l.at[l.next], from)
		sum += l.now * a.integral(t, at)
		sum += l.lump[l.next] * a.weight(at)
		t, l.now = at, l.rate[l.next]
		l.next++
	}
	return sum + l.now*a.integral(t, to)
}

// rest returns what the baseline earns after from.
func (l *timeline) rest(a *account, from time.Duration) float64 {
	if l.next >= len(l.at) {
		return 0 // the last entry's rate is 0
	}
	return l.take(a, from, l.at[len(l.at)-1])
}
