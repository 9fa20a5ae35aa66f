package env

import "time"

// Batch is N time steps by column: Obs is [N, ObsLen], Mask [N, MaskLen], Info [N, len(Spec.Info)]. Under the SameStep
// mode of package vec, one call can end an episode and begin the next. The row then holds the new episode's Obs, Mask
// and Info beside the old one's Kind, Reward and Elapsed. FinalRows lists such rows in order, and FinalObs [k,
// ObsLen], FinalMask [k, MaskLen] and FinalInfo [k, len(Spec.Info)] hold the old episode's last time step. A learner
// of action values needs FinalMask to bootstrap from a truncated episode; a source that does not know it leaves it
// empty.
type Batch struct {
	N       int
	Kind    []Kind
	Reward  []float64
	Elapsed []time.Duration
	Obs     []float32
	Mask    []bool
	Info    []float64

	FinalRows []int
	FinalObs  []float32
	FinalMask []bool
	FinalInfo []float64
}

// NewBatch returns a batch of n rows with buffers of the sizes in s and room for n final rows.
func NewBatch(s Spec, n int) *Batch {
	return &Batch{
		N:         n,
		Kind:      make([]Kind, n),
		Reward:    make([]float64, n),
		Elapsed:   make([]time.Duration, n),
		Obs:       make([]float32, n*s.ObsLen()),
		Mask:      make([]bool, n*s.MaskLen()),
		Info:      make([]float64, n*len(s.Info)),
		FinalRows: make([]int, 0, n),
		FinalObs:  make([]float32, 0, n*s.ObsLen()),
		FinalMask: make([]bool, 0, n*s.MaskLen()),
		FinalInfo: make([]float64, 0, n*len(s.Info)),
	}
}

// CopyFrom makes b equal to src, which must have the same sizes as b.
func (b *Batch) CopyFrom(src *Batch) {
	b.N = src.N
	copy(b.Kind, src.Kind)
	copy(b.Reward, src.Reward)
	copy(b.Elapsed, src.Elapsed)
	copy(b.Obs, src.Obs)
	copy(b.Mask, src.Mask)
	copy(b.Info, src.Info)
	b.FinalRows = append(b.FinalRows[:0], src.FinalRows...)
	b.FinalObs = append(b.FinalObs[:0], src.FinalObs...)
	b.FinalMask = append(b.FinalMask[:0], src.FinalMask...)
	b.FinalInfo = append(b.FinalInfo[:0], src.FinalInfo...)
}
