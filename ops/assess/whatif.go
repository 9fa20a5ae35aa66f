package assess

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/internal/hostlist"
	"clustergym/internal/par"
	"clustergym/internal/plain"
	"clustergym/ops/incumbent"
	"clustergym/simulator/cluster"
	"clustergym/simulator/policyname"
	"clustergym/traces"
)

// whatIf is a question.
type whatIf struct {
	name  string
	past  *incumbent.Past
	model incumbent.Model // "" = the best one is not asked
	best  bool            // the best rival is asked as well
}

// whatIfs plays changed clusters and limits.
func (a *assessor) whatIfs() error {
	asked, err := a.questions()
	if err != nil {
		return err
	}
	at := a.bestOf()
	type play struct{ of, who int }
	var plays []play
	for i := range asked {
		plays = append(plays, play{i, 0})
		if asked[i].best && at >= 0 {
			plays = append(plays, play{i, 1})
		}
	}
	all := rivals(a.past.HasLimits())
	got := make([]*incumbent.Schedule, len(plays))
	count := &counted{all: len(plays), what: "asking what if", tell: a.opt.Progress}
	err = par.For(a.ctx, a.opt.Workers, len(plays), func(_, i int) (err error) {
		q := &asked[plays[i].of]
		if plays[i].who == 0 {
			got[i], err = q.past.PlayModel(a.ctx, &q.model, a.opt.Placement)
		} else {
			got[i], err = a.play(q.past, &all[at-2])
		}
		count.add(q.name)
		return err
	})
	if err != nil {
		return err
	}
	out := make([]WhatIf, len(asked))
	for i, x := range plays {
		w := &out[x.of]
		waits := a.past.Waits(got[i])
		machine, err := cluster.New(asked[x.of].past.Spec)
		if err != nil {
			return err
		}
		w.GPUs, w.Never = machine.GPUs(), 0
		for k := range a.past.Jobs { // what the changed cluster cannot run is not compared
			if _, fits := machine.Request(&a.past.Jobs[k]); !fits {
				w.Never++
				waits[k] = a.model[k]
			}
		}
		e, _ := a.effect(fmt.Sprint("what if ", x.of, " ", x.who), waits)
		if w.Name = asked[x.of].name; x.who == 0 {
			w.Today = &e
		} else {
			w.Best = &e
		}
	}
	a.out.WhatIfs = out
	return nil
}

// questions returns what is asked. The first one adds GPUs.
func (a *assessor) questions() ([]whatIf, error) {
	var all []whatIf
	best := a.fitted[0].Model
	add := func(name string, spec cluster.Spec) error {
		p, err := a.past.With(spec, a.opt.Placement)
		if err == nil {
			all = append(all, whatIf{name, p, best, true})
		}
		return err
	}
	want := a.opt.GPUs
	if want <= 0 {
		want = max(1, a.out.Cluster.GPUs/10)
	}
	spec, added := larger(a.past.Spec, want)
	a.out.Head.Added = added
	if err := add(plain.Count(added, "more GPU", "more GPUs"), spec); err != nil {
		return nil, err
	}
	if spec, lost, what := smaller(a.past.Spec); lost > 0 {
		if err := add(fmt.Sprintf("%s fewer (%s)", plain.Count(lost, "GPU", "GPUs"), what), spec); err != nil {
			return nil, err
		}
	}
	if a.past.HasLimits() {
		p := a.past.Limited(func(j *traces.Job) time.Duration {
			if j.Estimate > j.Work {
				return j.Work + (j.Estimate-j.Work)/2
			}
			return j.Estimate
		})
		if best.NeedsLimits() {
			all = append(all, whatIf{"time limits twice as exact", p, best, false})
		}
		n := policyname.Of(best.Name)
		for _, deep := range []struct{ backfill, says string }{
			{"", "no job overtakes the first in line"}, {"easy", "gaps are filled behind the first in line (easy)"},
			{"conservative", "every waiting job has a reservation (conservative)"},
		} {
			name := n.Base + "+strict"
			if deep.backfill != "" {
				name += "+" + deep.backfill
			}
			m := incumbent.Model{Name: name, Apart: best.Apart, Placement: best.Placement}
			if best.Replayed() || n.Base == "" || n.Admission == "skip" || name == best.Name ||
				m.Reserves() && len(a.past.Jobs) > incumbent.MostReserved {
				continue
			}
			if _, err := incumbent.Rule(name, a.opt.Placement, incumbent.ByLimits); err != nil {
				continue
			}
			all = append(all, whatIf{deep.says, a.past, m, false})
		}
	}
	return all, nil
}

// larger adds about so many GPUs, as nodes of the commonest kind in a rack of their own, and returns how many.
func larger(spec cluster.Spec, gpus int) (cluster.Spec, int) {
	if spec.Pool > 0 {
		spec.Pool += gpus
		return spec, gpus
	}
	var common cluster.NodeSpec
	most := 0
	for _, r := range spec.Racks {
		for _, n := range r.Nodes {
			if k := r.Count.N() * n.Count.N() * n.GPUs; k > most {
				common, most = n, k
			}
		}
	}
	nodes := max(1, (gpus+common.GPUs/2)/max(1, common.GPUs))
	common.Count = cluster.Count(nodes)
	named := common.Names != nil
	if common.Names = nil; named {
		for i := range nodes {
			common.Names = append(common.Names, fmt.Sprintf("more%d", i+1))
		}
	}
	spec.Racks = append(slices.Clone(spec.Racks), cluster.RackSpec{Nodes: []cluster.NodeSpec{common}})
	spec.VCs = resized(spec.VCs, nodes)
	if at := widest(spec.VCs); at >= 0 && named {
		spec.VCs[at].Hosts = append(slices.Clone(spec.VCs[at].Hosts), hostlist.Compress(common.Names))
	}
	return spec, nodes * common.GPUs
}

// resized gives the virtual cluster that owns most nodes so many more. Without virtual clusters that own nodes nothing
// changes.
func resized(vcs []cluster.VCSpec, nodes int) []cluster.VCSpec {
	at := -1
	for i, v := range vcs {
		if v.Nodes > 0 && (at < 0 || v.Nodes > vcs[at].Nodes) {
			at = i
		}
	}
	vcs = slices.Clone(vcs)
	if at >= 0 {
		vcs[at].Nodes = max(1, vcs[at].Nodes+nodes)
	}
	return vcs
}

// widest returns the virtual cluster with the most hosts, −1 if none names any.
func widest(vcs []cluster.VCSpec) int {
	at, most := -1, 0
	for i, v := range vcs {
		hosts, err := hostlist.Expand(strings.Join(v.Hosts, ","))
		if err == nil && len(hosts) > most {
			at, most = i, len(hosts)
		}
	}
	return at
}

// smaller takes the last rack away, or where that is more than a quarter of the GPUs, a tenth of the nodes with GPUs
// from the end. It returns how many GPUs that is, 0 where it cannot be asked.
func smaller(spec cluster.Spec) (small cluster.Spec, lost int, what string) {
	if spec.Pool > 0 {
		lost = spec.Pool / 10
		spec.Pool -= lost
		return spec, lost, "a tenth of them"
	}
	racks, nodes, all := 0, 0, 0
	for _, r := range spec.Racks {
		racks += r.Count.N()
		for _, n := range r.Nodes {
			if n.GPUs > 0 {
				nodes += r.Count.N() * n.Count.N()
				all += r.Count.N() * n.Count.N() * n.GPUs
			}
		}
	}
	last := spec.Racks[len(spec.Racks)-1]
	inLast := 0
	for _, n := range last.Nodes {
		inLast += n.Count.N() * n.GPUs
	}
	if racks > 1 && inLast > 0 && 4*inLast <= all && len(spec.VCs) == 0 {
		small = spec
		small.Racks = slices.Clone(spec.Racks)
		if end := len(small.Racks) - 1; last.Count.N() > 1 {
			small.Racks[end].Count = cluster.Count(last.Count.N() - 1)
		} else {
			small.Racks = small.Racks[:end]
		}
		return small, inLast, "one rack"
	}
	if nodes < 2 {
		return spec, 0, ""
	}
	return withoutNodes(spec, max(1, nodes/10))
}

// withoutNodes takes so many nodes with GPUs from the end.
func withoutNodes(spec cluster.Spec, nodes int) (small cluster.Spec, lost int, what string) {
	what = plain.Count(nodes, "node", "nodes")
	small = spec
	small.VCs = resized(spec.VCs, -nodes)
	small.Racks = nil
	for _, r := range spec.Racks {
		for range r.Count.N() {
			one := r
			one.Count, one.Nodes = 1, slices.Clone(r.Nodes)
			small.Racks = append(small.Racks, one)
		}
	}
	gone := map[string]bool{}
	for i := len(small.Racks) - 1; i >= 0 && nodes > 0; i-- {
		r := &small.Racks[i]
		for k := len(r.Nodes) - 1; k >= 0 && nodes > 0; k-- {
			n := &r.Nodes[k]
			if n.GPUs == 0 {
				continue
			}
			take := min(nodes, n.Count.N())
			nodes, lost = nodes-take, lost+take*n.GPUs
			left := n.Count.N() - take
			if n.Names != nil {
				for _, name := range n.Names[left:] {
					gone[name] = true
				}
				n.Names = n.Names[:left]
			}
			if n.Count = cluster.Count(left); left == 0 {
				r.Nodes = slices.Delete(r.Nodes, k, k+1)
			}
		}
		if len(r.Nodes) == 0 {
			small.Racks = slices.Delete(small.Racks, i, i+1)
		}
	}
	for i := range small.VCs { // which name hosts
		v := &small.VCs[i]
		if v.Hosts == nil {
			continue
		}
		hosts, err := hostlist.Expand(strings.Join(v.Hosts, ","))
		hosts = slices.DeleteFunc(hosts, func(h string) bool { return gone[h] })
		if err != nil || len(hosts) == 0 || len(gone) == 0 {
			return spec, 0, ""
		}
		v.Hosts = []string{hostlist.Compress(hosts)}
	}
	return small, lost, what
}
