package profile

import (
	"fmt"
	"slices"
	"sync"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/rng"
)

// Model is one network. Either GFLOPs or Ms must be given.
type Model struct {
	Name   string  `yaml:"name"`
	MB     float64 `yaml:"mb"`               // gradients, 10^6 bytes: exchanged by an all-reduce in each iteration
	GFLOPs float64 `yaml:"gflops,omitempty"` // forward pass on one example, 10^9 operations
	// compute time of one iteration on one GPU, forward and backward, milliseconds; 0 = from GFLOPs
	Ms     float64 `yaml:"ms,omitempty"`
	Batch  int     `yaml:"batch,omitempty"`  // fixed batch size on one GPU; 0 = drawn from the mix's
	MemMB  float64 `yaml:"mem_mb,omitempty"` // GPU memory on each GPU, 2^20 bytes, as drivers count; 0 = not known
	Skewed bool    `yaml:"skewed,omitempty"` // one tensor is a large share of the gradients: such models want one node
}

// Mix is a distribution of models and batch sizes. It does not change after Validate; its methods are safe for
// concurrent use.
type Mix struct {
	Name    string    `yaml:"name"`
	Models  []Model   `yaml:"models"`
	Weights []float64 `yaml:"weights"` // of Models; empty = all equal
	Batches []int     `yaml:"batches"` // batch sizes on one GPU, equally likely; may be empty if each model has its own
}

// Validate reports every fault.
func (m *Mix) Validate() error {
	var l fault.List
	l.Add(len(m.Models) > 0, "models", "none", "a list of models")
	own := !slices.ContainsFunc(m.Models, func(v Model) bool { return v.Batch == 0 })
	l.Add(len(m.Batches) > 0 || own && len(m.Models) > 0, "batches", "none", "a list of batch sizes")
	l.Add(len(m.Weights) == 0 || len(m.Weights) == len(m.Models), "weights", len(m.Weights),
		fmt.Sprintf("%d, one for each model, or none", len(m.Models)))
	seen := map[string]bool{}
	for i, v := range m.Models {
		key := fmt.Sprintf("models[%d]", i)
		l.Add(v.Name != "" && !seen[v.Name], key+".name", v.Name, "a name of its own")
		l.Add(v.MB > 0 && v.MB <= 1e9, key+".mb", v.MB, "a positive number of megabytes")
		l.Add(v.GFLOPs > 0 && v.GFLOPs <= 1e9 || v.GFLOPs == 0 && v.Ms > 0, key+".gflops", v.GFLOPs,
			"a positive number, or 0 where ms is given")
		l.Add(v.Ms >= 0 && v.Ms <= 1e9, key+".ms", v.Ms, "milliseconds, 0 to 1e9")
		l.Add(v.Batch >= 0 && v.Batch <= maxBatch, key+".batch", v.Batch, "1 or more, or 0 for one of batches")
		l.Add(v.MemMB >= 0 && v.MemMB <= 1e9, key+".mem_mb", v.MemMB, "megabytes, 0 to 1e9")
		seen[v.Name] = true
	}
	sum := 0.0
	for i, w := range m.Weights {
		l.Add(w >= 0 && w <= 1e9, fmt.Sprintf("weights[%d]", i), w, "0 or more")
		sum += w
	}
	l.Add(len(m.Weights) == 0 || sum > 0, "weights", sum, "a positive sum")
	for i, b := range m.Batches {
		l.Add(b > 0 && b <= maxBatch, fmt.Sprintf("batches[%d]", i), b, "1 or more")
	}
	return l.Err()
}

// Draw returns the model and batch size of the job called jobID. Both depend on seed and jobID only. The model belongs
// to the mix and must not be changed. Draw allocates nothing. m must be valid.
func (m *Mix) Draw(seed uint64, jobID string) (model *Model, batch int) {
	model = m.pick(rng.Uniform(rng.At(seed, modelKey, rng.Hash(jobID))))
	return model, m.batch(seed, jobID, model)
}

// batch returns the model's own batch size or the one that the job draws.
func (m *Mix) batch(seed uint64, jobID string, v *Model) int {
	if v.Batch > 0 {
		return v.Batch
	}
	return m.Batches[int(rng.Uniform(rng.At(seed, batchKey, rng.Hash(jobID)))*float64(len(m.Batches)))]
}

var (
	modelKey = rng.Hash("traces/profile/model")
	batchKey = rng.Hash("traces/profile/batch")
)

// pick maps u in [0, 1) to a model.
func (m *Mix) pick(u float64) *Model {
	if len(m.Weights) == 0 {
		return &m.Models[int(u*float64(len(m.Models)))]
	}
	sum := 0.0
	for _, w := range m.Weights {
		sum += w
	}
	u *= sum
	last := 0
	for i, w := range m.Weights {
		if w > 0 {
			last = i
			if u < w {
				break
			}
		}
		u -= w
	}
	return &m.Models[last]
}

// Find returns the model called name, or nil. It allocates nothing.
func (m *Mix) Find(name string) *Model {
	for i := range m.Models {
		if m.Models[i].Name == name {
			return &m.Models[i]
		}
	}
	return nil
}

// Names returns the names that Named accepts, sorted.
func Names() []string {
	var names []string
	for n := range mixes { // sorted below
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Named returns the mix called name, as a copy that the caller may change.
func Named(name string) (Mix, error) {
	m, ok := mixes[name]
	if !ok {
		return Mix{}, fmt.Errorf("model mix: got %q, want %s", name, nearest.OneOf(name, Names()))
	}
	m.Name = name
	m.Models, m.Weights, m.Batches = slices.Clone(m.Models), slices.Clone(m.Weights), slices.Clone(m.Batches)
	return m, nil
}

// Shared returns the mix called name, the same to all callers: they must not change it. Many environments that use one
// mix should use the same, because drawing from it reads what then stays in the processor's caches.
func Shared(name string) (*Mix, error) {
	if m, ok := shared.Load(name); ok {
		return m.(*Mix), nil
	}
	m, err := Named(name)
	if err != nil {
		return nil, err
	}
	first, _ := shared.LoadOrStore(name, &m)
	return first.(*Mix), nil
}

var shared sync.Map // *Mix by name
