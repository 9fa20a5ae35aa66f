package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/jobselect"
	"clustergym/env/sched"
	"clustergym/internal/testseed"
	"clustergym/live"
	"clustergym/ops/steer/mirror"
	core "clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// site is a cluster that a simulator plays, as an adapter would show it.
type site struct {
	s     *sim.Simulator
	nodes []live.Node
	ended []live.Job
	index bool // it tells which GPUs
	tells bool // and what has ended
}

func newSite(t *testing.T, r *rand.Rand) *site {
	t.Helper()
	x := &site{index: r.IntN(2) == 0, tells: r.IntN(2) == 0}
	for i := range 6 {
		x.nodes = append(x.nodes,
			live.Node{Name: fmt.Sprint("node", i), Rack: fmt.Sprint("rack", i%2), GPUType: "a", GPUs: 2 + 2*(i%2)})
	}
	x.nodes = append(x.nodes, live.Node{Name: "login"})
	s, err := sim.New(sim.Config{Comm: "none", Failures: sim.Failures{MTBF: 5 * time.Hour, MTTR: 30 * time.Minute}},
		mirror.LayoutOf(&live.Snapshot{Nodes: x.nodes}).Spec)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []traces.Job
	at := time.Duration(0)
	for i := range 150 {
		at += time.Duration(r.IntN(400)) * time.Second
		jobs = append(jobs,
			traces.Job{ID: fmt.Sprintf("%03d", i), User: fmt.Sprint("u", r.IntN(4)), Submit: at,
				Work: time.Duration(1+r.IntN(5000)) * time.Second, GPUs: 1 + r.IntN(6), GPUMilli: 1000})
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	x.s = s
	return x
}

// Observe implements sim.Observer: it remembers what ends.
func (x *site) Observe(v *sim.View, p *sim.Point) error {
	for i := range p.Events {
		if e := &p.Events[i]; e.Kind == sim.Finish {
			j := x.job(v, e.Job)
			j.State, j.End, j.Start = live.Ended, epoch.Add(e.At), epoch.Add(v.Started(e.Job))
			j.Places = x.places(v, e.GPUs)
			x.ended = append(x.ended, j)
		}
	}
	return nil
}

func (x *site) job(v *sim.View, j sim.Job) live.Job {
	t := *v.Trace(j)
	k := live.Job{Job: t, Submit: epoch.Add(t.Submit)}
	k.Job.Submit, k.Work = 0, 0
	return k
}

func (x *site) places(v *sim.View, gpus []cluster) (places []live.Place) {
	layout := mirror.LayoutOf(&live.Snapshot{Nodes: x.nodes})
	c := v.Cluster()
	for n, name := range layout.Nodes {
		p := live.Place{Node: name}
		from, to := c.NodeGPUs(n)
		for g := from; g < to; g++ {
			if slices.Contains(gpus, g) {
				p.GPUs++
				if x.index {
					p.Index = append(p.Index, int(g-from))
				}
			}
		}
		if p.GPUs > 0 {
			places = append(places, p)
		}
	}
	return places
}

// snapshot returns what the cluster says at a moment.
func (x *site) snapshot(now time.Duration) *live.Snapshot {
	v := x.s.View()
	s := &live.Snapshot{At: epoch.Add(now), Nodes: slices.Clone(x.nodes)}
	layout := mirror.LayoutOf(s)
	for i := range s.Nodes {
		if k := slices.Index(layout.Nodes, s.Nodes[i].Name); k >= 0 {
			s.Nodes[i].Down = v.Cluster().Down(k)
		}
	}
	for _, list := range [][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			k := x.job(v, j)
			if v.State(j) == sim.Running {
				k.State, k.Start, k.Places = live.Running, epoch.Add(v.Started(j)), x.places(v, v.GPUs(j))
			}
			s.Jobs = append(s.Jobs, k)
		}
	}
	s.Jobs = append(s.Jobs,
		live.Job{Job: traces.Job{ID: "~blocked", GPUs: 1}, Submit: epoch, Blocked: "it depends on another"},
		live.Job{Job: traces.Job{ID: "~cores"}, Submit: epoch})
	if x.tells {
		for i := range x.ended {
			if x.ended[i].End.After(s.At.Add(-time.Hour)) {
				s.Ended = append(s.Ended, x.ended[i])
			}
		}
	}
	s.Sort()
	return s
}

type cluster = core.GPU

// follower is JobSelect-v1 on the site's cluster, with forecasts.
func follower(t *testing.T, l mirror.Layout) *sched.Env {
	t.Helper()
	c := jobselect.DefaultConfig()
	c.Estimates, c.Images = sim.MustEstimates("history"), false
	e, err := jobselect.New(c, l.Spec, nowhere{}, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// nowhere are no windows.
type nowhere struct{}

func (nowhere) At(traces.Part, uint64, int) (traces.Window, error) {
	return traces.Window{}, errors.New("there are none")
}

func (nowhere) Predictor(sim.Estimates) (predict.Maker, error) { return history.NewArchive(nil), nil }

// shown describes a run by the names of its jobs and nodes.
func shown(v *sim.View, l mirror.Layout, clock func(time.Duration) time.Time) string {
	var lines []string
	c := v.Cluster()
	for _, list := range [][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			line := fmt.Sprint(v.Trace(j).ID, " ", v.State(j), " ", clock(v.Trace(j).Submit))
			if v.State(j) == sim.Running {
				line += fmt.Sprint(" since ", clock(v.Started(j)))
				count := map[int]int{}
				for _, g := range v.GPUs(j) {
					count[c.NodeOf(g)]++
				}
				for n, name := range l.Nodes {
					if count[n] > 0 {
						line += fmt.Sprint(" ", name, ":", count[n])
					}
				}
			}
			lines = append(lines, line)
		}
	}
	for n, name := range l.Nodes {
		if c.Down(n) {
			lines = append(lines, name+" is down")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Snapshots at any moments, of a cluster whose scheduler stops jobs and whose nodes fail, whether it tells of GPUs and
// of what has ended or not, give facts that lead to the cluster as it is.
func TestSnapshotsBecomeFacts(t *testing.T) {
	for k := range 12 {
		r := rand.New(rand.NewPCG(testseed.Or(71)+uint64(k), 71))
		x := newSite(t, r)
		h := schedulers.DefaultConfig()
		h.Order, h.Admission, h.Estimates = []string{"srtf", "fifo", "las"}[k%3], "skip", sim.MustEstimates("exact")
		incumbent, err := schedulers.New(h)
		if err != nil {
			t.Fatal(err)
		}
		v := x.s.View()
		incumbent.Reset(v)
		var m *mirror.Mirror
		var e *sched.Env
		var layout mirror.Layout
		var d sim.Decision
		asked := 0
		for !v.Over() {
			p, err := x.s.Advance(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			_ = x.Observe(v, p)
			if v.Over() {
				break
			}
			if err := sim.Decide(x.s, incumbent, p, &d, nil); err != nil {
				t.Fatal(err)
			}
			if v.Arrived() < 20 || r.IntN(5) > 0 {
				continue
			}
			s := x.snapshot(v.Now())
			if m == nil {
				layout = mirror.LayoutOf(s)
				e = follower(t, layout)
				if m, err = mirror.New(mirror.Config{Limit: time.Hour, Epoch: epoch}, layout, s); err != nil {
					t.Fatal(err)
				}
			}
			why, err := m.Show(e, sched.Following{}, s)
			if err != nil || why != nil {
				t.Fatal(k, why, err)
			}
			same := func(d time.Duration) time.Time { return epoch.Add(d) }
			if got, want := shown(e.View(), layout, m.Time), shown(v, layout, same); got != want {
				t.Fatalf("%d at %v: the mirror shows\n%s\nthe cluster is\n%s", k, v.Now(), got, want)
			}
			if x.index {
				for _, j := range v.Running() {
					if got := m.GPUs(v.Trace(j).ID); !slices.Equal(sorted(got), sorted(v.GPUs(j))) {
						t.Fatalf("job %s runs on %v, and the mirror says on %v", v.Trace(j).ID, v.GPUs(j), got)
					}
				}
			}
			ts := env.NewTimeStep(e.Spec())
			asks, err := e.Observe(ts)
			if err != nil {
				t.Fatal(err)
			}
			if asks {
				asked++
			}
		}
		if m == nil {
			t.Fatal("nobody has looked")
		}
	}
}

func sorted(gpus []cluster) []cluster {
	gpus = slices.Clone(gpus)
	slices.Sort(gpus)
	return gpus
}

// hand is a small snapshot.
func hand(at time.Duration, jobs ...live.Job) *live.Snapshot {
	s := &live.Snapshot{At: epoch.Add(at), Nodes: []live.Node{{Name: "a", GPUs: 4}, {Name: "b", GPUs: 4}}, Jobs: jobs}
	s.Sort()
	return s
}

func runs(id string, start time.Duration, node string, gpus int) live.Job {
	return live.Job{Job: traces.Job{ID: id, GPUs: gpus}, State: live.Running, Submit: epoch, Start: epoch.Add(start),
		Places: []live.Place{{Node: node, GPUs: gpus}}}
}

func waits(id string, gpus int) live.Job {
	return live.Job{Job: traces.Job{ID: id, GPUs: gpus}, Submit: epoch}
}

func text(facts []sim.Fact) string {
	var b strings.Builder
	for i := range facts {
		fmt.Fprintf(&b, "%v %v %v; ", facts[i].At, &facts[i], facts[i].GPUs)
	}
	return b.String()
}

func TestFactsByHand(t *testing.T) {
	first := hand(time.Minute, runs("1", time.Second, "a", 4), waits("2", 2))
	m, err := mirror.New(mirror.Config{}, mirror.LayoutOf(first), first)
	if err != nil {
		t.Fatal(err)
	}
	moved := runs("1", 150*time.Second, "b", 4)
	drained := hand(3*time.Minute, moved, runs("2", 100*time.Second, "a", 2))
	drained.Nodes[0].Down = true
	for _, x := range []struct {
		s    *live.Snapshot
		want string
	}{
		{first, "0s submit of job 1 []; 0s submit of job 2 []; 1s start of job 1 [0 1 2 3]; "},
		// 2 has its GPUs only if 1 has left them, which nobody has told.
		{drained,
			"1m40s fail of job 1 []; 1m40s start of job 2 [0 1]; 2m30s start of job 1 [4 5 6 7]; 3m0s node-fail of node 0 []; "},
		{hand(4*time.Minute, waits("2", 3), waits("3", 1)),
			"3m0s finish of job 2 []; 3m0s node-recover of node 0 []; 3m0s submit of job 2 []; 3m0s submit of job 3 []; 4m0s finish of job 1 []; "},
		{hand(5 * time.Minute), "5m0s drop of job 2 []; 5m0s drop of job 3 []; "},
	} {
		facts, err := m.Read(x.s)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(facts); got != x.want {
			t.Errorf("got  %s\nwant %s", got, x.want)
		}
	}
}

// After a contradiction the environment follows anew from what the cluster says; a cluster with other nodes is another
// one.
func TestContradictions(t *testing.T) {
	first := hand(time.Minute, runs("1", time.Second, "a", 4))
	layout := mirror.LayoutOf(first)
	m, err := mirror.New(mirror.Config{}, layout, first)
	if err != nil {
		t.Fatal(err)
	}
	e := follower(t, layout)
	if why, err := m.Show(e, sched.Following{}, first); why != nil || err != nil {
		t.Fatal(why, err)
	}
	earlier := hand(30*time.Second, runs("1", time.Second, "a", 4), waits("2", 1))
	if why, err := m.Show(e, sched.Following{}, earlier); why == nil || err != nil ||
		!strings.Contains(why.Error(), "comes after") {
		t.Fatal(why, err)
	}
	if v := e.View(); len(v.Running()) != 1 || len(v.Waiting()) != 1 {
		t.Fatal(v.Running(), v.Waiting())
	}
	other := hand(2 * time.Minute)
	other.Nodes[1].GPUs = 8
	if _, err := m.Show(e, sched.Following{}, other); !errors.Is(err, mirror.ErrLayout) {
		t.Fatal(err)
	}
	crowded := hand(3*time.Minute, runs("1", time.Second, "a", 4), runs("2", time.Second, "a", 4))
	if _, err := m.Show(e, sched.Following{}, crowded); err == nil ||
		!strings.Contains(err.Error(), "no other job holds") {
		t.Fatal(err)
	}
}
