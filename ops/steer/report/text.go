package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/htmlpage"
)

// percent formats a percentage.
func percent(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", *x)
}

func between(ci *[2]float64) string {
	if ci == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f to %+.1f %%", ci[0], ci[1])
}

func (s *Share) cells(what string) []string {
	if s.Share == nil {
		return []string{what, "0", "0", "-", "-"}
	}
	ci := "-"
	if s.CI95 != nil {
		ci = fmt.Sprintf("%.1f to %.1f %%", 100*s.CI95[0], 100*s.CI95[1])
	}
	return []string{what, fmt.Sprint(s.N), fmt.Sprint(s.Of), fmt.Sprintf("%.1f %%", 100**s.Share), ci}
}

// sheets are the tables of a report.
func (r *Report) sheets() []texttable.Sheet {
	all := []texttable.Sheet{r.agreement(), r.replays(), r.calibration(), r.models()}
	for i := range all {
		texttable.OneUnit(all[i].Rows)
	}
	return all
}

func (r *Report) agreement() texttable.Sheet {
	a := r.Agreement
	t := texttable.Sheet{
		Title:  "Agreement at real starts",
		Header: []string{"of the jobs that the cluster started, the policy", "jobs", "of", "share", "95 %"}, Left: 1,
	}
	if a.Again != nil {
		t.Rows = append(t.Rows, a.Again.cells("starts too, asked at that moment"), a.AgainNodes.cells("… on the same nodes"))
	}
	t.Rows = append(t.Rows, a.Looked.cells("would have started at the last look before"),
		a.Nodes.cells("… on the same nodes"), a.Earlier.cells("had wanted earlier"))
	var b strings.Builder
	if a.Lead != nil {
		fmt.Fprintf(&b,
			"Those it had wanted earlier, it wanted %s before the cluster started them (median; 10 to 90 %%: %s to %s). ",
			texttable.Hours(a.Lead[1]), texttable.Hours(a.Lead[0]), texttable.Hours(a.Lead[2]))
	}
	fmt.Fprintf(&b,
		"All others it would have started later, or at that moment. %s the policy wanted, and the cluster has not started. ",
		plain.Count(a.Wanted, "job", "jobs"))
	fmt.Fprintf(&b, "Of %s, %d came and started between two looks: nobody asked.\n",
		plain.Count(a.Starts, "start", "starts"), a.Unasked)
	every := ""
	if r.log != nil && r.log.Begun != nil && r.log.Begun.Every > 0 {
		every = fmt.Sprintf(" (%s apart)", time.Duration(r.log.Begun.Every*float64(time.Second)))
	}
	fmt.Fprintf(&b,
		"At the last look%s the GPUs of a start are often still taken, so that share is low on a busy cluster, whatever "+
			"the policy. ", every)
	if a.Again != nil {
		fmt.Fprintf(&b, "Asked at the moment of a start (%s) it starts %.1f jobs on average. ",
			plain.Count(a.Asked, "moment", "moments"), a.Others)
	}
	b.WriteString(
		"A job that it wants stays wanted until the cluster starts it, so looks are not independent; intervals draw whole " +
			"blocks of ")
	fmt.Fprintf(&b, "%s (%d of them have starts).", texttable.Hours(a.Step), a.Blocks)
	if a.Blocks < leastBlocks {
		fmt.Fprintf(&b, " With fewer than %d there are no intervals.", leastBlocks)
	}
	b.WriteString("\n")
	t.Below = b.String()
	return t
}

func (r *Report) replays() texttable.Sheet {
	t := texttable.Sheet{
		Title:  fmt.Sprintf("Replay of what arrived, second half (%s)", plain.Count(r.Calibration.N, "job", "jobs")),
		Header: []string{"", "schedule", "knows", "mean wait", "p50", "p90", "against model", "95 %"}, Left: 3,
		Least: []string{"p50", "p90"},
	}
	role := map[string]string{"cluster": "as it was", "incumbent": "model of the cluster", "policy": "policy",
		"rival": "rival", "oracle": "nobody can know"}
	for i := range r.Rows {
		x := &r.Rows[i]
		against, ci := "", ""
		if x.Role != "cluster" && x.Role != "incumbent" {
			against, ci = percent(x.Percent), between(x.CI95)
		}
		t.Rows = append(t.Rows,
			[]string{role[x.Role], x.Name, x.Knows, texttable.Time(x.Mean), texttable.Time(x.P50), texttable.Time(x.P90),
				against, ci})
	}
	return t
}

func (r *Report) calibration() texttable.Sheet {
	c := &r.Calibration
	t := texttable.Sheet{
		Title: fmt.Sprintf("Calibration: %s against what happened, %s", r.Incumbent,
			plain.Count(c.N, "job of the second half", "jobs of the second half")), Header: []string{"wait", "cluster",
			"model"}, Left: 1,
	}
	t.Rows = append(t.Rows, []string{"mean", texttable.Time(c.Real), texttable.Time(c.Model)})
	for _, q := range c.Quantiles {
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%.0f %%", 100*q[0]), texttable.Time(q[1]), texttable.Time(q[2])})
	}
	corr := "-"
	if c.Corr != nil {
		corr = fmt.Sprintf("%.2f", *c.Corr)
	}
	t.Below = fmt.Sprintf(
		"Error of the mean wait %s (95 %%: %s), mean error of a job's wait %s, correlation %s, %.0f %% of the jobs within "+
			"a minute.\n%s\n",
		percent(c.Percent), between(c.CI95), texttable.Hours(c.Absolute), corr, 100*c.Near, r.Belief)
	return t
}

func (r *Report) models() texttable.Sheet {
	t := texttable.Sheet{
		Title: fmt.Sprintf("Models of the cluster, chosen by the mean error of a job's wait in the first half (%s)",
			plain.Count(r.Calibration.First, "job", "jobs")),
		Header: []string{"model", "rule", "error", "second half"}, Left: 2,
	}
	for i := range r.Candidates {
		x := &r.Candidates[i]
		t.Rows = append(t.Rows, []string{x.Name, x.text, texttable.Time(x.Error), texttable.Time(x.Second)})
	}
	if name := r.Twin; name != "" {
		t.Below = fmt.Sprintf("gymctl twin --scheduler %s forecasts with the best of them that twin can play.\n", name)
	}
	return t
}

// head is what the log is, in a few lines.
func (r *Report) head() [][2]string {
	name := r.Policy
	if name == "" {
		name = "none"
	}
	return [][2]string{
		{"log", fmt.Sprintf("%s, %s", r.logs(), plain.Count(r.Looks, "look", "looks"))},
		{"time", fmt.Sprintf("%s to %s (%s), %s of steer", r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04"),
			texttable.Hours(r.To.Sub(r.From).Seconds()), plain.Count(r.Runs, "run", "runs"))},
		{"cluster", fmt.Sprintf("%s: %s with %d GPUs", r.Cluster, plain.Count(r.Nodes, "node", "nodes"), r.GPUs)},
		{"jobs", fmt.Sprintf("%d, of which %d are replayed; %d ran at the first look, %d still ran and %d still waited at "+
			"the last one", r.Jobs, r.Replayed, r.Censored.Before, r.Censored.Running, r.Censored.Waiting)},
		{"policy", name},
	}
}

// logs names the logs in a few words.
func (r *Report) logs() string {
	last := r.Files[len(r.Files)-1]
	if n := len(r.Files) - 1; n > 0 {
		return fmt.Sprintf("%s and %s", last, plain.Count(n, "other file", "other files"))
	}
	return last
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	for _, f := range r.head() {
		if _, err := fmt.Fprintf(w, "%-8s  %s\n", f[0], f[1]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	list := r.sheets()
	for i := range list {
		list[i].Above = list[i].Title + "\n"
	}
	if err := texttable.WriteSheets(w, list); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}

// HTML writes the report as one page.
func (r *Report) HTML(w io.Writer) error {
	p := htmlpage.New(0)
	p.Title = fmt.Sprintf("What %s would have done on %s", r.named(), r.Cluster)
	p.Facts = append(r.head(), [2]string{"belief", r.Belief})
	for _, s := range r.sheets() {
		p.Tables = append(p.Tables,
			htmlpage.Table{Title: s.Title, Header: s.Header, Rows: s.Rows, Text: strings.TrimSpace(s.Below), Left: s.Left})
	}
	p.Charts, p.ChartsTitle, p.ForestsTitle = r.charts(), "Over time, and model against cluster", "Gains"
	f := htmlpage.Forest{Name: "gain", Title: "Mean wait against the model of the cluster", X: "difference in %",
		Lower: true,
		Text: "Jobs that arrived in the second half, with 95 % intervals over blocks of time. The error is that of the " +
			"model against the cluster itself: a gain inside it is not to be believed."}
	if c := &r.Calibration; c.Percent != nil && c.CI95 != nil {
		f.Rows = append(f.Rows,
			htmlpage.Difference{Name: "error of the model", Value: *c.Percent, Low: c.CI95[0], High: c.CI95[1],
				Text: percent(c.Percent) + " (" + between(c.CI95) + ")"})
	}
	for i := range r.Rows {
		if x := &r.Rows[i]; x.Percent != nil && x.CI95 != nil {
			f.Rows = append(f.Rows,
				htmlpage.Difference{Name: x.Role + ": " + x.Name, Value: *x.Percent, Low: x.CI95[0], High: x.CI95[1],
					Text: percent(x.Percent) + " (" + between(x.CI95) + ")"})
		}
	}
	if len(f.Rows) > 0 {
		p.Forests = append(p.Forests, f)
	}
	p.Notes = r.Notes
	return p.Write(w)
}

func (r *Report) named() string {
	if r.Policy == "" {
		return "a policy"
	}
	return r.Policy
}

func (r *Report) charts() []htmlpage.Chart {
	over := htmlpage.Chart{Name: "agreement", Title: "Agreement at real starts, in % of them",
		X: "hours since the first look", Y: "share of starts, %",
		Text: "By block of " + texttable.Hours(r.Agreement.Step) + "."}
	c := htmlpage.Curve{Name: "starts that the policy makes too", Best: -1}
	for _, b := range r.Agreement.Over {
		c.Points = append(c.Points, htmlpage.Point{X: b.At, Y: 100 * float64(b.N) / float64(b.Of)})
	}
	over.Curves = append(over.Curves, c)
	same := htmlpage.Chart{
		Name: "waits", Title: "Waits, model against cluster, in minutes", X: "real wait, minutes",
		Y: "wait under the model, minutes",
		Text: "Jobs of the second half in order of their real wait, in groups of equal size: the mean of each. A model " +
			"that is right lies on the diagonal.",
	}
	m, d := htmlpage.Curve{Name: "model", Best: -1}, htmlpage.Curve{Name: "as it was", Best: -1}
	for _, b := range binned(r.pairs, 20) {
		m.Points = append(m.Points, htmlpage.Point{X: b[0] / 60, Y: b[1] / 60})
		d.Points = append(d.Points, htmlpage.Point{X: b[0] / 60, Y: b[0] / 60})
	}
	same.Curves = append(same.Curves, d, m)
	sum := htmlpage.Chart{Name: "cumulative", Title: "Cumulative waits, in hours of all jobs",
		X: "hours since the first look", Y: "hours waited by all jobs", Lower: true}
	length := htmlpage.Chart{Name: "queue", Title: "Length of the queue, in jobs", X: "hours since the first look",
		Y: "waiting jobs", Lower: true}
	for _, k := range r.curves {
		a, b := htmlpage.Curve{Name: k.name, Best: -1}, htmlpage.Curve{Name: k.name, Best: -1}
		for i, x := range k.hours {
			a.Points = append(a.Points, htmlpage.Point{X: x, Y: k.sum[i]})
			b.Points = append(b.Points, htmlpage.Point{X: x, Y: k.length[i]})
		}
		sum.Curves, length.Curves = append(sum.Curves, a), append(length.Curves, b)
	}
	return []htmlpage.Chart{over, same, sum, length}
}
