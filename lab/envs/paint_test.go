package envs

import (
	"bytes"
	"testing"

	"clustergym/env"
)

// Every environment that one can open by name has a drawing of its own size and rate, and every step of an episode
// shows.
func TestEveryRegisteredEnvironmentHasPictures(t *testing.T) {
	r := registry(t, nil)
	for _, id := range IDs() {
		t.Run(id, func(t *testing.T) {
			e := makeEnvs(t, r, id, nil, 1).Envs[0]
			p, ok := e.(env.Painter)
			if !ok {
				t.Fatal("it cannot draw itself")
			}
			if n := p.FrameRate(); n < 1 || n > 60 {
				t.Errorf("%d pictures a second", n)
			}
			ts, a := env.NewTimeStep(e.Spec()), env.NewActions(e.Spec(), 1).Row(0)
			if err := e.Reset(t.Context(), env.Episode{Seed: 2, Window: -1}, ts); err != nil {
				t.Fatal(err)
			}
			dst := env.NewFrame()
			last := []byte{}
			for step := 0; step < 20 && !ts.Kind.Last(); step++ {
				if err := p.Paint(dst); err != nil {
					t.Fatal(err)
				}
				if bytes.Equal(last, dst.Pix) {
					t.Errorf("step %d looks like the one before", step)
				}
				last = bytes.Clone(dst.Pix)
				at := 0
				for i, n := range e.Spec().Action.Sizes {
					for a.Disc[i] = 0; !ts.Mask[at+int(a.Disc[i])]; {
						a.Disc[i]++
					}
					at += n
				}
				if err := e.Step(t.Context(), a, ts); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
