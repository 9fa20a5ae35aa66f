package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table groups rows into lines by the labels in By, and aggregates over the other labels. Each combination of other
// labels except that of repeated runs is a unit, such as a window or a graph. Intervals are 95 % percentile intervals
// of a bootstrap that draws units and, if there are several, runs.
type Table struct {
	Name, Title string
	From        string            // table of the rows; "" = Name
	Where       map[string]string // use only rows with these labels
	// show only these lines; nil = all. Hidden lines can still be compared with
	Keep    func(line map[string]string) bool
	By      []string            // the labels that name a line
	Order   map[string][]string // of a label's values; other values follow in order of appearance
	Runs    string              // the label of repeated runs; "" = "seed"
	Columns []Column
	Notes   []string
}

// Stat is how a column aggregates.
type Stat string

// The statistics. The last five compare a line with another one on the units that both have: the difference of sums in
// percent, the mean over units of each unit's difference in percent, the mean difference, the share of units in which
// the line is better, where ties count half, and the difference of sums in percent of the way from a third line, Start,
// to the other one.
const (
	Mean          Stat = "mean"
	IQM           Stat = "iqm"
	Median        Stat = "median"
	Minimum       Stat = "min"
	Maximum       Stat = "max"
	Sum           Stat = "sum"
	GeometricMean Stat = "geomean"
	Standard      Stat = "std" // standard deviation between units, with n−1
	Percent       Stat = "percent"
	PercentEach   Stat = "percent-each"
	Difference    Stat = "difference"
	Wins          Stat = "wins"
	Behind        Stat = "behind"
)

// paired reports whether s compares two lines.
func (s Stat) paired() bool {
	return s == Percent || s == PercentEach || s == Difference || s == Wins || s == Behind
}

// Column is one figure in every line of a table.
type Column struct {
	Title  string            // unique in its table
	Metric string            // of the rows
	Stat   Stat              // "" = Mean
	Versus map[string]string // for paired statistics: labels in which the line to compare with differs from this line
	Start  map[string]string // for Behind: as Versus, where the way begins
	Turned bool              // compare the other line with this one instead; not for Behind
	Higher bool              // for Wins: higher values are better
	Bare   bool              // show values without intervals
	Hidden bool              // in results.csv, JSON and index.html, but not in table.txt and on the terminal
	// Format formats a value; nil = four digits, or percent if the statistic is one.
	Format func(v float64) string
	// Paper returns the published figure of a line, which is shown in a column of its own; "" if there is none.
	Paper func(line map[string]string) string
}

// Line aggregates the rows with equal values of the labels in Table.By.
type Line struct {
	Labels map[string]string
	Cells  []Value // by column
}

// Value is one aggregated figure. Low and High are NaN if there is no interval.
type Value struct {
	Value, Low, High float64
	Units, Runs      int    // numbers of aggregated units, and of runs in a unit at most
	Paper            string // the published figure
}

// Interval reports whether v has an interval.
func (v Value) Interval() bool { return !math.IsNaN(v.Low) && !math.IsNaN(v.High) }

// label joins the values of a line's labels.
func (t *Table) label(labels map[string]string) string {
	words := make([]string, len(t.By))
	for i, b := range t.By {
		words[i] = labels[b]
	}
	return strings.Join(words, " / ")
}

// stat returns the statistic of the column.
func (c *Column) stat() Stat {
	if c.Stat == "" {
		return Mean
	}
	return c.Stat
}

// Show formats a value of the column, with its interval.
func (c *Column) Show(v Value) string {
	if math.IsNaN(v.Value) {
		return "–"
	}
	f := c.Format
	if f == nil {
		switch c.stat() {
		case Percent, PercentEach:
			f = signedPercent
		case Wins:
			f = func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
		default:
			f = digits
		}
	}
	if c.Bare || !v.Interval() {
		return f(v.Value)
	}
	// The unit stands once.
	unit := ""
	if _, u, ok := strings.Cut(f(v.Value), " "); ok && strings.HasSuffix(f(v.Low), " "+u) &&
		strings.HasSuffix(f(v.High), " "+u) {
		unit = " " + u
	}
	return fmt.Sprintf("%s [%s, %s]", f(v.Value), strings.TrimSuffix(f(v.Low), unit), strings.TrimSuffix(f(v.High), unit))
}

// digits formats a number with four digits, or as a whole number.
func digits(v float64) string {
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

// signedPercent formats a difference in percent, with its sign.
func signedPercent(v float64) string { return fmt.Sprintf("%+.1f %%", v) }

// rank returns the place of a label's value: values in order come first, others follow by seen.
func rank(order []string, value string, seen int) int {
	if i := slices.Index(order, value); i >= 0 {
		return i
	}
	return len(order) + seen
}
