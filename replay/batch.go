package replay

import (
	"errors"

	"clustergym/env"
)

var (
	// ErrTooFew is returned by Sample while a buffer holds fewer transitions than the batch asks for.
	ErrTooFew = errors.New("replay: fewer transitions than the batch asks for")
	// ErrFormat is returned by the ReadFrom methods for bytes that are not a saved state of the same buffer: of
	// another kind, version, size or environment, truncated, or damaged.
	ErrFormat = errors.New("replay: not a saved state of this buffer")
)

// Batch is N transitions by column. It belongs to the caller, who may reuse it.
type Batch struct {
	N        int
	Obs      []float32   // [N, ObsLen]
	NextObs  []float32   // [N, ObsLen], the observation n steps later, or the episode's final one
	Action   env.Actions // N actions
	Reward   []float32   // [N], n-step sums already discounted
	Discount []float32   // [N], product of the steps' discounts; 0 exactly if the episode terminated
	Mask     []bool      // [N, MaskLen], legal actions at Obs
	NextMask []bool      // [N, MaskLen], legal actions at NextObs; at least one per row
	Weight   []float32   // [N], importance weights, the largest is 1; all 1 if drawn uniformly
	Index    []int       // [N], for Prioritized.Update
}

// NewBatch returns a batch of n transitions of the sizes in s.
func NewBatch(s env.Spec, n int) *Batch {
	return &Batch{
		N:        n,
		Obs:      make([]float32, n*s.ObsLen()),
		NextObs:  make([]float32, n*s.ObsLen()),
		Action:   *env.NewActions(s, n),
		Reward:   make([]float32, n),
		Discount: make([]float32, n),
		Mask:     make([]bool, n*s.MaskLen()),
		NextMask: make([]bool, n*s.MaskLen()),
		Weight:   make([]float32, n),
		Index:    make([]int, n),
	}
}
