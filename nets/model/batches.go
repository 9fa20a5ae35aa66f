package model

import (
	"context"

	"clustergym/internal/par"
)

// pieceRows is the number of rows that a network sees at a time, at most. A row's bits do not depend on the other rows,
// so cutting a batch into pieces changes nothing.
const pieceRows = 64

// worthWaking is the number of multiplications from which a batch is shared among workers, however few rows it has:
// waking a goroutine costs about 20 µs.
const worthWaking = 1 << 20

// pieces cuts batches of any size into pieces, which up to workers goroutines run.
type pieces struct {
	workers int
	work    int // multiplications for a row

	// The current call, in fields so that passing it to goroutines allocates nothing.
	n    int
	rows int // of a piece
	run  func(worker, i int) error
}

// each calls run for every piece of n rows.
func (p *pieces) each(ctx context.Context, n int) error {
	p.n, p.rows = n, pieceRows
	if p.workers > 1 && n*p.work >= worthWaking {
		p.rows = min(pieceRows, (n+p.workers-1)/p.workers)
	}
	return par.For(ctx, p.workers, (n+p.rows-1)/p.rows, p.run)
}

// piece returns the rows of piece i.
func (p *pieces) piece(i int) (from, to int) { return i * p.rows, min((i+1)*p.rows, p.n) }

// ACBatches runs an ActorCritic over batches of any size, piece by piece on up to workers goroutines, whose number
// changes nothing but speed. It shares the network's parameters and has its own buffers. Not safe for concurrent use.
type ACBatches struct {
	p           pieces
	nets        []*ACForward // one for each worker
	in, actions int

	obs, head, value []float32 // of the current call
}

// Batches returns a runner for batches of any size.
func (m *ActorCritic) Batches(workers int) *ACBatches {
	b := &ACBatches{p: pieces{workers: max(workers, 1), work: m.Work()}, in: m.p.width[0], actions: m.Actions()}
	for range b.p.workers {
		b.nets = append(b.nets, m.Forward(pieceRows))
	}
	b.p.run = b.piece
	return b
}

// Workers is the number of goroutines that a call may use.
func (b *ACBatches) Workers() int { return b.p.workers }

// Run fills head [n, Actions] and value [n], either of which may be nil, for n observations. Without value it leaves
// out the layers that only values need. It allocates nothing. Its error is ctx's.
func (b *ACBatches) Run(ctx context.Context, obs []float32, n int, head, value []float32) error {
	b.obs, b.head, b.value = obs, head, value
	err := b.p.each(ctx, n)
	b.obs, b.head, b.value = nil, nil, nil
	return err
}

func (b *ACBatches) piece(worker, i int) error {
	from, to := b.p.piece(i)
	obs, n := b.obs[from*b.in:to*b.in], to-from
	if b.value == nil {
		if b.head != nil {
			copy(b.head[from*b.actions:to*b.actions], b.nets[worker].Logits(obs, n))
		}
		return nil
	}
	head, value := b.nets[worker].Run(obs, n)
	if b.head != nil {
		copy(b.head[from*b.actions:to*b.actions], head)
	}
	copy(b.value[from:to], value)
	return nil
}

// QBatches runs a QNet over batches of any size, as ACBatches runs an ActorCritic.
type QBatches struct {
	p           pieces
	nets        []*QForward // one for each worker
	in, actions int

	obs, q []float32 // of the current call
	mask   []bool
}

// Batches returns a runner for batches of any size.
func (m *QNet) Batches(workers int) *QBatches {
	b := &QBatches{p: pieces{workers: max(workers, 1), work: m.Work()}, in: m.p.width[0], actions: m.actions}
	for range b.p.workers {
		b.nets = append(b.nets, m.Forward(pieceRows))
	}
	b.p.run = b.piece
	return b
}

// Run fills q [n, Actions] for n observations with their masks [n, Actions]. It allocates nothing. Its error is ctx's.
func (b *QBatches) Run(ctx context.Context, obs []float32, mask []bool, n int, q []float32) error {
	b.obs, b.mask, b.q = obs, mask, q
	err := b.p.each(ctx, n)
	b.obs, b.mask, b.q = nil, nil, nil
	return err
}

func (b *QBatches) piece(worker, i int) error {
	from, to := b.p.piece(i)
	o, a := b.in, b.actions
	copy(b.q[from*a:to*a], b.nets[worker].Run(b.obs[from*o:to*o], b.mask[from*a:to*a], to-from))
	return nil
}
