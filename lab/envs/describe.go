package envs

import (
	"context"

	"clustergym/env"
	"clustergym/env/queuerank"
	"clustergym/env/sched"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// settings is the part of a Descriptor that looks at the environment's settings, a C. The fields are those of the same
// names there; all but defaults, open, page and memory may be nil. What a function changes of a *C is a copy's.
type settings[C any] struct {
	defaults  func() C
	cut       func(c *C) sched.Taken
	mostGPUs  func(c *C) int
	open      func(c C, src *Source, part traces.Part) (env.Env, error)
	page      func(c C, spec env.Spec) string
	training  func(c *C, gamma float64)
	judged    func(c *C)
	streamed  func(c *C)
	lacks     func(c *C, j *traces.Job) string
	stops     func(c *C) bool
	price     func(c *C) string
	placement func(c *C) string
	memory    func(c *C, x Extent) float64
	sha       func(c *C, a *Args, spec cluster.Spec) (string, error)
	record    func(w *Workload, ctx context.Context, c *C, t, shown workload.TraceConfig) error
	older     func(c C) queuerank.Config
}

// describe returns d with the functions of by, which get the settings in their own type. P is *C.
func describe[C any, P interface {
	*C
	Settings
}](d Descriptor, by settings[C]) *Descriptor {
	own := func(s Settings) *C { return s.(P) }
	d.Settings = func() Settings {
		c := by.defaults()
		return P(&c)
	}
	d.Open = func(s Settings, src *Source, part traces.Part) (env.Env, error) { return by.open(*own(s), src, part) }
	d.Page = func(s Settings, spec env.Spec) string { return by.page(*own(s), spec) }
	if by.training != nil {
		d.Training = func(s Settings, gamma float64) Settings {
			c := copied(own(s))
			by.training(c, gamma)
			return P(c)
		}
	}
	if by.judged != nil {
		d.Judged = func(s Settings) Settings {
			c := copied(own(s))
			by.judged(c)
			return P(c)
		}
	}
	if by.streamed != nil {
		d.Streamed = func(s Settings) Settings {
			c := copied(own(s))
			by.streamed(c)
			return P(c)
		}
	}
	d.Cut, d.MostGPUs = untyped(own, by.cut), untyped(own, by.mostGPUs)
	d.stops, d.placement = untyped(own, by.stops), untyped(own, by.placement)
	d.price = untyped(own, by.price)
	d.lacks, d.memory = untypedWith(own, by.lacks), untypedWith(own, by.memory)
	if by.sha != nil {
		d.sha = func(a *Args, spec cluster.Spec) (string, error) { return by.sha(own(a.Settings), a, spec) }
	}
	if by.older != nil {
		d.older = func(s Settings) Settings {
			c := by.older(*own(s))
			return &c
		}
	}
	if by.record != nil {
		d.record = func(ctx context.Context, w *Workload, s Settings, t, shown workload.TraceConfig) error {
			return by.record(w, ctx, own(s), t, shown)
		}
	}
	return &d
}

// copied returns a copy of what c points to.
func copied[C any](c *C) *C {
	own := *c
	return &own
}

// untyped returns f as a function of settings that own converts, nil for nil.
func untyped[C, R any](own func(Settings) *C, f func(*C) R) func(Settings) R {
	if f == nil {
		return nil
	}
	return func(s Settings) R { return f(own(s)) }
}

// untypedWith is untyped for a function with a second argument.
func untypedWith[C, X, R any](own func(Settings) *C, f func(*C, X) R) func(Settings, X) R {
	if f == nil {
		return nil
	}
	return func(s Settings, x X) R { return f(own(s), x) }
}
