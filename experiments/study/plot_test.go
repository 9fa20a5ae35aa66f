package study

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

// wellFormed fails the test unless svg is well-formed XML.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestFiguresAreWellFormedAndHoldTheirWords(t *testing.T) {
	nan := math.NaN()
	points := []Point{{X: 100, Y: 1, Low: .5, High: 2, Label: "a<b"},
		{X: 1000, Y: 10, Low: nan, High: nan, Label: "c & d"}, {X: 10_000, Y: 120, Low: 100, High: 130, Label: "e"}}
	for _, f := range []Figure{
		{Title: "lines <1>", X: "tasks", Y: "s", Kind: Lines},
		{Title: "logarithms", X: "tasks", Y: "s", Kind: Lines, LogX: true, LogY: true},
		{Title: "dots", X: "tasks", Y: "s", Zero: true},
		{Title: "bars & intervals", X: "s", Kind: Bars, Zero: true},
		{Title: "bars", X: "s", Kind: Bars, LogX: true},
	} {
		f.Series = func(*Results) []Series {
			return []Series{{Name: "one", Points: points}, {Name: "<two>", Points: points[:1]}, {Name: "none"}}
		}
		svg := f.SVG(&Results{})
		wellFormed(t, svg)
		for _, bad := range []string{"NaN", "Inf", "<two>", "<1>"} {
			if strings.Contains(svg, bad) {
				t.Errorf("%s: %q is in the drawing", f.Title, bad)
			}
		}
		if !strings.Contains(svg, "&lt;two&gt;") {
			t.Errorf("%s: the legend lacks a name", f.Title)
		}
	}
	empty := Figure{Series: func(*Results) []Series { return []Series{{Name: "none"}} }}
	if svg := empty.SVG(&Results{}); svg != "" {
		t.Errorf("nothing was drawn as %q", svg)
	}
}

// Ours is in colour with bold names, all else grey; of many bars the best are drawn, and all of ours.
func TestWhatIsOursIsSeen(t *testing.T) {
	nan := math.NaN()
	var points []Point
	for i := range 20 {
		label := "rule-" + string(rune('a'+i))
		if i == 19 {
			label = "philly / mine"
		}
		points = append(points, Point{X: float64((i*7)%20 + 1), Low: nan, High: nan, Label: label})
	}
	f := Figure{Title: "bars", X: "hours", Kind: Bars, Zero: true, Ours: []string{"mine"}, Sorted: true,
		Series: func(*Results) []Series { return []Series{{Points: points}} }}
	svg := f.SVG(&Results{})
	wellFormed(t, svg)
	if n := strings.Count(svg, `text-anchor="end"`); n != 12 {
		t.Errorf("%d bars, want 12\n%s", n, svg)
	}
	if !strings.Contains(svg, `font-weight="700">philly / mine<`) || strings.Count(svg, `font-weight`) != 1 ||
		strings.Count(svg, accents[0]) != 2 || strings.Count(svg, greys[0]) != 2*11 {
		t.Errorf("ours is not the only one in colour:\n%s", svg)
	}
	if !strings.Contains(svg, "hours (8 more in the table)") {
		t.Errorf("it is not said that bars are left out:\n%s", svg)
	}
	// The least first: rule-a has 1, rule-d 2.
	if a, d := strings.Index(svg, "rule-a<"), strings.Index(svg, "rule-d<"); a < 0 || d < a {
		t.Errorf("not sorted:\n%s", svg)
	}
	f.Higher = true
	if svg := f.SVG(&Results{}); strings.Contains(svg, "rule-a<") || !strings.Contains(svg, "mine<") {
		t.Errorf("the greatest are not the first:\n%s", svg)
	}
	lines := Figure{Title: "lines", X: "x", Y: "y", Ours: []string{"mine"}, Series: func(*Results) []Series {
		return []Series{{Name: "mine", Points: []Point{{X: 1, Y: 2, Low: nan, High: nan}, {X: 2, Y: 3, Low: nan, High: nan}}},
			{Name: "other", Points: []Point{{X: 1, Y: 1, Low: nan, High: nan}, {X: 2, Y: 1, Low: nan, High: nan}}}}
	}}
	svg = lines.SVG(&Results{})
	wellFormed(t, svg)
	if mine, other := strings.Index(svg, `stroke="`+accents[0]+`" stroke-width="3"`),
		strings.Index(svg, `stroke="`+greys[0]+`"`); mine < other || other < 0 ||
		!strings.Contains(svg, `font-weight="700">mine<`) {
		t.Errorf("ours is not drawn last, thick and in colour:\n%s", svg)
	}
}
