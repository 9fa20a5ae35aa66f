package server

import (
	"crypto/rand"
	"encoding/binary"
	"math"

	"clustergym/env/bridge/wire"
)

// seeds are the seeds of a reset, by position among its rows.
type seeds struct {
	base  uint64   // with all: row i gets base + i
	all   bool     // one number for all
	each  []uint64 // else one for each row…
	given []bool   // …that has one
}

// of is the seed of row i, which is the p-th of the request; false where none is given.
func (s *seeds) of(p, i int) (uint64, bool) {
	switch {
	case s.all:
		return s.base + uint64(i), true
	case s.each == nil:
		return 0, false
	}
	return s.each[p], s.given[p]
}

const seedWant = "nothing, a whole number from 0 to 2^64-1, or a list of these with one entry for each environment asked"

// readSeeds reads the field seed of a reset of k rows.
func readSeeds(req wire.Map, k int) (seeds, *wire.Error) {
	bad := func(msg string) (seeds, *wire.Error) {
		return seeds{}, &wire.Error{Code: wire.BadSeed, Msg: "field seed: " + msg, Want: seedWant}
	}
	switch v := req.Get("seed").(type) {
	case nil:
		return seeds{}, nil
	case []any:
		if len(v) != k {
			return bad(plural(len(v), "entry", "entries") + " for " + plural(k, "environment", "environments"))
		}
		s := seeds{each: make([]uint64, k), given: make([]bool, k)}
		for p, x := range v {
			if x == nil {
				continue
			}
			var ok bool
			if s.each[p], ok = seed(x); !ok {
				return bad("no seed at position " + decimal(p))
			}
			s.given[p] = true
		}
		return s, nil
	case wire.Array:
		if len(v.Shape) != 1 || v.DType < wire.I8 || v.DType > wire.U64 {
			return bad("an array that is no list of integers")
		}
		if v.Len() != k {
			return bad(plural(v.Len(), "entry", "entries") + " for " + plural(k, "environment", "environments"))
		}
		s := seeds{each: make([]uint64, k), given: make([]bool, k)}
		for p := range k {
			x, _ := v.Int(p) // above the largest int64 these are the bits of an uint64, which is meant
			if x < 0 && v.DType != wire.U64 {
				return bad("no seed at position " + decimal(p))
			}
			s.each[p], s.given[p] = uint64(x), true
		}
		return s, nil
	default:
		x, ok := seed(v)
		if !ok {
			return bad("no whole number, or one below 0")
		}
		return seeds{base: x, all: true}, nil
	}
}

// seed is v as a seed: JSON does not tell 3 from 3.0.
func seed(v any) (uint64, bool) {
	switch v := v.(type) {
	case int64:
		return uint64(v), v >= 0
	case uint64:
		return v, true
	case float64:
		return uint64(max(v, 0)), v >= 0 && v == math.Trunc(v) && v < 1<<53
	}
	return 0, false
}

// drawSeed draws a seed from the system. It has 53 bits, so that any client can hold it in a number.
func drawSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:]) >> 11
}
