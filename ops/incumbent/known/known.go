package known

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// kinds are the schedulers that may have run, and what the jobs offer as a share of the GPUs.
var kinds = []struct {
	name, policy string
	load         float64
}{
	{"easy", "fifo+strict+easy", 0.92},
	{"conservative", "fifo+strict+conservative", 0.92},
	{"fairshare", "fairshare+strict+easy", 0.92},
	{"reserved", "fifo+strict", 0.57},
}

// Kinds returns the kinds that Make knows: "easy" and "conservative" are FIFO with these kinds of back-filling by time
// limits, "fairshare" is Slurm's priority with fair share of accounts and EASY, and "reserved" FIFO without back-filling
// on two partitions, one of them on nodes that only it has.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Truth is what an accounting of Make does not say.
type Truth struct {
	Policy string // that ran, as schedulers.Parse reads it; it estimates run times by limits
	Spec   cluster.Spec
	// Jobs are all jobs with their ids, true run times and, as Estimate, time limits; Limit where they have none. They are
	// in order of submit, on a clock that begins with the first.
	Jobs []traces.Job
	// Origin is when the clock begins in the accounting, and Cut when the accounting ends.
	Origin time.Time
	Cut    time.Duration
	// Full is what the scheduler does, to the end of the last job. The accounting shows it as far as Cut.
	Full *Played
	of   []more
}

// Played is what happened to the jobs of a Truth.
type Played struct {
	Starts   map[string]time.Duration // first start by id, on the clock of Submit
	Finishes map[string]time.Duration
	runs     map[string][]stint
	jobs     []traces.Job
}

// stint is one run of a job, and when it began to wait for it.
type stint struct {
	submit, start, end time.Duration
	nodes              []int
}

// MeanWait returns the mean time from submit to the first start of the jobs that ask for GPUs and for which take, if it
// is not nil, returns true.
func (p *Played) MeanWait(take func(j *traces.Job) bool) time.Duration {
	sum, n := time.Duration(0), time.Duration(0)
	for i := range p.jobs {
		j := &p.jobs[i]
		if at, ok := p.Starts[j.ID]; ok && j.GPUs > 0 && (take == nil || take(j)) {
			sum, n = sum+at-j.Submit, n+1
		}
	}
	return sum / max(1, n)
}

// Ended reports whether the accounting shows the whole of j: it has ended by Cut.
func (t *Truth) Ended(j *traces.Job) bool { return t.Full.Finishes[j.ID] <= t.Cut }

// Started reports whether the accounting shows a start of j.
func (t *Truth) Started(j *traces.Job) bool { return t.Full.Starts[j.ID] <= t.Cut }

// MeanWait returns the recorded mean wait: that of the jobs with GPUs that have ended by Cut.
func (t *Truth) MeanWait() time.Duration { return t.Full.MeanWait(t.Ended) }

// Make returns an accounting of a kind, as sacct -P prints it, the cluster and the truth about both. It panics if there
// is no such kind.
func Make(kind string, seed uint64) (sacctText []byte, spec cluster.Spec, truth Truth) {
	i := slices.Index(Kinds(), kind)
	if i < 0 {
		panic(fmt.Sprintf("known: there is no kind %q of accountings", kind))
	}
	k := kinds[i]
	truth = Truth{Policy: k.policy, Spec: specOf(kind), Origin: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)}
	truth.Jobs, truth.of = draw(kind, seed, k.load)
	if kind == "reserved" {
		truth.reserve()
	}
	for i := range truth.Jobs {
		truth.Jobs[i].VC = truth.of[i].partition
	}
	truth.Cut = truth.Jobs[len(truth.Jobs)-1].Submit
	var err error
	if truth.Full, err = truth.Play(k.policy, "trace"); err != nil {
		panic(fmt.Sprintf("known: %s cannot be played: %v", k.policy, err))
	}
	return truth.text(), truth.Spec, truth
}

// specOf returns the cluster of a kind. Only that of "reserved" has virtual clusters: its partitions.
func specOf(kind string) cluster.Spec {
	named := func(head string, n int, of cluster.NodeSpec) cluster.NodeSpec {
		of.Count = cluster.Count(n)
		for i := range n {
			of.Names = append(of.Names, fmt.Sprintf("%s%02d", head, i+1))
		}
		return of
	}
	s := cluster.Spec{Name: "known-" + kind, Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{
		named("a", a100s, cluster.NodeSpec{GPUs: 8, GPUType: "a100", CPUs: 128, MemGB: 1024}),
		named("v", v100s, cluster.NodeSpec{GPUs: 4, GPUType: "v100", CPUs: 64, MemGB: 512}),
		named("c", hosts, cluster.NodeSpec{CPUs: 256, MemGB: 1024}),
	}}}}
	if kind == "reserved" {
		s.VCs = []cluster.VCSpec{{Name: "gpu", Hosts: []string{"a[01-06],v[01-08]"}},
			{Name: "reserved", Hosts: []string{"a[07-08]"}}, {Name: "cpu", Hosts: []string{"c[01-04]"}}}
	}
	return s
}

// reserve moves the jobs of some users that its nodes can hold to the reserved partition, whose nodes they keep half as
// busy as may be.
func (t *Truth) reserve() {
	const share = 0.55
	may := func(j *traces.Job) bool {
		return j.GPUs > 0 && j.GPUs <= 16 && !slices.Contains(j.GPUTypes, "v100")
	}
	hours := map[string]float64{}
	for i := range t.Jobs {
		if j := &t.Jobs[i]; may(j) {
			hours[j.User] += j.GPUHours()
		}
	}
	left, moved := share*16*t.Jobs[len(t.Jobs)-1].Submit.Hours(), map[string]bool{}
	for _, user := range slices.Sorted(maps.Keys(hours)) {
		if hours[user] <= left {
			left -= hours[user]
			moved[user] = true
		}
	}
	for i := range t.Jobs {
		if j := &t.Jobs[i]; may(j) && moved[j.User] {
			t.of[i].partition = "reserved"
		}
	}
}

// Play plays the jobs, with their true run times, under another scheduler, as schedulers.Parse reads it. estimates are
// what it knows of run times: "trace" the limits, "history" forecasts from the jobs that have ended, "exact" the truth.
func (t *Truth) Play(policy, estimates string) (*Played, error) {
	cfg, err := schedulers.Parse(policy)
	if err != nil {
		return nil, err
	}
	if cfg.Estimates, err = sim.ParseEstimates(estimates); err != nil {
		return nil, err
	}
	run := sim.DefaultConfig()
	if estimates == "history" {
		run.Predictor = history.NewArchive(nil)
	}
	return t.PlayWith(cfg, run)
}

// PlayWith is Play with all settings of the scheduler and the simulator.
func (t *Truth) PlayWith(cfg schedulers.Config, run sim.Config) (*Played, error) {
	h, err := schedulers.New(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Simulator(&run)
	s, err := sim.New(run, t.Spec)
	if err != nil {
		return nil, err
	}
	if err := s.Reset(&traces.Slice{Jobs: t.Jobs}); err != nil {
		return nil, err
	}
	p := &Played{Starts: map[string]time.Duration{}, Finishes: map[string]time.Duration{}, runs: map[string][]stint{},
		jobs: t.Jobs}
	if err := sim.Run(context.Background(), s, &requeuer{Scheduler: h, of: t.of}, p); err != nil {
		return nil, err
	}
	if r := s.Refused(); r.Count > 0 || len(p.Finishes) < len(t.Jobs) {
		return nil, fmt.Errorf("%d jobs can never fit the cluster, %d of %d have ended", r.Count, len(p.Finishes), len(t.Jobs))
	}
	return p, nil
}

// Observe implements sim.Observer.
func (p *Played) Observe(v *sim.View, at *sim.Point) error {
	for i := range at.Events {
		e := &at.Events[i]
		if e.Job < 0 {
			continue
		}
		j := v.Trace(e.Job)
		list := p.runs[j.ID]
		switch e.Kind {
		case sim.Start:
			r := stint{submit: j.Submit, start: e.At}
			if len(list) == 0 {
				p.Starts[j.ID] = e.At
			} else {
				r.submit = list[len(list)-1].end
			}
			for _, g := range e.GPUs {
				if n := v.Cluster().NodeOf(g); !slices.Contains(r.nodes, n) {
					r.nodes = append(r.nodes, n)
				}
			}
			p.runs[j.ID] = append(list, r)
		case sim.Preempt:
			list[len(list)-1].end = e.At
		case sim.Finish:
			list[len(list)-1].end = e.At
			p.Finishes[j.ID] = e.At
		}
	}
	return nil
}

// requeuer plays a scheduler on a cluster where some jobs are requeued in the middle of their run: they are stopped once,
// keep what they have done, and wait again at the place that they had in line.
type requeuer struct {
	sim.Scheduler
	of      []more
	stopped time.Duration // when a job was last stopped
}

// Decide implements sim.Scheduler.
func (q *requeuer) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	next := time.Duration(0)
	for _, j := range v.Running() {
		stop := q.of[v.Pos(j)].stop
		if stop == 0 || v.Started(j) > v.FirstStart(j) {
			continue
		}
		if at := v.Started(j) + stop; at <= v.Now() {
			d.Op, d.Job, q.stopped = sim.PreemptJob, j, at
			return nil
		} else if next == 0 || at < next {
			next = at
		}
	}
	if err := q.Scheduler.Decide(v, p, d); err != nil {
		return err
	}
	if again := v.Now() + time.Second; q.stopped == v.Now() && v.Now() > 0 { // it may start again then
		next = again
	}
	if d.Op == sim.Wait && next > 0 && (d.Until == 0 || next < d.Until) {
		d.Until = next
	}
	return nil
}
