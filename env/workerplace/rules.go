package workerplace

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"clustergym/env/sched"
)

// Rule is a placement rule that schedulers are compared with. It knows what an agent sees, unless it says otherwise.
type Rule struct {
	sched.Rule
	// job compares waiting jobs of which both could be placed, negative = a goes first; nil = the one that waits longer.
	job func(e *Env, a, b *job) float64
	// server is the cost of the next worker of j on server m; the least is taken, of equal ones the first.
	server func(e *Env, j *job, m int) float64
	most   float64  // cost of a job's first server from which on the rule waits, 0 = it never does
	plan   *Planner // by the true speeds, which no agent sees
}

// Rules are the rules by name, in the order in which tables show them.
func Rules() []Rule {
	rule := func(name, about string) sched.Rule { return sched.Rule{Name: name, About: about} }
	random := rule("random", "any legal worker, and closes when nothing fits")
	oracle := rule("oracle",
		"the shortest job, each worker where all jobs together are fastest by their true speeds: knows what no agent knows")
	waits := rule("oracle-waits",
		"the same, of the jobs that add four tenths of their own speed alone to the sum of all, and waits where none does")
	random.Random, oracle.Knows, waits.Knows = true, true, true
	return []Rule{
		{Rule: random},
		{Rule: rule("load-balance",
			"the longest waiting job that fits, each worker on the server with most free GPUs and CPUs"),
			server: emptiest},
		{Rule: rule("tetris",
			"packing after Tetris: the job whose demand is most of what is free, "+
				"each worker on the fullest server that holds it"),
			job: func(e *Env, a, b *job) float64 { return e.alignment(b) - e.alignment(a) }, server: fullest},
		{Rule: rule("least-interference",
			"the longest waiting job that fits, each worker beside the fewest other jobs, of these on the fuller server"),
			server: fewest},
		{Rule: rule("sjf-least-interference", "the job that takes least alone, placed likewise"),
			job: shortest, server: fewest},
		{Rule: rule("sjf-waits", "the same, but it waits where that server has one and a half other jobs or more"),
			job: shortest, server: fewest, most: 1.5},
		{Rule: oracle, plan: &Planner{Wait: Never}},
		{Rule: waits, plan: &Planner{Wait: 0.4}},
	}
}

// RuleOf is the rule of a name.
func RuleOf(name string) (Rule, error) { return sched.FindRule(ID, name, Rules()) }

// NewRule returns an actor that plays the rule of a name in e alone.
func NewRule(name string, e *Env) (*sched.Actor, error) {
	r, err := RuleOf(name)
	if err != nil {
		return nil, err
	}
	return sched.NewActor(func(_ []bool, src *rand.Rand) (int32, error) { return r.Choose(e, src), nil }), nil
}

// Choose is the rule's action in the present state of e, which must have one. Only the random rule draws.
func (r *Rule) Choose(e *Env, src *rand.Rand) int32 {
	last := len(e.mask) - 1
	if r.Random {
		best, seen := last, 0
		for k, legal := range e.mask[:last] {
			if legal {
				if seen++; src.IntN(seen) == 0 {
					best = k
				}
			}
		}
		return int32(best)
	}
	if r.plan != nil {
		k, err := r.plan.Choose(e)
		if err != nil {
			panic(fmt.Sprintf("workerplace: rule %s by true speeds: %v", r.Name, err))
		}
		return k
	}
	slot := -1
	for s, id := range e.visible() {
		if !slices.Contains(e.mask[s*e.cfg.Servers:(s+1)*e.cfg.Servers], true) {
			continue
		}
		if slot < 0 || r.job != nil && r.job(e, &e.jobs[id], &e.jobs[e.waiting[slot]]) < 0 {
			slot = s
		}
	}
	if slot < 0 {
		return int32(last)
	}
	j := &e.jobs[e.waiting[slot]]
	best, least := -1, 0.0
	for m := range e.active {
		if !e.mask[slot*e.cfg.Servers+m] {
			continue
		}
		if c := r.server(e, j, m); best < 0 || c < least-1e-12 {
			best, least = m, c
		}
	}
	if r.most > 0 && least >= r.most && j.placed == 0 && e.mask[last] {
		return int32(last)
	}
	return int32(slot*e.cfg.Servers + best)
}

func shortest(_ *Env, a, b *job) float64 { return a.work - b.work }

// alignment is Tetris' score: demand by what is free, resource by resource.
func (e *Env) alignment(j *job) float64 {
	gpus, cpus := 0, 0
	for m := range e.active {
		gpus += e.free[m].gpus
		cpus += e.free[m].cpus
	}
	all := float64(e.active)
	return float64(j.workers*j.gpus)/(all*float64(e.cfg.GPUs))*float64(gpus)/(all*float64(e.cfg.GPUs)) +
		float64(j.workers*workerCPUs)/(all*float64(e.cfg.CPUs))*float64(cpus)/(all*float64(e.cfg.CPUs))
}

func (e *Env) freeShare(m int) float64 {
	return float64(e.free[m].gpus)/float64(e.cfg.GPUs) + float64(e.free[m].cpus)/float64(e.cfg.CPUs)
}

func emptiest(e *Env, _ *job, m int) float64 { return -e.freeShare(m) }

func fullest(e *Env, j *job, m int) float64 {
	// Of servers that hold the rest of the gang the fullest, else the one that holds most of it.
	if n := e.free[m].holds(j.gpus); n < j.workers-j.placed {
		return 1000 - float64(n)
	}
	return e.freeShare(m)
}

// fewest counts the other jobs on a server, by the shares of their workers.
func fewest(e *Env, j *job, m int) float64 {
	n := 0.0
	for _, id := range e.running {
		if o := &e.jobs[id]; o != j && o.on[m] > 0 {
			n += float64(o.on[m]) / float64(o.workers)
		}
	}
	return n + 0.01*e.freeShare(m)
}
