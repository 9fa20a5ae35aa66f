package traces

import (
	"reflect"
	"testing"
)

func TestSkipsCountByReasonInTheOrderMet(t *testing.T) {
	var s Skips
	if s.All() != nil || s.Total() != 0 {
		t.Fatalf("at first %v, %d", s.All(), s.Total())
	}
	s.Add("no run time")
	s.Add("no GPU")
	s.AddN("nothing", 0)
	s.AddN("no run time", 2)
	want := []Skip{{"no run time", 3}, {"no GPU", 1}}
	got := s.All()
	if !reflect.DeepEqual(got, want) || s.Total() != 4 {
		t.Errorf("%v, %d in all; want %v, 4", got, s.Total(), want)
	}
	got[0].Count = 99
	if s.Total() != 4 {
		t.Error("a change of the answer changed the counts")
	}
	if n := testing.AllocsPerRun(10, func() { s.Add("no GPU") }); n != 0 {
		t.Errorf("%v allocations for a known reason", n)
	}
}

func TestAReasonTellsItsFirstLine(t *testing.T) {
	var s Skips
	s.Add("no GPU")
	s.AddAt("odd", 7)
	s.AddAt("odd", 9)
	if got := s.All(); !reflect.DeepEqual(got, []Skip{{"no GPU", 1}, {"odd (first in line 7)", 2}}) || s.Total() != 3 {
		t.Errorf("%v", got)
	}
}
