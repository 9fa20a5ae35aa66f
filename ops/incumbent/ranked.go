package incumbent

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Ranking says how a model ranks waiting jobs by what the simulator's own orders do not know: the past use of accounts
// (fair share), and accounts that go before others. Jobs behind the first one that does not fit fill gaps as with easy
// back-filling. It is played in replays alone.
type Ranking struct {
	// HalfLife is the time after which past use counts half; 0 = use does not count.
	HalfLife time.Duration
	// Age and Size are the weights of a week's wait and of the share of the cluster that a job asks for, where that of
	// fair share is 1.
	Age, Size float64
	// First are accounts whose jobs go before all others.
	First []string
	// Owner returns the account of a job.
	Owner func(j *traces.Job) string
	of    string // what owners are
}

// Account returns a job's account, or its user if the record has no accounts.
func Account(j *traces.Job) string { return cmp.Or(j.Group, j.User) }

// User returns a job's user.
func User(j *traces.Job) string { return j.User }

// ages is the wait at which the weight of age is reached (Slurm's PriorityMaxAge of seven days).
const ages = 7 * 24 * time.Hour

// use is what an account has held.
type use struct {
	past  float64 // GPU seconds, which decay
	at    time.Duration
	holds int // GPUs now
}

// ranked plays a Ranking.
type ranked struct {
	Ranking
	place cluster.Placement
	uses  map[string]*use
	names []string // of uses, in order of appearance
	first map[string]bool
	todo  []candidate
	runs  []sim.Job
	at    time.Duration
	next  int
	fresh bool
	gaps  map[int32]*gap // by virtual cluster that owns nodes, 0 = the others
}

// candidate is a waiting job with its key: the least goes first.
type candidate struct {
	key float64
	pos int
	job sim.Job
}

// gap is what jobs behind the first in line may use.
type gap struct {
	until time.Duration // the first in line could start then, as far as limits say
	spare int           // GPUs that it leaves then
}

func newRanked(r Ranking, placement string) (sim.Scheduler, error) {
	p, err := cluster.NewPlacement(placement)
	if err != nil {
		return nil, err
	}
	s := &ranked{Ranking: r, place: p, first: map[string]bool{}}
	for _, name := range r.First {
		s.first[name] = true
	}
	return s, nil
}

// Reset implements sim.Scheduler.
func (s *ranked) Reset(v *sim.View) {
	s.fresh, s.uses, s.names = true, map[string]*use{}, nil
	s.gaps = map[int32]*gap{}
	for _, j := range v.Running() {
		u := s.of(s.Owner(v.Trace(j)), v.Now())
		u.holds += v.Asked(j)
		u.past += float64(v.Asked(j)) * (v.Now() - v.FirstStart(j)).Seconds()
	}
}

// of returns the use of an account as of now.
func (s *ranked) of(name string, now time.Duration) *use {
	u := s.uses[name]
	if u == nil {
		u = &use{at: now}
		s.uses[name], s.names = u, append(s.names, name)
	}
	if now > u.at && s.HalfLife > 0 {
		left := math.Exp2(-float64(now-u.at) / float64(s.HalfLife))
		u.past = u.past*left + float64(u.holds)*s.HalfLife.Seconds()/math.Ln2*(1-left)
	}
	u.at = now
	return u
}

// Decide implements sim.Scheduler.
func (s *ranked) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if s.fresh || s.at != p.Now {
		s.begin(v, p)
	}
	for s.next < len(s.todo) {
		j := s.todo[s.next].job
		s.next++
		r := v.Request(j)
		g := s.gaps[s.part(v, r)]
		inTime := true
		if g != nil {
			inTime = v.Now()+v.Trace(j).Estimate <= g.until
			if !inTime && r.GPUs > g.spare {
				continue
			}
		}
		gpus, ok := s.place.Place(v.Cluster(), r, d.GPUs)
		if ok {
			if g != nil && !inTime {
				g.spare -= r.GPUs
			}
			s.of(s.Owner(v.Trace(j)), v.Now()).holds += v.Asked(j)
			d.Op, d.Job, d.GPUs = sim.StartJob, j, gpus
			return nil
		}
		if g == nil {
			s.gaps[s.part(v, r)] = s.gap(v, j)
		}
	}
	return nil
}

// begin ranks the waiting jobs at a new point.
func (s *ranked) begin(v *sim.View, p *sim.Point) {
	s.fresh, s.at, s.next = false, p.Now, 0
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Finish || e.Kind == sim.Preempt || e.Kind == sim.Fail {
			s.of(s.Owner(v.Trace(e.Job)), v.Now()).holds -= v.Asked(e.Job)
		}
	}
	clear(s.gaps)
	share := s.shares(v.Now())
	all := float64(v.Cluster().GPUs())
	s.todo = s.todo[:0]
	for _, j := range v.Waiting() {
		t := v.Trace(j)
		k := -s.Age*float64(v.Now()-t.Submit)/float64(ages) - s.Size*float64(t.GPUs)/all
		if s.HalfLife > 0 || len(s.first) > 0 {
			owner := s.Owner(t)
			k -= share[owner]
			if s.first[owner] {
				k -= 1e9
			}
		}
		s.todo = append(s.todo, candidate{k, v.Pos(j), j})
	}
	slices.SortFunc(s.todo, func(a, b candidate) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return a.pos - b.pos
	})
}

// shares returns the fair-share factor of each account: 2^(−use ÷ share), where all accounts have the same share of the
// use of all (Slurm's documentation, priority/multifactor, "classic" fair share).
func (s *ranked) shares(now time.Duration) map[string]float64 {
	if s.HalfLife == 0 {
		return nil
	}
	sum := 0.0
	for _, name := range s.names {
		sum += s.of(name, now).past
	}
	out := make(map[string]float64, len(s.names))
	for _, name := range s.names {
		out[name] = math.Exp2(-s.uses[name].past / max(sum, 1e-9) * float64(len(s.names)))
	}
	return out
}

// part returns the virtual cluster whose own nodes a job uses, 0 = nodes that it shares.
func (s *ranked) part(v *sim.View, r *cluster.Request) int32 {
	if r.VC > 0 {
		if from, _ := v.Cluster().VCNodes(r.VC); v.Cluster().VCOf(from) == r.VC {
			return r.VC
		}
	}
	return 0
}

// gap returns when j could start by number if the jobs that run end at their limits, and what it leaves then.
func (s *ranked) gap(v *sim.View, j sim.Job) *gap {
	r := v.Request(j)
	part := s.part(v, r)
	free := v.Cluster().VCFree(r.VC)
	ends := func(j sim.Job) time.Duration { return max(v.Started(j)+v.Trace(j).Estimate, v.Now()) }
	s.runs = s.runs[:0]
	for _, j := range v.Running() {
		if s.part(v, v.Request(j)) == part {
			s.runs = append(s.runs, j)
		}
	}
	slices.SortFunc(s.runs,
		func(a, b sim.Job) int { return cmp.Or(cmp.Compare(ends(a), ends(b)), cmp.Compare(v.Pos(a), v.Pos(b))) })
	g := &gap{until: v.Now()}
	for _, x := range s.runs {
		if free >= r.GPUs && ends(x) > g.until {
			break
		}
		free, g.until = free+v.Asked(x), ends(x)
	}
	if free < r.GPUs {
		g.until = traces.MaxTime
	}
	g.spare = max(0, free-r.GPUs)
	return g
}

// Fair returns the models with fair share. Their weights are not those of a cluster, which the record does not tell:
// they span what is common, and Fit looks for closer ones between them.
func Fair(accounts bool) []Model {
	owner, of := User, "users"
	if accounts {
		owner, of = Account, "accounts"
	}
	var all []Model
	for _, half := range []time.Duration{24 * time.Hour, 7 * 24 * time.Hour} {
		for _, age := range []float64{.1, 1, 4} {
			r := Ranking{HalfLife: half, Age: age, Owner: owner, of: of}
			all = append(all, r.model(of))
		}
	}
	return all
}

// model returns the model of a ranking with fair share.
func (r *Ranking) model(of string) Model {
	size := ""
	if r.Size > 0 {
		size = fmt.Sprintf("-size%.3g", r.Size)
	}
	own := *r
	return Model{
		Name: fmt.Sprintf("fairshare-%s-%.3gd-age%.3g%s+easy", of, r.HalfLife.Hours()/24, r.Age, size),
		Text: fmt.Sprintf("past use of %s (half-life %.3g d), weight 1, and age (weight %.3g a week) decide, with "+
			"back-filling", of, r.HalfLife.Hours()/24, r.Age),
		own: &own,
	}
}

// neighbours returns rankings with other weights.
func (r *Ranking) neighbours() []*Ranking {
	var all []*Ranking
	for _, change := range []func(x *Ranking){
		func(x *Ranking) { x.HalfLife /= 2 },
		func(x *Ranking) { x.HalfLife *= 2 },
		func(x *Ranking) { x.Age /= 2 },
		func(x *Ranking) { x.Age *= 2 },
		func(x *Ranking) { x.Age *= 1.4 },
		func(x *Ranking) { x.Age /= 1.4 },
		func(x *Ranking) { x.HalfLife = x.HalfLife * 10 / 14 },
		func(x *Ranking) { x.HalfLife = x.HalfLife * 14 / 10 },
		func(x *Ranking) { x.Age *= 1.1 },
		func(x *Ranking) { x.Age /= 1.1 },
		func(x *Ranking) { x.Size += .1 },
		func(x *Ranking) { x.Size = max(0, x.Size-.1) },
		func(x *Ranking) { x.Size += 1 },
	} {
		x := *r
		change(&x)
		all = append(all, &x)
	}
	return all
}
