package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table groups rows by some of their labels; over the other labels it aggregates. Each combination of those, but for
// the label of repeated runs, is a unit: a window, a graph. Intervals are 95 % percentile intervals of a bootstrap
// that draws units and, where there are several, runs.
type Table struct {
	Name, Title string
	From        string                            // of the rows; "" = Name
	Where       map[string]string                 // takes only rows with these labels
	Keep        func(line map[string]string) bool // shows only these lines; nil = all. Others can be compared with
	By          []string                          // the labels that name a line
	Order       map[string][]string               // of a label's values; values that are not named follow as they appear
	Runs        string                            // the label that tells repeated runs of one thing apart; "" = "seed"
	Columns     []Column
	Notes       []string
}

// Stat is how a column aggregates.
type Stat string

// The statistics. The lower four compare a line with another on the units that both have: the difference of sums in
// percent, the mean over units of each unit's difference in percent, the mean difference, and the share of units in
// which the line is better, ties half.
const (
	Mean          Stat = "mean"
	IQM           Stat = "iqm"
	Median        Stat = "median"
	Minimum       Stat = "min"
	Maximum       Stat = "max"
	Sum           Stat = "sum"
	GeometricMean Stat = "geomean"
	Standard      Stat = "std" // between units, n−1
	Percent       Stat = "percent"
	PercentEach   Stat = "percent-each"
	Difference    Stat = "difference"
	Wins          Stat = "wins"
)

func (s Stat) paired() bool {
	return s == Percent || s == PercentEach || s == Difference || s == Wins
}

// Column is one figure of every line.
type Column struct {
	Title  string            // unique in its table
	Metric string            // of the rows
	Stat   Stat              // "" = Mean
	Versus map[string]string // of a paired statistic: labels of the line that this one is compared with
	Turned bool              // the other line is compared with this one
	Higher bool              // higher values are better: for Wins
	Bare   bool              // shown without its interval
	// Format shows a value; nil = four digits, or a signed percentage where the statistic is one.
	Format func(v float64) string
	// Paper is the published figure of a line, shown in a column of its own; "" where it has none.
	Paper func(line map[string]string) string
}

// Figures of a table.

// Line is what the rows with the same values of Table.By come to.
type Line struct {
	Labels map[string]string
	Cells  []Value // by column
}

// Value is one aggregated figure. Low and High are NaN where there is no interval.
type Value struct {
	Value, Low, High float64
	Units, Runs      int    // how many values stand behind it
	Paper            string // the published figure
}

// Interval says whether there is one.
func (v Value) Interval() bool { return !math.IsNaN(v.Low) && !math.IsNaN(v.High) }

// label joins the values of a line's labels.
func (t *Table) label(labels map[string]string) string {
	words := make([]string, len(t.By))
	for i, b := range t.By {
		words[i] = labels[b]
	}
	return strings.Join(words, " / ")
}

func (c *Column) stat() Stat {
	if c.Stat == "" {
		return Mean
	}
	return c.Stat
}

// Show is the value as the column shows it.
func (c *Column) Show(v Value) string {
	if math.IsNaN(v.Value) {
		return "–"
	}
	f := c.Format
	if f == nil {
		switch c.stat() {
		case Percent, PercentEach:
			f = SignedPercent
		case Wins:
			f = func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
		default:
			f = Digits
		}
	}
	if c.Bare || !v.Interval() {
		return f(v.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", f(v.Value), f(v.Low), f(v.High))
}

// Digits shows four digits.
func Digits(v float64) string {
	switch a := math.Abs(v); {
	case a == math.Trunc(a) && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 1000 && a < 1e6:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100 && a < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 10 && a < 100:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 1e-3 && a < 10:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Fixed shows so many places.
func Fixed(places int) func(v float64) string {
	return func(v float64) string { return strconv.FormatFloat(v, 'f', places, 64) }
}

// SignedPercent shows a difference in percent.
func SignedPercent(v float64) string { return fmt.Sprintf("%+.1f %%", v) }

// Share shows a part of one in percent.
func Share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// rank orders values of a label: those that are named first, in that order.
func rank(order []string, value string, seen int) int {
	if i := slices.Index(order, value); i >= 0 {
		return i
	}
	return len(order) + seen
}
