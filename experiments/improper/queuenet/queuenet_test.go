package queuenet

import (
	"math"
	"slices"
	"strings"
	"testing"

	"clustergym/env"
	"clustergym/env/envtest"
)

func two(rates ...float64) Network {
	return Network{
		Name: "two", Rates: [][]float64{rates}, Sets: [][]int{{0}, {1}},
		Bases: []Base{{Name: "first", Set: 0}, {Name: "second", Set: 1}, {Name: "longest", Rule: MostPackets}},
	}
}

// path has four links in a row, of which neighbours must not send at once.
func path() Network {
	return Network{
		Name: "path", Rates: [][]float64{{0.3, 0.3, 0.3, 0.3}}, Sets: [][]int{{0, 2}, {1, 3}, {0, 3}},
		Bases: []Base{{Name: "a", Set: 0}, {Name: "b", Set: 1}, {Name: "packets", Rule: MostPackets},
			{Name: "queues", Rule: MostQueues}},
	}
}

func TestContract(t *testing.T) {
	lossy, turning := path(), two(0.7, 0.1)
	lossy.Up = []float64{0.9, 0.8, 1, 0.5}
	turning.Rates, turning.Slots = append(turning.Rates, []float64{0.1, 0.7}), 7
	for _, n := range []Network{two(0.3, 0.4), lossy, turning} {
		envtest.Run(t, func() env.Env {
			e, err := New(n, 50)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}, envtest.NoAllocs())
	}
}

// By hand: rates 1 and 0, and a server that stays at the first queue: a packet comes after every service, so one waits,
// always. At the second queue, packets pile up.
func TestSlotsByHand(t *testing.T) {
	e, err := New(two(1, 0), 4)
	if err != nil {
		t.Fatal(err)
	}
	for base, want := range map[int32][]float64{0: {1, 1, 1, 1}, 1: {1, 2, 3, 4}, 2: {1, 1, 1, 1}} {
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(t.Context(), env.Episode{Seed: 1}, ts); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for slot, packets := range want {
			if err := e.Step(t.Context(), env.Action{Disc: []int32{base}}, ts); err != nil {
				t.Fatal(err)
			}
			if sum += packets; ts.Reward != -packets/unit || ts.Info[0] != sum/float64(slot+1) {
				t.Errorf("controller %d, slot %d: reward %v and mean %v, want %v packets", base, slot, ts.Reward, ts.Info[0],
					packets)
			}
		}
		if ts.Kind != env.Truncated {
			t.Errorf("after 4 slots the episode is %v", ts.Kind)
		}
	}
}

func TestRulesByHand(t *testing.T) {
	n := path()
	for _, c := range []struct {
		queues         []int
		packets, queue int
	}{
		{[]int{5, 0, 0, 1}, 2, 2}, // sets 0 2, 1 3 and 0 3 hold 5, 1 and 6 packets in 1, 1 and 2 queues
		{[]int{0, 9, 1, 1}, 1, 1}, // 1, 10, 1; 1, 2, 1
		{[]int{3, 9, 1, 0}, 1, 0}, // 4, 9, 3; 2, 1, 1
		{[]int{0, 0, 0, 0}, 0, 0},
	} {
		if got := n.Choose(n.Bases[2], c.queues); got != c.packets {
			t.Errorf("%v: most packets is set %d, want %d", c.queues, got, c.packets)
		}
		if got := n.Choose(n.Bases[3], c.queues); got != c.queue {
			t.Errorf("%v: most queues is set %d, want %d", c.queues, got, c.queue)
		}
	}
}

// The optimum of two queues and one server is that of all schedulers that never idle.
func TestOptimumIsTheClosedForm(t *testing.T) {
	for _, rates := range [][]float64{{0.3, 0.4}, {0.45, 0.45}, {0.2, 0.6}} {
		o, err := Solve(two(rates...), 50)
		if err != nil {
			t.Fatal(err)
		}
		if want := Busy(rates); math.Abs(o.Packets-want) > 1e-3*want {
			t.Errorf("%v: %v packets, want %v", rates, o.Packets, want)
		}
	}
	// By hand: 0.7 + 0.3·0.4/0.3 = 1.1, and E[A²] − E[A] of three queues of 0.1 is 6·0.01.
	if got := Busy([]float64{0.3, 0.4}); math.Abs(got-1.1) > 1e-12 {
		t.Errorf("%v, want 1.1", got)
	}
	if got := Busy([]float64{0.1, 0.1, 0.1}); math.Abs(got-0.3-0.06/1.4) > 1e-12 {
		t.Errorf("%v", got)
	}
}

// Queues without arrivals hold nothing and need no share. A server that is not enough has no best shares.
func TestSharesAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		rates, shares []float64
		packets       float64
	}{
		{[]float64{0, 0.5}, []float64{0, 1}, 0.5},
		{[]float64{0, 0}, []float64{0.5, 0.5}, 0},
		{[]float64{0.5, 0.5}, []float64{0.5, 0.5}, math.Inf(1)},
	} {
		shares, packets := BestShares(c.rates)
		if !slices.Equal(shares, c.shares) || packets != c.packets {
			t.Errorf("%v: shares %v with %v packets, want %v with %v", c.rates, shares, packets, c.shares, c.packets)
		}
		sum := 0.0
		for i, r := range c.rates {
			sum += single(r, shares[i])
		}
		if sum != packets {
			t.Errorf("%v: the queues hold %v packets, want %v", c.rates, sum, packets)
		}
	}
}

// With a single queue every controller does the same, so the optimum is the closed form single.
func TestLossesAreThoseOfOneQueue(t *testing.T) {
	n := Network{Name: "one", Rates: [][]float64{{0.3}}, Up: []float64{0.5}, Sets: [][]int{{0}},
		Bases: []Base{{Name: "it"}}}
	o, err := Solve(n, 60)
	if err != nil {
		t.Fatal(err)
	}
	if want := single(0.3, 0.5); math.Abs(o.Packets-want) > 1e-4 || math.Abs(want-1.05) > 1e-12 { // 0.3·0.7/0.2
		t.Errorf("%v packets, want %v", o.Packets, want)
	}
}

// With a lossy link the better link goes first: the cμ rule.
func TestTheBetterLinkGoesFirst(t *testing.T) {
	n := two(0.2, 0.2)
	n.Up = []float64{0.9, 0.5}
	o, err := Solve(n, 30)
	if err != nil {
		t.Fatal(err)
	}
	for a := 1; a < 10; a++ {
		for b := range 10 {
			if got := o.Set([]int{a, b}); got != 0 {
				t.Errorf("%d and %d packets: queue %d goes first", a, b, got)
			}
		}
	}
	if o.Set([]int{0, 1}) != 1 || o.Set([]int{0, 1000}) != 1 {
		t.Error("an empty queue is served")
	}
}

// What is played has the mean of the closed forms and of the optimum, within three deviations of the mean of 30
// episodes with fixed seeds.
func TestPlayedMeansAreTheCalculatedOnes(t *testing.T) {
	rates := []float64{0.3, 0.4}
	shares, best := BestShares(rates)
	if sum := single(0.3, shares[0]) + single(0.4, shares[1]); math.Abs(sum-best) > 1e-9 ||
		best >= single(0.3, 0.5)+single(0.4, 0.5) || math.Abs(shares[0]+shares[1]-1) > 1e-12 {
		t.Errorf("shares %v: %v packets, and %v", shares, best, sum)
	}
	two := two(rates...)
	path := path()
	o, err := Solve(path, 12)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		net    Network
		choose func(e *Env) func(queues []int) int
		want   float64
	}{
		"never idle": {two, func(*Env) func([]int) int { return func(q []int) int { return two.Choose(two.Bases[2], q) } },
			1.1},
		"shares": {two, func(e *Env) func([]int) int {
			return func([]int) int {
				if e.src.Float64() < shares[0] {
					return 0
				}
				return 1
			}
		}, best},
		"optimum of the path": {path, func(*Env) func([]int) int { return o.Set }, o.Packets},
	} {
		const episodes, slots = 30, 8000
		e, err := New(c.net, slots)
		if err != nil {
			t.Fatal(err)
		}
		e.Serve(c.choose(e))
		ts := env.NewTimeStep(e.Spec())
		mean, squares := 0.0, 0.0
		for k := range episodes {
			_, _, err := env.Play(t.Context(), e, env.Episode{Seed: uint64(k)}, ts,
				func(*env.TimeStep, env.Action) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			mean, squares = mean+ts.Info[0]/episodes, squares+ts.Info[0]*ts.Info[0]/episodes
		}
		deviation := math.Sqrt((squares - mean*mean) / (episodes - 1))
		t.Logf("%s: %.4f packets, ± %.4f, want %.4f", name, mean, deviation, c.want)
		if math.Abs(mean-c.want) > 3*deviation {
			t.Errorf("%s: %.4f packets, ± %.4f, want %.4f", name, mean, deviation, c.want)
		}
	}
}

// Follow's probabilities sum to 1, and are those by hand: from (1, 0), the first queue served with a link that is up
// with 0.9.
func TestFollowByHand(t *testing.T) {
	n := two(0.3, 0.4)
	n.Up = []float64{0.9, 1}
	got := map[[2]int]float64{}
	n.Follow(0, []int{1, 0}, 5, func(q []int, p float64) { got[[2]int(q)] += p })
	for state, want := range map[[2]int]float64{
		{0, 0}: 0.9 * 0.7 * 0.6, {0, 1}: 0.9 * 0.7 * 0.4, {1, 0}: 0.9*0.3*0.6 + 0.1*0.7*0.6,
		{1, 1}: 0.9*0.3*0.4 + 0.1*0.7*0.4,
		{2, 0}: 0.1 * 0.3 * 0.6, {2, 1}: 0.1 * 0.3 * 0.4,
	} {
		if math.Abs(got[state]-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", state, got[state], want)
		}
	}
	sum := 0.0
	n.Follow(2, []int{5, 5}, 5, func(_ []int, p float64) { sum += p })
	if len(got) != 6 || math.Abs(sum-1) > 1e-12 {
		t.Errorf("%d states, and probabilities that sum to %v", len(got), sum)
	}
}

func TestNetworksThatMakeNoSense(t *testing.T) {
	for want, bad := range map[string]func(n *Network){
		"has 0 loads": func(n *Network) { n.Rates = nil }, "a list of 1 prob": func(n *Network) { n.Up = []float64{1} },
		"the probability 2": func(n *Network) { n.Rates[0][0] = 2 },
		"has the set [2]":   func(n *Network) { n.Sets[0][0] = 2 },
		"has the set [1 1]": func(n *Network) { n.Sets[0] = []int{1, 1} },
		"0 base":            func(n *Network) { n.Bases = nil },
		" 257 sets":         func(n *Network) { n.Sets = make([][]int, 257) },
		"has 65 queues":     func(n *Network) { n.Rates[0] = make([]float64, 65) },
		"set 9 of 2":        func(n *Network) { n.Bases[0].Set = 9 },
		"loads of 0 slots":  func(n *Network) { n.Rates = append(n.Rates, n.Rates[0]) },
	} {
		n := two(0.3, 0.4)
		bad(&n)
		if _, err := New(n, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := New(two(0.3, 0.4), 0); err == nil {
		t.Error("no slots: no error")
	}
	if _, err := Solve(two(0.3, 0.4), 0); err == nil || !strings.Contains(err.Error(), "queues of at least one packet") {
		t.Errorf("no room: %v", err)
	}
	n := two(0.3, 0.4)
	n.Rates, n.Slots = append(n.Rates, n.Rates[0]), 3
	if _, err := Solve(n, 5); err == nil || !strings.Contains(err.Error(), "want one load") {
		t.Errorf("two loads: %v", err)
	}
}

// single returns the mean number of packets of one queue that gets a packet with probability rate in a slot and is
// served with probability share, the service first: a birth and death chain. It is infinite if share is not above rate,
// unless rate is 0.
func single(rate, share float64) float64 {
	switch {
	case rate == 0:
		return 0
	case share <= rate:
		return math.Inf(1)
	}
	return rate * (1 - rate) / (share - rate)
}
