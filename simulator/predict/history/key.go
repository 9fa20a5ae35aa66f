package history

import (
	"math/bits"

	"clustergym/internal/rng"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// most is the largest number of keys of a job.
const most = 5

// keys are the keys of a job, the finest first: hashes of what jobs with the key have in common.
type keys struct {
	hash [most]uint64
	kind [most]uint8
	n    int
}

// The kinds of keys, the finest first.
const (
	byName uint8 = iota
	byUserGPUs
	byUser
	byVC
	byAll
)

// add adds the key that x identifies among those of a kind and a unit.
func (k *keys) add(kind uint8, x uint64, unit uint64) {
	k.hash[k.n] = rng.Mix(x) ^ uint64(kind)<<8 ^ unit
	k.kind[k.n] = kind
	k.n++
}

// of sets k to the keys of j. Jobs with and without a requested time have no key in common, as their samples have other
// units.
func (k *keys) of(j *traces.Job) {
	k.n = 0
	unit := uint64(0)
	if predict.Requested(j) > 0 {
		unit = 1
	}
	gpus := uint64(j.GPUs)<<20 + uint64(j.GPUMilli)
	if j.User != "" {
		user := hash(j.User)
		if name := j.Name; name != "" {
			k.add(byName, rng.Mix(user^gpus<<1)^hash(name), unit)
		}
		k.add(byUserGPUs, user^gpus<<1, unit)
		k.add(byUser, user, unit)
	}
	k.add(byVC, hash(j.VC)^gpus<<1, unit)
	k.add(byAll, 0, unit)
}

// unit returns what samples count j's run time in, in nanoseconds.
func unit(j *traces.Job) float64 {
	if asked := predict.Requested(j); asked > 0 {
		return float64(asked)
	}
	return 1
}

// hash returns a hash of s, eight bytes at a time: three strings are hashed for each job.
func hash(s string) uint64 {
	h := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56 // one load
		hi, lo := bits.Mul64(h^word^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
		h = hi ^ lo
	}
	for i := range len(s) {
		h ^= uint64(s[i]) << (8 * i)
	}
	return rng.Mix(h)
}
