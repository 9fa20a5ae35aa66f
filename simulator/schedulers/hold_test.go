package schedulers_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// naiveHold is hold as its documentation has it: every decision looks at every job anew.
type naiveHold struct {
	w     tuned.Hold
	est   sim.Estimates
	place cluster.Placement
}

func (n *naiveHold) Reset(*sim.View) {}

func (n *naiveHold) job(v *sim.View, j sim.Job) (hours, gpus, spread float64) {
	r := v.Request(j)
	hours, gpus = max(n.est.Of(v, j), time.Second).Hours(), float64(r.GPUs*r.Milli)/1000
	if n.est.Causal() {
		f := v.Forecast(j)
		spread = math.Log(float64(f.Mean()) / float64(f.Median()))
	}
	return hours, gpus, spread
}

// goesOn returns for how many hours a running job goes on. Medians are those of the last age of 0, 1, 1¼, 1½, 1¾, 2,
// 2½, … seconds.
func (n *naiveHold) goesOn(v *sim.View, j sim.Job) float64 {
	if !n.est.Causal() {
		return n.est.Left(v, j).Hours()
	}
	ran, age := v.Ran(j), time.Duration(0)
	for unit := time.Second; unit <= ran; unit *= 2 {
		for quarters := range time.Duration(4) {
			if at := unit + unit/4*quarters; at <= ran {
				age = at
			}
		}
	}
	return max(0, (v.Forecast(j).Draw(0.5, age) - ran).Hours())
}

func (n *naiveHold) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	line := slices.Clone(v.Waiting())
	key := func(j sim.Job) float64 {
		r, g, s := n.job(v, j)
		return math.Log(r) + n.w.Width*math.Log(max(g, 0.001)) + n.w.Spread*s
	}
	slices.SortFunc(line, func(a, b sim.Job) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(v.Pos(a), v.Pos(b)))
	})
	all, free, asked := float64(v.Cluster().Own()), float64(v.Cluster().FreeMilli())/1000, 0.0
	for _, j := range line {
		_, g, _ := n.job(v, j)
		asked += g
	}
	gangs := slices.Clone(v.Running())
	slices.SortFunc(gangs, func(a, b sim.Job) int { return cmp.Compare(n.goesOn(v, a), n.goesOn(v, b)) })
	first := sim.Job(-1)
	for _, j := range line {
		if v.Decided(j) {
			continue
		}
		r, g, s := n.job(v, j)
		if !v.Fits(j) {
			if first < 0 {
				first = j
			}
			continue
		}
		if len(gangs) > 0 {
			blocked := g
			for _, k := range gangs {
				_, gpus, _ := n.job(v, k)
				blocked += gpus * min(1, n.goesOn(v, k)/r)
			}
			delay, later := 0.0, 0.0
			count := func(j sim.Job) int { r := v.Request(j); return r.GPUs * r.Milli }
			if first >= 0 {
				its, _, _ := n.job(v, first)
				due, need, have := 0.0, count(first), v.Cluster().FreeMilli() // those that end together count together
				for _, k := range gangs {
					if have >= need && n.goesOn(v, k) > due {
						break
					}
					due, have = n.goesOn(v, k), have+count(k)
				}
				if have >= need && count(j) > have-need && r > due {
					delay, later = 1, (r-due)/its
				}
			}
			wait, lr := (v.Now() - v.Trace(j).Submit).Hours(), math.Log(r)
			w := &n.w
			z := w.Base + w.Time*lr + w.Wide*math.Log(max(g,
				0.001)) + w.Unsure*s + w.Full*(all-free+g)/all + w.Blocked*blocked/all + w.Both*lr*blocked/all +
				w.Age*math.Log(1+wait/r) + w.Queue*math.Log(1+asked/all) + w.Delay*delay + w.Later*math.Log(1+later)
			if z > 0 {
				continue
			}
		}
		gpus, ok := []cluster.GPU(nil), v.Cluster().Pool()
		if !ok {
			gpus, ok = n.place.Place(v.Cluster(), v.Request(j), nil)
		}
		if ok {
			d.Op, d.Job, d.GPUs = sim.StartJob, j, gpus
			return nil
		}
	}
	return nil
}

// drawHold draws weights with which some jobs are held back.
func drawHold(t *rapid.T) (h tuned.Hold) {
	for i, w := range h.Weights() {
		// Odd fractions, so that no rounding decides whether a sum is above 0.
		*w = float64(number(t, -40, 40, tuned.HoldNames()[i]))/13 + 0.01*math.Pi
	}
	return h
}

// Decisions are those of the formula.
func TestHoldFollowsItsFormula(t *testing.T) {
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		x := drawWorld(t, wants{order: "hold", most: 25})
		x.policy.Hold = drawHold(t)
		x.policy.Placement = one(t, fixedPlacements, "placement")
		est := x.policy.Estimates
		est.Seed = x.policy.Seed
		s, h := x.machine(t)
		got := x.playOn(t, s, h, new(history))
		naive := schedulers.OnParts(func() sim.Scheduler {
			p, err := cluster.NewPlacement(x.policy.Placement)
			if err != nil {
				t.Fatal(err)
			}
			return &naiveHold{w: x.policy.Hold, est: est, place: p}
		})
		if want := x.playOn(t, s, naive, new(history)); got != want {
			t.Fatalf("%+v\n%s\n%s", x.policy.Hold, diff(got, want), x)
		}
		x.policy.Hold = x.policy.Hold.Unheld()
		s, h = x.machine(t)
		if got != x.playOn(t, s, h, new(history)) {
			held++
		}
	})
	if !raced.On && held < ofDraws(10) {
		t.Errorf("%d runs in which a job was held back", held)
	}
}

// A long job on all GPUs waits until the short ones are gone; without weights that hold back it does not.
func TestHoldKeepsGPUsFree(t *testing.T) {
	hour := 3600 * second
	jobs := []traces.Job{
		{ID: "a", Submit: 0, Work: hour, GPUs: 1, GPUMilli: 1000},
		{ID: "long", Submit: second, Work: 100 * hour, GPUs: 7, GPUMilli: 1000},
		{ID: "b", Submit: 2 * second, Work: 60 * second, GPUs: 4, GPUMilli: 1000},
		{ID: "c", Submit: 4 * second, Work: 60 * second, GPUs: 4, GPUMilli: 1000},
	}
	order := func(w tuned.Hold) []int {
		m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 8})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
			t.Fatal(err)
		}
		var got starts
		h := scheduler(t, func(c *schedulers.Config) { c.Order, c.Hold = "hold", w })
		if err := sim.Run(context.Background(), m, h, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got, want := order(tuned.DefaultHold(sim.Estimates{Mode: sim.EstimateExact})),
		[]int{0, 2, 3, 1}; !slices.Equal(got, want) {
		t.Errorf("jobs start as %v, want %v", got, want)
	}
	if got, want := order(tuned.Hold{Width: 1}), []int{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("without weights that hold back: jobs start as %v, want %v", got, want)
	}
}

func TestHoldRefusesWeightsThatAreNoNumbers(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), -2e6} {
		c := schedulers.DefaultConfig()
		c.Order, c.Hold = "hold", tuned.Hold{Later: bad}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "hold.later") ||
			!strings.Contains(err.Error(), "a number from -1e6 to 1e6") {
			t.Errorf("later %v: %v", bad, err)
		}
	}
	c := schedulers.DefaultConfig()
	c.Order, c.Admission = "hold", "strict"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "hold has its own") {
		t.Error(err)
	}
}
