package assess

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/ops/incumbent"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Options say what is assessed.
type Options struct {
	File string       // as the user named it
	Jobs []traces.Job // of the file, in order of submit, with their recorded starts
	// Epoch is when the clock of Jobs shows 0; zero = not known.
	Epoch     time.Time
	Dropped   []Reason // rows that the reader left out
	Cluster   string   // as the user named it, or how it was found
	Spec      cluster.Spec
	Limit     time.Duration // stands for the time limits of jobs that have none; 0 = they are an error
	Placement string        // "" = consolidate-best
	GPUs      int           // how many more GPUs are asked about; 0 = about a tenth
	LeftOut   bool          // more than MostLeftOut of the GPU time may be left out
	Tune      bool          // fit the weights of hold to the first half of the record
	Agent     Trainer       // asks about an agent that learns from the first half; nil = none
	Workers   int
	Notes     []string
	Progress  func(what string)
	// Line returns the line of the file on which a job stands, 0 = not known; nil = of none.
	Line func(id string) int
}

// MostLeftOut is the share of the GPU time that may be left out without Options.LeftOut.
const MostLeftOut = 0.05

// mostOver is the share of the GPU time that may lie above what the cluster has.
const mostOver = 0.02

// LeastJobs is how many jobs with GPUs and a recorded start it takes.
const LeastJobs = 30

// Reason counts what is left out for one reason.
type Reason struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// seed is that of all intervals, so that equal files give equal documents.
const seed = 1

// Assess makes the assessment. The result is the same for any number of workers.
func Assess(ctx context.Context, opt Options) (*Assessment, error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	if opt.Placement == "" {
		opt.Placement = "consolidate-best"
	}
	opt.Progress("reading the recorded starts")
	past, left, err := incumbent.New(opt.Spec, opt.Jobs, incumbent.Reading{Limit: opt.Limit, Placement: opt.Placement})
	if err != nil {
		return nil, err
	}
	a := &assessor{ctx: ctx, opt: &opt, past: past, left: left, out: &Assessment{File: opt.File}}
	if err := a.check(); err != nil {
		return nil, err
	}
	for _, step := range []func() error{a.recorded, a.models, a.policies, a.whatIfs, a.learned} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	a.changes()
	a.notes()
	a.words()
	return a.out, nil
}

// assessor makes an Assessment.
type assessor struct {
	ctx  context.Context
	opt  *Options
	past *incumbent.Past
	left *incumbent.Left
	out  *Assessment

	real   []float64 // recorded waits by position; of jobs that did not start, until the end
	bins   *bins     // of the jobs by which policies are compared
	fitted []incumbent.Fitted
	model  []float64 // waits under the best model
	margin float64   // of the model's error, a logarithm of a ratio
	plays  []played  // of policies, in order of out.Policies
}

// played is what came of a policy.
type played struct {
	name  string
	waits []float64
	never int
}

// check returns why nothing can be said of the record.
func (a *assessor) check() error {
	started := 0
	for i := range a.past.Starts {
		if a.past.Starts[i] >= 0 && a.past.Jobs[i].GPUs > 0 {
			started++
		}
	}
	machine, err := cluster.New(a.past.Spec)
	if err != nil {
		return err
	}
	c := &a.out.Cluster
	c.Name, c.Nodes, c.GPUs = a.opt.Cluster, machine.Nodes(), machine.GPUs()
	l := a.left
	switch asked := l.Jobs - l.CPUOnly; {
	case asked == 0:
		return fault.Mistakef("%s: none of its %s asks for a GPU", a.opt.File, plain.Count(l.Jobs, "job", "jobs"))
	case l.Share() > MostLeftOut && !a.opt.LeftOut:
		return fault.Mistakef("%s: %d of %d jobs with GPUs, %.0f %% of the GPU time, can never fit cluster %s: %s. What is "+
			"said of the rest would not be of this cluster; %s names the right one, %s leaves them out",
			a.opt.File, l.Never, asked, 100*l.Share(), a.opt.Cluster, joined(l.Why), fault.Key("cluster"),
			fault.Key("accept-left-out"))
	case started == 0:
		return fault.Mistakef("%s: no row has a start, and without recorded starts nothing can be compared with what "+
			"happened: export the column Start of sacct, start_time of a CSV file", a.opt.File)
	case started < LeastJobs:
		return fault.Mistakef("%s: %s with GPUs and a recorded start, want at least %d: give a longer record",
			a.opt.File, plain.Count(started, "job", "jobs"), LeastJobs)
	case l.Over > mostOver:
		at := ""
		if !a.opt.Epoch.IsZero() {
			at = " at " + a.opt.Epoch.Add(l.PeakAt).Format("2006-01-02 15:04")
		}
		return fault.Mistakef("%s: its jobs held up to %d GPUs at one time%s, and cluster %s has %d; %s names the cluster "+
			"on which they ran", a.opt.File, l.Peak, at, a.opt.Cluster, c.GPUs, fault.Key("cluster"))
	case l.Given > 0 && a.opt.Limit == 0 && l.Given < len(a.past.Jobs):
		return fault.Mistakef("%s: job %s%s has no time limit (column Timelimit of sacct, estimate of a CSV file), "+
			"as %d of %d jobs: models of the scheduler need them; %s says what stands for the missing ones, as 24h",
			a.opt.File, plain.Clip(l.First, 40), a.onLine(l.First), l.Given, len(a.past.Jobs), fault.Key("limit"))
	}
	return nil
}

// onLine says on which line of the file a job stands.
func (a *assessor) onLine(id string) string {
	if a.opt.Line == nil {
		return ""
	}
	if n := a.opt.Line(id); n > 0 {
		return fmt.Sprintf(" (line %d)", n)
	}
	return ""
}

func joined(why []string) string {
	text := ""
	for i, w := range why {
		if i > 0 {
			text += "; "
		}
		text += w
	}
	return text
}

// models finds the best model of the incumbent and how close it comes.
func (a *assessor) models() error {
	fitted, err := incumbent.Fit(a.ctx, a.past, a.opt.Placement, a.opt.Workers, func(done, all int, what string) {
		a.opt.Progress(fmt.Sprintf("finding the scheduler that ran: %d of %d, %s", done, all, what))
	})
	if err != nil {
		return err
	}
	a.fitted = fitted
	for i := range fitted {
		f := &fitted[i]
		m := Model{Name: f.Name, Text: f.Text, Placement: cmp.Or(f.Placement, a.opt.Placement),
			Knows: a.limitsOr(f.NeedsLimits()), NotPlayed: f.Left}
		if f.Schedule != nil {
			w := a.past.Waits(f.Schedule)
			m.Error, m.Mean, m.Second, m.SecondMean = number(f.Error), number(f.Mean), number(f.Second), number(f.SecondMean)
			m.Wait = number(incumbent.Mean(w, a.bins.of))
		}
		a.out.Models = append(a.out.Models, m)
	}
	best := &fitted[0]
	a.model = a.past.Waits(best.Schedule)
	if a.past, err = a.past.On(&best.Model, cmp.Or(best.Placement, a.opt.Placement)); err != nil {
		return err
	}
	a.opt.Placement = cmp.Or(best.Placement, a.opt.Placement) // rivals put jobs where it does
	a.calibrate(best)
	return nil
}

// limitsOr says what a model of the incumbent knows.
func (a *assessor) limitsOr(limits bool) string {
	if limits {
		return "time limits"
	}
	return "no run times"
}

// knows says in a few words what a policy with these estimates is told.
func knows(name string, e sim.Estimates) string {
	switch {
	case !incumbent.NeedsRunTimes(name):
		return "no run times"
	case e.Mode == sim.EstimateExact:
		return "the true run times"
	case e.Mode == sim.EstimateTrace:
		return "time limits"
	}
	return "forecasts"
}
