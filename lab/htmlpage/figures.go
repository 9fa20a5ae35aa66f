package htmlpage

import "math"

// Table is a table. The first column names the rows.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string // each as long as Header
	Text   string     // below it
	Left   int        // columns of words, which are flush left; the first one always is
}

// Chart draws curves over a number such as training steps, with the values of others as horizontal lines.
type Chart struct {
	Name, Title string // Name is the file's name when a reader saves the figure, without .svg
	X, Y        string // titles of the axes
	Seconds     bool   // values are times
	Lower       bool   // lower values are better
	Log         bool   // the axis of values is logarithmic where they differ by much; all values are above 0
	Curves      []Curve
	Levels      []Level
	Text        string // below it
}

// Curve is one line of a Chart. Points without a value are left out.
type Curve struct {
	Name   string
	Points []Point
	Best   int // index of the point that is marked as the best, -1 = none
}

// Point is a point of a Curve.
type Point struct{ X, Y float64 }

// Level is a horizontal line of a Chart.
type Level struct {
	Name  string
	Value float64
}

// Forest draws differences with their intervals, one below the other, and a line at 0.
type Forest struct {
	Name, Title string
	X           string // title of the axis
	Lower       bool   // negative differences are better
	Rows        []Difference
	Text        string // below it
}

// Difference is one row of a Forest.
type Difference struct {
	Name             string
	Value, Low, High float64
	Text             string // the numbers as text
}

// encodeFigures writes charts, forests and tables.
func (e *encoder) encodeFigures(p *Page) {
	for _, t := range [][2]string{{"chartsTitle", p.ChartsTitle}, {"forestsTitle", p.ForestsTitle}} {
		if t[1] != "" {
			e.named(t[0], t[1])
		}
	}
	e.column("charts", len(p.Charts), func(i int) { e.chart(&p.Charts[i]) })
	e.column("forests", len(p.Forests), func(i int) { e.forest(&p.Forests[i]) })
	e.column("tables", len(p.Tables), func(i int) {
		t := &p.Tables[i]
		e.open('{')
		e.named("title", t.Title)
		e.texts("header", t.Header)
		e.column("rows", len(t.Rows), func(i int) {
			e.list(len(t.Rows[i]), func(k int) { e.string(t.Rows[i][k]) })
		})
		e.named("text", t.Text)
		e.count("left", int64(t.Left))
		e.close('}')
	})
}

func (e *encoder) chart(c *Chart) {
	e.open('{')
	e.named("name", c.Name)
	e.named("title", c.Title)
	e.named("x", c.X)
	e.named("y", c.Y)
	e.flag("seconds", c.Seconds)
	e.flag("lower", c.Lower)
	e.flag("log", c.Log)
	e.column("curves", len(c.Curves), func(i int) {
		u := &c.Curves[i]
		var at []int // of the points that have a value
		for k, p := range u.Points {
			if finite(p.X) && finite(p.Y) {
				at = append(at, k)
			}
		}
		best := -1
		for k, i := range at {
			if i == u.Best {
				best = k
			}
		}
		e.open('{')
		e.named("name", u.Name)
		e.column("x", len(at), func(k int) { e.digits(u.Points[at[k]].X) })
		e.column("y", len(at), func(k int) { e.digits(u.Points[at[k]].Y) })
		e.count("best", int64(best))
		e.close('}')
	})
	var levels []Level
	for _, l := range c.Levels {
		if finite(l.Value) {
			levels = append(levels, l)
		}
	}
	e.column("levels", len(levels), func(i int) {
		e.open('{')
		e.named("name", levels[i].Name)
		e.key("value")
		e.digits(levels[i].Value)
		e.close('}')
	})
	e.named("text", c.Text)
	e.close('}')
}

func (e *encoder) forest(f *Forest) {
	e.open('{')
	e.named("name", f.Name)
	e.named("title", f.Title)
	e.named("x", f.X)
	e.flag("lower", f.Lower)
	var rows []*Difference
	for i := range f.Rows {
		if d := &f.Rows[i]; finite(d.Value) && finite(d.Low) && finite(d.High) {
			rows = append(rows, d)
		}
	}
	e.column("rows", len(rows), func(i int) {
		e.open('{')
		e.named("name", rows[i].Name)
		e.named("text", rows[i].Text)
		e.column("at", 3, func(k int) { e.digits([...]float64{rows[i].Value, rows[i].Low, rows[i].High}[k]) })
		e.close('}')
	})
	e.named("text", f.Text)
	e.close('}')
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
