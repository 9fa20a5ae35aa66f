package predictors

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// EvalConfig says what Eval measures.
type EvalConfig struct {
	Trace   workload.TraceConfig
	Cluster string // "" = every job starts when it is submitted
	// Estimates are the predictors; none = requested times if every job has one, history and gbdt.
	Estimates []string
	From      string // jobs submitted from here on are measured: see Point
	Seed      uint64 // of noisy estimates
}

// Report is what Eval has measured.
type Report struct {
	Trace      workload.Info `json:"trace"`
	Cluster    string        `json:"cluster"` // "" = every job starts when it is submitted
	FromS      float64       `json:"from_s"`  // jobs submitted from here on are measured
	Jobs       int           `json:"jobs"`    // that are measured
	Predictors []Predictor   `json:"predictors"`
}

// Predictor is a row of a Report.
type Predictor struct {
	Estimates string `json:"estimates"`
	Rung      string `json:"rung"`
	Quality
	// Model is the hash of the file of gbdt:FILE.
	Model string `json:"model_sha256,omitempty"`
}

// EvalHooks connect Eval to its caller. All may be nil.
type EvalHooks struct {
	Now      func() time.Time
	Done     func(estimates string, seconds float64) // after each predictor
	Progress func(estimates string, jobs, of int)
}

// Point reads a point of time of jobs, which are in order of submit: a share of the jobs, from 0 to 1, or a time on the
// trace's clock such as 36h. The point of a share is the submit of the first job behind it.
func Point(jobs []traces.Job, key fault.Key, text string) (time.Duration, error) {
	if share, err := strconv.ParseFloat(text, 64); err == nil && share >= 0 && share <= 1 {
		i := int(share * float64(len(jobs)))
		if i == len(jobs) {
			return jobs[i-1].Submit + 1, nil
		}
		return jobs[i].Submit, nil
	}
	if t, err := time.ParseDuration(text); err == nil && t >= 0 {
		return t, nil
	}
	return 0,
		fault.Mistakef("%s: got %q, want a share of the jobs from 0 to 1, or a time on the trace's clock such as 36h",
			key, text)
}

// Eval measures predictors on the jobs of a trace from some time on. Each sees the whole trace from its beginning, and
// knows at every submit what had ended by then. Faults of cfg and its files are *fault.Mistakes.
func Eval(ctx context.Context, cfg EvalConfig, hooks EvalHooks) (*Report, error) {
	ests, models, err := cfg.predictors(ctx)
	if err != nil {
		return nil, err
	}
	var spec cluster.Spec
	if cfg.Cluster != "" {
		if spec, err = workload.ClusterSpec(cfg.Cluster); err != nil {
			return nil, err
		}
	}
	jobs, info, err := workload.LoadTraceContext(ctx, cfg.Trace)
	if err != nil {
		return nil, err
	}
	from, err := Point(jobs, "from", cfg.From)
	if err != nil {
		return nil, err
	}
	if last := jobs[len(jobs)-1].Submit; from > last {
		return nil, fault.Mistakef("%s: got %s, and the last job of %s is submitted at %s; want an earlier time",
			fault.Key("from"), cfg.From, info.File, Clock(last))
	}
	lacking := 0
	for i := range jobs {
		if predict.Requested(&jobs[i]) == 0 {
			lacking++
		}
	}
	if ests == nil {
		for _, name := range []string{"trace", "history", "gbdt"} {
			if name != "trace" || lacking == 0 {
				est, _ := sim.ParseEstimates(name)
				ests = append(ests, est)
			}
		}
		models = make([]*Model, len(ests))
	}
	report := &Report{Trace: info, Cluster: cfg.Cluster, FromS: from.Seconds()}
	for i, est := range ests {
		if est.Mode == sim.EstimateTrace && lacking > 0 {
			return nil,
				fault.Mistakef("%s: got trace, and %s of %s in %s have no requested time; want history, gbdt, exact or noisy:SIGMA",
					fault.Key("estimates"), workload.Thousands(lacking), workload.Thousands(len(jobs))+" jobs", info.File)
		}
		if m := models[i]; m != nil {
			if err := m.Unseen(jobs, from); err != nil {
				return nil, err
			}
		}
	}
	for i, est := range ests {
		est.Seed = cfg.Seed
		p, err := hooks.measure(ctx, jobs, est, models[i], spec, from)
		if err != nil {
			return nil, err
		}
		if p.Jobs == 0 {
			return nil, fault.Mistakef("%s: there are no jobs to measure from %s on: all have a run time of 0, or fit no node "+
				"of "+
				"the cluster", info.File, Clock(from))
		}
		report.Jobs = p.Jobs
		report.Predictors = append(report.Predictors, p)
	}
	return report, nil
}

// measure measures one predictor, of m if that is not nil.
func (h *EvalHooks) measure(ctx context.Context, jobs []traces.Job, est sim.Estimates, m *Model, on cluster.Spec,
	from time.Duration) (Predictor, error) {
	p := Predictor{Estimates: est.String(), Rung: est.Rung().String()}
	by, err := Maker(sim.Estimates{Mode: est.Mode}, nil)
	if err != nil {
		return p, err
	}
	if m != nil {
		by, p.Model = m.Maker(nil), m.SHA256
	}
	var begin time.Time
	if h.Now != nil {
		begin = h.Now()
	}
	all, err := collect(ctx, jobs, est, by, on, from, func(n int) {
		if h.Progress != nil {
			h.Progress(p.Estimates, n, len(jobs))
		}
	})
	if err != nil || len(all) == 0 {
		return p, err
	}
	if h.Done != nil && h.Now != nil {
		h.Done(p.Estimates, h.Now().Sub(begin).Seconds())
	}
	p.Quality = Measure(all)
	p.Intervals(all)
	return p, nil
}

// predictors reads the list of estimates and the models of files.
func (c *EvalConfig) predictors(ctx context.Context) (ests []sim.Estimates, models []*Model, err error) {
	for _, text := range c.Estimates {
		est, err := sim.ParseEstimates(text)
		if want := strings.TrimPrefix(sim.EstimatesWanted, "none, "); err != nil {
			return nil, nil, fault.Mistakef("%s: got %q, want %s%s", fault.Key("estimates"), text, want,
				nearest.Meant(text, []string{"trace", "history", "gbdt", "exact", "noisy"}))
		} else if est.Mode == sim.EstimateNone {
			return nil, nil, fault.Mistakef("%s: got %q, of which there is nothing to measure; want %s", fault.Key("estimates"),
				text, want)
		}
		var m *Model
		if est.File != "" {
			if m, err = ReadModel(ctx, nil, est.File, est.File); err != nil {
				return nil, nil, err
			}
		}
		ests, models = append(ests, est), append(models, m)
	}
	return ests, models, nil
}

// WriteTable writes the report as text.
func (r *Report) WriteTable(w io.Writer) error {
	where := "every job starts when it is submitted"
	if r.Cluster != "" {
		where = "cluster " + r.Cluster + ", fifo+skip"
	}
	measured := fmt.Sprintf("%s submitted from %s on", plain.Count(r.Jobs, "job", "jobs"), texttable.Hours(r.FromS))
	if _, err := fmt.Fprintf(w, "workload   %s\nschedule   %s\nmeasured   %s\n\n", r.Trace, where, measured); err != nil {
		return err
	}
	header := []string{"estimates", "rung", "rank correlation", "pairs in order", "mean |ln error|"}
	for _, l := range predict.Levels {
		header = append(header, fmt.Sprintf("below q%.0f", 100*l))
	}
	header = append(header, "q90 / q10")
	var rows [][]string
	for i := range r.Predictors {
		p := &r.Predictors[i]
		row := []string{p.Estimates, p.Rung, within(p.Spearman, p.SpearmanCI), within(p.Pairs, p.PairsCI),
			within(p.LogError, p.LogErrorCI)}
		for k := range p.Below {
			cell := "–"
			if p.Causal() || k == predict.Quantiles/2 {
				cell = strconv.FormatFloat(100*p.Below[k], 'f', 1, 64) + " %"
			}
			row = append(row, cell)
		}
		cell := "–"
		if p.Causal() {
			cell = p.ratio()
		}
		rows = append(rows, append(row, cell))
	}
	if err := texttable.Write(w, header, rows, 2, "q90 / q10", "below q25", "below q75", "pairs in order",
		"below q50"); err != nil {
		return err
	}
	_, err := io.WriteString(w,
		"\nIn brackets: 95 % intervals over "+strconv.Itoa(Blocks)+
			" blocks of consecutive jobs. Below q10: the share of run times that do not exceed\nthe 10 % quantile, 10 % for a "+
			"calibrated predictor. q90 / q10: geometric mean of the quotient.\n")
	return err
}

// Causal reports whether the predictor gives quantiles, and not one number.
func (p *Predictor) Causal() bool { return p.Rung == sim.RungCausal.String() }

// within formats a value with its interval.
func within(x float64, ci *[2]float64) string {
	if ci == nil {
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", x, ci[0], ci[1])
}

// ratio returns the geometric mean of the quotients of the last and the first quantile.
func (q *Quality) ratio() string { return strconv.FormatFloat(math.Exp(q.Width), 'g', 3, 64) }
