package htmlpage

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// resultPage is a page of figures without runs, with texts that must stay texts.
func resultPage(hostile string) *Page {
	p := New(0)
	p.Title = "results"
	p.Charts = []Chart{
		{
			Name: "validation", Title: "JCT" + hostile, X: "steps", Y: "mean JCT", Seconds: true, Lower: true, Log: true,
			Text: "text" + hostile,
			Curves: []Curve{
				{Name: "seed-1" + hostile, Points: []Point{{0, 40000}, {1000, math.NaN()}, {2000, 20000}, {3000, 9000}}, Best: 3},
				{Name: "seed-2", Points: []Point{{0, 30000}, {2000, 25000}}, Best: -1},
			},
			Levels: []Level{{"sjf" + hostile, 8000}, {"fifo", 1e12}, {"nothing", math.Inf(1)}},
		},
		{Name: "training", Title: "Return", X: "steps", Y: "return",
			Curves: []Curve{{Name: "seed-1", Points: []Point{{10, -2.5}, {20, -1}}, Best: -1}}},
		{Name: "empty", Title: "Nothing yet", X: "steps", Y: "return"},
	}
	p.Forests = []Forest{
		{Name: "differences", Title: "against each", X: "%", Lower: true, Rows: []Difference{
			{"sjf" + hostile, -4.7, -11.1, -0.3, "−4.7"}, {"fifo", 3, -1, 7, "+3"}, {"srtf", 90, 60, 4000, "+90"},
			{"broken", math.NaN(), 0, 0, ""},
		}},
		{Name: "none", Title: "no rows"},
	}
	p.Tables = []Table{{Title: "one", Header: []string{"policy", "JCT"}, Rows: [][]string{{"sjf", "1"}}, Text: "below"},
		{Title: "two", Header: []string{"a"}}}
	return p
}

func TestFiguresAreWrittenAsTheyAre(t *testing.T) {
	d := decode(t, resultPage(""))
	if len(d.Charts) != 3 || len(d.Forests) != 2 || len(d.Tables) != 2 || len(d.Runs) != 0 {
		t.Fatalf("%d charts, %d forests, %d tables, %d runs", len(d.Charts), len(d.Forests), len(d.Tables), len(d.Runs))
	}
	c := &d.Charts[0]
	// The point and the level without a value are left out, and the best point keeps its place.
	if u := c.Curves[0]; fmt.Sprint(u.X, u.Y, u.Best) != "[0 2000 3000] [40000 20000 9000] 2" || c.Curves[1].Best != -1 {
		t.Errorf("curves %+v", c.Curves)
	}
	if fmt.Sprint(c.Levels) != "[{sjf 8000} {fifo 1e+12}]" || !c.Seconds || !c.Lower || !c.Log || c.X != "steps" ||
		c.Y != "mean JCT" || c.Text != "text" {
		t.Errorf("chart %+v", c)
	}
	if f := &d.Forests[0]; len(f.Rows) != 3 || fmt.Sprint(f.Rows[0].At) != "[-4.7 -11.1 -0.3]" ||
		f.Rows[2].Text != "+90" || !f.Lower {
		t.Errorf("forest %+v", f)
	}
	if d.Tables[0].Text != "below" || d.Tables[1].Header[0] != "a" || len(d.Tables[1].Rows) != 0 {
		t.Errorf("tables %+v", d.Tables)
	}
}

// A page of figures alone, drawn: every curve and interval has its figure, levels far away are named, and texts stay
// texts.
func TestBrowserDrawsResults(t *testing.T) {
	document := chromium(t, written(t, resultPage(`<img src=x onerror="document.title='owned'">`)), "", "--dump-dom")
	if s := attribute(t, document, "data-state"); s != "ready" {
		t.Errorf("state %q", s)
	}
	body := document[strings.Index(document, "<main"):strings.Index(document, "<script type")]
	if n := strings.Count(body, "<canvas"); n != 4 {
		t.Errorf("%d figures, want three charts and one forest", n)
	}
	if n := strings.Count(body, "<table"); n != 2 {
		t.Errorf("%d tables", n)
	}
	for _, want := range []string{"Off the axis: fifo", "the best checkpoint", "Paired differences", "Nothing yet"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "<img") || strings.Contains(document, "<title>owned") ||
		strings.Contains(body, "Schedules") {
		t.Error("a text became an element, or schedules are shown without runs")
	}
}
