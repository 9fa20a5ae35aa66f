package profile

import (
	"math"
	"sync"
	"time"

	"clustergym/traces"
)

// p100TFLOPS is the float32 throughput of a P100, which converts operations to time as in the simulator of TopDRL's
// group. Forward and backward pass together count as three forward passes.
const p100TFLOPS = 10.6

// Compute returns the model's compute time of one iteration on one GPU with batch examples: Ms if it is given, else
// GFLOPs · batch · 3 over the speed of a P100.
func (v *Model) Compute(batch int) time.Duration {
	if v.Ms > 0 {
		return duration(v.Ms / 1e3)
	}
	return duration(v.GFLOPs * float64(batch) * 3 / (p100TFLOPS * 1e3))
}

// Profile returns the profile of the job called jobID: that of the mix's model called modelName if there is one, else
// that of the model that Draw returns. A name may end in a batch size, as in "vgg16 (batch size 64)", which overrides a
// drawn one. Jobs of one model and batch size share one profile. m must be valid.
func (m *Mix) Profile(seed uint64, jobID, modelName string) *traces.Profile {
	v := m.Find(modelName)
	if v == nil {
		v = m.Find(baseOf(modelName))
	}
	if v == nil {
		return profileOf(m.Draw(seed, jobID))
	}
	if n := batchOf(modelName); n > 0 && v.Batch == 0 {
		return profileOf(v, n)
	}
	return profileOf(v, m.batch(seed, jobID, v))
}

// made keeps the profiles for the whole process, because mixes are plain values that are copied. A profile depends only
// on its key.
var made = struct {
	sync.Mutex
	profiles map[madeKey]*traces.Profile
}{profiles: map[madeKey]*traces.Profile{}}

type madeKey struct {
	model Model
	batch int
}

func profileOf(v *Model, batch int) *traces.Profile {
	made.Lock()
	defer made.Unlock()
	p := made.profiles[madeKey{*v, batch}]
	if p == nil {
		p = &traces.Profile{Name: v.Name, GradientBytes: int64(math.Round(v.MB * 1e6)), Compute: v.Compute(batch),
			MemBytes: mebibytes(v.MemMB), Skewed: v.Skewed}
		made.profiles[madeKey{*v, batch}] = p
	}
	return p
}
