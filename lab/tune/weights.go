package tune

import (
	"slices"
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

// Weights are those of the policy that a search is for: hold, or index where running jobs can be stopped.
type Weights struct {
	Policy string      // hold or index
	Hold   tuned.Hold  // of hold
	Index  tuned.Index // of index
}

// weighed is what hold and index have in common.
type weighed interface {
	Weights() []*float64
	IsZero() bool
	Validate() error
}

// given returns the weights of the policy.
func (w *Weights) given() weighed {
	if w.Policy == indexed {
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

// Names returns the names of the weights.
func (w *Weights) Names() []string { return families[w.Policy].names }

// Values returns where the weights are, in the order of Names.
func (w *Weights) Values() []*float64 { return w.given().Weights() }

// File returns the name of the file that holds the weights in the folder of a search.
func (w *Weights) File() string { return families[w.Policy].file }

// Give sets the weights with which policies play.
func (w *Weights) Give(e *config.Eval) {
	if w.Policy == indexed {
		e.Index = w.Index
		return
	}
	e.Hold = w.Hold
}

// from returns policy's weights of c, or the default ones.
func from(policy string, c *schedulers.Config) (w Weights) {
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
	rules := families[w.Policy].compared
	if streamed {
		rules = slices.DeleteFunc(slices.Clone(rules), func(name string) bool {
			return policyname.Of(name).Ahead != policyname.None
		})
		return []string{"--policies", strings.Join(rules, ","), "--" + w.Policy, file}
	}
	return []string{"--policies", strings.Join(rules, ","), "--" + w.Policy, file, "--no-whole"}
}
