package texttable

import (
	"fmt"
	"math"
	"strings"
)

// Span formats a time and its interval, both in seconds, in one unit.
func Span(seconds float64, ci [2]float64) string {
	value, unit, _ := strings.Cut(Hours(seconds), " ")
	size := map[string]float64{"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
	if size == 0 {
		return Hours(seconds)
	}
	_, places, _ := strings.Cut(value, ".")
	return fmt.Sprintf("%s [%.*f, %.*f] %s", value, len(places), ci[0]/size, len(places), ci[1]/size, unit)
}

// Hours formats seconds of a sentence in a unit of their size; cells of a table are written by Time: "52 s", "14.3 min", "6.02 h", "3.1 d".
func Hours(seconds float64) string {
	switch a := math.Abs(seconds); {
	case math.IsNaN(seconds):
		return "–"
	case a < 120:
		return fmt.Sprintf("%.0f s", seconds)
	case a < 2*3600:
		return fmt.Sprintf("%.1f min", seconds/60)
	case a < 100*3600:
		return fmt.Sprintf("%.2f h", seconds/3600)
	}
	return fmt.Sprintf("%.1f d", seconds/86400)
}
