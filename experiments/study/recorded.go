package study

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Recorded returns the report that expected.csv records of p's form, so that its tables and figures can be seen without
// computing anything. It has no rows, and none of the figures that measure the machine.
func Recorded(s Study, p Plan) (*Report, error) {
	p.heard = new(heard)
	rows, err := s.recorded()
	if err != nil {
		return nil, err
	}
	res := &Results{tables: s.Tables(p), lines: map[string][]Line{}}
	at := map[[2]string]int{} // where the lines are, by table and label
	for _, row := range rows {
		t := res.Table(row[1])
		if row[0] != p.label() || t == nil {
			continue
		}
		k := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Title == row[3] })
		words := strings.Split(row[2], " / ")
		if k < 0 || len(words) != len(t.By) {
			continue
		}
		i, ok := at[[2]string{t.Name, row[2]}]
		if !ok {
			labels := map[string]string{}
			for i, b := range t.By {
				labels[b] = words[i]
			}
			i = len(res.lines[t.Name])
			at[[2]string{t.Name, row[2]}] = i
			res.lines[t.Name] = append(res.lines[t.Name],
				Line{Labels: labels, Cells: slices.Repeat([]Value{noValue}, len(t.Columns))})
		}
		v := Value{Value: number0(row[6], math.NaN()), Low: number0(row[7], math.NaN()), High: number0(row[8], math.NaN()),
			Paper: row[11]}
		v.Units, _ = strconv.Atoi(row[9])
		v.Runs, _ = strconv.Atoi(row[10])
		res.lines[t.Name][i].Cells[k] = v
	}
	return newReport(&s, &Options{Plan: p}, res, 0, 0)
}

// WriteTo writes the report's files to a folder.
func (r *Report) WriteTo(dir string) error {
	own := *r
	own.Dir = dir
	return own.write()
}
