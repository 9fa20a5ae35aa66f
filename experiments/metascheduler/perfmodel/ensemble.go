package perfmodel

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env/workerplace"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/nets"
	"clustergym/nets/model"
	"clustergym/nets/optim"
)

// Config holds the settings of an ensemble.
type Config struct {
	Members    int     `yaml:"members"` // K
	Hidden     []int   `yaml:"hidden,flow"`
	LR         float64 `yaml:"lr"`
	Batch      int     `yaml:"batch"`
	Epochs     int     `yaml:"epochs"`     // passes of one fit, at most
	Validation float64 `yaml:"validation"` // share of the data that is held out, the same for all members
	Patience   int     `yaml:"patience"`   // passes without a better validation after which a fit ends
	Huber      float64 `yaml:"huber"`      // errors of the logarithm beyond this count linearly
}

// DefaultConfig is five networks of 2 × 256.
func DefaultConfig() Config {
	return Config{Members: 5, Hidden: []int{256, 256}, LR: 1e-3, Batch: 128, Epochs: 200, Validation: 0.2, Patience: 10,
		Huber: 0.5}
}

// Validate reports all faults at once.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Members >= 1 && c.Members <= 64, "members", c.Members, "a whole number from 1 to 64")
	l.Join("", c.network().Validate())
	l.Add(c.LR > 0 && c.LR <= 1, "lr", c.LR, "a number in (0, 1]")
	l.Add(c.Batch >= 1 && c.Batch <= 1<<16, "batch", c.Batch, "a whole number from 1 to 65536")
	l.Add(c.Epochs >= 1 && c.Epochs <= 1<<20, "epochs", c.Epochs, "a whole number from 1 to 2^20")
	l.Add(c.Validation > 0 && c.Validation < 1, "validation", c.Validation, "a number in (0, 1)")
	l.Add(c.Patience >= 1 && c.Patience <= 1<<20, "patience", c.Patience, "a whole number from 1 to 2^20")
	l.Add(c.Huber > 0 && c.Huber <= 100, "huber", c.Huber, "a number in (0, 100]")
	return l.Err()
}

func (c Config) network() model.Config {
	return model.Config{Kind: "mlp", Hidden: c.Hidden, Activation: "relu", Init: "orthogonal", Head: "dense"}
}

// Ensemble is K networks. Not safe for concurrent use while it is fitted. At other times many goroutines may use
// views of it, one each.
type Ensemble struct {
	cfg  Config
	nets []*model.QNet
	loss []*loss
	adam []*optim.Adam
	fits uint64
	seed uint64
}

// New returns an ensemble whose members begin with different weights.
func New(c Config, seed uint64) (*Ensemble, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("perfmodel: %w", err)
	}
	e := &Ensemble{cfg: c, seed: seed}
	for k := range c.Members {
		n, err := model.NewQNet(c.network(), model.Input{{Name: "job", Shape: []int{Features}}}, 1, false,
			rng.Stream(seed, fmt.Sprintf("perfmodel/init/%d", k)))
		if err != nil {
			return nil, fmt.Errorf("perfmodel: %w", err)
		}
		l, err := newLoss(n, c.Batch)
		if err != nil {
			return nil, fmt.Errorf("perfmodel: %w", err)
		}
		cfg := optim.DefaultAdamConfig()
		cfg.LR = c.LR
		e.nets, e.loss, e.adam = append(e.nets, n), append(e.loss, l), append(e.adam, optim.NewAdam(n.Params(), cfg))
	}
	return e, nil
}

// Members returns K.
func (e *Ensemble) Members() int { return len(e.nets) }

// Fit is how well one member was fitted.
type Fit struct {
	Epochs     int
	Train      float64 // loss of the last pass
	Validation float64 // root of the mean squared error of the logarithm on held-out data, at its best
}

// Fit continues to fit every member to its own bootstrap sample of d, and keeps the parameters of each that did best
// on the held-out data. Members are fitted side by side; workers change nothing but speed.
func (e *Ensemble) Fit(ctx context.Context, d *Data, workers int) ([]Fit, error) {
	n := d.Len()
	held := int(math.Round(float64(n) * e.cfg.Validation))
	if held < 1 || held >= n {
		return nil, fmt.Errorf("perfmodel: %d measurements, want enough to keep %g of them from fitting", n, e.cfg.Validation)
	}
	order := rng.Stream(rng.At(e.seed, e.fits), "perfmodel/held").Perm(n)
	out := make([]Fit, len(e.nets))
	err := par.For(ctx, workers, len(e.nets), func(_, k int) error {
		src := rng.Stream(rng.At(e.seed, e.fits, uint64(k)), "perfmodel/bootstrap")
		var err error
		if out[k], err = e.fit(k, d, order[:held], order[held:], src); err != nil {
			return fmt.Errorf("perfmodel: member %d: %w", k, err)
		}
		return nil
	})
	e.fits++
	return out, err
}

func (e *Ensemble) fit(k int, d *Data, held, rest []int, src *rand.Rand) (f Fit, err error) {
	sample := make([]int, len(rest))
	for i := range sample {
		sample[i] = rest[src.IntN(len(rest))]
	}
	p := e.nets[k].Params()
	best := p.Clone()
	fwd := e.nets[k].Forward(len(held))
	x := make([]float32, len(held)*Features)
	for i, at := range held {
		copy(x[i*Features:], d.X[at*Features:(at+1)*Features])
	}
	judge := func() float64 {
		sum := 0.0
		for i, y := range fwd.Run(x, nil, len(held)) {
			diff := float64(y) - float64(d.Y[held[i]])
			sum += diff * diff
		}
		return math.Sqrt(sum / float64(len(held)))
	}
	f.Validation = judge()
	e.adam[k].Reset()
	for since := 0; f.Epochs < e.cfg.Epochs && since < e.cfg.Patience; f.Epochs++ {
		src.Shuffle(len(sample), func(a, b int) { sample[a], sample[b] = sample[b], sample[a] })
		f.Train = 0
		for from := 0; from < len(sample); from += e.cfg.Batch {
			part := sample[from:min(from+e.cfg.Batch, len(sample))]
			v, err := e.loss[k].run(d, part, e.cfg.Huber)
			if err != nil {
				return f, err
			}
			f.Train += v * float64(len(part)) / float64(len(sample))
			e.adam[k].Step(e.loss[k].grad(), e.cfg.LR)
		}
		if f.Train != f.Train {
			return f, fmt.Errorf("the loss is %v after %d passes", f.Train, f.Epochs)
		}
		since++
		if v := judge(); v < f.Validation {
			f.Validation, since = v, 0
			copy(best.Data, p.Data)
		}
	}
	copy(p.Data, best.Data)
	return f, nil
}

// Parts returns what a checkpoint keeps: one file of weights for each member, and how often they were fitted.
func (e *Ensemble) Parts() []agents.Part {
	parts := []agents.Part{agents.NewJSONPart("perfmodel.json",
		func() (state, error) { return state{e.fits, e.seed}, nil },
		func(s state) error { e.fits, e.seed = s.Fits, s.Seed; return nil })}
	for k, n := range e.nets {
		parts = append(parts, agents.NewPart(fmt.Sprintf("perfmodel-%d.safetensors", k), weights{n.Params()}))
	}
	return parts
}

type state struct {
	Fits uint64 `json:"fits"`
	Seed uint64 `json:"seed"`
}

type weights struct{ p *nets.Params }

func (w weights) WriteTo(dst io.Writer) (int64, error) { return nets.WriteTensors(dst, nil, w.p.Views) }

func (w weights) ReadFrom(src io.Reader) (int64, error) {
	_, n, err := nets.ReadTensors(src, w.p.Views)
	return n, err
}

// View predicts with some of the members. It has its own buffers and belongs to one goroutine.
type View struct {
	nets []*model.QForward
	rows int
	x    []float32
	all  []float64 // [members, jobs]
}

var _ workerplace.Speeds = (*View)(nil)

// viewRows is the number of jobs that a View predicts at a time.
const viewRows = 64

// View returns a view of the given members, or of all if there are none: it predicts their geometric mean.
func (e *Ensemble) View(members ...int) *View {
	v := &View{x: make([]float32, viewRows*Features)}
	if len(members) == 0 {
		for k := range e.nets {
			members = append(members, k)
		}
	}
	for _, k := range members {
		v.nets = append(v.nets, e.nets[k].Forward(viewRows))
	}
	return v
}

// predict fills all with every member's logarithm of the speed of every job.
func (v *View) predict(p *workerplace.Placement) {
	n := len(p.Jobs)
	v.rows = n
	v.all = slices.Grow(v.all[:0], n*len(v.nets))[:n*len(v.nets)]
	for from := 0; from < n; from += viewRows {
		k := min(viewRows, n-from)
		for i := range k {
			describe(v.x[i*Features:(i+1)*Features], p, from+i)
		}
		for m, net := range v.nets {
			for i, y := range net.Run(v.x[:k*Features], nil, k) {
				v.all[m*n+from+i] = float64(y)
			}
		}
	}
}

// Speeds implements workerplace.Speeds.
func (v *View) Speeds(dst []float64, p *workerplace.Placement) error {
	v.predict(p)
	for i := range dst {
		sum := 0.0
		for m := range v.nets {
			sum += v.all[m*v.rows+i]
		}
		dst[i] = math.Exp(sum / float64(len(v.nets)))
	}
	return nil
}
