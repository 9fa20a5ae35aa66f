package rng

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// The streams below are part of every published result. A change that makes this test fail changes the meaning of every
// seed and must not be made.
func TestGoldenStreams(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		name string
		want [3]uint64
	}{
		{0, "", [3]uint64{0xee47211dee7c9e61, 0x89c95c7d90a46931, 0x1777ea29b628767b}},
		{0, "train/envs", [3]uint64{0xa18a5b9e6f466a67, 0x2a6d96ac5f439d6d, 0xc5962327960ee84}},
		{1, "train/envs", [3]uint64{0x3a3204c6d4807279, 0x6513c991168b5af0, 0x5fbdaf0aef13d0d1}},
		{1, "synth/arrivals", [3]uint64{0x2233908646795434, 0xa70b63777e71054, 0x41aafc838a6d8fc5}},
		{math.MaxUint64, "JobSelect-v1", [3]uint64{0x2d484ed042a0fde6, 0xaf9594f05ec24491, 0xee9e159829d6dbd0}},
	} {
		s := Stream(c.seed, c.name)
		got := [3]uint64{s.Uint64(), s.Uint64(), s.Uint64()}
		if got != c.want {
			t.Errorf("Stream(%d, %q) = %#x", c.seed, c.name, got)
		}
	}
}

func TestGoldenNumbers(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		// FNV-1a's published vectors.
		{"Hash of nothing", Hash(""), 0xcbf29ce484222325},
		{"Hash of a", Hash("a"), 0xaf63dc4c8601ec8c},
		{"Hash of foobar", Hash("foobar"), 0x85944171f73967e8},
		// SplitMix64 seeded with 0 and 1 begins with these.
		{"Mix(0)", Mix(0), 0xe220a8397b1dcdaf},
		{"Mix(1)", Mix(1), 0x910a2dec89025cc1},
		{"At(1)", At(1), 0x910a2dec89025cc1},
		{"At(1, 2)", At(1, 2), 0xacad0b9f0868d9d4},
		{"At(1, 2, 3)", At(1, 2, 3), 0x696ef80af0233088},
	} {
		if c.got != c.want {
			t.Errorf("%s = %#x, want %#x", c.what, c.got, c.want)
		}
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	seen := map[uint64]string{}
	for _, name := range []string{"", "a", "b", "ab", "ba", "train/envs", "train/actions"} {
		for seed := range uint64(200) {
			v := Stream(seed, name).Uint64()
			if other, twice := seen[v]; twice {
				t.Fatalf("stream %q of seed %d begins like %s", name, seed, other)
			}
			seen[v] = name
		}
	}
	// Streams of neighbouring seeds and names must not be correlated: the correlation of n pairs of independent uniform
	// numbers has standard deviation 1/√n.
	const n = 20000
	for _, pair := range [][2]*rand.Rand{
		{Stream(1, "x"), Stream(2, "x")}, {Stream(1, "x"), Stream(1, "y")}, {Stream(0, "x"), Stream(1<<63, "x")},
	} {
		sum := 0.0
		for range n {
			sum += (pair[0].Float64() - 0.5) * (pair[1].Float64() - 0.5)
		}
		if r := 12 * sum / n; math.Abs(r) > 4/math.Sqrt(n) {
			t.Errorf("correlation %v", r)
		}
	}
}

func TestAStreamContinuesFromItsSavedState(t *testing.T) {
	p := Source(3, "saved")
	for range 10 {
		p.Uint64()
	}
	state, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	q := new(rand.PCG)
	if err := q.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	again, _ := q.MarshalBinary()
	if !bytes.Equal(state, again) {
		t.Error("the state changes on its way")
	}
	for range 10 {
		if p.Uint64() != q.Uint64() {
			t.Fatal("the restored stream differs")
		}
	}
}

func TestSeedIsSourceWithoutAllocation(t *testing.T) {
	p := new(rand.PCG)
	if n := testing.AllocsPerRun(100, func() { Seed(p, 9, "train/envs") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if p.Uint64() != Source(9, "train/envs").Uint64() {
		t.Error("Seed and Source differ")
	}
}

func TestAtDependsOnEveryKeyAndTheirOrder(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(4) {
		for a := range uint64(8) {
			for b := range uint64(8) {
				seen[At(seed, a, b)] = true
			}
			seen[At(seed, a)] = true
		}
	}
	if len(seen) != 4*8*9 {
		t.Errorf("%d different numbers, want %d", len(seen), 4*8*9)
	}
}

func TestUniformAndNormalHaveTheirMoments(t *testing.T) {
	const n = 200000
	var u1, u2, z1, z2, z4 float64
	for i := range uint64(n) {
		x := At(5, i)
		u, z := Uniform(x), Normal(x)
		if u < 0 || u >= 1 || math.IsNaN(z) || math.IsInf(z, 0) {
			t.Fatalf("Uniform %v, Normal %v", u, z)
		}
		u1, u2 = u1+u/n, u2+u*u/n
		z1, z2, z4 = z1+z/n, z2+z*z/n, z4+z*z*z*z/n
	}
	for _, c := range []struct {
		what                 string
		got, want, deviation float64
	}{
		{"mean of Uniform", u1, 0.5, math.Sqrt(1.0 / 12 / n)},
		{"second moment of Uniform", u2, 1.0 / 3, math.Sqrt(4.0 / 45 / n)},
		{"mean of Normal", z1, 0, math.Sqrt(1.0 / n)},
		{"second moment of Normal", z2, 1, math.Sqrt(2.0 / n)},
		{"fourth moment of Normal", z4, 3, math.Sqrt(96.0 / n)},
	} {
		if math.Abs(c.got-c.want) > 4*c.deviation {
			t.Errorf("%s is %v, want %v ± %v", c.what, c.got, c.want, 4*c.deviation)
		}
	}
	for _, x := range []uint64{0, math.MaxUint64} {
		if u, z := Uniform(x), Normal(x); u >= 1 || math.IsInf(z, 0) || math.IsNaN(z) {
			t.Errorf("of %#x: Uniform %v, Normal %v", x, u, z)
		}
	}
}
