package agents_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"clustergym/agents"
	"clustergym/env"
	"clustergym/internal/rng"
)

// uniformly fails the test unless all draws are legal and equally frequent as far as chance allows: chi-square below
// the value that one correct test in a million exceeds.
func uniformly(t *testing.T, what string, counts []int, legal []bool) {
	t.Helper()
	critical := map[int]float64{1: 23.9, 2: 27.6, 3: 30.7, 4: 33.4, 5: 35.9}
	n, places := 0, 0
	for i, c := range counts {
		if !legal[i] && c > 0 {
			t.Errorf("%s: drew %d, which is not legal, %d times", what, i, c)
		}
		if legal[i] {
			places++
		}
		n += c
	}
	chi := 0.0
	for i, c := range counts {
		if legal[i] {
			d := float64(c) - float64(n)/float64(places)
			chi += d * d / (float64(n) / float64(places))
		}
	}
	if places > 1 && chi > critical[places-1] {
		t.Errorf("%s: counts %v, chi-square %.1f, want below %.1f", what, counts, chi, critical[places-1])
	}
}

func TestRandomDrawsEveryFactorUniformlyAmongTheLegal(t *testing.T) {
	spec := env.Spec{Action: env.ActionSpec{Sizes: []int{3, 5}}}
	b, a := env.NewBatch(spec, 2), env.NewActions(spec, 2)
	masks := [][]bool{
		{true, true, true, false, true, false, true, true}, // row 0
		{false, true, false, true, true, true, true, true}, // row 1
	}
	copy(b.Mask, append(append([]bool(nil), masks[0]...), masks[1]...))
	p := agents.NewRandom(spec)
	src := []*rand.Rand{rng.Stream(1, "a"), rng.Stream(1, "b")}
	var counts [2][2][5]int
	for range 20_000 {
		if err := p.Act(t.Context(), b, a, src); err != nil {
			t.Fatal(err)
		}
		for row := range counts {
			for f := range counts[row] {
				counts[row][f][a.Disc[2*row+f]]++
			}
		}
	}
	for row := range counts {
		uniformly(t, "factor 0", counts[row][0][:3], masks[row][:3])
		uniformly(t, "factor 1", counts[row][1][:], masks[row][3:])
	}
	if counts[1][0][1] != 20_000 {
		t.Errorf("one legal action, drawn %v", counts[1][0])
	}
}

func TestARowDrawsFromItsOwnStreamOnly(t *testing.T) {
	spec := env.Spec{Action: env.ActionSpec{Sizes: []int{7}}}
	play := func(rows, at int) (drawn []int32) {
		b, a := env.NewBatch(spec, rows), env.NewActions(spec, rows)
		src := make([]*rand.Rand, rows)
		for i := range src {
			src[i] = rng.Stream(uint64(10*rows+i), "other")
		}
		for i := range b.Mask {
			b.Mask[i] = i%3 > 0
		}
		for i := range 7 {
			b.Mask[7*at+i] = i != 2
		}
		src[at] = rng.Stream(5, "mine")
		p := agents.NewRandom(spec)
		for range 50 {
			if err := p.Act(t.Context(), b, a, src); err != nil {
				t.Fatal(err)
			}
			drawn = append(drawn, a.Disc[at])
		}
		return drawn
	}
	alone, among := play(1, 0), play(4, 2)
	for i := range alone {
		if alone[i] != among[i] {
			t.Fatalf("draw %d is %d alone and %d among others", i, alone[i], among[i])
		}
	}
}

func TestRandomDoesNotAllocate(t *testing.T) {
	spec := env.Spec{Action: env.ActionSpec{Sizes: []int{11}}}
	b, a := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	for i := range b.Mask {
		b.Mask[i] = i%2 == 0
	}
	p, src := agents.NewRandom(spec), []*rand.Rand{rng.Stream(1, "a")}
	if n := testing.AllocsPerRun(100, func() { _ = p.Act(t.Context(), b, a, src) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Real numbers fill their bounds evenly; a number without two bounds respects the one that it has.
func TestRandomDrawsRealNumbersBetweenTheirBounds(t *testing.T) {
	inf := float32(math.Inf(1))
	spec := env.Spec{Action: env.ActionSpec{Low: []float32{-2, 0, -inf}, High: []float32{6, inf, inf}}}
	b, a := env.NewBatch(spec, 1), env.NewActions(spec, 1)
	p, src := agents.NewRandom(spec), []*rand.Rand{rng.Stream(1, "a")}
	quarters := make([]int, 4)
	below := 0
	for range 20_000 {
		if err := p.Act(t.Context(), b, a, src); err != nil {
			t.Fatal(err)
		}
		x, y, z := a.Cont[0], a.Cont[1], a.Cont[2]
		if x < -2 || x > 6 || y < 0 || y > 10 || z < -10 || z > 10 {
			t.Fatalf("drew %v", a.Cont)
		}
		quarters[min(int((x+2)/2), 3)]++
		if z < 0 {
			below++
		}
	}
	uniformly(t, "numbers", quarters, []bool{true, true, true, true})
	if below < 9_500 || below > 10_500 {
		t.Errorf("%d of 20,000 without bounds are below 0", below)
	}
}
