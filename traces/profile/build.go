package profile

import (
	"cmp"
	"path/filepath"
	"slices"

	"clustergym/traces"
)

// builder collects the contents of a table's files.
type builder struct {
	models map[string]*model
	order  []*model
	shared map[pair]*mean
	pairs  []pair // in the order of the files, so that sums are the same to the last bit
	sia    []*application
	abs    func(path string) (string, error) // where a file lies
}

// mean is a running mean.
type mean struct {
	sum float64
	n   int
}

func newBuilder() *builder {
	return &builder{abs: filepath.Abs, models: map[string]*model{}, shared: map[pair]*mean{}}
}

// model returns the model called name, and creates it if it is new.
func (b *builder) model(name string, batch int) *model {
	m := b.models[name]
	if m == nil {
		m = &model{name: name, base: baseOf(name), batch: batch}
		b.models[name] = m
		b.order = append(b.order, m)
	}
	return m
}

// add records a throughput; it ignores 0. It returns false if there already is one for these GPUs and nodes.
func (m *model) add(gpu string, p point) bool {
	o := m.find(gpu)
	if o == nil {
		o = &measured{gpu: gpu}
		m.on = append(m.on, o)
	}
	for _, q := range o.points {
		if q.gpus == p.gpus && q.nodes == p.nodes {
			return false
		}
	}
	if p.rate > 0 {
		o.points = append(o.points, p)
	}
	return true
}

// keeps records one measurement of the throughput that victim keeps beside other; it ignores 0.
func (b *builder) keeps(victim, other *model, kept float64) {
	if kept <= 0 {
		return
	}
	p := pair{victim, other}
	if b.shared[p] == nil {
		b.shared[p] = &mean{}
		b.pairs = append(b.pairs, p)
	}
	b.shared[p].sum += kept
	b.shared[p].n++
}

// table returns the Table of what was collected.
func (b *builder) table() *Table {
	t := &Table{byName: b.models, byBase: map[string][]*model{}, kept: map[pair]float64{},
		profiles: map[profileKey]*traces.Profile{}, given: map[*traces.Profile]profileKey{}}
	t.models = b.order
	slices.SortFunc(t.models, func(x, y *model) int {
		return cmp.Or(cmp.Compare(x.base, y.base), cmp.Compare(x.batch, y.batch), cmp.Compare(x.name, y.name))
	})
	for _, m := range t.models {
		t.byBase[m.base] = append(t.byBase[m.base], m)
		m.on = slices.DeleteFunc(m.on, func(o *measured) bool { return len(o.points) == 0 })
		slices.SortFunc(m.on, func(x, y *measured) int { return cmp.Compare(x.gpu, y.gpu) })
		for _, o := range m.on {
			o.finish()
			t.types = append(t.types, o.gpu)
		}
		slices.SortFunc(m.relative, comparePoints)
	}
	slices.Sort(t.types)
	t.types = slices.Compact(t.types)
	for _, p := range b.pairs {
		t.kept[p] = min(1, b.shared[p].sum/float64(b.shared[p].n))
	}
	return t
}
