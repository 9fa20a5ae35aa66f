package optim

import (
	"clustergym/nets"
	"clustergym/nets/kernel"
)

// ShardSum adds up the gradients of a minibatch that is cut into shards, computed on one goroutine or on several. It
// adds them in the order of the shards, whichever finishes first, so the sum has the same bits for any number of
// workers.
type ShardSum struct {
	grad  *nets.Params
	parts []*nets.Params // gradients of the shards; nil: a single worker adds them up as they come
	put   []bool         // shards that have one since Begin
	begun bool           // grad holds a shard's gradient
}

// NewShardSum returns the sum over shards that workers goroutines compute. first is the gradient of the first worker's
// program: with a single shard, it is the sum.
func NewShardSum(first *nets.Params, shards, workers int) *ShardSum {
	s := &ShardSum{grad: first}
	if shards == 1 {
		return s
	}
	s.grad = first.Like()
	if workers > 1 {
		s.parts, s.put = make([]*nets.Params, shards), make([]bool, shards)
		for i := range s.parts {
			s.parts[i] = first.Like()
		}
	}
	return s
}

// Begin forgets the shards of the last minibatch.
func (s *ShardSum) Begin() {
	s.begun = false
	clear(s.put)
}

// Put takes g, which is copied, for the gradient of shard i. Shards may be put concurrently if there are several
// workers; a single one puts them in their order. Empty shards need not be put.
func (s *ShardSum) Put(i int, g *nets.Params) {
	if s.parts == nil {
		s.add(g)
		return
	}
	copy(s.parts[i].Data, g.Data)
	s.put[i] = true
}

// Sum returns the sum of what was put since Begin, once all workers have finished: zero if that is nothing. It belongs
// to s until the next Begin; the caller may change it.
func (s *ShardSum) Sum() *nets.Params {
	for i, g := range s.parts {
		if s.put[i] {
			s.add(g)
		}
	}
	if !s.begun {
		s.grad.Zero()
	}
	return s.grad
}

// add adds g to the sum, which the first one begins.
func (s *ShardSum) add(g *nets.Params) {
	switch {
	case g == s.grad: // the only shard
	case s.begun:
		kernel.Add(s.grad.Data, s.grad.Data, g.Data)
	default:
		copy(s.grad.Data, g.Data)
	}
	s.begun = true
}
