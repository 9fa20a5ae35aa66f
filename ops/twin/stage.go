package twin

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Change is what a what-if changes.
type Change struct {
	Name string // as it was asked for

	add    *cluster.NodeSpec
	drain  []string // nodes
	rack   string   // whose nodes are drained
	policy *Model
	submit []Job
	note   string // what else a reader should know
}

// Add reads NODESxGPUS[:TYPE]: so many nodes more.
func Add(text string) (Change, error) {
	size, kind, typed := strings.Cut(text, ":")
	a, b, ok := strings.Cut(size, "x")
	nodes, e1 := strconv.Atoi(a)
	gpus, e2 := strconv.Atoi(b)
	if !ok || e1 != nil || e2 != nil || nodes < 1 || nodes > 100_000 || gpus < 1 || gpus > 1024 || typed && kind == "" {
		return Change{}, fault.Mistakef("%s: got %q, want NODESxGPUS or NODESxGPUS:TYPE, as 4x8 or 4x8:a100",
			fault.Key("add"), text)
	}
	return Change{Name: "add " + text, add: &cluster.NodeSpec{Count: cluster.Count(nodes), GPUs: gpus, GPUType: kind}}, nil
}

// Drain reads NODE,… or rack=RACK: no job starts there any more.
func Drain(text string) (Change, error) {
	c := Change{Name: "drain " + text}
	if rack, ok := strings.CutPrefix(text, "rack="); ok {
		c.rack = rack
	} else {
		c.drain = strings.Split(text, ",")
	}
	if text == "" || c.rack == "" && slices.Contains(c.drain, "") {
		return c, fault.Mistakef("%s: got %q, want NODE,… or rack=RACK", fault.Key("drain"), text)
	}
	return c, nil
}

// Under reads a policy in place of the cluster's own scheduler.
func Under(name, placement string, known sim.Estimates) (Change, error) {
	m, err := ParseModel(name, known)
	if err == nil {
		m, err = m.Place(placement)
	}
	if err != nil {
		return Change{}, fault.Errorf("%s: %w", fault.Key("policy"), err)
	}
	return Change{Name: "policy " + m.Name, policy: &m}, nil
}

// Submit reads GPUS[xN]:DURATION: N jobs more, at the end of the queue, that run for so long.
func Submit(text string) (Change, error) {
	size, long, _ := strings.Cut(text, ":")
	a, b, many := strings.Cut(size, "x")
	gpus, e1 := strconv.Atoi(a)
	n, e2 := 1, error(nil)
	if many {
		n, e2 = strconv.Atoi(b)
	}
	d, e3 := time.ParseDuration(long)
	if e1 != nil || e2 != nil || e3 != nil || gpus < 1 || gpus > traces.MaxGPUs || n < 1 || n > 10_000 ||
		d < time.Second || d > 10*365*day {
		return Change{}, fault.Mistakef("%s: got %q, want GPUS:DURATION or GPUSxN:DURATION, as 16:2h or 8x3:90m",
			fault.Key("submit"), text)
	}
	c := Change{Name: "submit " + text}
	for i := range n {
		id := "submit " + text
		if n > 1 {
			id += fmt.Sprint(" #", i+1)
		}
		c.submit = append(c.submit, Job{Job: traces.Job{ID: id, GPUs: gpus, GPUMilli: 1000, Work: d, Estimate: d}})
	}
	return c, nil
}

// stage is a state, changed or not, from which draws play on.
type stage struct {
	sim   *sim.Simulator
	model Model
	jobs  []Job  // of the state, then those of a question
	can   []bool // by job: it can run at all
	at    []int  // job by position in the simulator
	gpus  int    // that are not down, those of drained nodes too
	free  []int  // by node: GPUs that are free at first, -1 where no job can start
}

// newStage brings a simulator into the state.
func newStage(st *State, cfg *Config, c Change) (*stage, error) {
	s := &stage{model: cfg.Scheduler, jobs: st.Jobs}
	spec, down := st.Spec, slices.Clone(st.Down)
	if c.policy != nil {
		s.model = *c.policy
	}
	if c.add != nil {
		if spec.Pool > 0 {
			spec.Pool += c.add.Count.N() * c.add.GPUs
		} else {
			spec.Racks = append(slices.Clone(spec.Racks), cluster.RackSpec{Nodes: []cluster.NodeSpec{*c.add}})
		}
	}
	drained, err := c.drained(st)
	if err != nil {
		return nil, err
	}
	for _, n := range drained {
		if !slices.Contains(down, n) {
			down = append(down, n)
		}
	}
	s.jobs = append(slices.Clone(s.jobs), c.submit...)
	scfg := sim.DefaultConfig()
	scfg.Comm = "none"
	if s.model.causal() {
		said := known{}
		for i := range s.jobs {
			said[s.jobs[i].ID] = s.jobs[i].forecast()
		}
		scfg.Predictor = said
	}
	if s.sim, err = sim.New(scfg, spec); err != nil {
		return nil, err
	}
	if err := s.sim.Follow(sim.Following{Estimates: sim.Estimates{Mode: sim.EstimateNone}}); err != nil {
		return nil, err
	}
	if err := s.tell(st, cfg, down); err != nil {
		return nil, err
	}
	s.count(st, drained)
	return s, nil
}

// forecast returns what is expected of j's run time.
func (j *Job) forecast() predict.Forecast {
	switch {
	case j.Work > 0:
		return predict.Certain(j.Work)
	case j.Told:
		return j.Forecast
	}
	return predict.Certain(max(1, j.Estimate))
}

// tell tells the simulator what there is: jobs that run, then nodes that are down, then jobs that wait, in the order of
// the queue.
func (s *stage) tell(st *State, cfg *Config, down []int) error {
	var facts []sim.Fact
	for i := range s.jobs {
		j := &s.jobs[i]
		if !j.Runs {
			continue
		}
		t := told(j, cfg, st.Now)
		facts = append(facts, sim.Fact{At: t.Submit, Kind: sim.Submit, Job: t},
			sim.Fact{At: max(j.Start, t.Submit), Kind: sim.Start, ID: j.ID, GPUs: j.Held})
	}
	slices.SortStableFunc(facts, func(a, b sim.Fact) int { return cmp.Compare(a.At, b.At) })
	for _, n := range down {
		facts = append(facts, sim.Fact{At: st.Now, Kind: sim.NodeFail, Node: n})
	}
	for i := range s.jobs {
		if j := &s.jobs[i]; !j.Runs {
			facts = append(facts, sim.Fact{At: st.Now, Kind: sim.Submit, Job: told(j, cfg, st.Now)})
		}
	}
	for i := range facts {
		if _, err := s.sim.Tell(&facts[i]); err != nil {
			return err
		}
	}
	if _, err := s.sim.Look(st.Now); err != nil {
		return err
	}
	v := s.sim.View()
	s.can = make([]bool, len(s.jobs))
	s.at = make([]int, v.Arrived())
	for i := range s.jobs {
		if k, ok := v.Find(s.jobs[i].ID); ok {
			s.can[i], s.at[v.Pos(k)] = true, i
		}
	}
	return nil
}

// told returns a job as schedulers see it.
func told(j *Job, cfg *Config, now time.Duration) *traces.Job {
	t := j.Job
	t.Work, t.Profile, t.Graph, t.GPUMilli, t.CPUMilli, t.MemBytes, t.MinGPUs, t.MaxGPUs = 0, nil, nil, 1000, 0, 0, 0, 0
	t.Submit = min(t.Submit, now)
	if j.Work > 0 {
		t.Submit = now
	}
	if t.Estimate <= 0 {
		t.Estimate, t.Assumed = cfg.Limit, true
	}
	return &t
}

// count fills in what a stage has of GPUs.
func (s *stage) count(st *State, drained []int) {
	c := s.sim.View().Cluster()
	if c.Pool() {
		s.gpus = c.GPUs()
		s.free = []int{c.Free()}
		return
	}
	for n := range c.Nodes() {
		from, to := c.NodeGPUs(n)
		if !slices.Contains(st.Down, n) {
			s.gpus += int(to - from)
		}
		if slices.Contains(st.Down, n) || slices.Contains(drained, n) {
			s.free = append(s.free, -1)
			continue
		}
		s.free = append(s.free, c.NodeFree(n))
	}
}

// drained returns the nodes that c drains.
func (c *Change) drained(st *State) (list []int, err error) {
	if len(c.drain)+len(c.rack) > 0 && st.Nodes == nil {
		return nil, fault.Mistakef("%s: the cluster has no nodes by name", fault.Key("drain"))
	}
	for _, name := range c.drain {
		n := slices.Index(st.Nodes, name)
		if n < 0 {
			return nil, fault.Mistakef("%s: the cluster has no node %q with GPUs; it has %s", fault.Key("drain"), name,
				few(st.Nodes))
		}
		list = append(list, n)
	}
	if c.rack != "" {
		for n, rack := range st.Racks {
			if rack == c.rack {
				list = append(list, n)
			}
		}
		if list == nil {
			racks := slices.Compact(slices.Sorted(slices.Values(st.Racks)))
			if len(racks) == 1 && racks[0] == "" {
				return nil, fault.Mistakef("%s: got rack=%s, and the cluster tells of no racks; want NODE,…", fault.Key("drain"),
					c.rack)
			}
			return nil, fault.Mistakef("%s: the cluster has no rack %q; it has %s", fault.Key("drain"), c.rack, few(racks))
		}
	}
	return list, nil
}

// few lists some names.
func few(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s … %s (%d)", strings.Join(names[:most-1], ", "), names[len(names)-1], len(names))
}
