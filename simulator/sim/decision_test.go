package sim_test

import (
	"errors"
	"slices"
	"testing"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// A job can be started or stopped only once in an instant, so that a point always ends.
func TestOnceInAnInstant(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "1x2"),
		[]traces.Job{job("A", 0, 10*second, 1), job("B", second, second, 1)})
	refused := func(d sim.Decision) {
		t.Helper()
		if err := s.Apply(&d); !errors.Is(err, sim.ErrDecision) {
			t.Errorf("%+v: %v, want ErrDecision", d, err)
		}
	}
	begin := sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0}}
	stop := sim.Decision{Op: sim.PreemptJob, Job: 0}
	advance(t, s)
	apply(t, s, begin)
	refused(begin)
	refused(stop)
	advance(t, s)
	apply(t, s, stop)
	refused(stop)
	refused(begin)
	refused(sim.Decision{Op: sim.DropJob, Job: 0})
	apply(t, s, sim.Decision{Until: 2 * second})
	refused(sim.Decision{}) // the point is over
	refused(sim.Decision{Op: sim.StartJob, Job: 1, GPUs: []cluster.GPU{0}})
	advance(t, s)
	apply(t, s, begin)
	apply(t, s, sim.Decision{Op: sim.DropJob, Job: 1})
	refused(sim.Decision{Op: sim.StartJob, Job: 1, GPUs: []cluster.GPU{1}})
	p := advance(t, s)
	if got := text(s.View(), p); got != "11s: start A[0]@2s, drop B@2s, finish A[0]" {
		t.Error(got)
	}
	if v := s.View(); v.State(0) != sim.Finished || v.State(1) != sim.Dropped || v.Ended() != 2 || v.Preemptions(0) != 1 ||
		!v.Over() {
		t.Errorf("%v, %v, %d ended", v.State(0), v.State(1), v.Ended())
	}
}

func TestImpossibleDecisions(t *testing.T) {
	s := start(t, sim.DefaultConfig(), short(t, "2x2"), []traces.Job{job("A", 0, second, 2), job("B", 0, second, 3)})
	if err := s.Apply(&sim.Decision{}); !errors.Is(err, sim.ErrDecision) {
		t.Errorf("before the first point: %v", err)
	}
	advance(t, s)
	for name, c := range map[string]struct {
		d    sim.Decision
		want error
	}{
		"no such job":    {sim.Decision{Op: sim.StartJob, Job: 2}, sim.ErrDecision},
		"negative job":   {sim.Decision{Op: sim.StartJob, Job: -1}, sim.ErrDecision},
		"stop a waiting": {sim.Decision{Op: sim.PreemptJob, Job: 0}, sim.ErrDecision},
		"no such op":     {sim.Decision{Op: 77}, sim.ErrDecision},
		"half a gang":    {sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0}}, nil},
		"too many":       {sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0, 1, 2}}, nil},
		"one GPU twice":  {sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{1, 1}}, cluster.ErrNoCapacity},
		"no such GPU":    {sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{3, 4}}, nil},
	} {
		err := s.Apply(&c.d)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if err := s.CheckInvariants(); err != nil || s.View().Cluster().Free() != 4 {
		t.Errorf("refused decisions left traces: %v, %d free", err, s.View().Cluster().Free())
	}
	gpus := []cluster.GPU{3, 0}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: gpus})
	gpus[0] = 1 // Apply has copied them
	if got := s.View().GPUs(0); got[0] != 3 || got[1] != 0 {
		t.Errorf("the placement is %v", got)
	}
	if err := s.Apply(&sim.Decision{Op: sim.StartJob, Job: 1, GPUs: []cluster.GPU{0, 1, 2}}); !errors.Is(err,
		cluster.ErrNoCapacity) {
		t.Errorf("a taken GPU: %v", err)
	}
}

func TestViewOfAJob(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Comm = "tree"
	s := start(t, cfg, short(t, "2x2"), []traces.Job{job("A", second, 10*second, 2), job("B", 3*second, second, 1)})
	v := s.View()
	advance(t, s)
	if v.FirstStart(0) != -1 || v.Rate(0) != 0 || v.Ran(0) != 0 || v.State(0) != sim.Waiting || !v.Fits(0) ||
		v.Left(0) != 10e9 {
		t.Error("a job that waits")
	}
	apart := []cluster.GPU{0, 2}
	rate := 0.8 / 1.05 // best cost of two GPUs (one machine) over the actual cost (two machines)
	if got := v.Factor(0, apart); got < rate-1e-15 || got > rate+1e-15 {
		t.Errorf("Factor %v, want %v", got, rate)
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: apart})
	advance(t, s)
	if v.Ran(0) != 2*second || v.Started(0) != second || v.FirstStart(0) != second || v.Rate(0) != v.Factor(0, apart) {
		t.Errorf("ran %v since %v at rate %v", v.Ran(0), v.Started(0), v.Rate(0))
	}
	if left, want := v.Left(0), 10e9-2e9*rate; left < want-1 || left > want+1 {
		t.Errorf("%v left, want %v", left, want)
	}
	if got, want := v.Finished(0), second+13125*second/1000; got != want { // 10 s / (0.8/1.05) = 13.125 s
		t.Errorf("will finish at %v, want %v", got, want)
	}
}

// A view of a part shows the part's cluster and lists; times and jobs are the run's. After a restore the run's view
// shows the restored lists.
func TestViewsOfParts(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}},
		VCs: []cluster.VCSpec{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}}}
	jobs := []traces.Job{job("A", 0, 10*second, 1), job("B", 0, 20*second, 1)}
	jobs[0].VC, jobs[1].VC = "a", "b"
	s := start(t, sim.DefaultConfig(), spec, jobs)
	advance(t, s)
	v := s.View()
	part := v.Cluster().Part(2)
	waiting, running := []sim.Job{1}, []sim.Job(nil)
	w := v.Within(part, &waiting, &running)
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 1, GPUs: []cluster.GPU{2}})
	waiting, running = waiting[:0], append(running, 1)
	part.CopyFrom(v.Cluster())
	if w.Cluster() != part || part.Free() != 1 || len(w.Waiting()) != 0 || !slices.Equal(w.Running(), []sim.Job{1}) {
		t.Errorf("the part's view has %d free, waiting %v, running %v", part.Free(), w.Waiting(), w.Running())
	}
	if len(v.Waiting()) != 1 || v.Cluster().Free() != 3 || w.Now() != v.Now() || w.Trace(1).ID != "B" ||
		w.State(1) != sim.Running || w.Arrived() != 2 {
		t.Errorf("the run's view has %d free, waiting %v", v.Cluster().Free(), v.Waiting())
	}
	snapshot := s.AppendSnapshot(nil)
	apply(t, s, sim.Decision{})
	advance(t, s)
	if err := s.RestoreSnapshot(snapshot, &traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	if v := s.View(); len(v.Waiting()) != 1 || !slices.Equal(v.Running(), []sim.Job{1}) || v.Cluster().Free() != 3 {
		t.Errorf("restored: waiting %v, running %v", v.Waiting(), v.Running())
	}
	apply(t, s, sim.Decision{Op: sim.StartJob, Job: 0, GPUs: []cluster.GPU{0}})
	if v := s.View(); len(v.Waiting()) != 0 || len(v.Running()) != 2 {
		t.Errorf("after another start: waiting %v, running %v", v.Waiting(), v.Running())
	}
}
