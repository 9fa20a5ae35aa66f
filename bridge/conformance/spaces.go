package conformance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"clustergym/bridge/conformance/compare"
	"clustergym/bridge/wire"
	"clustergym/internal/rng"
)

func newDraw() *rand.Rand { return rng.Stream(2, "conformance") }

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// inside returns an error that says where v, a batch of values, is outside the space.
func inside(path string, sp *wire.Space, v any, rows int) error {
	if sp.Kind == "dict" {
		m, ok := v.(wire.Map)
		if !ok {
			return fmt.Errorf("%s is no map", path)
		}
		if len(m) != len(sp.Items) {
			return fmt.Errorf("%s has %d entries, the space has %d", path, len(m), len(sp.Items))
		}
		for i := range sp.Items {
			if m[i].Key != sp.Names[i] {
				return fmt.Errorf("%s has %q where the space has %q", path, m[i].Key, sp.Names[i])
			}
			if err := inside(path+"."+sp.Names[i], &sp.Items[i], m[i].Value, rows); err != nil {
				return err
			}
		}
		return nil
	}
	if sp.Kind != "box" && sp.Kind != "mbinary" {
		return skip("the suite looks into spaces of kind dict, box and mbinary only")
	}
	c, err := compare.Read(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.DType != 0 && sp.Kind == "box" && c.DType != sp.DType {
		return fmt.Errorf("%s is of type %v, its space of %v", path, c.DType, sp.DType)
	}
	if !slices.Equal(c.Shape, append([]int{rows}, sp.Shape...)) {
		return fmt.Errorf("%s has shape %v, want %d rows of %v", path, c.Shape, rows, sp.Shape)
	}
	each := len(c.V) / rows
	for i, x := range c.V {
		low, high := 0.0, 1.0
		if sp.Kind == "box" {
			low, high = sp.Low[min(i%each, len(sp.Low)-1)], sp.High[min(i%each, len(sp.High)-1)]
		}
		if !(x >= low && x <= high) {
			return fmt.Errorf("%s is %v at %d of row %d, outside [%v, %v]", path, x, i%each, i/each, low, high)
		}
	}
	return nil
}

func (s *suite) observationsLieInTheirSpace() error {
	for _, view := range []struct {
		obs  string
		mask []string
	}{{"dict", []string{"info"}}, {"dict", []string{"obs", "info"}}, {"flat", []string{"info"}}} {
		p, err := s.start(3, "obs", view.obs, "mask", view.mask, "autoreset", "same_step")
		if err != nil {
			return fmt.Errorf("obs %s, mask %v: %w", view.obs, view.mask, err)
		}
		space, e := wire.ParseSpace(p.open.Get("obs_space"))
		if e != nil {
			return e
		}
		if view.obs == "dict" && slices.Contains(space.Names, wire.MaskKey) != slices.Contains(view.mask, "obs") {
			return fmt.Errorf("mask %v: the space has %v", view.mask, space.Names)
		}
		if view.obs == "dict" && !slices.IsSorted(space.Names) {
			return fmt.Errorf("the space has its names in the order %v, want them sorted", space.Names)
		}
		reply, err := p.ask(wire.OpReset, "seed", 3)
		if err != nil {
			return err
		}
		if err := inside("obs", space, reply.Get("obs"), 3); err != nil {
			return fmt.Errorf("%s after reset: %w", view.obs, err)
		}
		mask, err := p.masks(reply, 3)
		if err != nil {
			return err
		}
		for k := range 150 {
			a, err := p.legal(s.draw, mask)
			if err != nil {
				return err
			}
			x, err := p.step(a)
			if err != nil {
				return err
			}
			if err := inside("obs", space, x.reply.Get("obs"), 3); err != nil {
				return fmt.Errorf("%s, step %d: %w", view.obs, k, err)
			}
			if rows := len(x.finalRows); rows > 0 {
				if err := inside("fin.obs", space, x.fin.Get("obs"), rows); err != nil {
					return fmt.Errorf("%s, step %d: %w", view.obs, k, err)
				}
			}
			if slices.Contains(view.mask, "obs") {
				obs, _ := x.reply.Sub("obs")
				c, err := compare.Read(obs.Get(wire.MaskKey))
				if err != nil {
					return err
				}
				if !slices.Equal(c.V, x.mask.V) {
					return fmt.Errorf("step %d: the masks in obs and info differ", k)
				}
			}
			mask = x.mask
		}
	}
	// info has no mask if the field mask does not name it, and has one even with info none.
	p, err := s.start(1, "mask", []string{})
	if err != nil {
		return err
	}
	reply, err := p.ask(wire.OpReset, "seed", 1)
	if err != nil {
		return err
	}
	if info, _ := reply.Sub("info"); info.Has(wire.MaskKey) {
		return fmt.Errorf("mask [] and a mask in info")
	}
	if p, err = s.start(1, "info", "none"); err != nil {
		return err
	}
	if reply, err = p.ask(wire.OpReset, "seed", 1); err != nil {
		return err
	}
	_, err = p.masks(reply, 1)
	return err
}

func (s *suite) infoCarriesWhatWasAsked() error {
	for _, want := range []any{"none", "episode", nil, "metrics", []string{"episode", "metrics"}} {
		more := []any{"info", want}
		if want == nil {
			more = nil // the default
		}
		p, err := s.start(2, append(more, "autoreset", "disabled")...)
		if err != nil {
			return err
		}
		metrics, err := compare.Metrics(p.open)
		if err != nil {
			return err
		}
		ended, err := p.playToTheEnd(s, func(x *step, total []float64, steps []int) error {
			info, e := x.reply.Sub("info")
			if e != nil {
				return e
			}
			if err := compare.Clean("info", info); err != nil {
				return err
			}
			_, listed := want.([]string)
			if err := compare.MetricsAt(info, metrics, x.over, listed || want == "metrics"); err != nil {
				return err
			}
			if want == "none" || want == "metrics" || !slices.Contains(x.over, true) {
				if info.Has("episode") {
					return fmt.Errorf("info %v has an episode where none ended or none was asked for", want)
				}
				return nil
			}
			return compare.EpisodeAt(info, x.over, total, steps)
		})
		if err != nil {
			return fmt.Errorf("info %v: %w", want, err)
		}
		if !ended {
			return noEnd(s)
		}
	}
	return nil
}

func noEnd(s *suite) error {
	return skip(fmt.Sprintf("no episode ended within %d steps", s.Steps))
}

// playToTheEnd plays random legal actions in a handle with autoreset disabled until the first episode of any row ends. It
// calls see with every step, the rows' sums of rewards and their numbers of steps. ended is false if no episode ended.
func (p *player) playToTheEnd(s *suite, see func(x *step, total []float64, steps []int) error) (ended bool, err error) {
	reply, err := p.ask(wire.OpReset, "seed", 6)
	if err != nil {
		return false, err
	}
	mask, err := p.masks(reply, p.n)
	if err != nil {
		return false, err
	}
	total, steps := make([]float64, p.n), make([]int, p.n)
	for range s.Steps {
		a, err := p.legal(s.draw, mask)
		if err != nil {
			return false, err
		}
		x, err := p.step(a)
		if err != nil {
			return false, err
		}
		for i := range p.n {
			total[i] += x.r[i]
			steps[i]++
			if p.limit > 0 && steps[i] >= p.limit && !x.over[i] {
				return false, fmt.Errorf("environment %d goes on after %d steps, and max_episode_steps is %d", i, steps[i], p.limit)
			}
		}
		if err := see(x, total, steps); err != nil {
			return false, err
		}
		if slices.Contains(x.over, true) {
			return true, nil // a further step would be needs_reset
		}
		mask = x.mask
	}
	return false, nil
}
