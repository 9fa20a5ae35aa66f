package ppo

import (
	"context"
	"fmt"

	"clustergym/env"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets/model"
	"clustergym/nets/op"
)

// piece is the number of rows that a network sees at a time when acting, or fewer, so that every worker has some where
// that pays. A row's bits do not depend on the other rows, so cutting a batch into pieces changes nothing.
const piece = 64

// worth is how many multiplications are worth waking a worker for, some 20 µs.
const worth = 1 << 20

// checkSpec says why this algorithm cannot act in an environment, nil if it can.
func checkSpec(s env.Spec) error {
	if len(s.Action.Sizes)+len(s.Action.Low) == 0 {
		return fmt.Errorf("ppo: %s has no actions", s.ID)
	}
	if len(s.Action.Low) != len(s.Action.High) {
		return fmt.Errorf("ppo: %s has %d lower and %d upper bounds of actions", s.ID, len(s.Action.Low), len(s.Action.High))
	}
	for i, k := range s.Action.Sizes {
		if k < 1 {
			return fmt.Errorf("ppo: %s has %d actions in factor %d, want at least 1", s.ID, k, i)
		}
	}
	if s.ObsLen() == 0 {
		return fmt.Errorf("ppo: %s has no observation", s.ID)
	}
	return nil
}

// distribution is the form of a policy for an environment.
func distribution(s env.Spec) op.Distribution {
	return op.Distribution{Sizes: s.Action.Sizes, Dims: len(s.Action.Low)}
}

// input describes the observation to the network.
func input(s env.Spec) model.Input {
	in := make(model.Input, len(s.Obs))
	for i, f := range s.Obs {
		in[i] = model.Field{Name: f.Name, Shape: f.Shape}
	}
	return in
}

// newNet builds the network; its initial weights follow from seed alone.
func newNet(cfg Config, s env.Spec, seed uint64) (*model.ActorCritic, error) {
	net, err := model.NewActorCriticOf(cfg.Network, input(s), distribution(s), cfg.LogStd, rng.Stream(seed, "ppo/init"))
	if err != nil {
		return nil, fmt.Errorf("ppo: network for %s: %w", s.ID, err)
	}
	return net, nil
}

// forward runs the network over batches of any size, piece by piece on workers goroutines.
type forward struct {
	workers int
	obsLen  int
	work    int                // multiplications for a row
	width   int                // of the head
	nets    []*model.ACForward // one for each worker

	// The call under way, in fields so that passing it to goroutines allocates nothing.
	n     int
	rows  int // of a piece
	obs   []float32
	head  []float32 // nil = not wanted
	value []float32 // nil = not wanted
	piece func(worker, i int) error
}

func newForward(m *model.ActorCritic, obsLen, workers int) *forward {
	f := &forward{workers: max(workers, 1), obsLen: obsLen, work: m.Work(), width: m.Actions()}
	for range f.workers {
		f.nets = append(f.nets, m.Forward(piece))
	}
	f.piece = f.runPiece
	return f
}

// run fills head [n, width] and value [n], either of which may be nil.
func (f *forward) run(ctx context.Context, obs []float32, n int, head, value []float32) error {
	f.n, f.obs, f.head, f.value = n, obs, head, value
	f.rows = piece
	if f.workers > 1 && n*f.work >= worth {
		f.rows = min(piece, (n+f.workers-1)/f.workers)
	}
	err := par.For(ctx, f.workers, (n+f.rows-1)/f.rows, f.piece)
	f.obs, f.head, f.value = nil, nil, nil
	return err
}

func (f *forward) runPiece(worker, i int) error {
	from, to := i*f.rows, min((i+1)*f.rows, f.n)
	head, value := f.nets[worker].Run(f.obs[from*f.obsLen:to*f.obsLen], to-from)
	if f.head != nil {
		copy(f.head[from*f.width:to*f.width], head)
	}
	if f.value != nil {
		copy(f.value[from:to], value)
	}
	return nil
}
