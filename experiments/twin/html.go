package twin

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"time"
)

// most is how many jobs a page shows.
const most = 500

// bar is a row of the page. Places are percentages of its width.
type bar struct {
	ID, User, GPUs, Text        string
	From, Wide, Low, Span, Mark float64 // interval, that of 50 %, and median
}

// WriteHTML writes a page of r for any browser: the queue with intervals as bars, and the what-ifs. It has no scripts, and texts from
// outside cannot become markup.
func (r *Report) WriteHTML(w io.Writer) error {
	far := 60.0
	see := func(q *Quantiles) {
		_, _, high := q.interval(r.Interval)
		far = max(far, min(high, r.Horizon))
	}
	for i := range r.Waiting[:min(most, len(r.Waiting))] {
		see(&r.Waiting[i].Start)
	}
	bars := func(n int, at func(i int) (b bar, q *Quantiles)) (list []bar) {
		place := func(s float64) float64 { return 100 * math.Sqrt(min(max(s, 0), far)/far) } // near times are wide
		for i := range min(n, most) {
			b, q := at(i)
			_, low, high := q.interval(r.Interval)
			mid, a, z := q.interval(50)
			b.Text = q.text(r.Interval)
			b.From, b.Low, b.Mark = place(low), place(a), place(mid)
			b.Wide, b.Span = max(.3, place(high)-b.From), max(.3, place(z)-b.Low)
			list = append(list, b)
		}
		return list
	}
	type tick struct {
		At   float64
		Text string
	}
	var ticks []tick
	for _, share := range []float64{1. / 16, 1. / 4, 9. / 16, 1} {
		ticks = append(ticks, tick{100 * math.Sqrt(share), hours(far * share)})
	}
	return page.Execute(w, map[string]any{
		"R": r, "At": r.At.Format(time.RFC3339), "Ticks": ticks, "Cluster": named(r.Cluster), "Most": most,
		"Waiting": bars(len(r.Waiting), func(i int) (bar, *Quantiles) {
			f := &r.Waiting[i]
			return bar{ID: f.ID, User: f.User, GPUs: fmt.Sprint(f.GPUs)}, &f.Start
		}),
		"Running": bars(len(r.Running), func(i int) (bar, *Quantiles) {
			f := &r.Running[i]
			return bar{ID: f.ID, User: f.User, GPUs: fmt.Sprint(f.GPUs)}, &f.End
		}),
	})
}

var page = template.Must(template.New("twin").Funcs(template.FuncMap{
	"room": func(q Quantiles, percent int) string { return q.text(percent) },
	"effect": func(e Effect) string {
		if e.What == "lost" {
			f := func(x float64) string { return fmt.Sprintf("%.1f", x) }
			return fmt.Sprintf("GPU hours lost while jobs wait: %s, now %s, change %s [%s, %s]", f(e.Then), f(e.Base), signed(e.Change, f), signed(e.CI[0], f), signed(e.CI[1], f))
		}
		of := ""
		if e.GPUs != "" {
			of = fmt.Sprintf(" of %d jobs of %s GPUs", e.Jobs, e.GPUs)
		}
		return fmt.Sprintf("mean wait%s: %s, now %s, change %s [%s, %s]", of, hours(e.Then), hours(e.Base), signed(e.Change, hours), signed(e.CI[0], hours), signed(e.CI[1], hours))
	},
}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Forecast: {{.Cluster}}</title>
<style>
:root{color-scheme:light dark}
body{font:14px/1.4 system-ui,sans-serif;margin:1.5em auto;max-width:75em;padding:0 1em}
table{border-collapse:collapse;width:100%}
td,th{padding:.1em .5em;text-align:left;white-space:nowrap}
.n{text-align:right}
.b{position:relative;width:60%;height:1.1em;padding:0}
.b i{position:absolute;top:.25em;height:.6em;background:#2a78d6;opacity:.35}
.b b{position:absolute;top:.25em;height:.6em;background:#2a78d6;opacity:.7}
.b u{position:absolute;top:.05em;height:1em;width:2px;background:currentColor}
.t{position:relative;height:1.4em}
.t span{position:absolute;transform:translateX(-100%);border-right:1px solid;padding-right:.3em;font-size:12px}
</style></head><body>
<h1>Forecast: {{.Cluster}}</h1>
<p>{{.At}}: {{len .R.Waiting}} jobs wait, {{len .R.Running}} run, {{len .R.Blocked}} are blocked. {{.R.Scheduler}}, run times {{.R.Estimates}}, arrivals {{.R.Arrivals}}; {{.R.Draws}} draws.
Light bars hold {{.R.Interval}} %, dark ones 50 % of the draws; the line is the median; numbers are the median and, in brackets, the {{.R.Interval}} %. Near times are drawn wider than far ones (square root).</p>
{{range .R.Notes}}<p>{{.}}</p>{{end}}
<h2>Waiting: when they start</h2>
{{if .Waiting}}<table><tr><th>job<th>user<th class="n">GPUs<th>starts in<th><div class="t">{{range .Ticks}}<span style="left:{{printf "%.2f" .At}}%">{{.Text}}</span>{{end}}</div></tr>
{{range .Waiting}}<tr><td>{{.ID}}<td>{{.User}}<td class="n">{{.GPUs}}<td>{{.Text}}<td class="b"><i style="left:{{printf "%.2f" .From}}%;width:{{printf "%.2f" .Wide}}%"></i><b style="left:{{printf "%.2f" .Low}}%;width:{{printf "%.2f" .Span}}%"></b><u style="left:{{printf "%.2f" .Mark}}%"></u></tr>
{{end}}</table>{{else}}<p>No job waits for GPUs.</p>{{end}}
{{if .Running}}<h2>Running: when they end</h2>
<table><tr><th>job<th>user<th class="n">GPUs<th>ends in<th><div class="t">{{range .Ticks}}<span style="left:{{printf "%.2f" .At}}%">{{.Text}}</span>{{end}}</div></tr>
{{range .Running}}<tr><td>{{.ID}}<td>{{.User}}<td class="n">{{.GPUs}}<td>{{.Text}}<td class="b"><i style="left:{{printf "%.2f" .From}}%;width:{{printf "%.2f" .Wide}}%"></i><b style="left:{{printf "%.2f" .Low}}%;width:{{printf "%.2f" .Span}}%"></b><u style="left:{{printf "%.2f" .Mark}}%"></u></tr>
{{end}}</table>{{end}}
<h2>Free GPUs</h2>
<table><tr><th class="n">GPUs<th>on<th>for the next in line in<th>idle in</tr>
{{range .R.Room}}<tr><td class="n">{{.GPUs}}<td>{{if .OneNode}}one node{{else}}anywhere{{end}}<td>{{room .Next $.R.Interval}}<td>{{room .Idle $.R.Interval}}</tr>
{{end}}</table>
{{if .R.Blocked}}<h2>No forecast</h2><ul>{{range .R.Blocked}}<li>{{.ID}} ({{.GPUs}} GPUs): {{.Why}}</li>{{end}}</ul>{{end}}
{{range .R.WhatIfs}}<h2>What if: {{.Name}}</h2>{{if .Note}}<p>{{.Note}}</p>{{end}}
{{if .Effects}}<p>Means over {{$.R.Draws}} draws, with the 95 % interval of the mean change: more draws make it narrower.</p>{{end}}
<ul>{{range .Effects}}<li>{{effect .}}</li>{{end}}{{range .Jobs}}<li>{{.ID}} starts in {{room .Start $.R.Interval}}</li>{{end}}</ul>{{end}}
</body></html>
`))
