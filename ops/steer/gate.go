package steer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"clustergym/live"
)

// promise is a start that the cluster has been asked for.
type promise struct {
	at       time.Time
	places   []live.Place // nil = the cluster chooses
	restarts int
}

// kept returns s with the starts that have been asked for, and without the jobs that are the cluster's own affair: the
// policy must not keep GPUs free for them.
func (l *loop) kept(s *live.Snapshot) *live.Snapshot {
	if len(l.promised)+len(l.unfit)+len(l.refused) == 0 {
		return s
	}
	t := *s
	t.Jobs = slices.Clone(s.Jobs)
	for i := range t.Jobs {
		if j := &t.Jobs[i]; j.State == live.Waiting && (l.unfit[j.ID] != "" || l.Mode == Gate && l.spared(j.ID)) {
			j.Blocked = "it is left to the cluster"
		}
	}
	room := map[string]int{} // GPUs of nodes that nobody holds, by what the cluster says
	for i := range s.Nodes {
		room[s.Nodes[i].Name] = s.Nodes[i].GPUs
	}
	for i := range s.Jobs {
		for _, p := range s.Jobs[i].Places {
			room[p.Node] -= p.GPUs
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.promised)) {
		p := l.promised[id]
		i, there := slices.BinarySearchFunc(t.Jobs, id, func(j live.Job, id string) int { return strings.Compare(j.ID, id) })
		if !there {
			delete(l.promised, id)
			continue
		}
		j := &t.Jobs[i]
		switch {
		case j.State == live.Running && j.Restarts == p.restarts &&
			slices.EqualFunc(j.Places, p.places, func(a, b live.Place) bool { return a.Node == b.Node && a.GPUs == b.GPUs }):
			j.Start = p.at // so that it does not seem to have started twice
		case j.State == live.Running || !j.Freed || j.Restarts != p.restarts:
			delete(l.promised, id)
		case len(p.places) == 0:
			j.Blocked = "it may start, and the cluster chooses where"
		// others have come in between
		case slices.ContainsFunc(p.places, func(x live.Place) bool { return room[x.Node] < x.GPUs }):
			delete(l.promised, id)
		default:
			for _, x := range p.places {
				room[x.Node] -= x.GPUs
			}
			j.State, j.Start, j.Places = live.Running, p.at, p.places
		}
	}
	if t.Check() != nil { // a node has gone
		clear(l.promised)
		return l.kept(s)
	}
	return &t
}

// free reports whether a waiting job is the cluster's own affair.
func (l *loop) free(j *live.Job) bool {
	return j.State != live.Waiting || j.GPUs < 1 || l.unfit[j.ID] != "" || l.spared(j.ID)
}

// hold holds back the jobs that have come. It reports whether it has changed anything.
func (l *loop) hold(ctx context.Context, s *live.Snapshot) (bool, error) {
	var actions []live.Action
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if l.free(j) || j.Ours || j.Blocked != "" {
			continue
		}
		if p := l.promised[j.ID]; j.Freed && p != nil && (s.At.Sub(p.at) <= l.Grace || l.overdue(j, p)) {
			continue
		}
		delete(l.promised, j.ID)
		actions = append(actions, live.Action{Op: live.HoldJob, Job: j.ID})
	}
	written, err := l.act(ctx, s, actions)
	return len(written) > 0, err
}

// start lets the jobs start that the policy has chosen.
func (l *loop) start(ctx context.Context, s *live.Snapshot, starts []Start) error {
	v := l.policy.Env.View()
	var actions []live.Action
	by := map[string][]live.Place{}
	for _, x := range starts {
		id := v.Trace(x.Job).ID
		j := s.Job(id)
		if j == nil || j.State != live.Waiting || !j.Ours && !l.DryRun {
			continue
		}
		nodes := names(l.places(x))
		if j.Anywhere {
			nodes = nil
		}
		if why := forbids(s, j, nodes); why != "" {
			l.remark(fmt.Sprintf("%s was to start on %s, but %s; the cluster chooses", id, strings.Join(nodes, ","), why))
			nodes = nil
		}
		if r := l.refused[id]; l.late[id] > 0 || r != nil && r.op == live.StartJob { // it may be the nodes
			nodes = nil
		}
		if by[id] = nil; nodes != nil || j.Anywhere { // its GPUs are not given out twice, wherever they turn out to be
			by[id] = l.places(x)
		}
		actions = append(actions, live.Action{Op: live.StartJob, Job: id, Nodes: nodes})
	}
	for i := range s.Jobs { // what the policy is not asked about is not held back
		j := &s.Jobs[i]
		if !j.Ours || j.State != live.Waiting || j.Blocked != "" {
			continue
		}
		if r := l.refused[j.ID]; r != nil && r.op == live.ReleaseJob && l.spared(j.ID) {
			continue
		}
		if _, known := v.Find(j.ID); !known {
			if l.unfit[j.ID] == "" && !l.spared(j.ID) {
				l.unfit[j.ID] = unseen
			}
			actions = append(actions, live.Action{Op: live.ReleaseJob, Job: j.ID})
		}
	}
	written, err := l.act(ctx, s, actions)
	for _, a := range written {
		if a.Op == live.StartJob {
			l.promised[a.Job] = &promise{at: s.At, places: by[a.Job], restarts: s.Job(a.Job).Restarts}
		}
	}
	return err
}

// forbids says why a job may not run on nodes; "" = it may.
func forbids(s *live.Snapshot, j *live.Job, nodes []string) string {
	for _, n := range nodes {
		i := slices.IndexFunc(s.Nodes, func(x live.Node) bool { return x.Name == n })
		switch {
		case len(j.Nodes) > 0 && !slices.Contains(j.Nodes, n):
			return "its owner wants " + strings.Join(j.Nodes, ",")
		case slices.Contains(j.Excluded, n):
			return "its owner excludes " + n
		case i >= 0 && s.Nodes[i].VCs != nil && j.VC != "" && !slices.Contains(s.Nodes[i].VCs, j.VC):
			return n + " does not belong to " + j.VC
		}
	}
	return ""
}

// places returns where a start is to be, in order of node.
func (l *loop) places(x Start) (places []live.Place) {
	for _, g := range x.GPUs {
		n := l.mirror.Node(g)
		i := slices.IndexFunc(places, func(p live.Place) bool { return p.Node == n })
		if i < 0 {
			i, places = len(places), append(places, live.Place{Node: n})
		}
		places[i].GPUs++
	}
	slices.SortFunc(places, func(a, b live.Place) int { return strings.Compare(a.Node, b.Node) })
	return places
}

func names(places []live.Place) (list []string) {
	for i := range places {
		list = append(list, places[i].Node)
	}
	return list
}
