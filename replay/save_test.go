package replay

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"clustergym/env"
)

// saver is the common interface of all three kinds of storage.
type saver interface {
	io.WriterTo
	io.ReaderFrom
}

func saved(t testing.TB, s saver) []byte {
	t.Helper()
	var w bytes.Buffer
	n, err := s.WriteTo(&w)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(w.Len()) {
		t.Fatalf("WriteTo says %d bytes, wrote %d", n, w.Len())
	}
	return w.Bytes()
}

// kinds makes one of each kind, fills it with calls steps, and returns it with an empty twin.
func kinds(t testing.TB, calls int) map[string][2]saver {
	t.Helper()
	cfg, pri := Config{Capacity: 40, NStep: 3, Gamma: 0.9}, DefaultPriorityConfig()
	out := map[string][2]saver{}
	for name := range map[string]bool{"uniform": true, "prioritized": true, "rollout": true} {
		var pair [2]saver
		for k := range pair {
			s := newStream(3, nextStep, rand.New(rand.NewPCG(7, 7)))
			steps := calls * (1 - k)
			var add func() error
			switch name {
			case "uniform":
				u, err := NewUniform(cfg, s.spec, 3)
				if err != nil {
					t.Fatal(err)
				}
				pair[k], add = u, func() error { return u.Add(s.b, s.a, s.next) }
			case "prioritized":
				p, err := NewPrioritized(cfg, pri, s.spec, 3)
				if err != nil {
					t.Fatal(err)
				}
				rng, dst := rand.New(rand.NewPCG(1, 1)), NewBatch(s.spec, 4)
				pair[k], add = p, func() error {
					if p.Sample(rng, 0.5, dst) == nil {
						if err := p.Update(dst.Index, dst.Reward); err != nil {
							return err
						}
					}
					return p.Add(s.b, s.a, s.next)
				}
			case "rollout":
				r, err := NewRollout(s.spec, calls+2, 3, 0.9)
				if err != nil {
					t.Fatal(err)
				}
				col := []float32{1, 2, 3}
				pair[k], add = r, func() error { return r.Add(s.b, s.a, s.next, col, col, col) }
			}
			for c := 0; c < steps; c++ {
				s.play(c)
				if err := add(); err != nil {
					t.Fatal(err)
				}
				s.turn()
			}
		}
		out[name] = pair
	}
	return out
}

func TestSavedAndRestoredIsTheSame(t *testing.T) {
	for _, calls := range []int{0, 2, 9, 100} {
		for name, pair := range kinds(t, calls) {
			data := saved(t, pair[0])
			n, err := pair[1].ReadFrom(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("%s after %d steps: %v", name, calls, err)
			}
			if n != int64(len(data)) {
				t.Errorf("%s after %d steps: read %d bytes of %d", name, calls, n, len(data))
			}
			if !bytes.Equal(saved(t, pair[1]), data) {
				t.Errorf("%s after %d steps: saved again, it has other bytes", name, calls)
			}
		}
	}
}

// A restored buffer continues exactly like the one that was saved, including waiting transitions.
func TestRestoredGoesOnTheSame(t *testing.T) {
	s := newStream(3, sameStep, rand.New(rand.NewPCG(7, 8)))
	cfg := Config{Capacity: 50, NStep: 4, Gamma: 0.9}
	make1 := func() *Prioritized {
		p, err := NewPrioritized(cfg, DefaultPriorityConfig(), s.spec, 3)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one, two := make1(), make1()
	r1, r2 := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	d1, d2 := NewBatch(s.spec, 8), NewBatch(s.spec, 8)
	work := func(p *Prioritized, rng *rand.Rand, dst *Batch) {
		if err := p.Add(s.b, s.a, s.next); err != nil {
			t.Fatal(err)
		}
		if p.Sample(rng, 0.4, dst) == nil {
			if err := p.Update(dst.Index, dst.Reward); err != nil {
				t.Fatal(err)
			}
		}
	}
	for c := 0; c < 300; c++ {
		s.play(c)
		work(one, r1, d1)
		work(two, r2, d2)
		if c%37 == 0 { // two is discarded and restored from its bytes
			data := saved(t, two)
			two = make1()
			if _, err := two.ReadFrom(bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
		}
		s.turn()
	}
	if !bytes.Equal(saved(t, one), saved(t, two)) {
		t.Error("saved and restored on the way, it ends with other bytes")
	}
}

// Any strict prefix is an error, and so is anything appended; neither changes the buffer.
func TestCutOrLongerIsAnError(t *testing.T) {
	for name, pair := range kinds(t, 30) {
		data := saved(t, pair[0])
		empty := saved(t, pair[1])
		for n := 0; n < len(data); n += 1 + n/64 {
			if _, err := pair[1].ReadFrom(bytes.NewReader(data[:n])); !errors.Is(err, ErrFormat) {
				t.Fatalf("%s cut to %d bytes: got %v, want ErrFormat", name, n, err)
			}
		}
		if _, err := pair[1].ReadFrom(bytes.NewReader(append(data[:len(data):len(data)], 0))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s with a byte more: got %v, want ErrFormat", name, err)
		}
		if !bytes.Equal(saved(t, pair[1]), empty) {
			t.Errorf("%s: failed reads have changed it", name)
		}
	}
}

func TestSavedOfAnotherShapeIsAnError(t *testing.T) {
	s, cfg := testSpec(), Config{Capacity: 8, NStep: 2, Gamma: 0.9}
	u, err := NewUniform(cfg, s, 2)
	if err != nil {
		t.Fatal(err)
	}
	data := saved(t, u)
	wider := s
	wider.Action.Sizes = []int{4}
	for name, make1 := range map[string]func() (*Uniform, error){
		"capacity": func() (*Uniform, error) { c := cfg; c.Capacity++; return NewUniform(c, s, 2) },
		"n_step":   func() (*Uniform, error) { c := cfg; c.NStep++; return NewUniform(c, s, 2) },
		"gamma":    func() (*Uniform, error) { c := cfg; c.Gamma = 0.8; return NewUniform(c, s, 2) },
		"rows":     func() (*Uniform, error) { return NewUniform(cfg, s, 3) },
		"mask":     func() (*Uniform, error) { return NewUniform(cfg, wider, 2) },
	} {
		v, err := make1()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.ReadFrom(bytes.NewReader(data)); !errors.Is(err, ErrFormat) || !contains(err.Error(), name) {
			t.Errorf("%s: got %v, want ErrFormat that names it", name, err)
		}
	}
	p, err := NewPrioritized(cfg, DefaultPriorityConfig(), s, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ReadFrom(bytes.NewReader(data)); !errors.Is(err, ErrFormat) {
		t.Errorf("another kind: got %v, want ErrFormat", err)
	}
}

// Whatever byte is flipped, reading does not panic, and does not return a buffer that panics in use.
func TestDamagedBytesAreHarmless(t *testing.T) {
	for name, pair := range kinds(t, 30) {
		data := saved(t, pair[0])
		for at := 0; at < len(data); at++ {
			if at > 400 && at%7 != 0 {
				continue
			}
			bad := append([]byte(nil), data...)
			bad[at] ^= byte(1 << (at % 8))
			if _, err := pair[1].ReadFrom(bytes.NewReader(bad)); err == nil {
				use(t, name, pair[1])
			} else if !errors.Is(err, ErrFormat) {
				t.Fatalf("%s byte %d: got %v, want ErrFormat", name, at, err)
			}
		}
	}
}

// use samples from a buffer and adds to it.
func use(t testing.TB, name string, s saver) {
	t.Helper()
	spec := testSpec()
	b, next, a := env.NewBatch(spec, 3), env.NewBatch(spec, 3), env.NewActions(spec, 3)
	copy(b.Kind, []env.Kind{env.Mid, env.Mid, env.Mid})
	copy(next.Kind, []env.Kind{env.Mid, env.Mid, env.Truncated})
	rng, dst := rand.New(rand.NewPCG(1, 1)), NewBatch(spec, 8)
	var err error
	for k := 0; k < 5 && err == nil; k++ {
		switch s := s.(type) {
		case *Uniform:
			if err = s.Sample(rng, dst); err == nil || errors.Is(err, ErrTooFew) {
				err = s.Add(b, a, next)
			}
		case *Prioritized:
			if err = s.Sample(rng, 0.5, dst); err == nil || errors.Is(err, ErrTooFew) {
				err = s.Add(b, a, next)
			}
		case *Rollout:
			for s.Len() < s.Steps && err == nil {
				err = s.Add(b, a, next, []float32{0, 0, 0}, nil, nil)
			}
			if err == nil {
				err = s.Advantages([]float32{0, 0, 0}, 0.9, 1)
			}
		}
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func FuzzReadFrom(f *testing.F) {
	for _, pair := range kinds(f, 12) {
		f.Add(saved(f, pair[0]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, pair := range kinds(t, 12) {
			if _, err := pair[1].ReadFrom(bytes.NewReader(data)); err == nil {
				use(t, name, pair[1])
			}
		}
	})
}
