package envs

import (
	"fmt"
	"math"

	"clustergym/internal/texttable"
)

// Show returns a value of the metric as text.
func (m *Metric) Show(v float64) string {
	if m.Unit == "s" {
		return texttable.Hours(v)
	}
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case a < 10:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Cell is Show for a table, in which all of a column have one unit (texttable.OneUnit).
func (m *Metric) Cell(v float64) string {
	if m.Unit == "s" {
		return texttable.Time(v)
	}
	return m.Show(v)
}

// SpanCell is Span for a table.
func (m *Metric) SpanCell(v float64, ci [2]float64) string {
	if m.Unit == "s" {
		return texttable.TimeSpan(v, ci)
	}
	return m.Span(v, ci)
}

// Span returns a value and its interval as text, in one unit.
func (m *Metric) Span(v float64, ci [2]float64) string {
	if m.Unit == "s" {
		return texttable.Span(v, ci)
	}
	return fmt.Sprintf("%s [%s, %s]", m.Show(v), m.Show(ci[0]), m.Show(ci[1]))
}
