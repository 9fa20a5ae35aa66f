package rounds

import (
	"cmp"
	"slices"

	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// gandiva time-shares GPUs (Xiao et al., "Gandiva: introspective cluster scheduling for deep learning", OSDI 2018, as
// far as it is known here, with the one-minute slice of its model in Tiresias' simulator). Jobs start as they arrive,
// first come, first served, each one that fits. While jobs wait, all take turns: at the end of a minute those that
// have run go to the back of the queue in their previous order, and the queue is served from its front, stepping over
// gangs that do not fit. A job that is served again stays on its GPUs. Every ten minutes (Turns.Migrate) gangs that
// are spread over more nodes than they need are moved together, the most scattered first.
//
// Here a turn belongs to a gang, not to a set of GPUs with jobs of one size, so a job may resume elsewhere. Two jobs
// are never packed on one GPU, because in this simulator a gang's share of its GPUs is part of what it asks for.
type gandiva struct {
	*rounds
	slice   int64
	migrate int64
	ends    int64 // of the turn; 0 = no job waits
	trip    int64 // when gangs are next moved together
	gather  cluster.Placement
	queue   []queue.Entry
	order   []place.Ask
	apart   []queue.Entry // scratch: scattered gangs
	nodes   []int32       // scratch
}

func (g *gandiva) reset(v *sim.View) {
	g.queue, g.ends, g.trip = g.queue[:0], 0, int64(v.Now())+g.migrate
}

func (g *gandiva) event(v *sim.View, e *sim.Event) {
	if e.Kind == sim.Submit && v.Request(e.Job).GPUs > 0 {
		g.queue = append(g.queue, queue.Entry{Pos: v.Pos(e.Job), Job: e.Job})
	}
}

func (g *gandiva) until(v *sim.View) (at int64) {
	if !busy(v, sim.Running) {
		return 0
	}
	if busy(v, sim.Waiting) {
		at = g.ends
	}
	if g.moves(v) && len(g.scattered(v)) > 0 && (at == 0 || g.trip < at) {
		at = g.trip
	}
	return at
}

func (g *gandiva) moves(v *sim.View) bool { return g.migrate > 0 && !v.Cluster().Pool() }

func (g *gandiva) decide(v *sim.View) error {
	now := int64(v.Now())
	over := g.ends > 0 && now >= g.ends
	waits, trip := busy(v, sim.Waiting), g.moves(v) && now >= g.trip
	if !waits {
		if g.ends = 0; !trip {
			return nil
		}
	}
	g.queue = slices.DeleteFunc(g.queue, func(e queue.Entry) bool {
		return v.Pos(e.Job) != e.Pos || v.State(e.Job) != sim.Waiting && v.State(e.Job) != sim.Running
	})
	over = over && waits
	if over {
		slices.SortStableFunc(g.queue, func(a, b queue.Entry) int { return cmp.Compare(runs(v, a.Job), runs(v, b.Job)) })
	}
	g.Begin(v, func(sim.Job) bool { return over })
	g.order = g.order[:0]
	for _, e := range g.queue {
		if over || v.State(e.Job) == sim.Waiting {
			g.order = append(g.order, place.Gang(v, e.Job))
		}
	}
	g.PutAll(v, g.order)
	switch {
	case len(g.order) == 0 || !slices.ContainsFunc(g.order, func(a place.Ask) bool { return !g.HasPlace(a.Job) }):
		g.ends = 0
	case over || g.ends == 0:
		g.ends = now + g.slice
	}
	if trip {
		g.trip = now + g.migrate
		g.together(v)
	}
	return nil
}

func runs(v *sim.View, j sim.Job) int {
	if v.State(j) == sim.Running {
		return 1
	}
	return 0
}

// scattered returns the running gangs on more than one node. The key is minus the number of nodes.
func (g *gandiva) scattered(v *sim.View) []queue.Entry {
	g.apart = g.apart[:0]
	for _, j := range v.Running() {
		if n := g.spread(v.Cluster(), v.GPUs(j)); n > 1 {
			g.apart = append(g.apart, queue.Entry{Key: -float64(n), Pos: v.Pos(j), Job: j})
		}
	}
	return g.apart
}

// spread returns the number of nodes of gpus.
func (g *gandiva) spread(c *cluster.Cluster, gpus []cluster.GPU) int {
	if len(gpus) < 2 {
		return len(gpus)
	}
	g.nodes = g.nodes[:0]
	for _, p := range gpus {
		g.nodes = append(g.nodes, int32(c.NodeOf(p)))
	}
	slices.Sort(g.nodes)
	return len(slices.Compact(g.nodes))
}

// together moves gangs that would occupy fewer nodes elsewhere. Gangs whose turn ends or begins now stay.
func (g *gandiva) together(v *sim.View) {
	list := g.scattered(v)
	slices.SortFunc(list, func(a, b queue.Entry) int { return cmp.Or(cmp.Compare(a.Key, b.Key), a.Pos-b.Pos) })
	for _, e := range list {
		if v.Started(e.Job) < v.Now() {
			g.MoveIf(v, e.Job, g.gather, func(gpus []cluster.GPU) bool { return g.spread(v.Cluster(), gpus) < int(-e.Key) })
		}
	}
}
