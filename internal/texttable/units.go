package texttable

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A quantity in a cell is written as a mark until the whole column is known, because all of a column have one unit. A
// mark is the letter of its family and its numbers between two characters that no text has.
const (
	markBegin = "\x00"
	markEnd   = "\x01"
)

var marked = regexp.MustCompile(markBegin + `([a-z])([^` + markEnd + `]*)` + markEnd)

// unit is a unit of a family: its size, the decimal places that it is written with, and the quantity from which on it
// is chosen for a single value.
type unit struct {
	name   string
	size   float64
	places int
	from   float64
}

// families are the units of quantities by letter, the smallest first.
var families = map[string][]unit{
	"t": {{"s", 1, 0, 0}, {"min", 60, 1, 120}, {"h", 3600, 2, 2 * 3600}, {"d", 86400, 1, 100 * 3600}},
	"w": {{"µs", 1e-6, 0, 0}, {"ms", 1e-3, 1, 1e-3}, {"s", 1, 1, 1}},
	"b": {{"bytes", 1, 0, 0}, {"kB", 1e3, 1, 1e3}, {"MB", 1e6, 1, 1e6}},
}

// Time returns a cell of a table for a time in seconds. OneUnit, which Write calls, gives all times of a column the
// unit of the middle one: "6.02 h". NaN is "–" and an infinite time "beyond".
func Time(seconds float64) string { return mark("t", seconds) }

// TimeSpan is Time with an interval: "6.02 [5.10, 7.33] h".
func TimeSpan(seconds float64, ci [2]float64) string { return mark("t", seconds, ci[0], ci[1]) }

// Wall is Time for what a computation takes, from microseconds on.
func Wall(seconds float64) string { return mark("w", seconds) }

// Bytes is Time for a number of bytes, in the decimal units of networks and disks.
func Bytes(n int64) string { return mark("b", float64(n)) }

func mark(family string, numbers ...float64) string {
	words := make([]string, len(numbers))
	for i, v := range numbers {
		words[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return markBegin + family + strings.Join(words, " ") + markEnd
}

// numbersOf returns the numbers of a mark.
func numbersOf(text string) []float64 {
	var list []float64
	for word := range strings.FieldsSeq(text) {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			v = math.NaN() // the text of others, which is no mark of ours
		}
		list = append(list, v)
	}
	return list
}

// OneUnit writes the quantities in the cells of rows, in place: all of a column in one unit.
func OneUnit(rows [][]string) {
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	for at := range columns {
		values := map[string][]float64{}
		for _, row := range rows {
			if at < len(row) && strings.Contains(row[at], markBegin) {
				for _, m := range marked.FindAllStringSubmatch(row[at], -1) {
					values[m[1]] = append(values[m[1]], numbersOf(m[2])...)
				}
			}
		}
		if len(values) == 0 {
			continue
		}
		scales := map[string]unit{}
		for family, list := range values {
			scales[family] = scale(families[family], list)
		}
		for _, row := range rows {
			if at < len(row) && strings.Contains(row[at], markBegin) {
				row[at] = marked.ReplaceAllStringFunc(row[at], func(s string) string {
					m := marked.FindStringSubmatch(s)
					return scales[m[1]].text(numbersOf(m[2]))
				})
			}
		}
	}
}

// scale returns the unit of a column: the one that the middle value has alone. If others would have another one, small
// values get more decimal places, so that they still say something.
func scale(units []unit, values []float64) unit {
	sizes := make([]float64, 0, len(values))
	for _, v := range values {
		if v = math.Abs(v); v > 0 && !math.IsInf(v, 0) {
			sizes = append(sizes, v)
		}
	}
	if len(units) == 0 {
		return unit{size: 1}
	}
	if len(sizes) == 0 {
		return units[0]
	}
	slices.SortFunc(sizes, cmp.Compare[float64])
	u := alone(units, sizes[(len(sizes)-1)/2])
	if alone(units, sizes[0]) != u {
		const most = 3
		for u.places < most && sizes[0]/u.size*math.Pow10(u.places) < 10 {
			u.places++
		}
	}
	return u
}

// alone returns the unit of a single value.
func alone(units []unit, v float64) unit {
	u := units[0]
	for _, next := range units[1:] {
		if v >= next.from {
			u = next
		}
	}
	return u
}

// text writes a value, or a value with the ends of its interval.
func (u unit) text(v []float64) string {
	number := func(v float64) string {
		switch {
		case math.IsInf(v, 0):
			return "beyond"
		case math.IsNaN(v):
			return "–"
		}
		return strconv.FormatFloat(v/u.size, 'f', u.places, 64)
	}
	switch {
	case len(v) == 0:
		return ""
	case math.IsNaN(v[0]) || math.IsInf(v[0], 0) && len(v) == 1:
		return number(v[0])
	case len(v) == 3:
		return fmt.Sprintf("%s [%s, %s] %s", number(v[0]), number(v[1]), number(v[2]), u.name)
	}
	return number(v[0]) + " " + u.name
}

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

// Hours formats seconds of a sentence in a unit of their size; cells of a table are written by Time: "52 s", "14.3
// min", "6.02 h", "3.1 d".
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
