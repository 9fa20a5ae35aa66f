package replay

import (
	"io"
	"math/rand/v2"

	"clustergym/env"
)

// Uniform is a buffer of the last Config.Capacity transitions, each as likely as any other in every draw.
// Not safe for concurrent use.
type Uniform struct{ ring *ring }

// NewUniform returns an empty buffer for rows environments of spec s that are stepped together.
func NewUniform(cfg Config, s env.Spec, rows int) (*Uniform, error) {
	r, err := newRing(cfg, s, rows)
	if err != nil {
		return nil, err
	}
	return &Uniform{r}, nil
}

// Add stores one step of all rows: the batch that was acted on, the actions and the batch that followed, which
// must be the next call's b. An ended row's next observation is its FinalObs, or its Obs where it has none; rows
// of next with Kind First are no transitions and are left out. With NStep above 1 a transition is stored when
// its last step is seen. Everything is copied, nothing is allocated in steady state. An error (rows, lengths or
// rewards that cannot be) changes nothing.
func (u *Uniform) Add(b *env.Batch, a *env.Actions, next *env.Batch) error {
	return u.ring.add(b, a, next)
}

// Len is the number of transitions that can be drawn.
func (u *Uniform) Len() int { return u.ring.size }

// Added is the number of transitions ever added.
func (u *Uniform) Added() uint64 { return u.ring.added }

// Sample fills dst with dst.N transitions, drawn with replacement. It is ErrTooFew while the buffer holds fewer.
func (u *Uniform) Sample(rng *rand.Rand, dst *Batch) error {
	if err := u.ring.checkDst(dst); err != nil {
		return err
	}
	for i := 0; i < dst.N; i++ {
		u.ring.gather(dst, i, rng.IntN(u.ring.size))
		dst.Weight[i] = 1
	}
	return nil
}

// WriteTo saves everything, the unfinished n-step returns included: a buffer that reads it goes on exactly as
// this one would.
func (u *Uniform) WriteTo(w io.Writer) (int64, error) {
	e := newEncoder(w)
	e.header(kindUniform)
	u.ring.save(e)
	return e.end()
}

// ReadFrom restores what WriteTo saved, reading to the end of r. The buffer must have been made with the same
// configuration, environment and rows. Anything else is ErrFormat, and changes nothing.
func (u *Uniform) ReadFrom(r io.Reader) (int64, error) {
	d := newDecoder(r)
	d.header(kindUniform)
	fresh := u.ring.load(d)
	if err := d.end(); err != nil {
		return d.n, err
	}
	u.ring = fresh
	return d.n, nil
}
