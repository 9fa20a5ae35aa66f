package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/env/sched"
	"clustergym/internal/statistic"
	"clustergym/ops/steer"
	"clustergym/simulator/sim"
)

// Share is a share of things, with its 95 % interval over blocks of time.
type Share struct {
	N     int         `json:"n"`
	Of    int         `json:"of"`
	Share *float64    `json:"share"` // null without any
	CI95  *[2]float64 `json:"ci95"`  // null with fewer blocks than it takes
}

// Agreement says how often the policy and the cluster wanted the same.
type Agreement struct {
	Starts int `json:"starts"` // while steer looked
	// Unasked are those that no look had seen wait: they came and started between two.
	Unasked int `json:"unasked"`
	// Looked are the starts that the policy would have made at the last look before.
	Looked Share `json:"at_last_look"`
	// Nodes are those of Looked that it would have made on the same nodes.
	Nodes Share `json:"same_nodes"`
	// Again are the starts that the policy makes too when it is asked again at the moment of the start, with what had
	// ended and come until then, and AgainNodes those of them on the same nodes. They are missing if it was not.
	Again      *Share `json:"asked_again,omitempty"`
	AgainNodes *Share `json:"asked_again_same_nodes,omitempty"`
	Asked      int    `json:"asked_again_moments,omitempty"`
	// Others says how many jobs the policy started on average where it was asked again.
	Others float64 `json:"asked_again_mean_starts,omitempty"`
	// Earlier are the starts that the policy had wanted before: by how many seconds, quantiles 10, 50 and 90 %.
	Earlier Share       `json:"wanted_earlier"`
	Lead    *[3]float64 `json:"wanted_earlier_by_s,omitempty"`
	// Wanted are jobs that the policy wanted and the cluster has not started.
	Wanted int `json:"wanted_and_not_started"`
	// Over is the share of Again, or else of Looked, by block.
	Over []Block `json:"over_time"`
	Step float64 `json:"block_s"`
	// Blocks counts those with starts. Intervals need five.
	Blocks int `json:"blocks"`
}

// Block is a stretch of the log.
type Block struct {
	At    float64 `json:"hours"` // its middle, since the first look
	N, Of int
}

// blockOf returns how long the blocks are that are drawn for intervals, and how many there are: hours or days, and less
// in a short log.
func blockOf(d time.Duration) (each time.Duration, n int) {
	each = 24 * time.Hour
	for _, shorter := range []time.Duration{4 * time.Hour, time.Hour, 10 * time.Minute, time.Minute} {
		if d < 10*each {
			each = shorter
		}
	}
	return each, max(1, int((d+each-1)/each))
}

// leastBlocks is how many blocks with something in them an interval needs: those of fewer are narrow by chance.
const leastBlocks = 5

// seed is that of all intervals, so that equal logs give equal reports.
const seed = 1

// shareOf returns a share with its interval; of and n are by block.
func shareOf(name string, n, of []int) Share {
	var s Share
	for i := range n {
		s.N += n[i]
		s.Of += of[i]
	}
	if s.Of == 0 {
		return s
	}
	x := float64(s.N) / float64(s.Of)
	s.Share = &x
	if some(of) < leastBlocks {
		return s
	}
	ci := statistic.Bootstrap(seed, name, len(n), func(drawn []statistic.Draw) float64 {
		a, b := 0, 0
		for _, d := range drawn {
			a += n[d.Unit]
			b += of[d.Unit]
		}
		if b == 0 {
			return x
		}
		return float64(a) / float64(b)
	})
	s.CI95 = &ci
	return s
}

// some counts the blocks in which there is something.
func some(of []int) (n int) {
	for _, x := range of {
		n += min(1, x)
	}
	return n
}

// logged says what the log tells of the agreement.
func logged(l *Log) *Agreement {
	each, blocks := blockOf(l.To.Sub(l.From))
	at := func(t time.Time) int { return min(blocks-1, max(0, int(t.Sub(l.From)/each))) }
	type count struct{ n, of []int }
	counts := make([]count, 3)
	for i := range counts {
		counts[i] = count{make([]int, blocks), make([]int, blocks)}
	}
	a := &Agreement{Step: each.Seconds()}
	var leads []float64
	for _, j := range l.Jobs {
		switch {
		case j.Start.IsZero() && !j.Wanted.IsZero() && !j.Gone:
			a.Wanted++
		case !j.Start.After(l.From):
		case !j.Asked:
			a.Starts++
			a.Unasked++
		default:
			a.Starts++
			b := at(j.Start)
			looked, nodes, earlier := &counts[0], &counts[1], &counts[2]
			looked.of[b]++
			earlier.of[b]++
			if j.Chosen {
				looked.n[b]++
			}
			if j.Placed {
				nodes.of[b]++
				if j.Same {
					nodes.n[b]++
				}
			}
			if !j.Wanted.IsZero() && j.Wanted.Before(j.Start) {
				earlier.n[b]++
				leads = append(leads, j.Start.Sub(j.Wanted).Seconds())
			}
		}
	}
	a.Looked = shareOf("looked", counts[0].n, counts[0].of)
	a.Nodes = shareOf("nodes", counts[1].n, counts[1].of)
	a.Earlier = shareOf("earlier", counts[2].n, counts[2].of)
	if len(leads) > 0 {
		slices.Sort(leads)
		a.Lead = &[3]float64{statistic.Quantile(leads, 0.1), statistic.Quantile(leads, 0.5), statistic.Quantile(leads, 0.9)}
	}
	a.Blocks = some(counts[0].of)
	a.over(counts[0].n, counts[0].of)
	return a
}

// over makes the series of a share.
func (a *Agreement) over(n, of []int) {
	a.Over = nil
	for i := range n {
		if of[i] > 0 {
			a.Over = append(a.Over, Block{At: (float64(i) + 0.5) * a.Step / 3600, N: n[i], Of: of[i]})
		}
	}
}

// moment is something that the log tells, for the policy.
type moment struct {
	at   time.Duration
	kind sim.EventKind
	job  int
}

// rank is the order of what happens at one time.
func (m *moment) rank() int {
	switch m.kind {
	case sim.Finish:
		return 0
	case sim.Submit:
		return 1
	}
	return 2
}

// moments returns what the log tells, in order, and the number of moments at which jobs started while steer looked.
func (r *replay) moments() (all []moment, points int) {
	last := time.Duration(-1)
	for i, j := range r.of {
		all = append(all, moment{r.Jobs[i].Submit, sim.Submit, i})
		if !j.Again.IsZero() {
			all = append(all, moment{max(r.clock(j.Again), r.Jobs[i].Submit), sim.Start, i})
			if !j.End.IsZero() {
				all = append(all, moment{max(r.clock(j.End), r.clock(j.Again)+1), sim.Finish, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.job, b.job))
	})
	for i := range all {
		if m := &all[i]; m.kind == sim.Start && m.at > r.Begin && m.at != last {
			points++
			last = m.at
		}
	}
	return all, points
}

// askAgain shows the policy what has happened, and asks it at the moments of real starts: at most so many, evenly
// spread.
func (r *replay) askAgain(ctx context.Context, p *steer.Policy, a *Agreement, most int) error {
	all, points := r.moments()
	if err := p.Env.Follow(sched.Following{Origin: r.Origin}); err != nil {
		return err
	}
	machine := p.Env.View().Cluster()
	f := &fed{r: r, env: p.Env, books: newBooks(r.layout, r.log.Nodes, machine.GPUs()), runs: map[*Job]bool{},
		left: map[int]bool{}}
	each, blocks := blockOf(r.log.To.Sub(r.log.From))
	n, of, same, sameOf := make([]int, blocks), make([]int, blocks), make([]int, blocks), make([]int, blocks)
	asked, mean, point := 0, 0, -1
	wanted := map[string]string{}
	asking := false
	last := time.Duration(-1)
	for i := range all {
		m := &all[i]
		j := r.of[m.job]
		if m.kind == sim.Start && m.at > r.Begin {
			if m.at != last {
				last = m.at
				point++
				// Points are spread evenly: number k is asked where k·most/points is a new whole number.
				if asking = points <= most || point*most/points != (point-1)*most/points; asking {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := p.Env.Look(m.at); err != nil {
						return err
					}
					starts, err := p.Starts(ctx)
					if err != nil {
						return fmt.Errorf("%s: %w", p.Name, err)
					}
					asked++
					mean += len(starts)
					clear(wanted)
					v := p.Env.View()
					for _, s := range starts {
						wanted[v.Trace(s.Job).ID] = strings.Join(f.books.names(r.layout.Nodes, s), ",")
					}
				}
			}
			if asking {
				b := min(blocks-1, int((m.at-r.Begin)/each))
				of[b]++
				if where, ok := wanted[j.ID]; ok {
					n[b]++
					sameOf[b]++
					if where == strings.Join(j.Nodes, ",") {
						same[b]++
					}
				}
			}
		}
		if err := f.tell(m); err != nil {
			return err
		}
	}
	if asked == 0 {
		return nil
	}
	again, nodes := shareOf("again", n, of), shareOf("again nodes", same, sameOf)
	a.Again, a.AgainNodes, a.Asked, a.Others, a.Blocks = &again, &nodes, asked, float64(mean)/float64(asked), some(of)
	a.over(n, of)
	return nil
}

// names returns the nodes of a start, in order.
func (b *books) names(nodes []string, s steer.Start) (list []string) {
	for _, g := range s.GPUs {
		k, found := slices.BinarySearch(b.first, g)
		if !found {
			k--
		}
		if !slices.Contains(list, nodes[k]) {
			list = append(list, nodes[k])
		}
	}
	slices.Sort(list)
	return list
}

// fed tells an environment what has happened.
type fed struct {
	r     *replay
	env   sched.Facts
	books *books
	runs  map[*Job]bool
	left  map[int]bool // jobs that have left before the log says so
}

// tell makes a moment a fact. What cannot be is made possible: the log does not tell all, and some of it late.
func (f *fed) tell(m *moment) error {
	j, t := f.r.of[m.job], &f.r.Jobs[m.job]
	switch m.kind {
	case sim.Submit:
		return f.env.Tell(&sim.Fact{At: m.at, Kind: sim.Submit, Job: t})
	case sim.Finish:
		if f.left[m.job] {
			return nil
		}
		return f.leave(m.at, m.job, sim.Finish)
	}
	gpus, _ := f.books.take(j)
	for gpus == nil { // somebody has ended whose end was told late
		first := -1
		for k, o := range f.r.of {
			if f.runs[o] && !o.End.IsZero() && (first < 0 || o.End.Before(f.r.of[first].End)) {
				first = k
			}
		}
		if first < 0 {
			return f.leave(m.at, m.job, sim.Drop)
		}
		if err := f.leave(m.at, first, sim.Finish); err != nil {
			return err
		}
		gpus, _ = f.books.take(j)
	}
	f.runs[j] = true
	return f.env.Tell(&sim.Fact{At: m.at, Kind: sim.Start, ID: t.ID, GPUs: gpus})
}

func (f *fed) leave(at time.Duration, job int, kind sim.EventKind) error {
	j := f.r.of[job]
	f.left[job] = true
	delete(f.runs, j)
	f.books.leave(j)
	return f.env.Tell(&sim.Fact{At: at, Kind: kind, ID: j.ID})
}
