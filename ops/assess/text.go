package assess

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"clustergym/internal/plain"
	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
)

// Text writes the assessment for people: the sentences of the first screen, how sure they are, and the tables.
func (o *Assessment) Text(w io.Writer) error {
	first := strings.Join(o.First, " ") + "\n\nHow sure: " + o.Sure + "\nSurer by: " + o.Surer + "\n\n"
	if _, err := io.WriteString(w, texttable.Wrapped(first, texttable.WidthOf(w))); err != nil {
		return err
	}
	for _, f := range o.facts() {
		if _, err := fmt.Fprintf(w, "%-8s  %s\n", f[0], f[1]); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	list := o.sheets()
	for i := range list {
		list[i].Above = list[i].Title + "\n"
	}
	if err := texttable.WriteSheets(w, list); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	for _, n := range o.Notes {
		if _, err := fmt.Fprintf(w, "note: %s\n", plain.Line(n)); err != nil {
			return err
		}
	}
	return nil
}

// facts are what was assessed, in a few lines.
func (o *Assessment) facts() [][2]string {
	r := &o.Recorded
	span := texttable.Hours(r.Span)
	if r.From != nil {
		span = fmt.Sprintf("%s to %s (%s)", r.From.Format("2006-01-02 15:04"), r.To.Format("2006-01-02 15:04"), span)
	}
	return [][2]string{
		{"file", plain.Clip(o.File, 200)},
		{"time", span},
		{"cluster", fmt.Sprintf("%s: %s with %d GPUs, %.0f %% of the GPU time in use", plain.Clip(o.Cluster.Name, 80),
			plain.Count(o.Cluster.Nodes, "node", "nodes"), o.Cluster.GPUs, 100*r.Use)},
		{"jobs", fmt.Sprintf("%d with GPUs that started; mean wait %s, half up to %s, nine in ten up to %s", r.Jobs,
			texttable.Hours(r.Mean), texttable.Hours(r.P50), texttable.Hours(r.P90))},
		{"longest", o.longestHours()},
	}
}

var days = [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// longestHours names the hours of the week in which the jobs were submitted that waited longest.
func (o *Assessment) longestHours() string {
	order := []int{}
	for k := range o.Recorded.Week {
		if o.Recorded.Week[k].Jobs >= 3 {
			order = append(order, k)
		}
	}
	week := o.Recorded.Week
	slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(week[a].Mean, week[b].Mean) })
	var all []string
	for _, k := range order[:min(3, len(order))] {
		day := fmt.Sprintf("day %d", k/24+1)
		if o.Recorded.From != nil {
			day = days[k/24]
		}
		all = append(all, fmt.Sprintf("%s %02d:00 (%s)", day, k%24, texttable.Hours(week[k].Mean)))
	}
	if len(all) == 0 {
		return "no hour of the week has three jobs"
	}
	return "submitted on " + strings.Join(all, ", ")
}

// sheets are the tables of the assessment.
func (o *Assessment) sheets() []texttable.Sheet {
	all := []texttable.Sheet{
		groupSheet("Recorded waits by size", "size", o.Recorded.Sizes),
		groupSheet("Recorded waits by "+o.Recorded.OwnersAre, o.Recorded.OwnersAre, o.Recorded.Owners),
		o.policySheet(), o.calibrationSheet(), o.modelSheet(), o.whatIfSheet(), o.learnedSheet(),
	}
	if c := o.Changes; c != nil {
		all = append(all, changeSheet("Who gains and who loses under "+c.Policy+" ("+c.Knows+"), by size", "size", c.Sizes),
			changeSheet("By account", "account", c.Owners), changeSheet("By user", "user", c.Users))
	}
	all = slices.DeleteFunc(all, func(s texttable.Sheet) bool { return len(s.Rows) == 0 })
	for i := range all {
		texttable.OneUnit(all[i].Rows)
	}
	return all
}

func groupSheet(title, what string, groups []Group) texttable.Sheet {
	t := texttable.Sheet{Title: title, Header: []string{what, "jobs", "GPU time", "mean wait", "p50", "p90"}, Left: 1}
	for i := range groups {
		g := &groups[i]
		t.Rows = append(t.Rows, []string{g.Name, fmt.Sprint(g.Jobs), fmt.Sprintf("%.1f %%", 100*g.Share),
			texttable.Time(g.Mean), texttable.Time(g.P50), texttable.Time(g.P90)})
	}
	return t
}

func percentCell(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", *x)
}

func betweenCell(x *ci) string {
	if x == nil {
		return "-"
	}
	if x[1] > tenfold {
		return fmt.Sprintf("%+.1f %% to over tenfold", x[0])
	}
	return fmt.Sprintf("%+.1f to %+.1f %%", x[0], x[1])
}

// tenfold is ten times as much, in percent. What an interval reaches beyond it says only that little is known.
const tenfold = 900

func (o *Assessment) policySheet() texttable.Sheet {
	t := o.policies(fmt.Sprintf("Policies on the same jobs (%s counted)",
		plain.Count(o.Calibration.Jobs, "job", "jobs")), o.Policies)
	t.Below = "Intervals hold chance (whole blocks of time are drawn again) and the error of the model of today.\n"
	return t
}

// roles are the parts that policies play, in words.
var roles = map[string]string{"recorded": "as it was", "incumbent": "model of today", "rival": "another order",
	"oracle": "nobody can know", "default": "weights as they come", "tuned": "weights fitted", "agent": "agent trained"}

func (o *Assessment) policies(title string, all []Policy) texttable.Sheet {
	t := texttable.Sheet{Title: title,
		Header: []string{"", "policy", "knows", "mean wait", "p90", "p99", "against model", "95 %", "verdict"}, Left: 3,
		Least: []string{"p99", "p90"},
	}
	for i := range all {
		p := &all[i]
		against, ci := percentCell(p.Percent), betweenCell(p.CI)
		if p.Role == "recorded" || p.Role == "incumbent" {
			against, ci = "", ""
		}
		t.Rows = append(t.Rows, []string{roles[p.Role], p.Name, p.Knows, texttable.Time(p.Mean), texttable.Time(p.P90),
			texttable.Time(p.Longest), against, ci, o.verdict(p)})
	}
	return t
}

func (o *Assessment) learnedSheet() texttable.Sheet {
	l := o.Learned
	if l == nil {
		return texttable.Sheet{}
	}
	t := o.policies(fmt.Sprintf("Learned from the first half of the record (%s), judged on the second (%s)",
		plain.Count(l.Before, "job", "jobs"), plain.Count(l.After, "job", "jobs")), l.Policies)
	t.Below = fmt.Sprintf("Nothing here has seen the second half but for the record and its model; it has %s of %s.",
		plain.Count(l.Blocks, "block", "blocks"), texttable.Hours(l.Block))
	if l.Fit != nil {
		t.Below += fmt.Sprintf(" The weights were chosen among %d by the mean wait of the first half: %s as they come, %s "+
			"fitted.", l.Fit.Plays, texttable.Hours(l.Fit.Start), texttable.Hours(l.Fit.Best))
	}
	t.Below += "\n"
	return t
}

// verdict is what the table says of a policy: a gain must hold after the error of the model, too.
func (o *Assessment) verdict(p *Policy) string {
	if p.Verdict == statistic.Ahead && (p.CI == nil || p.CI[1] >= 0) {
		return "within the model's error"
	}
	return string(p.Verdict)
}

func (o *Assessment) calibrationSheet() texttable.Sheet {
	c := &o.Calibration
	t := texttable.Sheet{
		Title: fmt.Sprintf("Calibration: %s against what was recorded, %s of the second half", o.Incumbent,
			plain.Count(c.Second, "job", "jobs")),
		Header: []string{"wait", "recorded", "model"}, Left: 1,
	}
	t.Rows = append(t.Rows, []string{"mean", texttable.Time(c.Real), texttable.Time(c.Model)})
	for _, q := range c.Quantities {
		t.Rows = append(t.Rows, []string{fmt.Sprintf("%.0f %%", 100*q[0]), texttable.Time(q[1]), texttable.Time(q[2])})
	}
	corr := "-"
	if c.Corr != nil {
		corr = fmt.Sprintf("%.2f", *c.Corr)
	}
	t.Below = fmt.Sprintf("Error of the mean wait %s (95 %%: %s; %d blocks of %s), correlation %s, %.0f %% of the jobs "+
		"within a minute.\n", percentCell(c.All), betweenCell(c.CI95), c.Blocks, texttable.Hours(c.Block), corr, 100*c.Near)
	return t
}

// mostModels is how many models the table has.
const mostModels = 12

func (o *Assessment) modelSheet() texttable.Sheet {
	t := texttable.Sheet{
		Title: fmt.Sprintf("Models of the scheduler that ran, chosen by the mean error of a job's wait in the first half (%s)",
			plain.Count(o.Calibration.First, "job", "jobs")),
		Header: []string{"model", "rule", "knows", "placement", "error", "second half", "mean wait"}, Left: 4,
	}
	for i := range o.Models[:min(mostModels, len(o.Models))] {
		m := &o.Models[i]
		row := []string{m.Name, m.Text, m.Knows, m.Placement, texttable.Time(float64(m.Error)),
			texttable.Time(float64(m.Second)), texttable.Time(float64(m.Wait))}
		if m.NotPlayed != "" {
			row[1] += ": " + m.NotPlayed
			row[4], row[5], row[6] = "-", "-", "-"
		}
		t.Rows = append(t.Rows, row)
	}
	if more := len(o.Models) - mostModels; more > 0 {
		t.Below = fmt.Sprintf("And %d that come less close, or as close by another placement; the JSON document has all.\n",
			more)
	}
	return t
}

func (o *Assessment) whatIfSheet() texttable.Sheet {
	t := texttable.Sheet{Title: "What if: mean waits against those of today",
		Header: []string{"", "GPUs", "model of today", "95 %", "best other order", "95 %"}, Left: 1}
	for i := range o.WhatIfs {
		w := &o.WhatIfs[i]
		name := w.Name
		if w.Never > 0 {
			name += fmt.Sprintf("; %s no longer", plain.Count(w.Never, "job fits", "jobs fit"))
		}
		row := []string{name, fmt.Sprint(w.GPUs), "-", "-", "-", "-"}
		for k, e := range []*Effect{w.Today, w.Best} {
			if e != nil {
				row[2+2*k], row[3+2*k] = percentCell(e.Percent), betweenCell(e.CI)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func changeSheet(title, what string, all []Change) texttable.Sheet {
	t := texttable.Sheet{Title: title, Left: 1,
		Header: []string{what, "jobs", "today", "then", "change", "wait longer", "by up to"}}
	for i := range all {
		c := &all[i]
		sign := "+"
		if c.Change < 0 {
			sign = "-"
		}
		t.Rows = append(t.Rows, []string{c.Name, fmt.Sprint(c.Jobs), texttable.Time(c.Model), texttable.Time(c.Then),
			sign + long(max(c.Change, -c.Change)), fmt.Sprintf("%.0f %%", 100*c.Losers), texttable.Time(c.P95)})
	}
	return t
}
