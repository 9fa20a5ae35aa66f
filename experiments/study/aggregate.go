package study

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"clustergym/internal/rng"
	"clustergym/internal/statistic"
)

// Results holds all rows of an experiment and the tables made from them.
type Results struct {
	Rows   []Row
	tables []Table
	lines  map[string][]Line // by table
}

// Table returns the table called name, nil if there is none.
func (r *Results) Table(name string) *Table {
	for i := range r.tables {
		if r.tables[i].Name == name {
			return &r.tables[i]
		}
	}
	return nil
}

// Lines returns the lines of the table called name.
func (r *Results) Lines(name string) []Line { return r.lines[name] }

// Find returns one figure and its column: in the line of a table with these labels, and the column with this title. ok
// is false if there is no such figure.
func (r *Results) Find(table string, labels map[string]string, column string) (v Value, c *Column, ok bool) {
	t := r.Table(table)
	if t == nil {
		return v, nil, false
	}
	k := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Title == column })
	if k < 0 {
		return v, nil, false
	}
	for _, l := range r.lines[table] {
		if t.label(l.Labels) == t.label(labels) {
			return l.Cells[k], &t.Columns[k], true
		}
	}
	return v, nil, false
}

// aggregate makes the lines of all tables.
func aggregate(rows []Row, tables []Table) (*Results, error) {
	r := &Results{Rows: rows, tables: tables, lines: map[string][]Line{}}
	for i := range tables {
		t := &tables[i]
		if _, twice := r.lines[t.Name]; twice {
			panic(fmt.Sprintf("study: two tables are called %q", t.Name))
		}
		lines, err := t.lines(rows)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		r.lines[t.Name] = lines
	}
	return r, nil
}

// group holds the values of one line and metric: by unit, then by run, both in order of appearance.
type group struct {
	units []string
	at    map[string]int
	runs  [][]string
	vals  [][]float64
}

// add adds a value. A unit and run must not occur twice.
func (g *group) add(unit, run string, v float64) error {
	i, ok := g.at[unit]
	if !ok {
		i = len(g.units)
		g.at[unit] = i
		g.units, g.runs, g.vals = append(g.units, unit), append(g.runs, nil), append(g.vals, nil)
	}
	if slices.Contains(g.runs[i], run) {
		return fmt.Errorf("two rows for one unit (%s) and run (%s)", unit, run)
	}
	g.runs[i], g.vals[i] = append(g.runs[i], run), append(g.vals[i], v)
	return nil
}

// values returns the values by unit, then by run. If there is only one unit, its runs become units.
func (g *group) values() [][]float64 {
	if g == nil {
		return nil
	}
	if len(g.vals) != 1 {
		return g.vals
	}
	out := make([][]float64, len(g.vals[0]))
	for i, v := range g.vals[0] {
		out[i] = []float64{v}
	}
	return out
}

// pair returns the values of the units that a and b have in common, in a's order. If both have only one unit, and it is
// the same one with several runs, the runs that they have in common become units.
func pair(a, b *group) (x, y [][]float64) {
	if a == nil || b == nil {
		return nil, nil
	}
	if len(a.units) == 1 && len(b.units) == 1 && a.units[0] == b.units[0] && len(a.runs[0]) > 1 && len(b.runs[0]) > 1 {
		for i, run := range a.runs[0] {
			if k := slices.Index(b.runs[0], run); k >= 0 {
				x, y = append(x, []float64{a.vals[0][i]}), append(y, []float64{b.vals[0][k]})
			}
		}
		return x, y
	}
	for i, unit := range a.units {
		if k, ok := b.at[unit]; ok {
			x, y = append(x, a.vals[i]), append(y, b.vals[k])
		}
	}
	return x, y
}

// lineMetric identifies the values of a metric in a line.
type lineMetric struct{ line, metric string }

// lines groups and aggregates the rows.
func (t *Table) lines(rows []Row) ([]Line, error) {
	lines, groups, appeared, err := t.grouped(rows)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(lines, func(a, b Line) int {
		for k, label := range t.By {
			order := t.Order[label]
			x := rank(order, a.Labels[label], slices.Index(appeared[k], a.Labels[label]))
			y := rank(order, b.Labels[label], slices.Index(appeared[k], b.Labels[label]))
			if x != y {
				return x - y
			}
		}
		return 0
	})
	if t.Keep != nil {
		lines = slices.DeleteFunc(lines, func(l Line) bool { return !t.Keep(l.Labels) })
	}
	for i := range lines {
		for c := range t.Columns {
			lines[i].Cells = append(lines[i].Cells, t.value(&t.Columns[c], lines[i].Labels, groups))
		}
	}
	return lines, nil
}

// grouped returns the lines of the rows in order of appearance, their values, and for each label of By its values,
// likewise.
func (t *Table) grouped(rows []Row) (lines []Line, groups map[lineMetric]*group, appeared [][]string, err error) {
	from, runs := cmp.Or(t.From, t.Name), cmp.Or(t.Runs, "seed")
	wanted := map[string]bool{}
	for _, c := range t.Columns {
		wanted[c.Metric] = true
	}
	groups, appeared = map[lineMetric]*group{}, make([][]string, len(t.By))
	seen := map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if r.Table != from || !wanted[r.Metric] || !has(r.Labels, t.Where) {
			continue
		}
		labels := map[string]string{}
		for k, b := range t.By {
			labels[b] = r.Labels[b]
			if !slices.Contains(appeared[k], labels[b]) {
				appeared[k] = append(appeared[k], labels[b])
			}
		}
		name := t.label(labels)
		if !seen[name] {
			seen[name] = true
			lines = append(lines, Line{Labels: labels})
		}
		var unit []string
		for _, l := range slices.Sorted(maps.Keys(r.Labels)) {
			if l != runs && !slices.Contains(t.By, l) {
				unit = append(unit, l+"="+r.Labels[l])
			}
		}
		k := lineMetric{name, r.Metric}
		if groups[k] == nil {
			groups[k] = &group{at: map[string]int{}}
		}
		if err := groups[k].add(strings.Join(unit, ";"), r.Labels[runs], r.Value); err != nil {
			return nil, nil, nil, fmt.Errorf("line %s, metric %s: %w", name, r.Metric, err)
		}
	}
	return lines, groups, appeared, nil
}

// value returns the figure of a column in the line with these labels.
func (t *Table) value(col *Column, labels map[string]string, groups map[lineMetric]*group) (v Value) {
	// of returns the values of the line that differs in some labels.
	of := func(others map[string]string) (*group, string) {
		other := maps.Clone(labels)
		maps.Copy(other, others)
		name := t.label(other)
		return groups[lineMetric{name, col.Metric}], name
	}
	own, name := of(nil)
	if col.stat().paired() {
		rival, its := of(col.Versus)
		switch {
		case col.Stat == Behind:
			start, _ := of(col.Start)
			v = behind(own, rival, start, its == name)
		case col.Turned:
			v = compare(col, rival, own, its == name)
		default:
			v = compare(col, own, rival, its == name)
		}
	} else {
		v = describe(col.stat(), own.values())
	}
	if col.Paper != nil {
		v.Paper = col.Paper(labels)
	}
	return v
}

// has reports whether labels contains all of where.
func has(labels, where map[string]string) bool {
	for k, v := range where {
		if labels[k] != v {
			return false
		}
	}
	return true
}

// noValue is a figure without a value.
var noValue = Value{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}

// intervalSeed is the seed of all intervals. It is fixed, so that equal rows give equal tables.
const intervalSeed = 1

// describe applies stat to the units' means over runs.
func describe(stat Stat, vals [][]float64) Value {
	if len(vals) == 0 {
		return noValue
	}
	v := size(vals)
	means := unitMeans(vals)
	v.Value = stat.of(means)
	if v.Units*v.Runs > 1 && !hasNaN(vals) {
		scratch := make([]float64, len(vals))
		ci := resample("describe", func(means [][]float64) float64 {
			copy(scratch, means[0])
			return stat.of(scratch)
		}, vals)
		v.Low, v.High = ci[0], ci[1]
	}
	return v
}

// compare compares a with b on their common units. A line compared with itself has no value.
func compare(col *Column, a, b *group, itself bool) Value {
	x, y := pair(a, b)
	if len(x) == 0 || itself {
		return noValue
	}
	stat := func(a, b []float64) float64 {
		sa, sb, each, better := 0.0, 0.0, 0.0, 0.0
		for i := range a {
			sa, sb = sa+a[i], sb+b[i]
			each += 100 * (a[i] - b[i]) / b[i]
			switch {
			case a[i] == b[i]:
				better += .5
			case (a[i] > b[i]) == col.Higher:
				better++
			}
		}
		n := float64(len(a))
		switch col.Stat {
		case Percent:
			return 100 * (sa - sb) / sb
		case PercentEach:
			return each / n
		case Wins:
			return better / n
		}
		return (sa - sb) / n
	}
	v := size(x)
	v.Value = stat(unitMeans(x), unitMeans(y))
	if (v.Units*v.Runs > 1 || size(y).Runs > 1) && !hasNaN(x) && !hasNaN(y) {
		ci := resample("compare", func(means [][]float64) float64 { return stat(means[0], means[1]) }, x, y)
		v.Low, v.High = ci[0], ci[1]
	}
	return v
}

// behind returns how far own is behind goal on the units that all have in common, in percent of the way from start to
// goal. There is no value if the way leads back. The interval is that of the ratio made linear (the delta method),
// since in some draws of few units the way may be short.
func behind(own, goal, start *group, itself bool) Value {
	if own == nil || goal == nil || start == nil || itself {
		return noValue
	}
	var x, y, z [][]float64
	for i, unit := range own.units {
		g, ok := goal.at[unit]
		s, too := start.at[unit]
		if ok && too {
			x, y, z = append(x, own.vals[i]), append(y, goal.vals[g]), append(z, start.vals[s])
		}
	}
	if len(x) == 0 {
		return noValue
	}
	v := size(x)
	sums := func(means ...[]float64) (lag, way float64) {
		for i := range x {
			lag += means[0][i] - means[1][i]
			way += means[2][i] - means[1][i]
		}
		return lag, way
	}
	lag, way := sums(unitMeans(x), unitMeans(y), unitMeans(z))
	if !(way > 0) {
		return v
	}
	v.Value = 100 * lag / way
	if v.Units*v.Runs > 1 && !hasNaN(x) && !hasNaN(y) && !hasNaN(z) {
		ci := resample("behind", func(means [][]float64) float64 {
			l, w := sums(means...)
			return v.Value + (100*l-v.Value*w)/way
		}, x, y, z)
		v.Low, v.High = ci[0], ci[1]
	}
	return v
}

// size returns a Value without a value whose Units and Runs count vals.
func size(vals [][]float64) Value {
	v := noValue
	v.Units = len(vals)
	for _, u := range vals {
		v.Runs = max(v.Runs, len(u))
	}
	return v
}

// hasNaN reports whether a value is NaN.
func hasNaN(vals [][]float64) bool {
	for _, u := range vals {
		if slices.ContainsFunc(u, math.IsNaN) {
			return true
		}
	}
	return false
}

// unitMeans returns the mean of each unit.
func unitMeans(vals [][]float64) []float64 {
	out := make([]float64, len(vals))
	for i, u := range vals {
		out[i] = statistic.Mean(u)
	}
	return out
}

// resample returns the interval of stat over draws of units and, crossed with them, of runs: five trainings of an agent
// are drawn as five trainings, each with all its units. stat gets the means of the drawn units for each of vals, which
// have the same units.
func resample(name string, stat func(means [][]float64) float64, vals ...[][]float64) [2]float64 {
	means, most := make([][]float64, len(vals)), 0
	for k, v := range vals {
		means[k] = make([]float64, len(v))
		most = max(most, size(v).Runs)
	}
	runs := make([]uint64, most)
	return statistic.Bootstrap(intervalSeed, name, len(vals[0]), func(drawn []statistic.Draw) float64 {
		for k := range runs {
			runs[k] = rng.At(drawn[0].Seed, uint64(k))
		}
		for i, d := range drawn {
			for k, v := range vals {
				means[k][i] = drawnMean(v[d.Unit], runs)
			}
		}
		return stat(means)
	})
}

// drawnMean returns the mean of the drawn runs of a unit, which are as many as it has values.
func drawnMean(vals []float64, runs []uint64) float64 {
	if len(vals) == 1 {
		return vals[0]
	}
	sum := 0.0
	for _, k := range runs[:len(vals)] {
		sum += vals[k%uint64(len(vals))]
	}
	return sum / float64(len(vals))
}

// of returns the statistic of v. It may sort v.
func (s Stat) of(v []float64) float64 {
	switch s {
	case Mean:
		return statistic.Mean(v)
	case IQM:
		return statistic.IQM(v)
	case Median:
		slices.Sort(v)
		return statistic.Quantile(v, .5)
	case Minimum:
		return slices.Min(v)
	case Maximum:
		return slices.Max(v)
	case Sum:
		return statistic.Mean(v) * float64(len(v))
	case GeometricMean:
		return statistic.GeometricMean(v)
	case Standard:
		if len(v) < 2 {
			return 0
		}
		mean, squares := statistic.Mean(v), 0.0
		for _, x := range v {
			squares += (x - mean) * (x - mean)
		}
		return math.Sqrt(squares / float64(len(v)-1))
	}
	panic(fmt.Sprintf("study: statistic %q is unknown", s))
}
