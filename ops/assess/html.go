package assess

import (
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
		"Title": "Waits on " + plain.Clip(o.Cluster.Name, 80),
		"First": strings.Join(o.First, " "), "Cards": o.cards(), "Bars": o.bars(), "Then": o.thenName(),
		"Facts": o.facts(), "Week": o.weekRows(), "Queue": o.queue(), "Sheets": sheets,
	})
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

var page = template.Must(template.New("assess").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{{.Title}}</title>
<style>
{{.Style}}
main { max-width: 960px; }
.lead { font-size: 19px; line-height: 1.4; margin: 0 0 16px; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; margin: 0 0 20px; }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; min-width: 0; }
.card b { display: block; font-size: 32px; font-weight: 600; line-height: 1.2; }
.card span, .card small { display: block; color: var(--soft); overflow-wrap: anywhere; }
.card small { font-size: 12.5px; }
.bars { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 7px 12px; margin: 0 0 8px; }
.bars dt { line-height: 34px; }
.bars dd { margin: 0; font-variant-numeric: tabular-nums; }
.row { display: flex; align-items: center; gap: 6px; height: 17px; font-size: 12.5px; padding-right: 5em; }
.row i { display: block; height: 12px; border-radius: 2px; flex: none; }
.row span { white-space: nowrap; margin-right: -5em; }
.was, .swatch.was { background: var(--soft); }
.then, .swatch.then { background: var(--accent); }
.more { background: #c2410c; }
.week { width: 100%; table-layout: fixed; white-space: normal; border: 0; }
.week td { padding: 0; height: 18px; border: 1px solid var(--paper); }
.week td i { display: block; height: 100%; background: var(--accent); }
.week th { width: 3.4em; font-size: 12px; padding: 0; white-space: nowrap; }
.week thead th { width: auto; border: 0; text-align: left; position: static; }
svg { display: block; width: 100%; height: auto; background: var(--panel); border-radius: 6px; }
polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
polyline.was { stroke: var(--soft); stroke-width: 4; opacity: .55; }
polyline.today { stroke: var(--ink); stroke-width: 1.2; }
polyline.then { stroke: var(--accent); }
.swatch.today { background: var(--ink); }
.edges { display: flex; justify-content: space-between; color: var(--soft); font-size: 12.5px; }
.sheet { break-inside: avoid; }
p, li { overflow-wrap: anywhere; }
@media (max-width: 640px) {
  .lead { font-size: 17px; }
  .cards { grid-template-columns: 1fr; gap: 8px; }
  .card { display: grid; grid-template-columns: 1fr auto; gap: 0 12px; align-items: baseline; }
  .card b { font-size: 24px; grid-row: span 2; grid-column: 2; grid-row-start: 1; }
  .bars { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .bars dt { line-height: 1.6; }
}
@media print {
  .card { border-color: #888; }
  .row i, .week td i, .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { break-after: avoid; }
}
</style></head><body><main>
<h1>{{.Title}}</h1>
<p class="lead">{{.First}}</p>
<div class="cards">{{range .Cards}}<div class="card"><span>{{.What}}</span><b>{{.Number}}</b><small>{{.More}}</small></div>{{end}}</div>
<figure><figcaption>How long jobs wait, by their size</figcaption>
<dl class="bars">{{range .Bars}}<dt>{{.Name}}</dt><dd><div class="row"><i class="was" style="width:{{printf "%.2f" .Today}}%"></i><span>{{.TodayText}}</span></div>{{if .Compared}}<div class="row"><i class="{{if .Longer}}more{{else}}then{{end}}" style="width:{{printf "%.2f" .Then}}%"></i><span>{{.Text}}</span></div>{{end}}</dd>
{{end}}</dl>
<div class="legend"><span class="entry"><span class="swatch was"></span>today</span>{{if .Then}}<span class="entry"><span class="swatch then"></span>{{.Then}}</span><span class="entry"><span class="swatch more"></span>likewise, and longer than today</span>{{end}}</div></figure>
<h2>How sure</h2>
<p>{{.O.Sure}}</p>
<p>What would make it surer: {{.O.Surer}}</p>
<h2>What was assessed</h2>
<dl class="facts">{{range .Facts}}<div><dt>{{index . 0}}</dt><dd>{{index . 1}}</dd></div>{{end}}</dl>
<h2>The recorded week</h2>
<p class="told">Mean wait of the jobs that were submitted in each hour; the stronger the colour, the longer. Times are those of the file.</p>
<table class="week"><thead><tr><th></th><th colspan="6">0</th><th colspan="6">6</th><th colspan="6">12</th><th colspan="6">18</th></tr></thead><tbody>{{range .Week}}<tr><th>{{.Name}}</th>{{range .Cells}}<td title="{{.Says}}"><i style="opacity:{{printf "%.2f" .Shade}}"></i></td>{{end}}</tr>
{{end}}</tbody></table>
{{with .Queue}}<h2>The queue</h2>
<figure><div class="edges"><span>{{.Most}}</span></div>
<svg viewBox="0 0 800 200" preserveAspectRatio="none" role="img" aria-label="{{.Says}}">{{range .Lines}}<polyline class="{{.Class}}" points="{{.Points}}"/>{{end}}</svg>
<div class="edges"><span>0</span><span>{{.Ends}}</span></div>
<div class="legend">{{range .Lines}}<span class="entry"><span class="swatch {{.Class}}"></span>{{.Name}}</span>{{end}}</div></figure>{{end}}
{{range .Sheets}}{{$left := .Left}}<section class="sheet"><h2>{{.Title}}</h2>
<div class="wide"><table><thead><tr>{{range $i, $h := .Header}}<th{{if lt $i $left}} class="words"{{end}}>{{$h}}</th>{{end}}</tr></thead><tbody>
{{range .Rows}}<tr>{{range $i, $c := .}}{{if eq $i 0}}<th>{{$c}}</th>{{else}}<td{{if lt $i $left}} class="words"{{end}}>{{$c}}</td>{{end}}{{end}}</tr>
{{end}}</tbody></table></div>{{if .Below}}<p class="told">{{.Below}}</p>{{end}}</section>
{{end}}<h2>What to know</h2>
<ul>{{range .O.Notes}}<li>{{.}}</li>{{end}}</ul>
</main></body></html>
`))
