package runpage

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/plain"
	"clustergym/lab/arena"
	"clustergym/lab/config"
	"clustergym/lab/envs"
	"clustergym/lab/htmlpage"
	"clustergym/lab/report"
	"clustergym/lab/rundir"
)

// course is how one run learned.
type course struct {
	name        string
	cfg         config.Config
	key         []byte // equal for runs whose validations compare
	validations []rundir.Line
	records     []rundir.Line
}

// learning draws the courses of all runs: those that can be compared in one figure.
func (d *drawing) learning() error {
	var all []*course
	for _, dir := range d.page.Runs {
		c, err := readCourse(dir)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	for len(all) > 0 {
		var same, others []*course
		for _, c := range all {
			if bytes.Equal(c.key, all[0].key) {
				same = append(same, c)
			} else {
				others = append(others, c)
			}
		}
		all = others
		if err := d.draw(same); err != nil {
			return err
		}
	}
	return nil
}

// readCourse reads what a run directory reports.
func readCourse(dir string) (*course, error) {
	cfg, err := rundir.ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	lines, err := rundir.ReadProgress(dir)
	if err != nil {
		return nil, err
	}
	c := &course{name: filepath.Base(dir), cfg: cfg}
	for _, l := range lines {
		if l.Eval != nil {
			c.validations = append(c.validations, l)
		} else {
			c.records = append(c.records, l)
		}
	}
	metric := ""
	if len(c.validations) > 0 {
		metric = c.validations[0].Eval.At(0).Metric
	}
	c.key, err = setting(&cfg, metric)
	return c, err
}

// setting returns a text that is equal for runs whose validations play the same windows and count the same metric.
func setting(cfg *config.Config, metric string) ([]byte, error) {
	c := config.For(cfg.Env.ID)
	c.Trace, c.Cluster, c.Env, c.Eval = cfg.Trace, cfg.Cluster, cfg.Env, cfg.Eval
	b, err := configs.Encode(&c)
	return append(b, metric...), err
}

// draw draws the validations of runs with the same setting, and the returns of their training.
func (d *drawing) draw(runs []*course) error {
	first := runs[0]
	valid := htmlpage.Chart{Name: "validation", X: "steps of training"}
	training := htmlpage.Chart{Name: "training", Title: "Return of training episodes", X: valid.X, Y: "mean return"}
	for _, c := range runs {
		curve := htmlpage.Curve{Name: c.name, Best: -1}
		for i, l := range c.validations {
			v := l.Eval.At(l.Step)
			curve.Points = append(curve.Points, htmlpage.Point{X: float64(l.Step), Y: v.Value})
			if l.Eval.Best {
				curve.Best = i
			}
		}
		valid.Curves = append(valid.Curves, curve)
		returns := htmlpage.Curve{Name: c.name, Best: -1}
		for _, l := range c.records {
			if l.Return != nil {
				returns.Points = append(returns.Points, htmlpage.Point{X: float64(l.Step), Y: *l.Return})
			}
		}
		training.Curves = append(training.Curves, returns)
	}
	if len(first.validations) > 0 {
		name(&valid, first.validations[0].Eval)
		baselines, err := d.baselines(&first.cfg)
		var input *fault.Mistake
		switch {
		case errors.As(err, &input):
			d.note("The figure of learning has no baselines: %v.", err)
		case err != nil:
			return err
		}
		for _, r := range baselines {
			valid.Levels = append(valid.Levels, htmlpage.Level{Name: r.Name, Value: r.Validation.At(0).Value})
		}
		if solved := d.solved(); solved != nil && first.validations[0].Eval.Return != nil {
			valid.Levels = append(valid.Levels, htmlpage.Level{Name: "solved", Value: *solved})
		}
		d.html.Charts = append(d.html.Charts, valid)
	}
	d.html.Charts = append(d.html.Charts, training)
	return nil
}

// name sets the titles of a figure of validations like v.
func name(c *htmlpage.Chart, v *rundir.Validation) {
	on := ""
	switch {
	case v.Windows > 0:
		on = plain.Count(v.Windows, "validation window", "validation windows")
	case v.Tasks > 0:
		on = plain.Count(v.Tasks, "validation task", "validation tasks")
	default:
		on = plain.Count(v.Episodes, "validation episode", "validation episodes")
	}
	metric := v.At(0).Metric
	switch m, scored := rundir.MetricOf(metric); {
	case scored:
		mean := metric[strings.LastIndexByte(metric, '/')+1+len(m.Key):]
		c.Y, c.Lower, c.Log, c.Seconds = m.Title, !m.Higher, !m.Higher, m.Unit == envs.JCT.Unit
		c.Text = fmt.Sprintf("The%s over windows of each one's %s.", mean, m.Title)
		if v.Windows == 0 {
			c.Text = fmt.Sprintf("The%s over episodes of each one's %s.", mean, m.Title)
		}
	default:
		c.Y = "mean return"
	}
	c.Title = fmt.Sprintf("%s on %s", upper(c.Y), on)
}

// upper returns s with a capital at its beginning.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// solved returns the return from which on the problem counts as solved, nil if its comparison does not define one.
func (d *drawing) solved() *float64 {
	for _, r := range d.page.Results {
		switch c := r.Comparison.(type) {
		case *report.EpisodeReport:
			return c.Solved
		case *report.AdaptReport:
			return c.Solved
		}
	}
	return nil
}

// baselines plays the policies that a run is compared with where its validations are played. The workload is that of
// the page if it is the same.
func (d *drawing) baselines(cfg *config.Config) ([]arena.Baseline, error) {
	place := d.arena
	a, err := setting(cfg, "")
	if err != nil {
		return nil, err
	}
	b, err := setting(d.cfg, "")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(a, b) || cfg.Meta() != d.cfg.Meta() {
		if place, err = arena.New(cfg, nil); err != nil {
			return nil, err
		}
	}
	return place.Baselines(d.ctx, cfg, max(1, d.page.Evaluated.Workers))
}
