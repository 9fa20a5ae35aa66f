package history

import (
	"clustergym/internal/rng"
	"clustergym/traces"
)

// most is the largest number of keys of a job.
const most = 5

// keys are the keys of a job, the finest first: hashes of what jobs with the key have in common.
type keys struct {
	hash [most]uint64
	n    int
}

// The kinds of keys, mixed into their hashes.
const (
	byName uint64 = iota + 1
	byUserGPUs
	byUser
	byVC
	byAll
)

func (k *keys) add(hash uint64) {
	k.hash[k.n] = hash
	k.n++
}

// of sets k to the keys of j. Jobs with and without a requested time have no key in common, as their samples have other
// units.
func (k *keys) of(j *traces.Job) {
	k.n = 0
	unit := uint64(0)
	if j.Estimate > 0 {
		unit = 1
	}
	gpus := uint64(j.GPUs)<<20 + uint64(j.GPUMilli)
	if j.User != "" {
		user := rng.Hash(j.User)
		if name := ""; name != "" {
			k.add(rng.Mix(rng.Mix(user^gpus<<1)^rng.Hash(name)) ^ byName<<8 ^ unit)
		}
		k.add(rng.Mix(user^gpus<<1) ^ byUserGPUs<<8 ^ unit)
		k.add(rng.Mix(user) ^ byUser<<8 ^ unit)
	}
	k.add(rng.Mix(rng.Hash(j.VC)^gpus<<1) ^ byVC<<8 ^ unit)
	k.add(byAll<<8 ^ unit)
}

// unit returns what samples count j's run time in, in nanoseconds.
func unit(j *traces.Job) float64 {
	if j.Estimate > 0 {
		return float64(j.Estimate)
	}
	return 1
}
