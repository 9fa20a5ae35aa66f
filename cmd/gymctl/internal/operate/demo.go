package operate

import (
	"os"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/options"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/live/demo"
	"clustergym/ops/steer"
	"clustergym/ops/twin"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// onDemo has steer live by the demo's clock, and know what a cluster would know.
func (g *SteerFlags) onDemo(a *cli.App, d *demo.Cluster, choice *steer.Choice) error {
	cfg := &g.loop
	if err := g.past.none(); err != nil {
		return err
	}
	if info, err := os.Stat(g.LogFile); err == nil && info.Size() > 0 && info.Mode().IsRegular() && !g.Demo.Joined {
		return fault.Mistakef("--log: %s has looks already, and each demo begins anew; want another file, or remove it",
			g.LogFile)
	}
	choice.History, cfg.Mirror.Epoch = d.Past(), d.Epoch()
	cfg.Begun.History, cfg.Begun.HistoryUntil = g.Demo.From, d.Begins().Seconds()
	cfg.Now, cfg.Wait, cfg.Fast = d.Now, d.Sleep, d.Speed()
	noteDemo(a, &g.Demo, d)
	return nil
}

// none returns the mistake that a history is given for a demo.
func (p *PastFlags) none() error {
	if p.File == "" && p.End == "" {
		return nil
	}
	return fault.Mistakef("--history does not go with --cluster demo: it is what had ended in --from when the demo begins")
}

// noteDemo says what the demo is.
func noteDemo(a *cli.App, f *options.DemoFlags, d *demo.Cluster) {
	a.Notef("demo of %s: %v", f.From, d)
	if f.Why != "" && !f.Joined {
		a.Notef("%s (--nodes names others)", f.Why)
	}
	out := d.LeftOut()
	if n := out.NoGPUs + out.NoRunTime; n > 0 {
		a.Notef("%s left out: no GPUs or no run time", plain.Count(n, "job is", "jobs are"))
	}
	if out.Unfit > 0 {
		a.Notef("%s left out, %s of the GPU time: no such GPUs on the nodes, or too few", plain.Count(out.Unfit, "job is",
			"jobs are"), workload.Percent(out.UnfitHours/out.Hours))
	}
	if n := d.Unseated(); n > 0 {
		a.Notef("%s that ran when the demo begins, and for which the nodes have no room",
			plain.Count(n, "job waits", "jobs wait"))
	}
	if f.Apart != "" {
		a.Notef("other programs see a demo of their own: %s", f.Apart)
	}
}

// until returns the jobs that had ended by a time on their clock.
func until(jobs []traces.Job, seconds float64) (list []traces.Job) {
	for i := range jobs {
		if options.DemoEnd(&jobs[i]).Seconds() <= seconds {
			list = append(list, jobs[i])
		}
	}
	return list
}

// onDemo has twin know what a cluster would know, and how a demo schedules. It returns how twin waits.
func (g *twinFlags) onDemo(a *cli.App, d *demo.Cluster, eye *twin.Eye) error {
	if err := g.past.none(); err != nil {
		return err
	}
	eye.History, eye.Mirror.Epoch = d.Past(), d.Epoch()
	g.cfg.Able = g.arrivals == ""
	g.cfg.Arrives = g.cfg.Able || g.arrivals == "history"
	if g.scheduler == "" {
		name := map[string]string{demo.BackfillEasy: "fifo+strict+easy", demo.BackfillNone: "fifo+strict",
			demo.BackfillAny: "fifo+skip"}[d.Backfill()]
		m, err := twin.ParseModel(name, sim.Estimates{Mode: sim.EstimateTrace})
		if err != nil {
			return err
		}
		if g.cfg.Scheduler, err = m.Place(g.placement); err != nil {
			return err
		}
	}
	noteDemo(a, &g.Demo, d)
	return nil
}
