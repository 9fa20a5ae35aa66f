package study

import (
	"math"
	"testing"
)

// A line that is always a quarter of the way behind is a quarter behind in all draws; a goal that is no better than the
// start gives no value; and the interval of few units with ways of different lengths holds the share.
func TestBehindIsAShareOfTheWay(t *testing.T) {
	var rows []Row
	for unit, u := range []struct{ start, goal, quarter, mixed float64 }{{10, 2, 4, 3}, {20, 8, 11, 14}, {5, 1, 2, 2},
		{9, 9, 9, 8}} {
		for policy, v := range map[string]float64{"start": u.start, "goal": u.goal, "quarter": u.quarter, "mixed": u.mixed} {
			rows = append(rows, Row{"t", map[string]string{"policy": policy, "unit": string(rune('a' + unit))}, "wait", v})
		}
	}
	// A unit that the goal does not have counts nowhere.
	rows = append(rows, Row{"t", map[string]string{"policy": "start", "unit": "z"}, "wait", 1000},
		Row{"t", map[string]string{"policy": "mixed", "unit": "z"}, "wait", 0})
	line := func(policy string) map[string]string { return map[string]string{"policy": policy} }
	r, err := aggregate(rows, []Table{{Name: "t", By: []string{"policy"}, Columns: []Column{
		{Title: "behind", Metric: "wait", Stat: Behind, Versus: line("goal"), Start: line("start")},
		{Title: "back", Metric: "wait", Stat: Behind, Versus: line("start"), Start: line("goal")},
		{Title: "nowhere", Metric: "wait", Stat: Behind, Versus: line("goal"), Start: line("nobody")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	find := func(policy, column string) Value {
		v, _, ok := r.Find("t", line(policy), column)
		if !ok {
			t.Fatalf("no %s of %s", column, policy)
		}
		return v
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if v := find("quarter", "behind"); !near(v.Value, 25) || !near(v.Low, 25) || !near(v.High, 25) || v.Units != 4 {
		t.Errorf("a quarter of the way: %+v", v)
	}
	// Ways 8+12+4+0, of which 1+6+1−1 are left.
	if v := find("mixed", "behind"); !near(v.Value, 100*7.0/24) || v.Units != 4 || !(v.Low < v.Value-5) ||
		!(v.High > v.Value+5) || v.Low < -30 || v.High > 80 {
		t.Errorf("7 of 24: %+v", v)
	}
	if v := find("start", "behind"); !near(v.Value, 100) {
		t.Errorf("the start itself: %+v", v)
	}
	for _, c := range [][2]string{{"goal", "behind"}, {"quarter", "back"}, {"quarter", "nowhere"}} {
		if v := find(c[0], c[1]); !math.IsNaN(v.Value) || v.Interval() {
			t.Errorf("%s of %s: %+v, want no value", c[1], c[0], v)
		}
	}
}
