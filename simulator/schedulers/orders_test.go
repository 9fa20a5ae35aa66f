package schedulers_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// starts notes the positions of the jobs in the order in which they start.
type starts []int

func (s *starts) Observe(v *sim.View, p *sim.Point) error {
	for _, e := range p.Events {
		if e.Kind == sim.Start {
			*s = append(*s, v.Pos(e.Job))
		}
	}
	return nil
}

// Any two of these jobs need more than the eight processors, so they run one after the other, in the order of their
// scores when they start. The scores are written here a second time, from the papers.
func TestOrdersFollowTheirFormulas(t *testing.T) {
	type row struct{ s, r, n float64 } // seconds, seconds, processors
	rows := []row{{7, 1000, 8}, {20, 300, 5}, {35, 4000, 6}, {60, 40, 8}, {90, 4000, 5}, {100, 700, 7}, {130, 41, 6},
		{400, 300, 5}, {500, 900, 8}}
	scores := map[string]func(j row, now float64) float64{
		"fifo":         func(j row, _ float64) float64 { return j.s },
		"lcfs":         func(j row, _ float64) float64 { return -j.s },
		"sjf":          func(j row, _ float64) float64 { return j.r },
		"ljf":          func(j row, _ float64) float64 { return -j.r },
		"smallest":     func(j row, _ float64) float64 { return j.n },
		"largest":      func(j row, _ float64) float64 { return -j.n },
		"area":         func(j row, _ float64) float64 { return j.r * j.n },
		"qssf":         func(j row, _ float64) float64 { return j.r * j.n },
		"largest-area": func(j row, _ float64) float64 { return -j.r * j.n },
		"wfp3":         func(j row, now float64) float64 { return -math.Pow((now-j.s)/j.r, 3) * j.n },
		"unicep":       func(j row, now float64) float64 { return -(now - j.s) / (math.Log2(j.n) * j.r) },
		"f1":           func(j row, _ float64) float64 { return math.Log10(j.r)*j.n + 870*math.Log10(j.s) },
		"f2":           func(j row, _ float64) float64 { return math.Sqrt(j.r)*j.n + 25600*math.Log10(j.s) },
		"f3":           func(j row, _ float64) float64 { return j.r*j.n + 6.86e6*math.Log10(j.s) },
		"f4":           func(j row, _ float64) float64 { return j.r*math.Sqrt(j.n) + 5.3e5*math.Log10(j.s) },
		"multifactor":  func(j row, now float64) float64 { return -(1000*(now-j.s)/43200 + 1000*(1-j.n/8)) },
		"wfp3-rlscheduler": func(j row, _ float64) float64 {
			return -math.Pow((-1-j.s)/j.r, 3) * j.n
		},
		"unicep-rlscheduler": func(j row, _ float64) float64 { return -(-1 - j.s) / (math.Log2(j.n) * j.r) },
	}
	var jobs []traces.Job
	for _, j := range rows {
		jobs = append(jobs,
			traces.Job{Submit: time.Duration(j.s) * time.Second, Work: time.Duration(j.r) * time.Second, GPUs: int(j.n),
				GPUMilli: 1000})
	}
	orders := map[string]bool{}
	for name, score := range scores {
		t.Run(name, func(t *testing.T) {
			var want []int
			for now := rows[0].s; len(want) < len(rows); {
				best := -1
				for i, j := range rows {
					if j.s <= now && !slices.Contains(want, i) && (best < 0 || score(j, now) < score(rows[best], now)) {
						best = i
					}
				}
				if best < 0 {
					now = rows[len(want)].s
					continue
				}
				want = append(want, best)
				now += rows[best].r
			}
			m, err := sim.New(sim.DefaultConfig(), cluster.Spec{Pool: 8})
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
				t.Fatal(err)
			}
			var got starts
			h := scheduler(t, func(c *schedulers.Config) { c.Order = name })
			if err := sim.Run(context.Background(), m, h, &got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("jobs start as %v, want %v", got, want)
			}
			orders[name] = true
		})
	}
	// Orders that are missing here have their own example
	for _, name := range schedulers.Orders() {
		others := []string{"lpf", "random", "hold", "exact", "drf", "tetris", "packer", "fairshare"}
		if !schedulers.Preemptive(name) && !orders[name] && !slices.Contains(others, name) {
			t.Errorf("no formula for %s", name)
		}
	}
}
