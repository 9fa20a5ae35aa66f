package profile

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"clustergym/traces"
)

// Table holds measurements of models: throughput by GPU type, number of GPUs and nodes, how much throughput two models
// keep on one GPU, sizes of gradients. Methods for something that the table does not have return false.
//
// A model that was measured with several batch sizes is several models, with names such as "ResNet-18 (batch size 64)".
// The part before the parenthesis is a base name for all of them; each method says which one it then takes. A Table
// does not change after Load; its methods are safe for concurrent use.
type Table struct {
	types  []string
	models []*model // by base name, batch size and name
	byName map[string]*model
	byBase map[string][]*model // in the order of models
	kept   map[pair]float64

	mu       sync.Mutex
	profiles map[profileKey]*traces.Profile
	given    map[*traces.Profile]profileKey // inverse of profiles
}

// model is one model with one batch size.
type model struct {
	name, base string
	batch      int // examples in a batch on all GPUs together; 0 = the table has no batch sizes
	on         []*measured
	relative   []point // throughput kept by number of nodes, for tables that have only that
	gradient   int64
	mem        int64
	skewed     bool
	iterations int64 // to the end of the training, 0 = not known
}

// measured is a model on one type of GPU.
type measured struct {
	gpu    string
	points []point
	curve  []traces.ScalePoint // of the points on the fewest nodes
}

// point is a throughput in iterations a second.
type point struct {
	gpus, nodes int // nodes 0 = spread over an unknown number of nodes
	rate        float64
}

type pair struct{ victim, other *model }

// named returns the name of a model with a batch size, in Gavel's spelling.
func named(base string, batch int) string { return base + " (batch size " + strconv.Itoa(batch) + ")" }

// baseOf returns the name without the parentheses after it.
func baseOf(name string) string {
	base, _, _ := strings.Cut(name, " (")
	return base
}

// batchOf returns the batch size in a name that ends in "(batch size N)", else 0.
func batchOf(name string) int {
	_, s, _ := strings.Cut(name, " (batch size ")
	s, ok := strings.CutSuffix(s, ")")
	n, err := strconv.Atoi(s)
	if !ok || err != nil || n < 1 || n > maxBatch {
		return 0
	}
	return n
}

// Models returns the names of all models, sorted by base name and batch size.
func (t *Table) Models() []string {
	names := make([]string, len(t.models))
	for i, m := range t.models {
		names[i] = m.name
	}
	return names
}

// Types returns the types of GPUs on which throughput was measured, sorted.
func (t *Table) Types() []string { return slices.Clone(t.types) }

// Type returns the table's own spelling of a type of GPU. It ignores case, and "" stands for the only type of a table
// with one type. ok is false if the table has no such type.
func (t *Table) Type(name string) (own string, ok bool) {
	if name == "" && len(t.types) == 1 {
		return t.types[0], true
	}
	for _, s := range t.types {
		if s == name {
			return s, true
		}
	}
	i := slices.IndexFunc(t.types, func(s string) bool { return strings.EqualFold(s, name) })
	if i < 0 {
		return "", false
	}
	return t.types[i], true
}

// Throughput returns a model's throughput on gpus GPUs of one type, consolidated. It is linear between two measured
// numbers of GPUs; ok is false below the smallest and above the largest of them. A base name stands for the batch size
// that Work takes.
func (t *Table) Throughput(model, gpuType string, gpus int) (itersPerSecond float64, ok bool) {
	gpu, ok := t.Type(gpuType)
	if !ok {
		return 0, false
	}
	m := t.pick(model, 0, gpus, gpu)
	if m == nil {
		return 0, false
	}
	return m.rate(gpu, gpus)
}

// Spread returns the part of its throughput, in (0, 1], that a gang of gpus GPUs keeps when it is spread over nodes. It
// takes the measurement for the largest number of nodes that does not exceed nodes, or the one for "spread" if the
// table only has that. Noise above 1 counts as 1. A table without throughputs (Chronus) has no types and ignores
// gpuType.
func (t *Table) Spread(model, gpuType string, gpus, nodes int) (kept float64, ok bool) {
	gpu, typed := t.Type(gpuType)
	m := t.pick(model, 0, gpus, gpu)
	if m == nil || nodes < 1 || nodes > gpus {
		return 0, false
	}
	points, alone := m.relative, 1.0
	if len(m.on) > 0 {
		if !typed || m.find(gpu) == nil {
			return 0, false
		}
		i, found := m.find(gpu).at(gpus)
		if !found {
			return 0, false
		}
		points, alone = m.find(gpu).points, m.find(gpu).curve[i].Throughput
	}
	for _, p := range points { // those with more nodes come later, those with an unknown number last
		if p.gpus == gpus && p.nodes <= nodes && (p.nodes > 0 || nodes > 1) {
			kept, ok = min(1, p.rate/alone), true
			if nodes == 1 {
				break
			}
		}
	}
	return kept, ok
}

// Kept returns the part of its throughput, in (0, 1], that victim keeps while it shares a GPU with other. It is the
// mean over all measurements: GPU types, repetitions and, for a base name, batch sizes. A name whose batch size was not
// measured stands for its base name. Noise above 1 counts as 1.
func (t *Table) Kept(victim, other string) (float64, bool) {
	sum, n := 0.0, 0
	for _, v := range t.all(victim) {
		for _, o := range t.all(other) {
			if k, ok := t.kept[pair{v, o}]; ok {
				sum += k
				n++
			}
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// all returns the models that a name stands for.
func (t *Table) all(name string) []*model {
	if m := t.byName[name]; m != nil {
		return []*model{m}
	}
	if all := t.byBase[name]; all != nil {
		return all
	}
	return t.byBase[baseOf(name)]
}

// pick returns the model of that name and batch size (0 = not given), or nil. If the name leaves the batch size open,
// pick takes the one with the shortest training on gpus GPUs of type gpu if the table knows how long a training is,
// else the smallest one measured there. If none was measured there, it chooses in the same way among those measured on
// fewer GPUs.
func (t *Table) pick(name string, batch, gpus int, gpu string) *model {
	if m := t.byName[name]; m != nil {
		if batch == 0 || m.batch == 0 || m.batch == batch {
			return m
		}
		return nil
	}
	var best, first *model
	for _, throughput := range [...]func(m *model, gpu string, gpus int) (float64, bool){(*model).rate, (*model).capped} {
		least := math.Inf(1)
		for _, m := range t.byBase[name] {
			if batch != 0 && m.batch != 0 && m.batch != batch {
				continue
			}
			if first == nil {
				first = m
			}
			if r, ok := throughput(m, gpu, gpus); ok {
				if time := float64(m.iterations) / r; time < least {
					best, least = m, time // all times are 0 if lengths are not known: the first model stays
				}
			}
		}
		if best != nil {
			return best
		}
	}
	return first
}

func (m *model) find(gpu string) *measured {
	for _, o := range m.on {
		if o.gpu == gpu {
			return o
		}
	}
	return nil
}

// rate returns what Throughput documents.
func (m *model) rate(gpu string, gpus int) (float64, bool) {
	o := m.find(gpu)
	if o == nil {
		return 0, false
	}
	i, found := o.at(gpus)
	if found {
		return o.curve[i].Throughput, true
	}
	if i == 0 || i == len(o.curve) {
		return 0, false
	}
	a, b := o.curve[i-1], o.curve[i]
	return a.Throughput + (b.Throughput-a.Throughput)*float64(gpus-a.GPUs)/float64(b.GPUs-a.GPUs), true
}

// capped is rate with gpus limited to the largest number measured.
func (m *model) capped(gpu string, gpus int) (float64, bool) {
	if o := m.find(gpu); o != nil && len(o.curve) > 0 {
		gpus = min(gpus, o.curve[len(o.curve)-1].GPUs)
	}
	return m.rate(gpu, gpus)
}

// at returns the index of gpus in the curve, or the index at which it would be inserted.
func (o *measured) at(gpus int) (i int, found bool) {
	return slices.BinarySearchFunc(o.curve, gpus, func(p traces.ScalePoint, n int) int { return cmp.Compare(p.GPUs, n) })
}

// finish sorts the points and builds the curve.
func (o *measured) finish() {
	slices.SortFunc(o.points, comparePoints)
	for _, p := range o.points {
		if n := len(o.curve); p.nodes > 0 && (n == 0 || o.curve[n-1].GPUs != p.gpus) {
			o.curve = append(o.curve, traces.ScalePoint{GPUs: p.gpus, Throughput: p.rate})
		}
	}
}

// comparePoints sorts by GPUs and nodes, an unknown number of nodes last.
func comparePoints(a, b point) int {
	nodes := func(p point) int {
		if p.nodes == 0 {
			return math.MaxInt
		}
		return p.nodes
	}
	return cmp.Or(cmp.Compare(a.gpus, b.gpus), cmp.Compare(nodes(a), nodes(b)))
}
