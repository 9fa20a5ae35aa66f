package replay

import (
	"io"
	"math/rand/v2"

	"clustergym/env"
)

// Uniform is a buffer of the last Config.Capacity transitions, each equally likely in every draw. It is not safe for
// concurrent use.
type Uniform struct{ *ring }

// NewUniform returns an empty buffer for rows environments of spec s that are stepped together.
func NewUniform(cfg Config, s env.Spec, rows int) (*Uniform, error) {
	r, err := newRing(cfg, s, rows)
	if err != nil {
		return nil, err
	}
	return &Uniform{r}, nil
}

// Sample fills dst with dst.N transitions, drawn with replacement. It returns ErrTooFew while the buffer holds fewer.
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

// WriteTo saves everything, including unfinished n-step returns: a buffer that reads it continues exactly as this one
// would.
func (u *Uniform) WriteTo(w io.Writer) (int64, error) {
	e := newEncoder(w)
	e.header(kindUniform)
	u.ring.save(e)
	return e.end()
}

// ReadFrom restores what WriteTo saved, and reads to the end of r. The buffer must have been made with the same
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
