package report

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/env/jobselect"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/lab/config"
	"clustergym/ops/incumbent"
	"clustergym/ops/steer"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// Options say what is compared.
type Options struct {
	// Choice is the policy; nil = none can be opened, and Why says why.
	Choice *steer.Choice
	Why    string
	// Estimates are those of rivals that look at run times.
	Estimates sim.Estimates
	History   []traces.Job  // in order of submit; what predictors know at the first look
	Limit     time.Duration // of jobs that have none
	Asks      int           // moments at which the policy is asked again at most
	Notes     []string
	Progress  func(what string)
}

// Try opens the policy on the cluster of a log, and returns why it cannot be.
func (o *Options) Try(l *Log) error {
	_, err := steer.Open(o.Choice, layoutOf(l))
	return err
}

// Report is what a log says.
type Report struct {
	Files    []string  `json:"files"`
	Cluster  string    `json:"cluster"`
	Nodes    int       `json:"nodes"`
	GPUs     int       `json:"gpus"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Looks    int       `json:"looks"`
	Runs     int       `json:"runs_of_steer"`
	Policy   string    `json:"policy"` // of the report; "" = none could be opened
	InLog    []string  `json:"policies_in_log"`
	Modes    []string  `json:"modes"`
	Jobs     int       `json:"jobs"`
	Replayed int       `json:"replayed"`

	Agreement   *Agreement  `json:"agreement"`
	Candidates  []Candidate `json:"incumbent_candidates"`
	Incumbent   string      `json:"incumbent"`
	Twin        string      `json:"twin_scheduler"` // the best of the candidates that gymctl twin can play; "" = none
	Calibration Calibration `json:"calibration"`
	Rows        []Row       `json:"replays"` // of jobs that arrived in the second half
	Belief      string      `json:"belief"`
	Censored    Censored    `json:"censored"`
	Notes       []string    `json:"notes"`

	log    *Log
	curves []curve
	pairs  [][2]float64 // waits that were and that the model has, of the second half
}

// Censored counts jobs of which the log does not tell all, and those that replays leave out.
type Censored struct {
	Running   int `json:"still_running"`   // at the last look: their run times are guessed
	Waiting   int `json:"still_waiting"`   // likewise
	Withdrawn int `json:"withdrawn"`       // left out
	Blocked   int `json:"blocked"`         // left out
	Large     int `json:"never_fit"`       // left out
	Before    int `json:"ran_at_the_look"` // the first one: they are where they were
}

// Candidate is a model of the incumbent.
type Candidate struct {
	Name   string  `json:"name"`
	Error  float64 `json:"mean_absolute_error_s"` // of waits, of jobs that arrived in the first half
	Mean   float64 `json:"mean_wait_s"`           // likewise
	Second float64 `json:"second_half_mean_absolute_error_s"`
	text   string
}

// Calibration compares the model of the incumbent with what happened, on the second half.
type Calibration struct {
	N         int          `json:"jobs"`
	First     int          `json:"first_half_jobs"` // by which the model was chosen
	Real      float64      `json:"real_mean_wait_s"`
	Model     float64      `json:"model_mean_wait_s"`
	Percent   *float64     `json:"error_percent"` // of the mean wait; null where nothing waited
	CI95      *[2]float64  `json:"ci95"`
	Quantiles [][3]float64 `json:"quantiles"` // quantile, real, model
	Corr      *float64     `json:"correlation"`
	Absolute  float64      `json:"mean_absolute_error_s"`
	Near      float64      `json:"within_a_minute"` // share of jobs
	Guessed   float64      `json:"guessed"`         // share of jobs whose run times are, because they had not ended
	Blocks    int          `json:"blocks"`          // with jobs; intervals need five
}

// Row is a replay, or the cluster itself.
type Row struct {
	Name      string      `json:"name"`
	Role      string      `json:"role"` // cluster, incumbent, policy, rival, oracle
	Knows     string      `json:"knows"`
	Mean      float64     `json:"mean_wait_s"`
	P50       float64     `json:"p50_s"`
	P90       float64     `json:"p90_s"`
	Percent   *float64    `json:"against_incumbent_percent,omitempty"` // of the mean wait; negative is less
	CI95      *[2]float64 `json:"ci95,omitempty"`
	Unstarted int         `json:"never_started,omitempty"`
}

// mostReserved is how many jobs a log may have for conservative back-filling to be tried: it makes a reservation for
// every waiting job.
const mostReserved = 5000

// Build makes the report of a log.
func Build(ctx context.Context, l *Log, opt Options) (*Report, error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	r, err := newReplay(l, opt.Limit, opt.History)
	if err != nil {
		return nil, err
	}
	out := &Report{
		Files: l.Files, Cluster: l.Cluster, Nodes: len(l.Nodes), GPUs: l.GPUs(), From: l.From, To: l.To, Looks: l.Looks,
		Runs:  l.Runs,
		InLog: l.Policies, Modes: l.Modes, Jobs: len(l.Jobs), Replayed: len(r.Jobs), Agreement: logged(l), log: l,
		Censored: Censored{Running: r.running, Waiting: r.waiting, Withdrawn: r.withdrawn, Blocked: r.blocked, Large: r.large,
			Before: len(r.Seated)},
	}
	base := config.For(jobselect.ID)
	if opt.Choice != nil && opt.Choice.Model == nil {
		base = opt.Choice.Config
	}
	fifo, err := base.Rival("fifo")
	if err != nil {
		return nil, err
	}
	b := &builder{ctx: ctx, opt: &opt, r: r, out: out, placement: fifo.Sched.Placement}
	if err := b.incumbent(); err != nil {
		return nil, err
	}
	if err := b.replays(); err != nil {
		return nil, err
	}
	b.notes()
	return out, nil
}

// builder makes a report.
type builder struct {
	ctx       context.Context
	opt       *Options
	r         *replay
	out       *Report
	placement string
	real      []float64           // waits by job, seconds
	model     []float64           // of the incumbent
	best      *incumbent.Schedule // its
	early     int                 // jobs of the first half
	late      []int               // jobs of the second half
	block     []int               // of each of late
	blocks    int
}

// wait is how long a job waited between the first look and the last one.
func (r *replay) wait(i int, start time.Duration) float64 {
	from := max(r.Begin, r.Jobs[i].Submit)
	if start < 0 || start > r.End {
		start = r.End
	}
	return max(0, start-from).Seconds()
}

func (r *replay) waits(s *incumbent.Schedule) []float64 {
	w := make([]float64, len(r.Jobs))
	for i := range w {
		w[i] = r.wait(i, s.Starts[i])
	}
	return w
}

// realStarts is the schedule that was.
func (r *replay) realStarts() *incumbent.Schedule {
	s := &incumbent.Schedule{Starts: make([]time.Duration, len(r.Jobs))}
	for i, j := range r.of {
		s.Starts[i] = -1
		if !j.Start.IsZero() {
			s.Starts[i] = r.clock(j.Start)
		}
	}
	return s
}

// contends reports whether a job's wait is for the scheduler to decide: it did not run when steer came.
func (r *replay) contends(i int) bool {
	j := r.of[i]
	return j.Start.IsZero() || j.Start.After(r.log.From)
}

func (b *builder) ruled(name string, known sim.Estimates) (*incumbent.Schedule, error) {
	b.opt.Progress("replaying " + name)
	sch, err := incumbent.Rule(name, b.placement, known)
	if err != nil {
		return nil, err
	}
	s, err := b.r.Play(b.ctx, sch, known)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// incumbent chooses the model of the incumbent on the first half, and judges it on the second.
func (b *builder) incumbent() error {
	r, out := b.r, b.out
	was := r.realStarts()
	b.real = r.waits(was)
	out.curves = append(out.curves, r.curve("the cluster", was))
	var early []int
	each, blocks := blockOf((r.End - r.half))
	b.blocks = blocks
	for i := range r.Jobs {
		switch at := max(r.Begin, r.Jobs[i].Submit); {
		case !r.contends(i):
		case at < r.half:
			early = append(early, i)
		default:
			b.late = append(b.late, i)
			b.block = append(b.block, min(blocks-1, int((at-r.half)/each)))
		}
	}
	if len(early) == 0 || len(b.late) == 0 {
		return fault.Mistakef(
			"all jobs of %s arrived in one half of it, and a model of the cluster that is chosen on one half is judged on the "+
				"other: let steer look for longer", r.log.Files[len(r.log.Files)-1])
	}
	for _, c := range incumbent.Simple() {
		if c.Reserves() && len(r.Jobs) > mostReserved {
			continue
		}
		s, err := b.ruled(c.Name, incumbent.ByLimits)
		if err != nil {
			return err
		}
		w := r.waits(s)
		x := Candidate{Name: c.Name, Error: apart(w, b.real, early), Mean: meanOf(w, early), Second: apart(w, b.real, b.late),
			text: c.Text}
		out.Candidates = append(out.Candidates, x)
		if k := slices.IndexFunc(out.Candidates, func(o Candidate) bool { return o.Name == out.Incumbent }); k < 0 ||
			x.Error < out.Candidates[k].Error {
			out.Incumbent, b.model, b.best = c.Name, w, s
		}
	}
	slices.SortStableFunc(out.Candidates, func(x, y Candidate) int { return cmp.Compare(x.Error, y.Error) })
	b.early = len(early)
	for i := range out.Candidates {
		m := incumbent.Model{Name: out.Candidates[i].Name}
		if m.Name != incumbent.Timely && !m.Reserves() { // they exist in replays, or remember
			out.Twin = m.Name
			break
		}
	}
	out.curves = append(out.curves, r.curve("model of the cluster: "+out.Incumbent, b.best))
	b.calibrate()
	return nil
}

func apart(a, b []float64, of []int) (sum float64) {
	for _, i := range of {
		sum += math.Abs(a[i] - b[i])
	}
	return sum / float64(len(of))
}

func meanOf(a []float64, of []int) (sum float64) {
	for _, i := range of {
		sum += a[i]
	}
	return sum / float64(len(of))
}

// sorted returns the values of the second half in order.
func (b *builder) sorted(w []float64) []float64 {
	v := make([]float64, 0, len(b.late))
	for _, i := range b.late {
		v = append(v, w[i])
	}
	slices.Sort(v)
	return v
}

// percent compares the mean waits of the second half; ok is false where there is nothing to compare with.
func (b *builder) percent(name string, a, with []float64) (p *float64, ci *[2]float64) {
	sa, sb := make([]float64, b.blocks), make([]float64, b.blocks)
	var all, ref float64
	for k, i := range b.late {
		sa[b.block[k]] += a[i]
		sb[b.block[k]] += with[i]
		all += a[i]
		ref += with[i]
	}
	if ref <= 0 {
		return nil, nil
	}
	x := 100 * (all - ref) / ref
	if b.out.Calibration.Blocks < leastBlocks {
		return &x, nil
	}
	c := statistic.Bootstrap(seed, name, b.blocks, func(drawn []statistic.Draw) float64 {
		var n, d float64
		for _, u := range drawn {
			n += sa[u.Unit]
			d += sb[u.Unit]
		}
		if d <= 0 {
			return x
		}
		return 100 * (n - d) / d
	})
	return &x, &c
}

func (b *builder) calibrate() {
	c := &b.out.Calibration
	per := make([]int, b.blocks)
	for _, k := range b.block {
		per[k]++
	}
	c.N, c.First, c.Blocks = len(b.late), b.early, some(per)
	c.Real, c.Model = meanOf(b.real, b.late), meanOf(b.model, b.late)
	c.Percent, c.CI95 = b.percent("calibration", b.model, b.real)
	was, is := b.sorted(b.real), b.sorted(b.model)
	for _, q := range []float64{0.5, 0.75, 0.9, 0.99} {
		c.Quantiles = append(c.Quantiles, [3]float64{q, statistic.Quantile(was, q), statistic.Quantile(is, q)})
	}
	c.Absolute = apart(b.model, b.real, b.late)
	near, guessed := 0, 0
	var va, vb, ab float64
	for _, i := range b.late {
		x, y := b.real[i], b.model[i]
		if math.Abs(x-y) <= 60 {
			near++
		}
		if b.r.of[i].End.IsZero() {
			guessed++
		}
		va += (x - c.Real) * (x - c.Real)
		vb += (y - c.Model) * (y - c.Model)
		ab += (x - c.Real) * (y - c.Model)
		b.out.pairs = append(b.out.pairs, [2]float64{x, y})
	}
	c.Near, c.Guessed = float64(near)/float64(c.N), float64(guessed)/float64(c.N)
	if va > 0 && vb > 0 {
		x := ab / math.Sqrt(va*vb)
		c.Corr = &x
	}
}

func (b *builder) row(name, role, knows string, s *incumbent.Schedule) Row {
	w := b.r.waits(s)
	v := b.sorted(w)
	x := Row{Name: name, Role: role, Knows: knows, Mean: meanOf(w, b.late), P50: statistic.Quantile(v, 0.5),
		P90: statistic.Quantile(v, 0.9)}
	for _, i := range b.late {
		if role != "cluster" && s.Starts[i] < 0 {
			x.Unstarted++
		}
	}
	if role != "cluster" && role != "incumbent" {
		x.Percent, x.CI95 = b.percent(name, w, b.model)
	}
	return x
}

// isRule reports whether a policy is a rule that sees the whole queue, which the simulator plays itself.
func isRule(c *steer.Choice) bool {
	n, err := steer.Names().Find(c.Policy)
	return err == nil && c.Model == nil && n.Kind == policyname.Queue && n.Ahead == policyname.None
}

// causal returns the estimates that a cluster can have.
func causal(e sim.Estimates) sim.Estimates {
	if e.Rung() >= sim.RungNoisy {
		return sim.Estimates{Mode: sim.EstimateHistory}
	}
	return e
}

// knows says in a few words what a rule with these estimates is told.
func knows(name string, e sim.Estimates) string {
	switch {
	case name == incumbent.Timely:
		return "time limits"
	case !incumbent.NeedsRunTimes(name):
		return "no run times"
	case e.Mode == sim.EstimateExact:
		return "exact run times"
	case e.Mode == sim.EstimateTrace:
		return "time limits"
	}
	return "forecasts (" + e.String() + ")"
}

// replays plays policy, rivals and oracle.
func (b *builder) replays() error {
	out, r, opt := b.out, b.r, b.opt
	out.Rows = append(out.Rows,
		b.row("the cluster", "cluster", "", r.realStarts()),
		b.row(out.Incumbent, "incumbent", knows(out.Incumbent, incumbent.ByLimits), b.best))
	if opt.Choice != nil {
		if err := b.policy(); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		name, role string
		estimates  sim.Estimates
	}{
		{"sjf+skip", "rival", causal(opt.Estimates)},
		{"sjf+strict+easy", "rival", causal(opt.Estimates)},
		{"fifo+skip", "rival", incumbent.ByLimits},
		{"fifo+strict+easy", "rival", incumbent.ByLimits},
		{"sjf+skip", "oracle", sim.Estimates{Mode: sim.EstimateExact}},
	} {
		k := knows(x.name, x.estimates)
		if slices.ContainsFunc(out.Rows, func(o Row) bool { return o.Name == x.name && o.Knows == k }) {
			continue
		}
		if !x.estimates.Known() && schedulers.Estimating(policyname.Of(x.name).Base) {
			continue
		}
		s, err := b.ruled(x.name, x.estimates)
		if err != nil {
			return err
		}
		out.Rows = append(out.Rows, b.row(x.name, x.role, k, s))
	}
	out.Belief = out.believe()
	return nil
}

// policy asks the policy again at real starts, and plays it.
func (b *builder) policy() error {
	out, r, c := b.out, b.r, *b.opt.Choice
	c.History = r.Archive
	p, err := steer.Open(&c, r.layout)
	if err != nil {
		return err
	}
	out.Policy = p.Name
	b.opt.Progress("asking " + p.Name + " again at real starts")
	if err := r.askAgain(b.ctx, p, out.Agreement, b.opt.Asks); err != nil {
		return err
	}
	b.opt.Progress("replaying " + p.Name)
	name, told := p.Name, ""
	var sch sim.Scheduler
	var est sim.Estimates
	if isRule(&c) {
		rival, err := c.Config.Rival(c.Policy)
		if err != nil {
			return err
		}
		h := rival.Sched
		h.Estimates = causal(h.Estimates)
		est = h.Estimates
		if sch, err = schedulers.New(h); err != nil {
			return &fault.Mistake{Err: err}
		}
		told = knows(h.Name(), h.Estimates)
	} else {
		if p, err = steer.Open(&c, r.layout); err != nil { // what it has learned of the log is forgotten
			return err
		}
		sch = &steered{ctx: b.ctx, r: r, p: p}
		told = "what steer shows it"
	}
	s, err := r.Play(b.ctx, sch, est)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	out.Rows = append(out.Rows, b.row(name, "policy", told, s))
	out.curves = append(out.curves, r.curve("policy: "+name, s))
	return nil
}

// margin is how far a gain must go to be believed, in per cent: the farther end of the interval of the calibration's
// error.
func (c *Calibration) margin() float64 {
	if c.Percent == nil {
		return math.Inf(1)
	}
	if c.CI95 == nil {
		return math.Inf(1)
	}
	return max(math.Abs(c.CI95[0]), math.Abs(c.CI95[1]), math.Abs(*c.Percent))
}

// fewJobs is below how many jobs the sentence says that they are few.
const fewJobs = 50

// believe says how far the replay of the policy may be believed.
func (r *Report) believe() string {
	c := &r.Calibration
	if c.Percent == nil || c.Real < 1 {
		return "Hardly any job of the second half waited: no policy could have done better, and how well the model waits " +
			"cannot be said."
	}
	least := c.margin()
	text := ""
	switch x := *c.Percent; {
	case math.Abs(x) < 0.5:
		text = "The model of the cluster waits as long as the cluster did"
	case x < 0:
		text = fmt.Sprintf("The model of the cluster waits %.0f %% less than the cluster did", -x)
	default:
		text = fmt.Sprintf("The model of the cluster waits %.0f %% more than the cluster did", x)
	}
	if c.CI95 == nil {
		text += fmt.Sprintf(
			", on %s in %s of time. That is too little for an interval, so no gain of the policy is to be believed yet: let "+
				"steer look for longer.",
			plain.Count(c.N, "job", "jobs"), plain.Count(c.Blocks, "block", "blocks"))
	} else {
		text += fmt.Sprintf(" (95 %%: %+.1f to %+.1f %%; %s): a gain of the policy below %.0f %% is not to be believed.",
			c.CI95[0], c.CI95[1], plain.Count(c.N, "job", "jobs"), max(1, math.Ceil(least)))
	}
	if c.Corr != nil && *c.Corr < 0.8 {
		text += fmt.Sprintf(
			" Waits of single jobs are told badly (correlation %.2f): the cluster decides by something that the model does "+
				"not know.", *c.Corr)
	}
	if c.CI95 != nil && c.N < fewJobs {
		text += fmt.Sprintf(" The second half has %s only, so that intervals say little.", plain.Count(c.N, "job", "jobs"))
	}
	if c.Guessed > 0.1 {
		text += fmt.Sprintf(" Of %.0f %% of the jobs the run time is guessed, because they had not ended.", 100*c.Guessed)
	}
	i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Role == "policy" })
	if i < 0 || r.Rows[i].CI95 == nil || c.CI95 == nil {
		return text
	}
	switch p, ci := *r.Rows[i].Percent, r.Rows[i].CI95; {
	case math.Abs(p) < 0.5:
		text += fmt.Sprintf(" Under %s jobs wait as long as under the model.", r.Rows[i].Name)
	case p >= 0:
		text += fmt.Sprintf(" %s gains nothing: jobs wait %.0f %% longer under it than under the model.", r.Rows[i].Name, p)
	case -p < least:
		text += fmt.Sprintf(" The gain of %s is %.0f %%, which is less: it is not to be believed.", r.Rows[i].Name, -p)
	case ci[1] >= 0:
		text += fmt.Sprintf(
			" The gain of %s is %.0f %%, which is more, but over other hours or days it could be none (%+.0f to %+.0f %%).",
			r.Rows[i].Name, -p, ci[0], ci[1])
	default:
		text += fmt.Sprintf(" The gain of %s is %.0f %% (%+.0f to %+.0f %%), which is more.", r.Rows[i].Name, -p, ci[0],
			ci[1])
	}
	return text
}

// notes says what a reader must know beside the figures.
func (b *builder) notes() {
	out, l, r := b.out, b.out.log, b.r
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	out.Notes = append(out.Notes, b.opt.Notes...)
	if out.Policy == "" {
		note("no policy is asked or replayed: %s", b.opt.Why)
	} else if !slices.Contains(l.Policies, out.Policy) {
		note("the log's own lines are of %s; what is at the last look is said of it, everything else of %s",
			strings.Join(l.Policies, ", "), out.Policy)
	} else if len(l.Policies) > 1 {
		note("the log is of several policies (%s); what is at the last look is said of all of them",
			strings.Join(l.Policies, ", "))
	}
	if slices.ContainsFunc(l.Modes, func(m string) bool { return m != steer.Shadow }) {
		note("steer did not only look (modes %s): what happened is in part the policy's own doing, which flatters "+
			"agreement, and the model is one of both", strings.Join(l.Modes, ", "))
	}
	if n := l.Cut; n > 0 {
		note("%s no JSON, as the last one before a crash, and left out", plain.Count(n, "line is", "lines are"))
	}
	if l.Lost > 0 {
		note("steer could not write %s because the disk was slow; jobs are known from later ones where those tell",
			plain.Count(int(l.Lost), "line", "lines"))
	}
	if l.Unseen > 0 {
		note("of %s nobody told when; the next look stands for it", plain.Count(l.Unseen, "end", "ends"))
	}
	restarts := 0
	for _, j := range l.Jobs {
		if j.Restarts > 0 {
			restarts++
		}
	}
	if restarts > 0 {
		note("%s more than once; in replays they run once, as long as the last time",
			plain.Count(restarts, "job has started", "jobs have started"))
	}
	if l.Changed > 0 || l.Down > 0.001 {
		note("nodes were down for %.1f %% of the GPU time; in replays they are always up", 100*l.Down)
	}
	if n := out.Censored.Withdrawn + out.Censored.Blocked + out.Censored.Large; n > 0 {
		note("left out of replays: %d withdrawn before they started, %d blocked to the end, %d that fit no node set",
			out.Censored.Withdrawn, out.Censored.Blocked, out.Censored.Large)
	}
	if r.elsewhere > 0 {
		note("%s at the first look where the log cannot place them, and were put elsewhere",
			plain.Count(r.elsewhere, "job ran", "jobs ran"))
	}
	note("waits are counted from the first look to the last one: a job that had not started by then has waited until "+
		"then, in the log and in replays alike. Run times of %s that still ran and of %d that still waited are guessed "+
		"from jobs of the same user that took longer",
		plain.Count(out.Censored.Running, "job", "jobs"), out.Censored.Waiting)
	note("replays start jobs at once, on any node; partitions, nodes that owners ask for, licences, fair-share and " +
		"limits of accounts are not in the log")
	for i := range out.Rows {
		if x := &out.Rows[i]; x.Unstarted > 0 {
			note("%s never starts %s of the second half", x.Name, plain.Count(x.Unstarted, "job", "jobs"))
		}
	}
}
