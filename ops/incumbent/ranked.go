package incumbent

import (
	"cmp"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Ranking says how a model ranks waiting jobs where accounts go before others: otherwise first come, first served. Jobs
// behind the first one that does not fit fill gaps as with easy back-filling. It is played in replays alone.
type Ranking struct {
	// First are accounts whose jobs go before all others.
	First []string
	// Owner returns the account of a job.
	Owner func(j *traces.Job) string
}

// Account returns a job's account, or its user if the record has no accounts.
func Account(j *traces.Job) string { return cmp.Or(j.Group, j.User) }

// User returns a job's user.
func User(j *traces.Job) string { return j.User }

// ranked plays a Ranking.
type ranked struct {
	Ranking
	place cluster.Placement
	first map[string]bool
	todo  []candidate
	runs  []sim.Job
	at    time.Duration
	next  int
	fresh bool
	gaps  map[int32]*gap // by virtual cluster that owns nodes, 0 = the others
}

// candidate is a waiting job: the lowest class goes first.
type candidate struct {
	class, pos int
	job        sim.Job
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
func (s *ranked) Reset(*sim.View) { s.fresh, s.gaps = true, map[int32]*gap{} }

// Decide implements sim.Scheduler.
func (s *ranked) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	if s.fresh || s.at != p.Now {
		s.begin(v, p)
	}
	for s.next < len(s.todo) {
		j := s.todo[s.next].job
		s.next++
		if v.Decided(j) { // it was requeued at this moment
			continue
		}
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
	clear(s.gaps)
	s.todo = s.todo[:0]
	for _, j := range v.Waiting() {
		x := candidate{pos: v.Pos(j), job: j}
		if s.first[s.Owner(v.Trace(j))] {
			x.class = -1
		}
		s.todo = append(s.todo, x)
	}
	slices.SortFunc(s.todo, func(a, b candidate) int { return cmp.Or(a.class-b.class, a.pos-b.pos) })
}

// part returns the virtual cluster whose nodes a job uses, 0 = all nodes.
func (s *ranked) part(v *sim.View, r *cluster.Request) int32 {
	if from, to := v.Cluster().VCNodes(r.VC); r.VC > 0 && to-from < v.Cluster().Nodes() {
		return r.VC
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
