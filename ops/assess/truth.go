package assess

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/ops/incumbent"
	"clustergym/traces"
)

// mostGroups is how many accounts or users are told.
const mostGroups = 10

// sizes are the classes of jobs by their number of GPUs: each up to and with.
var sizes = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}

// sizeOf names the class of a number of GPUs.
func sizeOf(gpus int) (name string, rank int) {
	low := 1
	for i, high := range sizes {
		switch {
		case gpus > high:
			low = high + 1
		case low == high && high == 1:
			return "1 GPU", i
		case low == high:
			return fmt.Sprintf("%d GPUs", high), i
		default:
			return fmt.Sprintf("%d to %d GPUs", low, high), i
		}
	}
	return fmt.Sprintf("over %d GPUs", sizes[len(sizes)-1]), len(sizes)
}

// group collects the jobs of a name, and keeps their order.
type group struct {
	name  string
	rank  int
	hours float64
	of    []int
}

// groups collects positions by what name returns; "" belongs to none.
func (a *assessor) groups(of []int, name func(j *traces.Job) (string, int)) []group {
	place := map[string]int{}
	var all []group
	for _, i := range of {
		j := &a.past.Jobs[i]
		n, rank := name(j)
		if n == "" {
			continue
		}
		k, ok := place[n]
		if !ok {
			k = len(all)
			place[n] = k
			all = append(all, group{name: plain.Clip(n, 60), rank: rank})
		}
		all[k].of = append(all[k].of, i)
		all[k].hours += j.GPUHours()
	}
	return all
}

func bySize(j *traces.Job) (string, int) { return sizeOf(j.GPUs) }
func byUser(j *traces.Job) (string, int) { return j.User, 0 }
func byGroup(j *traces.Job) (string, int) {
	return j.Group, 0
}
func byVC(j *traces.Job) (string, int) { return j.VC, 0 }

// sized returns the groups by size, the smallest first.
func (a *assessor) sized(of []int) []group {
	g := a.groups(of, bySize)
	slices.SortFunc(g, func(x, y group) int { return cmp.Compare(x.rank, y.rank) })
	return g
}

// largest returns the groups with the most GPU time.
func (a *assessor) largest(of []int, name func(j *traces.Job) (string, int)) []group {
	g := a.groups(of, name)
	slices.SortStableFunc(g, func(x, y group) int { return -cmp.Compare(x.hours, y.hours) })
	return g[:min(mostGroups, len(g))]
}

// owners returns the groups of accounts, of partitions or of users, whichever the file tells first, and what they are.
func (a *assessor) owners(of []int) ([]group, string) {
	for _, x := range []struct {
		what string
		name func(j *traces.Job) (string, int)
	}{{"account", byGroup}, {"user", byUser}, {"partition", byVC}} {
		if g := a.largest(of, x.name); len(g) > 0 {
			return g, x.what
		}
	}
	return nil, ""
}

// recorded says what happened, and chooses the jobs that count in comparisons.
func (a *assessor) recorded() error {
	p, r := a.past, &a.out.Recorded
	a.real = p.Waits(p.Recorded())
	var started []int
	for i, s := range p.Starts {
		if s >= 0 && p.Jobs[i].GPUs > 0 {
			started = append(started, i)
		}
	}
	r.Jobs = len(started)
	r.Span = p.End.Seconds()
	if e := a.opt.Epoch; !e.IsZero() {
		r.From, r.To = new(e), new(e.Add(p.End).Truncate(time.Second))
	}
	all := a.groupOf("", group{of: started}, 1)
	r.Mean, r.P50, r.P90 = all.Mean, all.P50, all.P90
	used := 0.0
	for _, i := range started {
		from, to := max(p.Starts[i], p.Begin), min(p.Starts[i]+p.Jobs[i].Work, p.End)
		if to > from {
			used += (to - from).Hours() * float64(p.Jobs[i].Milli()) / 1000
		}
		r.Hours += p.Jobs[i].GPUHours()
	}
	if span := (p.End - p.Begin).Hours(); span > 0 {
		r.Use = used / span / float64(a.out.Cluster.GPUs)
	}
	for _, g := range a.sized(started) {
		r.Sizes = append(r.Sizes, a.groupOf(g.name, g, r.Hours))
	}
	owners, what := a.owners(started)
	r.OwnersAre = what
	for _, g := range owners {
		r.Owners = append(r.Owners, a.groupOf(g.name, g, r.Hours))
	}
	a.week(started)
	h := p.Halves()
	a.bins = newBins(p, h)
	l := a.left
	a.out.LeftOut = LeftOut{Rows: a.opt.Dropped, CPUOnly: l.CPUOnly, Never: l.Never, Why: l.Why, Share: l.Share(),
		Running: l.Running, Waiting: l.Waiting, Limits: l.Given}
	return nil
}

// groupOf says how long a group waited.
func (a *assessor) groupOf(name string, g group, hours float64) Group {
	w := make([]float64, 0, len(g.of))
	for _, i := range g.of {
		w = append(w, a.real[i])
	}
	slices.Sort(w)
	return Group{Name: name, Jobs: len(w), Share: g.hours / max(hours, 1e-9), Mean: statistic.Mean(w),
		P50: statistic.Quantile(w, .5), P90: statistic.Quantile(w, .9)}
}

// hoursOfWeek are those of a week.
const hoursOfWeek = 7 * 24

// week says how long jobs waited by the hour of the week in which they were submitted.
func (a *assessor) week(started []int) {
	week := make([]Hour, hoursOfWeek)
	for _, i := range started {
		at := a.past.Jobs[i].Submit - a.past.Held[i]
		k := int(at/time.Hour) % hoursOfWeek
		if e := a.opt.Epoch; !e.IsZero() {
			t := e.Add(at)
			k = (int(t.Weekday())+6)%7*24 + t.Hour()
		}
		week[k].Jobs++
		week[k].Mean += a.real[i]
	}
	for k := range week {
		week[k].Mean /= float64(max(1, week[k].Jobs))
	}
	a.out.Recorded.Week = week
}

// calibrate says how close the best model comes.
func (a *assessor) calibrate(best *incumbent.Fitted) {
	c, b := &a.out.Calibration, a.bins
	a.out.Incumbent = best.Name
	h := a.past.Halves()
	c.First, c.Second, c.Jobs = len(h.First), len(h.Second), len(b.of)
	c.Blocks, c.Block = b.blocks, b.width.Seconds()*float64(b.length)
	c.Real, c.Model = incumbent.Mean(a.real, h.Second), incumbent.Mean(a.model, h.Second)
	if c.Real > 0 {
		c.Percent = new(100 * (c.Model - c.Real) / c.Real)
	}
	all := b.compare("calibration", "recorded", a.model, a.real)
	if !math.IsNaN(all.ratio) && !math.IsInf(all.ratio, 0) {
		c.All = percent(all.ratio)
		a.margin = math.Abs(all.ratio)
		if all.ci != nil {
			c.CI95 = percents(*all.ci)
			a.margin = max(a.margin, math.Abs(all.ci[0]), math.Abs(all.ci[1]))
		}
		if c.Percent != nil && c.Model > 0 {
			a.margin = max(a.margin, math.Abs(math.Log(c.Model/c.Real)))
		}
		c.Margin = percent(a.margin)
	}
	was, is := sortedOf(a.real, h.Second), sortedOf(a.model, h.Second)
	for _, q := range []float64{.5, .75, .9, .99} {
		c.Quantities = append(c.Quantities, [3]float64{q, statistic.Quantile(was, q), statistic.Quantile(is, q)})
	}
	near, va, vb, ab := 0, 0., 0., 0.
	for _, i := range h.Second {
		x, y := a.real[i], a.model[i]
		if math.Abs(x-y) <= 60 {
			near++
		}
		va += (x - c.Real) * (x - c.Real)
		vb += (y - c.Model) * (y - c.Model)
		ab += (x - c.Real) * (y - c.Model)
	}
	c.Near = float64(near) / float64(c.Second)
	if va > 0 && vb > 0 {
		c.Corr = new(ab / math.Sqrt(va*vb))
	}
	a.out.curves = append(a.out.curves, a.curve("recorded", a.past.Starts), a.curve("as today", best.Starts))
}

func sortedOf(w []float64, of []int) []float64 {
	v := make([]float64, 0, len(of))
	for _, i := range of {
		v = append(v, w[i])
	}
	slices.Sort(v)
	return v
}

// curve is how many jobs wait, over time.
type curve struct {
	name  string
	hours []float64 // since the first submit
	jobs  []float64
}

// curveBins are the bins that a point of a curve stands for.
const curveBins = 4

func (a *assessor) curve(name string, starts []time.Duration) curve {
	q := a.bins.length0(a.past, starts)
	c := curve{name: name}
	for k := 0; k < len(q); k += curveBins {
		c.hours = append(c.hours, (a.bins.from + a.bins.width*time.Duration(2*k+curveBins)/2).Hours())
		c.jobs = append(c.jobs, statistic.Mean(q[k:min(k+curveBins, len(q))]))
	}
	return c
}
