package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const second = time.Second

var ctx = context.Background()

// job returns a whole-GPU job.
func job(id string, submit, work time.Duration, gpus int) traces.Job {
	return traces.Job{ID: id, Submit: submit, Work: work, GPUs: gpus, GPUMilli: 1000}
}

// fatal is the common interface of *testing.T, *testing.B, *testing.F and *rapid.T.
type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func short(t fatal, name string) cluster.Spec {
	t.Helper()
	spec, ok, err := cluster.Parse(name)
	if !ok || err != nil {
		t.Fatal(name, ok, err)
	}
	return spec
}

// start returns a simulator at the beginning of jobs.
func start(t fatal, cfg sim.Config, spec cluster.Spec, jobs []traces.Job) *sim.Simulator {
	t.Helper()
	s, err := sim.New(cfg, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	return s
}

func advance(t fatal, s *sim.Simulator) *sim.Point {
	t.Helper()
	p, err := s.Advance(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t fatal, s *sim.Simulator, d sim.Decision) {
	t.Helper()
	if err := s.Apply(&d); err != nil {
		t.Fatal(err)
	}
}

// text describes p in one line: "10s: finish A, submit B[0 1]".
func text(v *sim.View, p *sim.Point) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v:", p.Now)
	for i, e := range p.Events {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %v", e.Kind)
		if e.Job >= 0 {
			fmt.Fprintf(&b, " %s", v.Trace(e.Job).ID)
		} else if e.Kind != sim.Timer {
			fmt.Fprintf(&b, " %d", e.Node)
		}
		if len(e.GPUs) > 0 {
			fmt.Fprint(&b, e.GPUs)
		}
		if e.At != p.Now {
			fmt.Fprintf(&b, "@%v", e.At)
		}
	}
	return b.String()
}

// greedy starts the waiting job with the lowest position that fits.
type greedy struct {
	place cluster.Placement
}

func newGreedy(t fatal, placement string) *greedy {
	t.Helper()
	p, err := cluster.NewPlacement(placement)
	if err != nil {
		t.Fatal(err)
	}
	return &greedy{p}
}

func (*greedy) Reset(*sim.View) {}

func (g *greedy) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	best := sim.Job(-1)
	for _, j := range v.Waiting() {
		if (best < 0 || v.Pos(j) < v.Pos(best)) && v.Fits(j) {
			best = j
		}
	}
	if best >= 0 {
		d.Op, d.Job = sim.StartJob, best
		d.GPUs, _ = g.place.Place(v.Cluster(), v.Request(best), d.GPUs)
	}
	return nil
}

// lines is an observer that writes down every point.
type lines struct{ b bytes.Buffer }

func (l *lines) Observe(v *sim.View, p *sim.Point) error {
	l.b.WriteString(text(v, p))
	l.b.WriteByte('\n')
	return nil
}

// chaos makes random decisions, legal and illegal. They depend only on its generator and the run.
type chaos struct {
	r      *rand.Rand
	rules  []cluster.Placement
	gpus   []cluster.GPU
	scale  time.Duration // of the times of WaitUntil
	legal  bool          // make no illegal decisions
	drops  bool
	moves  bool // migrate, resize and start at other sizes
	copy   *cluster.Cluster
	stops  int // per hundred decisions
	before []byte
	after  []byte
	count  int
	busy   int // decisions other than waits
}

func newChaos(t fatal, r *rand.Rand) *chaos {
	c := &chaos{r: r, scale: second, drops: true, stops: 25}
	for _, n := range cluster.PlacementNames() {
		p, err := cluster.NewPlacement(n)
		if err != nil {
			t.Fatal(err)
		}
		c.rules = append(c.rules, p)
	}
	return c
}

// one draws a decision that is legal as far as it can tell; Wait if it finds none.
func (c *chaos) one(v *sim.View, d *sim.Decision) {
	*d = sim.Decision{}
	switch x := c.r.IntN(100); {
	case x < c.stops:
		if run := v.Running(); len(run) > 0 {
			d.Op, d.Job = sim.PreemptJob, run[c.r.IntN(len(run))]
			return
		}
	case x < c.stops+2 && c.drops:
		if w := v.Waiting(); len(w) > 0 {
			d.Op, d.Job = sim.DropJob, w[c.r.IntN(len(w))]
			return
		}
	case x < c.stops+15 && c.moves:
		if c.move(v, d) {
			return
		}
		*d = sim.Decision{}
	case x < 85:
		if w := v.Waiting(); len(w) > 0 {
			j := w[c.r.IntN(len(w))]
			req := *v.Request(j)
			n := 0
			if c.moves {
				if k, ok := c.otherSize(v, j, req.GPUs); ok {
					req, n = v.Cluster().Resized(req, k), k
				}
			}
			var ok bool
			if c.gpus, ok = c.rules[c.r.IntN(len(c.rules))].Place(v.Cluster(), &req, c.gpus); ok {
				d.Op, d.Job, d.GPUs, d.N = sim.StartJob, j, c.gpus, n
				return
			}
		}
	case x < 92:
		d.Until = v.Now() + time.Duration(1+c.r.IntN(50))*c.scale
		return
	}
	if !v.CanWait() {
		d.Until = v.Now() + c.scale
	}
}

// wrong draws a decision that must be refused; ok is false if it finds none.
func (c *chaos) wrong(v *sim.View, d *sim.Decision) (ok bool) {
	*d = sim.Decision{}
	pick := func(l []sim.Job) bool {
		if len(l) == 0 {
			return false
		}
		d.Job = l[c.r.IntN(len(l))]
		return true
	}
	switch c.r.IntN(10) {
	case 8, 9: // they cannot be resized or moved to what they ask for
		d.Op, d.N = sim.MigrateJob, 1<<20
		d.GPUs = []cluster.GPU{0, 0}
		if c.r.IntN(2) == 0 {
			d.Op = sim.ResizeJob
		}
		return pick(v.Running())
	case 0:
		d.Op, d.Job = sim.StartJob, sim.Job(c.r.IntN(1000)+v.Arrived())
	case 1:
		d.Op, d.Job = sim.PreemptJob, -1
	case 2:
		d.Op = sim.StartJob
		return pick(v.Running())
	case 3:
		d.Op = sim.PreemptJob
		return pick(v.Waiting())
	case 4:
		d.Op = sim.DropJob
		return pick(v.Running())
	case 5:
		d.Op = sim.StartJob
		d.GPUs = []cluster.GPU{-1, 0, 1 << 20}
		return pick(v.Waiting())
	case 6:
		d.Op = sim.Op(6 + c.r.IntN(200))
	case 7:
		d.Until = v.Now() - time.Duration(c.r.IntN(3))
		return d.Until != 0
	}
	return true
}

// until plays s from its beginning until some decisions have been made or it ends, and reports whether the point is
// open.
func (c *chaos) until(t fatal, s *sim.Simulator, decisions int) (open bool) {
	t.Helper()
	var d sim.Decision
	for range decisions {
		if !open {
			if _, err := s.Advance(context.Background()); ended(t, err) || s.View().Over() {
				return false
			}
			open = true
		}
		c.one(s.View(), &d)
		if err := s.Apply(&d); err != nil && !errors.Is(err, sim.ErrDecision) {
			t.Fatal(err)
		} else if err == nil && d.Op == sim.Wait {
			open = false
		}
	}
	return open
}

// play decides until the point is over. Illegal decisions must return errors and change nothing.
func (c *chaos) play(t fatal, s *sim.Simulator) {
	t.Helper()
	v := s.View()
	for {
		var d sim.Decision
		if !c.legal && c.r.IntN(4) == 0 && c.wrong(v, &d) {
			c.count++
			c.before = s.AppendSnapshot(c.before[:0])
			err := s.Apply(&d)
			if err == nil {
				t.Fatalf("%+v was applied at %v", d, v.Now())
			}
			c.after = s.AppendSnapshot(c.after[:0])
			if !bytes.Equal(c.before, c.after) {
				t.Fatalf("%+v was refused (%v) and changed the run", d, err)
			}
			continue
		}
		c.one(v, &d)
		c.count++
		err := s.Apply(&d)
		if err2 := s.CheckInvariants(); err2 != nil {
			t.Fatalf("after %+v: %v", d, err2)
		}
		if err != nil && !errors.Is(err, sim.ErrDecision) { // a job may have one decision in an instant
			t.Fatalf("%+v at %v: %v", d, v.Now(), err)
		}
		if d.Op == sim.Wait {
			if err != nil {
				t.Fatalf("%+v at %v: %v", d, v.Now(), err)
			}
			return
		}
		c.busy++
	}
}

// mixed draws n jobs for a cluster of gpus GPUs: gangs, shares, types, cores; some of them may not fit.
func mixed(r *rand.Rand, n, gpus int, unit time.Duration) []traces.Job {
	jobs := make([]traces.Job, n)
	at := time.Duration(0)
	for i := range jobs {
		if r.IntN(3) > 0 { // a third arrive together with the previous one
			at += time.Duration(r.IntN(40)) * unit
		}
		j := job(fmt.Sprint("j", i), at, time.Duration(r.IntN(200))*unit, 1+r.IntN(gpus))
		switch r.IntN(8) {
		case 0:
			j.GPUMilli = 1 + r.IntN(999)
		case 1:
			j.GPUTypes = []string{"v100"}
		case 2:
			j.CPUMilli = int64(r.IntN(20000))
		case 3:
			j.GPUs += gpus
		}
		jobs[i] = j
	}
	return jobs
}

// mixedSpec returns a cluster with two types, limits, and speeds that a float may or may not represent exactly.
func mixedSpec(r *rand.Rand) cluster.Spec {
	s := cluster.Spec{Speeds: map[string]float64{"v100": []float64{1, 2, 1.7}[r.IntN(3)],
		"k80": []float64{1, 0.5, 0.3}[r.IntN(3)]}}
	for range 1 + r.IntN(3) {
		s.Racks = append(s.Racks, cluster.RackSpec{Count: cluster.Count(1 + r.IntN(2)), Nodes: []cluster.NodeSpec{
			{Count: cluster.Count(1 + r.IntN(2)), GPUs: 1 + r.IntN(4), GPUType: "v100"},
			{Count: 1, GPUs: r.IntN(5), GPUType: "k80", CPUs: float64(r.IntN(2) * 16)},
		}})
	}
	return s
}

// ended reports whether err is the end of the run, and fails on any other error.
func ended(t fatal, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, sim.ErrDone) {
		t.Fatal(err)
	}
	return err != nil
}

var _ fatal = (*testing.T)(nil)
