package tune

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/lab/config"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/schedulers/tuned"
)

// The files of the weights in a search's folder.
const (
	HoldFile  = "hold.yaml"
	IndexFile = "index.yaml"
)

// Weights are those of the policy that a search is for: hold, index where running jobs can be stopped, or the constants
// of an order that is written out.
type Weights struct {
	Policy string      // hold, index, or a written order with its admission
	Hold   tuned.Hold  // of hold
	Index  tuned.Index // of index
	// Constants are the values of those of a written order, the first of the array.
	Constants [MostConstants]float64
}

// MostConstants is how many constants of a written order a search can move.
const MostConstants = 16

// constants are the values of the constants of a written order.
type constants []float64

// Weights returns where the values are.
func (c constants) Weights() []*float64 {
	all := make([]*float64, len(c))
	for i := range c {
		all[i] = &c[i]
	}
	return all
}

// IsZero reports whether there are no constants.
func (c constants) IsZero() bool { return len(c) == 0 }

// Validate accepts all.
func (c constants) Validate() error { return nil }

// order returns the written order of a policy. Of a policy with a name it has no clauses.
func order(policy string) policyname.Written {
	w, err := policyname.ReadWritten(policyname.Of(policy).Base)
	if err != nil || !policyname.IsWritten(policy) {
		return policyname.Written{}
	}
	return w
}

// Written returns the order with the constants of w, and its admission; "" for hold and index.
func (w *Weights) Written() string {
	if !policyname.IsWritten(w.Policy) {
		return ""
	}
	n, o := policyname.Of(w.Policy), order(w.Policy)
	for i, name := range o.Constants() {
		o = o.With(name, strconv.FormatFloat(w.Constants[i], 'g', digits, 64))
	}
	n.Base = o.String()
	return n.String()
}

// digits are those of a constant.
const digits = 6

// weighed is what hold and index have in common.
type weighed interface {
	Weights() []*float64
	IsZero() bool
	Validate() error
}

// given returns the weights of the policy.
func (w *Weights) given() weighed {
	switch {
	case policyname.IsWritten(w.Policy):
		o := order(w.Policy)
		return constants(w.Constants[:min(len(o.Constants()), MostConstants)])
	case w.Policy == indexed:
		return &w.Index
	}
	return &w.Hold
}

const (
	held    = "hold"
	indexed = "index"
)

// Fits returns the policy whose weights are looked for with the settings of cfg: index if they let jobs be stopped,
// else hold.
func Fits(cfg *config.Config) string {
	if d := cfg.Descriptor(); d != nil && d.Simulated() && d.Stops(cfg.Env.Settings) {
		return indexed
	}
	return held
}

// family is what there is to know of the weights of a policy.
type family struct {
	names     []string
	scale     []float64 // how much each weight changes decisions
	file      string    // in the folder of a search
	baselines []string
	compared  []string // the rules of gymctl eval
}

// families are the policies that have weights.
var families = map[string]family{
	held: {
		tuned.HoldNames(), []float64{1, 0.5, 1, 0.33, 0.5, 0.5, 1, 1, 0.33, 0.5, 1, 1, 0.5}, HoldFile,
		[]string{"smallest+skip", "sjf+skip", "area+skip"},
		[]string{"sjf+skip", "area+skip", held, policyname.Of(held).Looking(policyname.Rollout).String()},
	},
	indexed: {
		tuned.IndexNames(), []float64{1, 1, 0.5, 0.5, 1, 0.5, 0.5, 0.3, 0.5, 1, 0.7, 0.5, 0.5}, IndexFile,
		[]string{"las+skip", "srtf+skip", "gittins+skip", "srsf+skip"},
		[]string{"las+skip", "srtf+skip", "gittins+skip", "index+skip"},
	},
}

// OrderFile is the file of a written order in a search's folder.
const OrderFile = "order.expr"

// familyOf returns what there is to know of the weights of a policy. A constant of a written order moves as far as its
// value at the beginning is from 0, and one of 0 as far as 1.
func familyOf(policy string) family {
	if !policyname.IsWritten(policy) {
		return families[policy]
	}
	f := family{file: OrderFile, baselines: families[held].baselines, compared: []string{"sjf+skip", "area+skip"}}
	w, o := from(policy, nil), order(policy)
	f.names = o.Constants()
	for _, x := range w.Values() {
		if *x == 0 {
			f.scale = append(f.scale, 1)
			continue
		}
		f.scale = append(f.scale, math.Abs(*x))
	}
	return f
}

// Names returns the names of the weights.
func (w *Weights) Names() []string { return familyOf(w.Policy).names }

// Values returns where the weights are, in the order of Names.
func (w *Weights) Values() []*float64 { return w.given().Weights() }

// File returns the name of the file that holds the weights in the folder of a search.
func (w *Weights) File() string { return familyOf(w.Policy).file }

// Give sets the weights with which policies play.
func (w *Weights) Give(e *config.Eval) {
	if w.Policy == indexed {
		e.Index = w.Index
		return
	}
	e.Hold = w.Hold
}

// from returns policy's weights of c, or the default ones; those of a written order are in its text.
func from(policy string, c *schedulers.Config) (w Weights) {
	if policyname.IsWritten(policy) {
		w.Policy = policy
		o := order(policy)
		for i, name := range o.Constants() {
			if x, err := strconv.ParseFloat(o.Of(name), 64); err == nil && i < MostConstants { // else Rival refuses it
				w.Constants[i] = x
			}
		}
		return w
	}
	w = Weights{Policy: policy, Hold: c.Hold, Index: c.Index}
	if !w.given().IsZero() {
		return w
	}
	w.Hold, w.Index = tuned.DefaultHold(c.Estimates), tuned.DefaultIndex(c.Estimates)
	return w
}

// of returns the weights whose values are x.
func of(policy string, x []float64) Weights {
	w := Weights{Policy: policy}
	for i, v := range w.Values() {
		*v = x[i]
	}
	return w
}

func vector(w *Weights) (x []float64) {
	for _, v := range w.Values() {
		x = append(x, *v)
	}
	return x
}

// Read reads the weights of a policy, hold or index.
func Read(policy, name string) (Weights, error) {
	w := Weights{Policy: policy}
	b, err := ordinary.Read(name, ordinary.Settings)
	if err != nil {
		return w, fault.Mistakef("weights of %s: %s: %w", policy, name, ordinary.Reason(err))
	}
	if err := configs.DecodeBytes(name, b, w.given()); err != nil {
		return w, &fault.Mistake{Err: err}
	}
	if w.given().IsZero() {
		return w, fault.Mistakef("%s: it has no weights; want some of %v", name, w.Names())
	}
	return w, nil
}

// Compared returns the arguments of gymctl eval that compare the weights of a file with rules: on windows, with
// searches and without the whole test part, or on streams, without searches, which take hours there.
func (w *Weights) Compared(file string, streamed bool) []string {
	rules := familyOf(w.Policy).compared
	if policyname.IsWritten(w.Policy) {
		words := []string{"--policies", strings.Join(rules, ","), "--policy-file", file}
		if !streamed {
			words = append(words, "--no-whole")
		}
		return words
	}
	if streamed {
		rules = slices.DeleteFunc(slices.Clone(rules), func(name string) bool {
			return policyname.Of(name).Ahead != policyname.None
		})
		return []string{"--policies", strings.Join(rules, ","), "--" + w.Policy, file}
	}
	return []string{"--policies", strings.Join(rules, ","), "--" + w.Policy, file, "--no-whole"}
}
