package history

import (
	"clustergym/env/predict"
	"clustergym/internal/rng"
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
		user := rng.Hash(j.User)
		if name := j.Name; name != "" {
			k.add(byName, rng.Mix(user^gpus<<1)^rng.Hash(name), unit)
		}
		k.add(byUserGPUs, user^gpus<<1, unit)
		k.add(byUser, user, unit)
	}
	k.add(byVC, rng.Hash(j.VC)^gpus<<1, unit)
	k.add(byAll, 0, unit)
}

// unit returns what samples count j's run time in, in nanoseconds.
func unit(j *traces.Job) float64 {
	if asked := predict.Requested(j); asked > 0 {
		return float64(asked)
	}
	return 1
}
