package muri

import (
	"cmp"
	"slices"

	"clustergym/traces"
)

// setProfiles gives every job the profile of its model and batch size, built from the first row of each size.
func setProfiles(rows []row) {
	type key struct {
		model string
		batch int // examples on each GPU
	}
	type size struct {
		gpus   int
		stages Stages
	}
	sizes := map[key][]size{}
	profiles := map[key]*traces.Profile{}
	for i := range rows {
		j := &rows[i].job
		k := key{j.Model, j.Batch / j.GPUs}
		if profiles[k] == nil {
			profiles[k] = &traces.Profile{Name: j.Model}
		}
		j.Profile = profiles[k]
		if !slices.ContainsFunc(sizes[k], func(s size) bool { return s.gpus == j.GPUs }) {
			sizes[k] = append(sizes[k], size{j.GPUs, rows[i].stages})
		}
	}
	for k, p := range profiles { // independent of each other, so order does not matter
		s := sizes[k]
		slices.SortFunc(s, func(a, b size) int { return cmp.Compare(a.gpus, b.gpus) })
		p.Compute = max(s[0].stages.Iteration-s[0].stages.Network, s[0].stages.GPU)
		for _, z := range s {
			p.Scaling = append(p.Scaling, traces.ScalePoint{GPUs: z.gpus, Throughput: float64(z.gpus) / z.stages.Iteration.Seconds()})
		}
	}
}
