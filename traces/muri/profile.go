package muri

import (
	"cmp"
	"slices"
	"time"

	"clustergym/traces"
)

// stages holds the time of one iteration alone on the job's GPUs, and the parts of it spent on the GPU and the network.
type stages struct{ iteration, gpu, network time.Duration }

// profiles are the profiles of the models with their batch sizes, built from the first row of each number of GPUs.
type profiles map[kind]*measured

type kind struct {
	model string
	batch int // examples on each GPU
}

type measured struct {
	profile traces.Profile
	sizes   []size
}

type size struct {
	gpus   int
	stages stages
}

// add gives j the profile of its model and batch size, which is complete after finish.
func (p profiles) add(j *traces.Job, s stages) {
	k := kind{j.Model, j.Batch / j.GPUs}
	m := p[k]
	if m == nil {
		m = &measured{profile: traces.Profile{Name: j.Model}}
		p[k] = m
	}
	j.Profile = &m.profile
	if !slices.ContainsFunc(m.sizes, func(s size) bool { return s.gpus == j.GPUs }) {
		m.sizes = append(m.sizes, size{j.GPUs, s})
	}
}

func (p profiles) finish() {
	for _, m := range p { // independent of each other, so order does not matter
		slices.SortFunc(m.sizes, func(a, b size) int { return cmp.Compare(a.gpus, b.gpus) })
		least := m.sizes[0].stages
		m.profile.Compute = max(least.iteration-least.network, least.gpu)
		for _, z := range m.sizes {
			m.profile.Scaling = append(m.profile.Scaling,
				traces.ScalePoint{GPUs: z.gpus, Throughput: float64(z.gpus) / z.stages.iteration.Seconds()})
		}
	}
}
