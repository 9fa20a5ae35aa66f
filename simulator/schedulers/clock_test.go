package schedulers_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

const year = 365 * 24 * time.Hour

// clockRun runs jobs under order.
func clockRun(t *testing.T, order string, cfg sim.Config, spec cluster.Spec, jobs []traces.Job) error {
	t.Helper()
	h := schedulers.DefaultConfig()
	h.Order, h.Round, h.Lease, h.Migrate = order, year, year, 0
	p, err := schedulers.New(h)
	if err != nil {
		t.Fatal(err)
	}
	m, err := sim.New(cfg, spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reset(&traces.Slice{Jobs: jobs}); err != nil {
		return err
	}
	if err := sim.Run(t.Context(), m, p); err != nil {
		if _, again := m.Advance(t.Context()); again == nil || errors.Is(again, sim.ErrDone) {
			t.Errorf("after %v the run goes on: %v", err, again)
		}
		return err
	}
	for _, j := range m.View().Running() {
		if cfg.Horizon == 0 {
			t.Errorf("%s: %v still runs when the run is over", order, m.View().Trace(j).ID)
		}
	}
	return nil
}

// A time that the clock cannot hold ends the run with one sentence: no time wraps around, and no job is left out
// silently.
func TestTheClockEndsWithASentence(t *testing.T) {
	one := cluster.Spec{Pool: 1}
	slow := cluster.Spec{Speeds: map[string]float64{"old": .001},
		Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{GPUs: 1, GPUType: "old"}}}}}
	j := func(submit, work time.Duration) traces.Job {
		return traces.Job{ID: "j", Submit: submit, Work: work, Estimate: work, GPUs: 1, GPUMilli: 1000}
	}
	long := func(d time.Duration) sim.Config {
		c := sim.DefaultConfig()
		c.Horizon = d
		return c
	}
	restart := sim.DefaultConfig()
	restart.Overhead.Start, restart.Restart = time.Hour, 290*year
	estimate := j(0, year)
	estimate.Estimate = 200 * year
	for name, c := range map[string]struct {
		cfg  sim.Config
		spec cluster.Spec
		jobs []traces.Job
		want string // "" = no fault
	}{
		"a late submit":     {long(0), one, []traces.Job{j(0, year), j(200*year, time.Second)}, "146 years"},
		"a long job":        {long(0), one, []traces.Job{j(0, 292*year)}, "146 years"},
		"a long estimate":   {long(0), one, []traces.Job{estimate}, "146 years"},
		"one after another": {long(0), one, []traces.Job{j(0, 100*year), j(0, 100*year)}, "146 years"},
		"a chain": {long(0), one, []traces.Job{j(0, 100*year), j(0, 100*year), j(0, 100*year), j(0, 100*year)},
			"146 years"},
		"a slow GPU":      {long(0), slow, []traces.Job{j(0, year)}, "146 years"},
		"restarts":        {restart, one, []traces.Job{j(0, 10*year), j(year, year)}, ""},
		"a horizon":       {long(120 * year), one, []traces.Job{j(0, 100*year), j(0, 100*year)}, ""},
		"a slow GPU, cut": {long(120 * year), slow, []traces.Job{j(0, year)}, ""},
		"long and fine":   {long(0), one, []traces.Job{j(0, 70*year), j(0, 70*year)}, ""},
	} {
		for _, order := range schedulers.Orders() {
			if order == "exact" {
				continue
			}
			err := clockRun(t, order, c.cfg, c.spec, c.jobs)
			if name == "restarts" { // orders that preempt pay for it
				if err != nil && !strings.Contains(err.Error(), "146 years") {
					t.Errorf("%s, %s: %v", name, order, err)
				}
				continue
			}
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s, %s: %v, want %q", name, order, err, c.want)
			}
		}
	}
	c := sim.DefaultConfig()
	c.Horizon = 200 * year
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "146 years") {
		t.Errorf("a horizon of 200 years: %v", err)
	}
}
