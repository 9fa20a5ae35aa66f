package assess

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"clustergym/internal/plain"
	"clustergym/internal/texttable"
	"clustergym/lab/htmlpage"
)

// card is a number of the first screen.
type card struct{ What, Number, More string }

// bar is a size of jobs in the picture of the first screen. Widths are percentages.
type bar struct {
	Name             string
	Today, Then      float64
	TodayText, Text  string
	Longer, Compared bool
}

// cell is an hour of the recorded week; Shade goes from 0 to 1.
type cell struct {
	Shade float64
	Says  string
}

// day is a row of the recorded week.
type day struct {
	Name  string
	Cells []cell
}

// line is a curve of the queue, as the points of an SVG.
type line struct {
	Name, Class, Points string
}

// queue is the picture of the queue over time.
type queue struct {
	Lines []line
	Most  string // jobs at the upper edge
	Ends  string // time at the right edge
	Says  string
}

// HTML writes the assessment as one page for any browser, without scripts and without a network. Texts from outside
// cannot become markup.
func (o *Assessment) HTML(w io.Writer) error {
	sheets := o.sheets()
	for i := range sheets {
		sheets[i].Below = strings.TrimSpace(sheets[i].Below)
	}
	return page.Execute(w, map[string]any{
		"O": o, "Style": template.CSS(htmlpage.Style()), //nolint:gosec // the program's own
		"Title": "Waits on " + o.title(),
		"First": strings.Join(o.First, " "), "Cards": o.cards(), "Bars": o.bars(), "Then": o.thenName(),
		"Facts": o.facts(), "Week": o.weekRows(), "Queue": o.queue(), "Sheets": sheets,
	})
}

// Guessed is the name of a cluster that nobody has named.
const Guessed = "guessed from the file"

// title is what the page is of.
func (o *Assessment) title() string {
	if o.Cluster.Name == Guessed {
		return "the cluster of " + plain.Clip(o.File, 80)
	}
	return plain.Clip(o.Cluster.Name, 80)
}

// cards are the three numbers of the first screen.
func (o *Assessment) cards() []card {
	of := func(what string, n *Number, none string) card {
		if n == nil {
			return card{what, "–", none}
		}
		c := card{what, long(n.Wait), ""}
		if n.CI != nil {
			_, c.More, _ = strings.Cut(within(n.Wait, n.CI), "(")
			c.More = strings.TrimSuffix(c.More, ")")
			_, unit := unitOf(n.Wait)
			c.More = "between " + strings.Replace(c.More, " to ", " and ", 1) + " " + unit
		}
		return c
	}
	return []card{
		{"today", long(o.Head.Today), "mean of " + plain.Count(o.Recorded.Jobs, "job", "jobs")},
		of("with another order", o.Head.Order, "none is shown to help"),
		of("with "+plain.Count(o.Head.Added, "more GPU", "more GPUs"), o.Head.More, "cannot be said"),
	}
}

// thenName says what the second bars stand for.
func (o *Assessment) thenName() string {
	switch {
	case o.Changes == nil:
		return ""
	case o.Best != "":
		return "with another order"
	}
	return "with the best other order that was tried, which is not shown to help"
}

// bars are the recorded waits by size, and what another order would make of them.
func (o *Assessment) bars() []bar {
	var all []bar
	most := 1.
	change := map[string]*Change{}
	if o.Changes != nil {
		for i := range o.Changes.Sizes {
			change[o.Changes.Sizes[i].Name] = &o.Changes.Sizes[i]
		}
	}
	for i := range o.Recorded.Sizes {
		g := &o.Recorded.Sizes[i]
		b := bar{Name: g.Name, Today: g.Mean, TodayText: long(g.Mean)}
		if c := change[g.Name]; c != nil && c.Model > 0 {
			b.Compared, b.Then = true, g.Mean*c.Then/c.Model
			b.Text, b.Longer = long(b.Then), b.Then > b.Today
		}
		most = max(most, b.Today, b.Then)
		all = append(all, b)
	}
	for i := range all {
		b := &all[i]
		b.Today, b.Then = max(.4, 100*b.Today/most), max(.4, 100*b.Then/most)
	}
	return all
}

// weekRows are the recorded waits by hour of the week.
func (o *Assessment) weekRows() []day {
	most := 1.
	for i := range o.Recorded.Week {
		most = max(most, o.Recorded.Week[i].Mean)
	}
	var all []day
	for d := range 7 {
		row := day{Name: fmt.Sprintf("day %d", d+1)}
		if o.Recorded.From != nil {
			row.Name = days[d][:3]
		}
		for h := range 24 {
			x := &o.Recorded.Week[24*d+h]
			row.Cells = append(row.Cells, cell{math.Sqrt(x.Mean / most), fmt.Sprintf("%s %02d:00: %s, %s", row.Name, h,
				plain.Count(x.Jobs, "job", "jobs"), long(x.Mean))})
		}
		all = append(all, row)
	}
	return all
}

// The picture of the queue, in units of its view box.
const (
	queueWide = 800.
	queueHigh = 200.
)

// queue draws how many jobs wait over time.
func (o *Assessment) queue() *queue {
	q := &queue{}
	most := 1.
	for _, c := range o.curves {
		for _, y := range c.jobs {
			most = max(most, y)
		}
	}
	class := map[string]string{"recorded": "was", "as today": "today", "then": "then"}
	name := map[string]string{"recorded": "recorded", "as today": "copy of your scheduler", "then": o.thenName()}
	for _, c := range o.curves {
		var b strings.Builder
		for i, y := range c.jobs {
			fmt.Fprintf(&b, "%.1f,%.1f ", queueWide*(float64(i)+.5)/float64(len(c.jobs)), queueHigh*(1-y/most))
		}
		q.Lines = append(q.Lines, line{name[c.name], class[c.name], strings.TrimSpace(b.String())})
	}
	q.Most, q.Ends = fmt.Sprintf("%.0f jobs", most), texttable.Hours(o.Recorded.Span)
	q.Says = "Waiting jobs over the recorded time."
	return q
}

//go:embed page.tmpl
var pageText string

var page = template.Must(template.New("assess").Parse(pageText))
