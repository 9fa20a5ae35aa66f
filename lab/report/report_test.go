package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/statistic"
	"clustergym/internal/texttable"
	"clustergym/simulator/metrics"
)

func TestHoursAsPeopleReadThem(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0 s", 52.4: "52 s", 119.4: "119 s", 120: "2.0 min", 858: "14.3 min", 7199: "120.0 min", 7200: "2.00 h",
		21672:      "6.02 h",
		100 * 3600: "4.2 d", -858: "-14.3 min", math.NaN(): "–",
	} {
		if got := texttable.Hours(seconds); got != want {
			t.Errorf("%v s is %q, want %q", seconds, got, want)
		}
	}
	for _, c := range []struct {
		value float64
		ci    [2]float64
		want  string
	}{
		{60, [2]float64{30, 300}, "60 [30, 300] s"}, {858, [2]float64{66, 7200}, "14.3 [1.1, 120.0] min"},
		{7200, [2]float64{3600, 10800}, "2.00 [1.00, 3.00] h"},
	} {
		if got := texttable.Span(c.value, c.ci); got != c.want {
			t.Errorf("%v in %v is %q, want %q", c.value, c.ci, got, c.want)
		}
	}
}

// sayings is a report on two windows of ten jobs.
func sayings() *Report {
	policy := func(name, kind string, jct float64) PolicyReport {
		p := PolicyReport{Name: name, Kind: kind, Metrics: new(PolicyMetrics)}
		p.Metrics.JCT = statistic.Statistic{IQM: jct, Mean: jct, CI95: [2]float64{jct - 10, jct + 10},
			PerWindow: []float64{jct, jct}}
		p.Metrics.JCT99.Mean, p.Metrics.Wait.Mean, p.Metrics.BoundedSlowdown.Mean, p.Metrics.Utilization.Mean = 90, 5, 1.25,
			.5
		return p
	}
	return &Report{
		Windows:  []WindowInfo{{1, 100, 10}, {2, 110, 10}},
		Policies: []PolicyReport{policy("ppo:a@b@300", "checkpoint", 50), policy("fifo+strict", "heuristic", 100)},
		Paired: []statistic.Paired{{A: "ppo:a@b@300", B: "fifo+strict", Metric: "jct_s", Difference: -50,
			CI95: [2]float64{-60, -40}, WinRate: 1, Wins: 2}},
	}
}

func TestComparisonTable(t *testing.T) {
	r := sayings()
	r.Policies[1].Metrics.Unfinished = 3
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	table, rest, _ := strings.Cut(b.String(), "\n\n")
	var rows []string
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"policy mean JCT IQM [95 %] p99 JCT mean wait bounded slowdown GPUs used agent vs it [95 %] wins", rows[1],
		"ppo@300 50 s 50 [40, 60] s 90 s 5 s 1.2 50 %",
		"fifo+strict (3 unfinished) 100 s 100 [90, 110] s 90 s 5 s 1.2 50 % -50.0 % [-60.0, -40.0] 2 of 2",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the table is\n%s, want the rows\n%s", table, strings.Join(want, "\n"))
	}
	if !strings.HasPrefix(rest, "2 windows of 10 jobs each") || !strings.Contains(rest, "negative = ppo@300 is faster") ||
		strings.Contains(rest, "whole test part") {
		t.Errorf("below it stands\n%s", rest)
	}
}

// The line below the table says whether the agent is ahead of SJF, or that it cannot be told.
func TestTableSaysWhetherTheAgentIsAheadOfSJF(t *testing.T) {
	for _, c := range []struct {
		rival string
		ci    [2]float64
		want  string
	}{
		{"sjf+skip", [2]float64{-9, -1}, "ppo@300 is ahead of sjf+skip: mean JCT -5.0 % [-9.0, -1.0].\n"},
		{"sjf@slots", [2]float64{-9, 1}, "ppo@300 and sjf@slots cannot be told apart: mean JCT -5.0 % [-9.0, +1.0].\n"},
		{"sjf+skip", [2]float64{1, 9}, "ppo@300 is behind sjf+skip: mean JCT -5.0 % [+1.0, +9.0].\n"},
		{"fifo+strict", [2]float64{1, 9}, ""},
	} {
		r := sayings()
		r.Policies[1].Name = c.rival
		r.Paired[0].B, r.Paired[0].Difference, r.Paired[0].CI95 = c.rival, -5, c.ci
		var b strings.Builder
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, c.want) ||
			c.want == "" && (strings.Contains(got, " is behind ") || strings.Contains(got, "told apart")) {
			t.Errorf("%s: %q is missing in\n%s", c.rival, c.want, got)
		}
	}
}

func TestTableNamesRunsWhereThereAreSeveral(t *testing.T) {
	r := sayings()
	r.Policies = append(r.Policies, PolicyReport{Name: "ppo:c@300", Kind: "checkpoint"})
	if got := r.Shown("ppo:a@b@300"); got != "ppo:a@b@300" {
		t.Errorf("shown as %s beside another run", got)
	}
	r.Policies[2].Name = "ppo:a@b@900"
	if got := r.Shown("ppo:a@b@300"); got != "ppo@300" {
		t.Errorf("shown as %s beside another step of its run", got)
	}
	if got := r.Shown("fifo+strict"); got != "fifo+strict" {
		t.Errorf("a heuristic is shown as %s", got)
	}
}

func TestTableWithoutAnAgentAndOverTheWholePart(t *testing.T) {
	r := sayings()
	r.Policies, r.Paired = r.Policies[1:], nil
	m := metrics.Summary{Finished: 9}
	m.JCT.Mean, m.JCT.P50, m.JCT.P99 = 3600, 1800, 7200
	r.Whole = &WholeReport{FirstJob: 5, Jobs: 10, Counted: 9, Policies: []WholePolicy{{"fifo+strict", m}}}
	var b strings.Builder
	if err := r.WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"One run over the whole test part: 10 jobs, 9 counted.", "60.0 min", "30.0 min",
		"2.00 h"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "agent vs it") {
		t.Errorf("compares with an agent:\n%s", b.String())
	}
}
