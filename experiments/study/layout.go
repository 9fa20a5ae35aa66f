package study

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"clustergym/configs"
)

// layout is a report.yaml: the tables, figures, claims and notes of a study's report. Texts and lists name values:
// "{NAME}" in a text stands for the values of that name, with commas between them, and alone in a list for one entry
// each. A part with a list "each" is there once for each value of these names, which its texts then name, and not at
// all where a name has no values. A part that has parts of its kind stands for these. A note that names something
// without values is left out.
type layout struct {
	Values  map[string][]string `yaml:"values"` // by name; the study's own are added
	Tables  tableLayouts        `yaml:"tables"`
	Figures figureLayouts       `yaml:"figures"`
	Claims  claimLayouts        `yaml:"claims"`
	Notes   []string            `yaml:"notes"`
}

// lines says which lines of a table are meant, by the values of their labels.
type lines struct {
	Keep map[string][]string `yaml:"keep"` // every label has one of these values
	Drop map[string][]string `yaml:"drop"` // no label has one of these
}

// tableLayout is a Table. The values of a label's name are their order.
type tableLayout struct {
	Each    []string          `yaml:"each,flow"`
	Name    string            `yaml:"name"`
	Title   string            `yaml:"title"`
	From    string            `yaml:"from"`
	Where   map[string]string `yaml:"where"`
	Show    lines             `yaml:"show"`
	By      []string          `yaml:"by,flow"`
	Order   map[string]string `yaml:"order"` // names other values than those of a label's name
	Runs    string            `yaml:"runs"`
	Columns []columnLayout    `yaml:"columns"`
	Notes   []string          `yaml:"notes"`
	Tables  tableLayouts      `yaml:"tables"`
}

// columnLayout is a Column. With versus, the statistic is percent if none is named.
type columnLayout struct {
	Each   []string          `yaml:"each,flow"`
	Title  string            `yaml:"title"`
	Metric string            `yaml:"metric"`
	Stat   Stat              `yaml:"stat"`
	Versus map[string]string `yaml:"versus"`
	Start  map[string]string `yaml:"start"`
	Turned bool              `yaml:"turned"`
	Bare   bool              `yaml:"bare"`
	Hidden bool              `yaml:"hidden"`
	Format string            `yaml:"format"` // as fmt has it, or a name among Parts.Formats
	Scale  float64           `yaml:"scale"`  // by which values are multiplied for fmt; 0 = 1
	Paper  map[string]string `yaml:"paper"`  // by the name of a line, in which "*" is any value
}

// figureLayout is a Figure of a column: its curves over a label, or its bars.
type figureLayout struct {
	Each    []string      `yaml:"each,flow"`
	Name    string        `yaml:"name"`
	Title   string        `yaml:"title"`
	X       string        `yaml:"x"`
	Y       string        `yaml:"y"`
	LogX    bool          `yaml:"log_x"`
	Zero    bool          `yaml:"zero"`
	Ours    []string      `yaml:"ours,flow"`
	Sorted  bool          `yaml:"sorted"`
	Higher  bool          `yaml:"higher"`
	Table   string        `yaml:"table"`
	Column  string        `yaml:"column"`
	Show    lines         `yaml:"show"` // bars
	Over    string        `yaml:"over"` // the label along x
	Without []string      `yaml:"without,flow"`
	Prefix  string        `yaml:"prefix"` // of the names of curves
	Figures figureLayouts `yaml:"figures"`
}

// claimLayout is a Claim.
type claimLayout struct {
	Each   []string          `yaml:"each,flow"`
	What   string            `yaml:"what"`
	Paper  string            `yaml:"paper"` // "" = "–"
	Table  string            `yaml:"table"`
	Line   map[string]string `yaml:"line"`
	Column string            `yaml:"column"`
	Claims claimLayouts      `yaml:"claims"`
}

// Validate implements configs.Validator. Mistakes in a report.yaml are errors of the program, which tests of its
// tables find.
func (*layout) Validate() error { return nil }

// readLayout reads a report.yaml; nil is one that shows nothing.
func readLayout(study string, file []byte) *layout {
	l := new(layout)
	if err := configs.DecodeBytes(study+"/report.yaml", file, l); err != nil {
		panic(err)
	}
	return l
}

// scope has the values that texts name.
type scope map[string][]string

// named matches a name in a text, nested one that has others inside: the value of one name can be a part of another.
var (
	named  = regexp.MustCompile(`\{[^{}]+\}`)
	nested = regexp.MustCompile(`\{[^{}]*(\{[^{}]+\}[^{}]*)+\}`)
)

// of returns the values of a name in braces.
func (v scope) of(name string) []string {
	all, ok := v[strings.Trim(name, "{}")]
	if !ok {
		panic(fmt.Sprintf("report.yaml names %s, which has no meaning", name))
	}
	return all
}

// flat returns s without names inside others.
func (v scope) flat(s string) string {
	return nested.ReplaceAllStringFunc(s, func(name string) string { return "{" + v.text(name[1:len(name)-1]) + "}" })
}

// text returns s with its names replaced.
func (v scope) text(s string) string {
	return named.ReplaceAllStringFunc(v.flat(s), func(name string) string { return strings.Join(v.of(name), ", ") })
}

// list returns the entries of l with their names replaced.
func (v scope) list(l []string) (out []string) {
	for _, s := range l {
		if s = v.flat(s); s != "" && named.FindString(s) == s {
			out = append(out, v.of(s)...)
			continue
		}
		out = append(out, v.text(s))
	}
	return out
}

// labels returns m with the names in its values replaced.
func (v scope) labels(m map[string]string) map[string]string {
	m = maps.Clone(m)
	for k, s := range m {
		m[k] = v.text(s)
	}
	return m
}

// notes returns the notes all of whose names have values.
func (v scope) notes(all []string) (out []string) {
	for _, s := range all {
		if !slices.ContainsFunc(named.FindAllString(s, -1), func(name string) bool { return len(v.of(name)) == 0 }) {
			out = append(out, v.text(s))
		}
	}
	return out
}

// each calls fn with a scope for every combination of single values of names.
func (v scope) each(names []string, fn func(scope)) {
	if len(names) == 0 {
		fn(v)
		return
	}
	name := v.text(names[0])
	for _, x := range v.of(name) {
		own := maps.Clone(v)
		own[name] = []string{x}
		own.each(names[1:], fn)
	}
}

// show returns a function that reports whether a line is shown, nil = all are.
func (v scope) show(l lines) func(line map[string]string) bool {
	if len(l.Keep)+len(l.Drop) == 0 {
		return nil
	}
	keep, drop := map[string][]string{}, map[string][]string{}
	for label, values := range l.Keep {
		keep[label] = v.list(values)
	}
	for label, values := range l.Drop {
		drop[label] = v.list(values)
	}
	return func(line map[string]string) bool {
		for label, values := range keep {
			if !slices.Contains(values, line[label]) {
				return false
			}
		}
		for label, values := range drop {
			if slices.Contains(values, line[label]) {
				return false
			}
		}
		return true
	}
}

// tableLayouts, figureLayouts and claimLayouts are lists of these parts.
type (
	tableLayouts  []tableLayout
	figureLayouts []figureLayout
	claimLayouts  []claimLayout
)

// of returns the tables where names have these values.
func (l tableLayouts) of(all scope, formats map[string]func(float64) string) (out []Table) {
	for _, t := range l {
		all.each(t.Each, func(v scope) {
			if len(t.Tables) > 0 {
				out = append(out, t.Tables.of(v, formats)...)
				return
			}
			own := Table{
				Name: v.text(t.Name), Title: v.text(t.Title), From: v.text(t.From), Where: v.labels(t.Where), Keep: v.show(t.Show),
				By: t.By, Order: map[string][]string{}, Runs: t.Runs, Notes: v.notes(t.Notes),
			}
			for _, label := range t.By {
				own.Order[label] = v[cmp.Or(v.text(t.Order[label]), label)]
			}
			for _, c := range t.Columns {
				v.each(c.Each, func(v scope) { own.Columns = append(own.Columns, c.column(v, t.By, formats)) })
			}
			out = append(out, own)
		})
	}
	return out
}

// column returns the column of a table with lines named by these labels.
func (c *columnLayout) column(v scope, by []string, formats map[string]func(float64) string) Column {
	own := Column{
		Title: v.text(c.Title), Metric: v.text(c.Metric), Stat: c.Stat, Versus: v.labels(c.Versus), Start: v.labels(c.Start),
		Turned: c.Turned, Bare: c.Bare, Hidden: c.Hidden, Format: formats[c.Format],
	}
	if own.Stat == "" && len(c.Versus) > 0 {
		own.Stat = Percent
	}
	if strings.Contains(c.Format, "%") {
		own.Format = func(x float64) string {
			if c.Scale != 0 {
				x *= c.Scale
			}
			return fmt.Sprintf(c.Format, x)
		}
	}
	if len(c.Paper) > 0 {
		own.Paper = func(line map[string]string) string { return c.published(line, by) }
	}
	return own
}

// published returns the published figure of a line, "" if there is none.
func (c *columnLayout) published(line map[string]string, by []string) string {
	for name, figure := range c.Paper {
		words := strings.Split(name, " / ")
		other := func(label string) bool { w := words[slices.Index(by, label)]; return w != "*" && w != line[label] }
		if !slices.ContainsFunc(by, other) {
			return figure
		}
	}
	return ""
}

// of returns the figures where names have these values.
func (l figureLayouts) of(all scope) (out []Figure) {
	for _, f := range l {
		all.each(f.Each, func(v scope) {
			if len(f.Figures) > 0 {
				out = append(out, f.Figures.of(v)...)
				return
			}
			table, column, keep := v.text(f.Table), v.text(f.Column), v.show(f.Show)
			own := Figure{
				Name: v.text(f.Name), Title: v.text(f.Title), X: v.text(f.X), Y: v.text(f.Y), LogX: f.LogX, Kind: Bars,
				Zero: f.Zero, Ours: v.list(f.Ours), Sorted: f.Sorted, Higher: f.Higher,
				Series: func(r *Results) []Series { return r.Bars(table, column, keep) },
			}
			if f.Over != "" {
				own.Kind, own.Series = Lines, func(r *Results) []Series { return f.curves(r, table, column) }
			}
			out = append(out, own)
		})
	}
	return out
}

// curves returns the curves of a column of a table.
func (f *figureLayout) curves(r *Results, table, column string) []Series {
	all := r.Curves(table, column, f.Over)
	all = slices.DeleteFunc(all, func(s Series) bool { return slices.Contains(f.Without, s.Name) })
	for i := range all {
		all[i].Name = f.Prefix + all[i].Name
	}
	return all
}

// of returns the claims where names have these values.
func (l claimLayouts) of(all scope) (out []Claim) {
	for _, c := range l {
		all.each(c.Each, func(v scope) {
			if len(c.Claims) > 0 {
				out = append(out, c.Claims.of(v)...)
				return
			}
			out = append(out, Claim{
				What: v.text(c.What), Paper: cmp.Or(c.Paper, "–"), Table: v.text(c.Table), Line: v.labels(c.Line),
				Column: v.text(c.Column),
			})
		})
	}
	return out
}
