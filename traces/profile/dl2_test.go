package profile

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// With MB 100, inter 50 and intra 200, one worker's part is 2·100/P.
var unit = DL2Model{Step: 1, MB: 100, InterMBps: 50, IntraMBps: 200}

func TestPSSpeedByHand(t *testing.T) {
	for _, c := range []struct {
		what        string
		workers, ps []int
		want        float64
	}{
		// part 200; inter 50 (all servers here): 4 s; intra 200/1: 1 s.
		{"one of each on one node", []int{1}, []int{1}, 1 / (1 + 4.)},
		// part 200; P-p = 1, W-v = 1: inter 50: 4 s; intra is 200/1: 1 s.
		{"one of each apart", []int{1, 0}, []int{0, 1}, 1 / (1 + 4.)},
		// part 200; node 0: all servers: inter 50: 4 s, intra 200/2: 2 s.
		{"two workers beside one server", []int{2}, []int{1}, 2 / (1 + 4.)},
		// part 200; node 0 has the server: 4 s; node 1: min(50/1, 50/(3-2)) = 50: 4 s, intra 200/1.
		{"two beside it, one away", []int{2, 1}, []int{1, 0}, 3 / (1 + 4.)},
		// part 200; both workers away: W-v = 2: inter 25: 8 s; intra 200/2: 2 s.
		{"two away", []int{2, 0}, []int{0, 1}, 2 / (1 + 8.)},
		// part 100; each node: P-p = 1: 50; W-v = 1: 50; 2 s; intra 200/1: 0.5 s.
		{"one of each on two nodes", []int{1, 1}, []int{1, 1}, 2 / (1 + 2.)},
		// part 50; node 0: P-p = 1: 50; W-v = 6-1 = 5: 10: 5 s; intra 200/5 = 40: 1.25 s. Node 1: P-p = 3: 16.7; W-v: 10: 5
		// s.
		{"uneven", []int{5, 1}, []int{3, 1}, 6 / (1 + 5.)},
		{"no worker", []int{0}, []int{1}, 0},
		{"no server", []int{1}, []int{0}, 0},
		{"nothing", nil, nil, 0},
	} {
		if got := PSSpeed(unit, c.workers, c.ps); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	// Intra is the bottleneck: inter 50, intra 10 among 4 workers: part 200 at 2.5 MB/s is 80 s.
	slow := unit
	slow.IntraMBps = 10
	if got := PSSpeed(slow, []int{4}, []int{1}); math.Abs(got-4/81.) > 1e-12 {
		t.Errorf("slow memory: %v", got)
	}
	// ResNet-50 on two nodes, 2 workers and 1 server each: part 102.2; inter min(91.875, 91.875/2) = 45.9375;
	// intra 306.5/2; 0.449 + 102.2/45.9375 = 2.67377 s for 4 steps.
	if got := PSSpeed(DL2Models()[0], []int{2, 2}, []int{1, 1}); math.Abs(got-1.49602) > 1e-5 {
		t.Errorf("resnet-50: %v", got)
	}
}

func TestPSSpeedDoesNotDependOnTheOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "nodes")
		w, p := rapid.SliceOfN(rapid.IntRange(0, 4), n,
			n).Draw(t, "workers"), rapid.SliceOfN(rapid.IntRange(0, 4), n, n).Draw(t, "servers")
		m := DL2Models()[rapid.IntRange(0, 7).Draw(t, "type")]
		got := PSSpeed(m, w, p)
		total := 0
		for _, k := range w {
			total += k
		}
		if math.IsNaN(got) || got < 0 || got > float64(total)/m.Step {
			t.Fatalf("%v steps a second of %d workers", got, total)
		}
		i := rapid.IntRange(0, n-1).Draw(t, "turn")
		if r := PSSpeed(m, append(w[i:n:n], w[:i]...), append(p[i:n:n], p[:i]...)); r != got {
			t.Fatalf("%v, turned %v", got, r)
		}
	})
}

func TestDL2ModelsAreThoseOfTheMix(t *testing.T) {
	mix, _ := Named("dl2")
	models := DL2Models()
	for i, v := range mix.Models {
		if m := models[i]; m.Name != v.Name || m.MB != v.MB || math.Abs(m.Step*1e3-v.Ms) > 1e-9 {
			t.Errorf("%+v and %+v", m, v)
		}
	}
	models[0].Step = 0
	if DL2Models()[0].Step == 0 {
		t.Error("the caller's slice is the package's")
	}
	w, p := []int{1, 2}, []int{2, 1}
	if n := testing.AllocsPerRun(100, func() { PSSpeed(unit, w, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
