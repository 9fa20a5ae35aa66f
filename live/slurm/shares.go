package slurm

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/live"
)

// shares are what jobs have of GPUs that they divide: gres/shard, gres/mps.
type shares struct {
	kind string // of the GPUs; "" = not told
	n    int
	on   []int // GPUs, by number; nil = not told
}

// parseShares reads the shares of a list of generic resources: shard:h100:10(4/4,4/4,2/4,0/4), where the first numbers
// are what is taken of each GPU; mps:50(IDX:1); gres/shard=10.
func parseShares(s string) (all []shares) {
	for item := range splitGres(s) {
		parts, detail := gresParts(item)
		if parts[0] != "shard" && parts[0] != "mps" {
			continue
		}
		x := shares{n: 1}
		if last := len(parts) - 1; last > 0 {
			if n, err := strconv.ParseUint(parts[last], 10, 30); err == nil {
				x.n, parts = int(n), parts[:last]
			}
			x.kind = strings.Join(parts[1:], ":")
		}
		if index, found := strings.CutPrefix(detail, "IDX:"); found {
			x.on, _ = parseIndex(index) // nil for N/A
		} else if strings.Contains(detail, "/") {
			x.on = []int{}
			for k, part := range strings.Split(detail, ",") {
				taken, _, _ := strings.Cut(part, "/")
				if n, err := strconv.ParseUint(strings.TrimSpace(taken), 10, 30); err == nil && n > 0 {
					x.on = append(x.on, k)
				}
			}
		}
		all = append(all, x)
	}
	return all
}

// sharer is a job that has shares of a machine's GPUs.
type sharer struct {
	shares
	job   string
	start time.Time
	until time.Time // by its time limit; zero = it has none
}

// divided is a machine whose GPUs are divided.
type divided struct {
	each int // shares of one GPU
	used []int
	by   []sharer
}

// divide notes that a machine's GPUs are divided.
func (b *builder) divide(m *machine, gpus int) {
	total := 0
	for _, x := range parseShares(m.gres) {
		total = max(total, x.n)
	}
	if total == 0 || gpus == 0 {
		return
	}
	d := &divided{each: max(1, total/gpus)}
	for _, x := range parseShares(m.used) {
		if x.n > 0 {
			d.used = append(d.used, x.on...)
		}
	}
	slices.Sort(d.used)
	d.used = slices.Compact(d.used)
	b.divided[m.name] = d
}

// sharing notes the shares that a job has on a machine, one of so many.
func (b *builder) sharing(r *record, j *live.Job, h, detail string, hosts int) {
	d := b.divided[h]
	if d == nil {
		return
	}
	all := parseShares(detail)
	if len(all) == 0 {
		for _, text := range []string{r.alloc, r.perNode, r.perJob, r.perTask} {
			if all = parseShares(text); len(all) > 0 {
				if text != r.perNode {
					all[0].n = (all[0].n + hosts - 1) / hosts
				}
				all = all[:1]
				break
			}
		}
	}
	for _, x := range all {
		if x.n < 1 {
			continue
		}
		s := sharer{shares: x, job: j.ID, start: at(r.start)}
		if r.limit > 0 {
			s.until = s.start.Add(r.limit)
		}
		d.by = append(d.by, s)
	}
}

// later orders jobs by how long they may keep a GPU, longest first; jobs without a limit come before all others.
func later(a, b *sharer) int {
	if a.until.IsZero() != b.until.IsZero() {
		if a.until.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(b.until.Compare(a.until), a.start.Compare(b.start), cmp.Compare(a.job, b.job))
}

// shareOut gives each GPU with a taken share whole to one of the jobs that share it, because a snapshot has no shares
// and no other job can have the GPU until all of them have ended. The job with the latest time limit gets it. The other
// jobs of the GPU hold no GPU.
func (b *builder) shareOut() {
	if len(b.divided) == 0 {
		return
	}
	place := map[string]int{} // of jobs, by ID
	for i := range b.Jobs {
		place[b.Jobs[i].ID] = i
	}
	taken := map[string]map[int]bool{} // by machine: GPUs that jobs hold whole
	whole := map[string]int{}
	for i := range b.Jobs {
		for _, p := range b.Jobs[i].Places {
			h := host(p.Node)
			if b.divided[h] == nil {
				continue
			}
			if taken[h] == nil {
				taken[h] = map[int]bool{}
			}
			whole[p.Node] += p.GPUs
			for _, k := range p.Index {
				taken[h][k] = true
			}
		}
	}
	for _, h := range slices.Sorted(maps.Keys(b.divided)) {
		d := b.divided[h]
		slices.SortStableFunc(d.by, func(a, b sharer) int { return later(&a, &b) })
		owner := map[int]int{} // sharer by GPU
		has := map[int]bool{}  // GPUs of which shares are known to be taken
		own := func(gpu, by int) {
			if has[gpu] = true; !taken[h][gpu] {
				if old, there := owner[gpu]; !there || by < old {
					owner[gpu] = by
				}
			}
		}
		for i := range d.by {
			for _, k := range d.by[i].on {
				own(k, i)
			}
		}
		total, _ := count(b.gpus[h])
		for i := range d.by { // jobs whose GPUs are unknown: first on GPUs with taken shares of no known job
			if len(d.by[i].on) > 0 {
				continue
			}
			need := (d.by[i].n + d.each - 1) / d.each
			for _, gpus := range [][]int{d.used, numbers(total)} {
				for _, k := range gpus {
					if need > 0 && !has[k] && !taken[h][k] {
						own(k, i)
						need--
					}
				}
				if len(d.used) > 0 {
					break // on GPUs that others have shares of, too
				}
			}
		}
		for _, k := range d.used {
			if !has[k] && len(d.by) > 0 {
				own(k, 0)
			}
		}
		b.give(h, d, owner, whole, place)
	}
}

// give writes the GPUs of a machine into the places of their owners.
func (b *builder) give(h string, d *divided, owner map[int]int, whole map[string]int, place map[string]int) {
	kinds := b.gpus[h]
	for i := range d.by {
		s := &d.by[i]
		at, there := place[s.job]
		if !there {
			continue
		}
		kind := s.kind
		if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(g gpus) bool { return g.kind == kind }) {
			kind = kinds[0].kind
		}
		name := b.share(nodeName(h, kinds, kind))
		room := 0
		if k := slices.IndexFunc(kinds, func(g gpus) bool { return g.kind == kind }); k >= 0 {
			room = kinds[k].n - whole[name]
		}
		var index []int
		for _, gpu := range slices.Sorted(maps.Keys(owner)) {
			if owner[gpu] == i && len(index) < room {
				index = append(index, gpu)
			}
		}
		if len(index) == 0 {
			continue
		}
		j := &b.Jobs[at]
		j.GPUs += len(index)
		whole[name] += len(index)
		b.whole[h] += len(index)
		k := slices.IndexFunc(j.Places, func(p live.Place) bool { return p.Node == name || p.Node == h && p.GPUs == 0 })
		if k < 0 {
			k, j.Places = len(j.Places), append(slices.Clip(j.Places), live.Place{})
		}
		p := &j.Places[k]
		p.Node, p.GPUs, p.Index = name, p.GPUs+len(index), append(slices.Clip(p.Index), index...)
		slices.Sort(p.Index)
		if len(p.Index) != p.GPUs || len(kinds) > 1 {
			p.Index = nil
		}
	}
}

// numbers returns the numbers below n.
func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
