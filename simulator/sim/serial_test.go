package sim_test

import (
	"strings"
	"testing"

	"clustergym/simulator/sim"
	"clustergym/traces"
)

// One event is one point. Arrivals come before finishes at equal times, and finishes in order of start.
func TestSerialByHand(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Serial = true
	s := start(t, cfg, short(t, "pool:4"), []traces.Job{
		job("A", 0, 10*second, 1), job("B", 0, 10*second, 1), job("C", 10*second, second, 1), job("D", 10*second, second, 1)})
	v := s.View()
	var got []string
	step := func(ds ...sim.Decision) {
		t.Helper()
		got = append(got, text(v, advance(t, s)))
		for _, d := range ds {
			apply(t, s, d)
		}
	}
	step()
	step(on(1), on(0), sim.Decision{Until: 10 * second})
	step(sim.Decision{})
	step(on(2)) // beside A and B, which have not finished yet
	step()
	step()
	step()
	want := `0s: submit A
0s: submit B
10s: start B@0s, start A@0s, submit C
10s: submit D
10s: start C, finish B
10s: finish A
11s: finish C`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
