package conformance

import (
	"math/rand/v2"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
	"clustergym/internal/rng"
)

func newDraw() *rand.Rand { return rng.Stream(2, "conformance") }

// inside fails where v, a batch of values, is outside the space.
func inside(path string, sp *wire.Space, v any, rows int) {
	if sp.Kind == "dict" {
		m, ok := v.(wire.Map)
		if !ok {
			failf("%s is no map", path)
		}
		if len(m) != len(sp.Items) {
			failf("%s has %d entries, the space has %d", path, len(m), len(sp.Items))
		}
		for i := range sp.Items {
			if m[i].Key != sp.Names[i] {
				failf("%s has %q where the space has %q", path, m[i].Key, sp.Names[i])
			}
			inside(path+"."+sp.Names[i], &sp.Items[i], m[i].Value, rows)
		}
		return
	}
	if sp.Kind != "box" && sp.Kind != "mbinary" {
		skipf("the suite looks into spaces of kind dict, box and mbinary only")
	}
	c, err := compare.Read(v)
	if err != nil {
		failf("%s: %w", path, err)
	}
	if c.DType != 0 && sp.Kind == "box" && c.DType != sp.DType {
		failf("%s is of type %v, its space of %v", path, c.DType, sp.DType)
	}
	if !slices.Equal(c.Shape, append([]int{rows}, sp.Shape...)) {
		failf("%s has shape %v, want %d rows of %v", path, c.Shape, rows, sp.Shape)
	}
	each := len(c.V) / rows
	for i, x := range c.V {
		low, high := 0.0, 1.0
		if sp.Kind == "box" {
			low, high = sp.Low[min(i%each, len(sp.Low)-1)], sp.High[min(i%each, len(sp.High)-1)]
		}
		if !(x >= low && x <= high) {
			failf("%s is %v at %d of row %d, outside [%v, %v]", path, x, i%each, i/each, low, high)
		}
	}
}

func (s *suite) observationsLieInTheirSpace() {
	for _, view := range []struct {
		obs  string
		mask []string
	}{{"dict", []string{"info"}}, {"dict", []string{"obs", "info"}}, {"flat", []string{"info"}}} {
		s.part("obs %s, mask %v", view.obs, view.mask)
		p := s.start(3, "obs", view.obs, "mask", view.mask, "autoreset", "same_step")
		space := field(wire.ParseSpace(p.open.Get("obs_space")))
		masked := slices.Contains(view.mask, "obs")
		if view.obs == "dict" && slices.Contains(space.Names, wire.MaskKey) != masked {
			failf("the space has %v", space.Names)
		}
		if view.obs == "dict" && !slices.IsSorted(space.Names) {
			failf("the space has its names in the order %v, want them sorted", space.Names)
		}
		s.part("obs %s, mask %v, reset", view.obs, view.mask)
		reply := p.ask(wire.OpReset, "seed", 3)
		inside("obs", space, reply.Get("obs"), 3)
		mask := p.masks(reply, 3)
		for k := range 150 {
			s.part("obs %s, mask %v, step %d", view.obs, view.mask, k)
			x := p.step(p.legal(s.draw, mask))
			inside("obs", space, x.reply.Get("obs"), 3)
			if rows := len(x.finalRows); rows > 0 {
				inside("fin.obs", space, x.fin.Get("obs"), rows)
			}
			if masked {
				obs, _ := x.reply.Sub("obs")
				if !slices.Equal(need(compare.Read(obs.Get(wire.MaskKey))).V, x.mask.V) {
					failf("the masks in obs and info differ")
				}
			}
			mask = x.mask
		}
	}
	// info has no mask if the field mask does not name it, and has one even with info none.
	s.part("mask []")
	p := s.start(1, "mask", []string{})
	reply := p.ask(wire.OpReset, "seed", 1)
	if info, _ := reply.Sub("info"); info.Has(wire.MaskKey) {
		failf("there is a mask in info")
	}
	s.part("info none")
	p = s.start(1, "info", "none")
	reply = p.ask(wire.OpReset, "seed", 1)
	p.masks(reply, 1)
}

func (s *suite) infoCarriesWhatWasAsked() {
	for _, want := range []any{"none", "episode", nil, "metrics", []string{"episode", "metrics"}} {
		more := []any{"info", want}
		if want == nil {
			more = nil // the default
		}
		s.part("info %v", want)
		p := s.start(2, append(more, "autoreset", "disabled")...)
		metrics := need(compare.Metrics(p.open))
		p.playToTheEnd(s, func(x *step, total []float64, steps []int) {
			info := field(x.reply.Sub("info"))
			must(compare.Clean("info", info))
			_, listed := want.([]string)
			must(compare.MetricsAt(info, metrics, x.over, listed || want == "metrics"))
			if want == "none" || want == "metrics" || !slices.Contains(x.over, true) {
				if info.Has("episode") {
					failf("there is an episode where none ended or none was asked for")
				}
				return
			}
			must(compare.EpisodeAt(info, x.over, total, steps))
		})
	}
}

func (s *suite) noEnd() { skipf("no episode ended within %d steps", s.Steps) }

// playToTheEnd plays random legal actions in a handle with autoreset disabled until the first episode of any row ends.
// It calls see with every step, the rows' sums of rewards and their numbers of steps. If no episode ends, it skips the
// claim.
func (p *player) playToTheEnd(s *suite, see func(x *step, total []float64, steps []int)) {
	reply := p.ask(wire.OpReset, "seed", 6)
	mask := p.masks(reply, p.n)
	total, steps := make([]float64, p.n), make([]int, p.n)
	for range s.Steps {
		x := p.step(p.legal(s.draw, mask))
		for i := range p.n {
			total[i] += x.r[i]
			steps[i]++
			if p.limit > 0 && steps[i] >= p.limit && !x.over[i] {
				failf("environment %d continues after %d steps, and max_episode_steps is %d", i, steps[i], p.limit)
			}
		}
		see(x, total, steps)
		if slices.Contains(x.over, true) {
			return // a further step would be needs_reset
		}
		mask = x.mask
	}
	s.noEnd()
}
