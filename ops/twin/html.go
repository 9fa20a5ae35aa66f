package twin

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"time"

	"clustergym/lab/htmlpage"
)

// most is how many jobs a page shows.
const most = 500

// bar is a row of the page. Places are percentages of its width.
type bar struct {
	ID, User, GPUs, Text        string
	Unit                        string
	From, Wide, Low, Span, Mark float64 // interval, that of 50 %, and median
}

// tick is a mark of a scale.
type tick struct {
	At   float64
	Text string
}

// chart is a list of jobs with a scale of its own: what runs may end long after what waits has started.
type chart struct {
	What  string // of its times
	Ticks []tick
	Bars  []bar
	More  int // jobs that it leaves out
}

// chartOf draws n jobs; at returns one of them.
func (r *Report) chartOf(what string, n int, at func(i int) (b bar, gpus int, q *Quantiles)) *chart {
	c := &chart{What: what, More: max(0, n-most)}
	far := 60.0
	for i := range min(n, most) {
		_, _, q := at(i)
		_, _, high := q.interval(r.Interval)
		far = max(far, min(high, r.Horizon))
	}
	place := func(s float64) float64 { return 100 * math.Sqrt(min(max(s, 0), far)/far) } // near times are wide
	for i := range min(n, most) {
		b, gpus, q := at(i)
		_, low, high := q.interval(r.Interval)
		mid, a, z := q.interval(50)
		b.GPUs, b.Unit, b.Text = fmt.Sprint(gpus), unit(gpus), q.text(r.Interval)
		b.From, b.Wide = span(place(low), place(high))
		b.Low, b.Span = span(place(a), place(z))
		b.Mark = place(mid)
		c.Bars = append(c.Bars, b)
	}
	for _, share := range []float64{1. / 16, 1. / 4, 9. / 16, 1} {
		c.Ticks = append(c.Ticks, tick{100 * math.Sqrt(share), hours(far * share)})
	}
	return c
}

// span returns where a bar begins and how wide it is: wide enough to be seen, and within the chart.
func span(from, to float64) (at, wide float64) {
	const least = .4
	at = min(from, 100-least)
	return at, min(max(least, to-at), 100-at)
}

// unit is what so many GPUs are called.
func unit(gpus int) string {
	if gpus == 1 {
		return "GPU"
	}
	return "GPUs"
}

// WriteHTML writes a page of r for any browser: the queue with intervals as bars, and the what-ifs. It has no scripts,
// and texts from outside cannot become markup.
func (r *Report) WriteHTML(w io.Writer) error {
	return page.Execute(w, map[string]any{
		"R": r, "Style": template.CSS(htmlpage.Style()), //nolint:gosec // the program's own
		"At": r.At.Format(time.RFC3339), "Cluster": named(r.Cluster), "Counts": r.counts(),
		"Waiting": r.chartOf("starts in", len(r.Waiting), func(i int) (bar, int, *Quantiles) {
			f := &r.Waiting[i]
			return bar{ID: f.ID, User: f.User}, f.GPUs, &f.Start
		}),
		"Running": r.chartOf("ends in", len(r.Running), func(i int) (bar, int, *Quantiles) {
			f := &r.Running[i]
			return bar{ID: f.ID, User: f.User}, f.GPUs, &f.End
		}),
	})
}

var page = template.Must(template.New("twin").Funcs(template.FuncMap{
	"unit": unit,
	"room": func(q Quantiles, percent int) string { return q.text(percent) },
	"effect": func(e Effect) string {
		if e.What == "lost" {
			f := func(x float64) string { return fmt.Sprintf("%.1f", x) }
			return fmt.Sprintf("GPU hours lost while jobs wait: %s, now %s, change %s [%s, %s]", f(e.Then), f(e.Base),
				signed(e.Change, f), signed(e.CI[0], f), signed(e.CI[1], f))
		}
		of := ""
		if e.GPUs != "" {
			of = " of " + e.of()
		}
		return fmt.Sprintf("mean wait%s: %s, now %s, change %s [%s, %s]", of, hours(e.Then), hours(e.Base),
			signed(e.Change, hours), signed(e.CI[0], hours), signed(e.CI[1], hours))
	},
}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Forecast: {{.Cluster}}</title>
<style>
{{.Style}}
p,li{overflow-wrap:anywhere}
table{width:100%;white-space:normal;border:0}
td,th,th:first-child{padding:.1em .5em;text-align:left;vertical-align:top;position:static}
thead th,th{border:0;font-weight:600;color:var(--soft)}
th,.n,.w{white-space:nowrap}
td.n,th.n{text-align:right}
.j{overflow-wrap:anywhere;min-width:8em}
.b{width:46%;padding:.1em 0}
.x,.t{position:relative;height:1.2em;margin:0 2px}
.x i,.x b{position:absolute;top:.3em;height:.6em;background:var(--accent)}
.x i{opacity:.35}
.x b{opacity:.7}
.x u{position:absolute;top:.1em;height:1em;width:2px;margin-left:-1px;background:currentColor}
.t span{position:absolute;white-space:nowrap;transform:translateX(-100%);border-right:1px solid;padding-right:.3em;font-size:12px;font-weight:normal}
.s{display:none}
@media(max-width:40em){
.q,.q tbody{display:block}
.q tr{display:grid;grid-template-columns:1fr auto auto;column-gap:.8em;padding:.4em 0;border-top:1px solid #8886}
.q td{padding:0}
.q th{display:none}
.q th.b{display:block}
.q .b,.q .w{grid-column:1/-1;width:auto;white-space:normal}
.s{display:inline}
.r td,.r th{white-space:normal;padding:.1em .3em}
}
@media print{.x i,.x b{print-color-adjust:exact;-webkit-print-color-adjust:exact}tr{break-inside:avoid}}
</style></head><body><main>
<h1>Forecast: {{.Cluster}}</h1>
<p>{{.At}}: {{.Counts}}. {{.R.Scheduler}}, estimates {{.R.Estimates}}, arrivals {{.R.Arrivals}}; {{.R.Draws}} draws.
Light bars hold {{.R.Interval}} %, dark ones 50 % of the draws; the line is the median; numbers are the median and, in brackets, the {{.R.Interval}} %. Near times are drawn wider than far ones (square root).</p>
{{range .R.Notes}}<p>{{.}}</p>{{end}}
<h2>Waiting: when they start</h2>
{{if .Waiting.Bars}}{{template "chart" .Waiting}}{{else}}<p>No job waits for GPUs.</p>{{end}}
{{if .Running.Bars}}<h2>Running: when they end</h2>
{{template "chart" .Running}}{{end}}
{{if .R.Room}}<h2>Free GPUs</h2>
<table class="r"><tr><th class="n">GPUs<th>on<th>for the next in line in<th>idle in</tr>
{{range .R.Room}}<tr><td class="n">{{.GPUs}}<td>{{if .OneNode}}one node{{else}}anywhere{{end}}<td>{{room .Next $.R.Interval}}<td>{{room .Idle $.R.Interval}}</tr>
{{end}}</table>{{end}}
{{if .R.Blocked}}<h2>No forecast</h2><ul>{{range .R.Blocked}}<li>{{.ID}} ({{.GPUs}} {{unit .GPUs}}): {{.Why}}</li>{{end}}</ul>{{end}}
{{range .R.WhatIfs}}<h2>What if: {{.Name}}</h2>{{if .Note}}<p>{{.Note}}</p>{{end}}
{{if .Effects}}<p>Means over {{$.R.Draws}} draws, with the 95 % interval of the mean change: more draws make it narrower.</p>{{end}}
{{if or .Effects .Jobs}}<ul>{{range .Effects}}<li>{{effect .}}</li>{{end}}{{range .Jobs}}<li>{{.ID}} starts in {{room .Start $.R.Interval}}</li>{{end}}</ul>{{end}}{{end}}
</main></body></html>
{{define "chart"}}<table class="q"><tr><th>job<th>user<th class="n">GPUs<th>{{.What}}<th class="b"><div class="t">{{range .Ticks}}<span style="left:{{printf "%.2f" .At}}%">{{.Text}}</span>{{end}}</div></tr>
{{$what := .What}}{{range .Bars}}<tr><td class="j">{{.ID}}<td>{{.User}}<td class="n">{{.GPUs}}<span class="s"> {{.Unit}}</span><td class="w"><span class="s">{{$what}} </span>{{.Text}}<td class="b"><div class="x"><i style="left:{{printf "%.2f" .From}}%;width:{{printf "%.2f" .Wide}}%"></i><b style="left:{{printf "%.2f" .Low}}%;width:{{printf "%.2f" .Span}}%"></b><u style="left:{{printf "%.2f" .Mark}}%"></u></div></tr>
{{end}}</table>{{if .More}}<p>… and {{.More}} more.</p>{{end}}{{end}}
`))
