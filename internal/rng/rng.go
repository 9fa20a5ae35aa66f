// Package rng derives independent, named random streams from one seed.
//
// A run has one seed, and each consumer of random numbers uses a stream with its own name ("train/envs",
// "synth/arrivals"). Different names give independent streams, so adding a consumer never changes what the others draw,
// and the order in which streams are made does not matter. Streams are PCG generators of math/rand/v2, whose state can
// be saved and restored (encoding.BinaryMarshaler), so a resumed run continues exactly.
//
// The mapping from (seed, name) to a stream is part of every published result: golden_test.go pins it.
package rng

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// Source returns the PCG generator called name under seed. Its state can be saved with MarshalBinary.
func Source(seed uint64, name string) *rand.PCG {
	p := new(rand.PCG)
	Seed(p, seed, name)
	return p
}

// Stream returns a generator of numbers over Source(seed, name).
func Stream(seed uint64, name string) *rand.Rand { return rand.New(Source(seed, name)) }

// Seed puts p at the start of the stream that Source(seed, name) would return, without allocating.
func Seed(p *rand.PCG, seed uint64, name string) {
	h := Hash(name)
	p.Seed(Mix(seed^h), Mix(h+bits.RotateLeft64(seed, 32)+0x9e3779b97f4a7c15))
}

// Hash returns the 64-bit FNV-1a hash of s.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h ^= uint64(s[i])
		h *= 1099511628211
	}
	return h
}

// Mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection whose outputs look
// random even where the inputs are 0, 1, 2, …
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// At returns a well-mixed 64-bit number that depends on seed and on each key, in order. Use it for draws that must not
// depend on how many draws came before, such as the noise on one job's estimate.
func At(seed uint64, keys ...uint64) uint64 {
	x := Mix(seed)
	for _, k := range keys {
		// Without the rotation At(a, b) would equal At(b, a), and At(a, a) would be one number for all a.
		x = Mix(bits.RotateLeft64(x, 23) ^ Mix(k))
	}
	return x
}

// Uniform maps 64 random bits to [0, 1).
func Uniform(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// Normal maps 64 random bits to a standard normal number (Box and Muller, 1958).
func Normal(x uint64) float64 {
	u := (float64(x>>11) + 0.5) / (1 << 53) // never 0
	v := Uniform(Mix(x))
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}
