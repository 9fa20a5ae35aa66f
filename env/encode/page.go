package encode

import (
	_ "embed" // the parts of pages
	"fmt"
	"strings"
	"text/template"
)

var (
	//go:embed running.md
	runningSection string
	//go:embed truth.md
	truthSection string
)

// Sections returns what the templates of environments' pages call for the parts that describe fields of this package, as Markdown.
func Sections() template.FuncMap {
	return template.FuncMap{
		"forecasts": forecastSection,
		"running":   func() string { return runningSection },
		"truth":     func() string { return truthSection },
	}
}

// forecastSection returns the part about forecasts. where says where the numbers are;
// held is whether there is a field of Held.
func forecastSection(where string, held bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### Forecasts\n\nWith forecast: on, and with auto where estimates are causal (history, gbdt), %s,\neach from 0 to 1, never NaN, and 0 where nothing is known:\n\n", where)
	b.WriteString("| numbers | unit | content |\n|---|---|---|\n")
	row := func(from, to int, unit, text string) {
		at := fmt.Sprint(from)
		if to > from {
			at = fmt.Sprintf("%d–%d", from, to)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", at, unit, text)
	}
	row(fcQuantiles, fcCertainty-1, "L(time)", "quantiles 0.1, 0.25, 0.5, 0.75 and 0.9 of the time left, given for how long the job has run: of its run time if it has not; 0 = 0 s, 1 = 14 days and more")
	row(fcCertainty, fcCertainty, "C(jobs, 32)", "certainty: jobs from which the quantiles come; 0 = there are none like it, and the quantiles are a guess")
	row(fcUserEnded, fcUserEnded, "C(jobs, 32)", "ended jobs of its user that the predictor looks at, at its submit (history: up to 20)")
	row(fcUserRatio, fcUserRatio, "log ratio", "their median run time over that of all jobs: 1/2 + ln(ratio)/(2 ln 1000), so 0.5 = equal, 1 = 1,000 times and more")
	row(fcVCEnded, fcVCRatio, "as for the user", "the same of the jobs of its virtual cluster that have as many GPUs")
	row(fcUserRunning, fcUserRunning, "C(jobs, G)", "jobs of its user that run now, counted or not; C(jobs, 1024) where G is larger")
	row(fcUserWaiting, fcUserWaiting, "C(jobs, 1024)", "jobs of its user that wait now, itself among them")
	row(fcVCRunning, fcVCWaiting, "as for the user", "the same of its virtual cluster")
	if held {
		fmt.Fprintf(&b, "\nA field held of %d numbers from 0 to 1 is added: the share of the cluster's GPUs that the jobs that run now are expected\n", HeldLen)
		b.WriteString("to hold over each row of the time axis. The run time of a job is taken to be one of its quantiles above the time run, with\n")
		b.WriteString("weights 0.175, 0.2, 0.25, 0.2, 0.175; where none is above it, what is expected of a job of that age.\n")
	}
	b.WriteString("\nForecasts are those of a job's submit. Where estimates are exact, noisy or trace the quantiles are equal and the certainty\n")
	b.WriteString("is 1; with estimates: none both are 0. Of what has ended, exact and noisy know what history does, trace and none nothing. So an\n")
	b.WriteString("agent that was trained with forecasts can be judged on every rung with forecast: on.\n\n")
	return b.String()
}
