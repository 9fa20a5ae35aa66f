package sacct

import (
	"bytes"
	"math"
	"strconv"
)

// Number is a number as any release of Slurm writes it in JSON: plain, null, in quotes, or
// {"set": true, "infinite": false, "number": 5}. Reading one allocates nothing, as there are dozens for each job.
type Number struct {
	V        int64
	Set      bool // there is a number
	Infinite bool
	// Bad is what stands there and is no whole number of 64 bits. It is a fault only where the number is needed: counters
	// of energy and the like go up to 2^64.
	Bad string
}

// Slurm's values for a missing number (NO_VAL) and for no limit (INFINITE), in 32 and in 64 bits.
const (
	noValue    = math.MaxUint32 - 1
	infinite   = math.MaxUint32
	noValue64  = math.MaxUint64 - 1
	infinite64 = math.MaxUint64
)

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (n *Number) UnmarshalJSON(b []byte) error {
	*n = Number{}
	text := b
	if len(b) > 0 && b[0] == '{' {
		var set, ok bool
		if set, text, ok = n.object(b); !ok {
			n.Bad = string(b)
		}
		if !set || !ok {
			return nil
		}
	}
	if text = bytes.Trim(text, `"`); len(text) == 0 || string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		switch u, err := strconv.ParseUint(string(text), 10, 64); {
		case err == nil && u == noValue64:
			return nil
		case err == nil && u == infinite64:
			n.Infinite = true
			return nil
		}
		f, err := strconv.ParseFloat(string(text), 64) // 240.0
		if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
			n.Bad = string(text)
			return nil //nolint:nilerr // a fault where the number is needed
		}
		v = int64(f)
	}
	switch v {
	case noValue:
	case infinite:
		n.Infinite = true
	default:
		n.V, n.Set = v, true
	}
	return nil
}

// object reads {"set": true, "infinite": false, "number": 5}. set says that there is a number; b is valid JSON.
func (n *Number) object(b []byte) (set bool, value []byte, ok bool) {
	set = true
	for rest := b[1 : len(b)-1]; len(bytes.TrimSpace(rest)) > 0; {
		var item []byte
		item, rest, _ = bytes.Cut(rest, []byte{','})
		key, v, found := bytes.Cut(item, []byte{':'})
		v = bytes.TrimSpace(v)
		switch key = bytes.TrimSpace(key); {
		case !found || len(v) == 0 || v[0] == '{' || v[0] == '[':
			return false, nil, false
		case string(key) == `"set"`:
			set = set && string(v) == "true"
		case string(key) == `"infinite"`:
			n.Infinite = string(v) == "true"
		case string(key) == `"number"`:
			value = v
		}
	}
	return set && !n.Infinite, value, true
}
