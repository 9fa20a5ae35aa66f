package runpage

import (
	"fmt"

	"clustergym/internal/statistic"
	"clustergym/lab/htmlpage"
	"clustergym/lab/report"
)

// differences draws how the first agent of each comparison differs from the other policies.
func (d *drawing) differences() {
	type figure struct {
		forest htmlpage.Forest
		lines  string
		agents map[string]bool
	}
	var order []string
	figures := map[string]*figure{}
	add := func(x found) {
		key := x.forest.Name
		have, ok := figures[key]
		if !ok {
			order = append(order, key)
			have = &figure{x.forest, x.lines, map[string]bool{}}
			have.forest.Rows = nil
			figures[key] = have
		}
		have.agents[x.agent] = true
		have.forest.Rows = append(have.forest.Rows, x.forest.Rows...)
	}
	for _, r := range d.page.Results {
		var all []found
		switch c := r.Comparison.(type) {
		case *report.Report:
			all = ofWindows(c)
		case *report.StreamReport:
			all = ofStreams(c)
		case *report.EpisodeReport:
			all = ofEpisodes(c)
		case *report.AdaptReport:
			all = ofTasks(c)
		}
		for _, x := range all {
			if r.Name != "" {
				for i := range x.forest.Rows {
					x.forest.Rows[i].Name += ", " + r.Name
				}
			}
			add(x)
		}
	}
	for _, key := range order {
		f := figures[key]
		who := "the agent"
		if len(f.agents) == 1 {
			for a := range f.agents {
				who = a
			}
		}
		f.forest.Title = fmt.Sprintf(f.forest.Title, who)
		side := "right"
		if f.forest.Lower {
			side = "left"
		}
		if lines := f.lines; lines != "" {
			f.forest.Text += fmt.Sprintf(lines, side)
		} else {
			f.forest.Text += fmt.Sprintf(" Lines are 95 %% bootstrap intervals; %s of 0 %s is better.", side, who)
		}
		d.html.Forests = append(d.html.Forests, f.forest)
	}
}

// found is a figure of one comparison, and the agent it is about. The figure's title has a place for the agent's name.
// lines is the sentence about the lines, with a place for the side that is better; "" = that of bootstrap intervals.
type found struct {
	forest htmlpage.Forest
	agent  string
	lines  string
}

// ofWindows returns a figure for each metric in which agents are compared on windows.
func ofWindows(r *report.Report) []found {
	reference := r.Reference()
	if reference == "" && len(r.Paired) > 0 {
		reference = r.Paired[0].A
	}
	titles := map[string]string{"jct_s": "mean JCT", "bounded_slowdown": "bounded slowdown"}
	counts := r.Counts()
	titles[counts.Key] = counts.Title
	keys := []string{counts.Key, "jct_s", "bounded_slowdown"}
	var out []found
	for i, key := range keys {
		if i > 0 && key == counts.Key {
			continue
		}
		f := htmlpage.Forest{
			Name: "differences-" + key, Title: "%s against each policy: " + titles[key],
			X:     "difference of " + titles[key] + " in %",
			Lower: key != counts.Key || !counts.Higher,
			Text:  "The same windows for all; the difference of the sums over windows, and in how many windows it is better.",
		}
		f.Rows = pairs(r.Paired, reference, key, len(r.Windows))
		for i := range f.Rows {
			f.Rows[i].Name = r.Shown(f.Rows[i].Name)
		}
		out = append(out, found{forest: f, agent: r.Shown(reference)})
	}
	return out
}

// ofStreams returns the figure of a comparison on streams: the agent against each policy, or each policy against the
// first.
func ofStreams(r *report.StreamReport) []found {
	reference, agent := r.Reference()
	if reference == "" {
		return nil
	}
	metric := r.Counts()
	f := htmlpage.Forest{
		Name: "differences-" + metric.Key, Title: "%s against each policy: " + metric.Title,
		X: "difference of " + metric.Title + " in %", Lower: !metric.Higher,
		Text: fmt.Sprintf("The same streams for all, %s; ahead and behind hold at 5 %% for all rows together (Holm).",
			r.Units()),
	}
	lines := " Lines are 95 %% intervals; %s of 0 " + r.Shown(reference) + " is better."
	if !agent {
		f.Title = "Each policy against %s: " + metric.Title
		lines = " Lines are 95 %% intervals; %s of 0 the policy is better than " + r.Shown(reference) + "."
	}
	for i := range r.Paired {
		p := &r.Paired[i]
		name := p.A
		if agent {
			if p.A != reference {
				continue
			}
			name = p.B
		}
		d := htmlpage.Difference{Name: r.Shown(name), Value: float64(p.Difference), Low: p.CI95[0], High: p.CI95[1],
			Text: report.ReplicatedText(p) + ", " + string(p.Verdict)}
		if !p.CI95.Known() {
			d.Low, d.High = d.Value, d.Value
		}
		f.Rows = append(f.Rows, d)
	}
	if r.TooFew() {
		lines = " There are too few independent units for intervals; %s of 0 is better."
	}
	return []found{{f, r.Shown(reference), lines}}
}

// pairs returns how agent differs by a metric from each policy, on of windows or episodes.
func pairs(all []statistic.Paired, agent, metric string, of int) (rows []htmlpage.Difference) {
	for _, p := range all {
		if p.A == agent && p.Metric == metric {
			rows = append(rows, htmlpage.Difference{
				Name: p.B, Value: p.Difference, Low: p.CI95[0], High: p.CI95[1],
				Text: fmt.Sprintf("%+.1f [%+.1f, %+.1f] %%, %d of %d", p.Difference, p.CI95[0], p.CI95[1], p.Wins, of),
			})
		}
	}
	return rows
}

// ofEpisodes compares the first policy with the others on the same episodes, by the metric or else by the return.
func ofEpisodes(r *report.EpisodeReport) []found {
	if r.Metric != "" {
		if len(r.Paired) == 0 {
			return nil
		}
		m := report.MetricOf(r.Env)
		f := htmlpage.Forest{
			Name: "differences-" + m.Key, Title: "%s against each policy: " + m.Title, X: "difference of " + m.Title + " in %",
			Lower: !m.Higher,
			Text:  "The same episodes for all, and in how many it is better.",
			Rows:  pairs(r.Paired, r.Paired[0].A, r.Metric, r.Episodes),
		}
		return []found{{forest: f, agent: r.Paired[0].A}}
	}
	f := returns("The same episodes for all.")
	for i := range r.Policies {
		if i > 0 && r.Policies[i].Return != nil && r.Policies[0].Return != nil {
			f.Rows = append(f.Rows,
				row(r.Seed, r.Policies[i].Name, r.Policies[0].Return.PerEpisode, r.Policies[i].Return.PerEpisode))
		}
	}
	return []found{{forest: f, agent: r.Policies[0].Name}}
}

// ofTasks compares the first agent after its last inner step with all others on the same tasks.
func ofTasks(r *report.AdaptReport) []found {
	agent := 0
	for i := range r.Rows {
		if r.Rows[i].Name == r.Rows[0].Name && r.Rows[i].Steps > r.Rows[agent].Steps {
			agent = i
		}
	}
	f := returns("The same tasks for all.")
	for i := range r.Rows {
		if i != agent {
			f.Rows = append(f.Rows, row(r.Seed, label(&r.Rows[i]), r.Rows[agent].Return.PerEpisode, r.Rows[i].Return.PerEpisode))
		}
	}
	return []found{{forest: f, agent: label(&r.Rows[agent])}}
}

func label(r *report.AdaptRow) string { return fmt.Sprintf("%s, inner step %d", r.Name, r.Steps) }

func returns(text string) htmlpage.Forest {
	return htmlpage.Forest{Name: "differences-return", Title: "%s against each policy: return",
		X: "difference of the mean return", Text: text}
}

// row compares two policies' returns on the same episodes or tasks.
func row(seed uint64, name string, a, b []float64) htmlpage.Difference {
	mean, ci := statistic.Difference(seed, "paired returns", a, b)
	return htmlpage.Difference{
		Name: name, Value: mean, Low: ci[0], High: ci[1],
		Text: fmt.Sprintf("%s [%s, %s]", report.Decimals(mean), report.Decimals(ci[0]), report.Decimals(ci[1])),
	}
}
