package handle

import (
	"crypto/rand"
	"encoding/binary"
	"math"

	"clustergym/bridge/wire"
	"clustergym/internal/plain"
	"strconv"
)

// seeds holds the seeds of a reset.
type seeds struct {
	base  uint64   // with all: row i gets base + i
	all   bool     // the request has one number for all rows
	each  []uint64 // else the seeds by position among the rows…
	given []bool   // …and which of them are given
}

// of returns the seed of row i, at position p of the request. It returns false if none is given.
func (s *seeds) of(p, i int) (uint64, bool) {
	switch {
	case s.all:
		return s.base + uint64(i), true
	case s.each == nil:
		return 0, false
	}
	return s.each[p], s.given[p]
}

const seedWant = "nothing, a whole number from 0 to 2^64-1, or a list of these with one entry for each environment " +
	"asked"

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
			return bad(plain.Count(len(v), "entry", "entries") + " for " + plain.Count(k, "environment", "environments"))
		}
		s := seeds{each: make([]uint64, k), given: make([]bool, k)}
		for p, x := range v {
			if x == nil {
				continue
			}
			var ok bool
			if s.each[p], ok = seed(x); !ok {
				return bad("no seed at position " + strconv.Itoa(p))
			}
			s.given[p] = true
		}
		return s, nil
	case wire.Array:
		if len(v.Shape) != 1 || v.DType < wire.I8 || v.DType > wire.U64 {
			return bad("an array that is no list of integers")
		}
		if v.Len() != k {
			return bad(plain.Count(v.Len(), "entry", "entries") + " for " + plain.Count(k, "environment", "environments"))
		}
		s := seeds{each: make([]uint64, k), given: make([]bool, k)}
		for p := range k {
			x, _ := v.Int(p) // for a uint64 above the largest int64 these are its bits, as wanted
			if x < 0 && v.DType != wire.U64 {
				return bad("no seed at position " + strconv.Itoa(p))
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

// seed returns v as a seed. A float64 may be one, since some JSON writers turn 3 into 3.0.
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

// drawSeed draws a seed from the system. It has 53 bits, so that clients can hold it in a float64.
func drawSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:]) >> 11
}
