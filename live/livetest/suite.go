package livetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/live"
)

// Bench is a cluster that Suite may do with what it likes: at least two nodes that are up, with the same number of GPUs
// each, and no jobs. An adapter's tests make one of their own.
type Bench struct {
	// Cluster is what is tested.
	Cluster live.Cluster
	// Another returns the same cluster as another process would see it, which knows nothing of what Cluster has been asked
	// for.
	Another func(t *testing.T) live.Cluster
	// Submit hands in a job for so many GPUs that runs until Finish, and returns the ID that it has in snapshots. The
	// cluster has it when Submit returns.
	Submit func(t *testing.T, name string, gpus int) string
	// Finish ends a running job.
	Finish func(t *testing.T, id string)
	// Settle gives the cluster time until ok is true of a snapshot, which it returns. It ends the test if that does not
	// come.
	Settle func(t *testing.T, what string, ok func(*live.Snapshot) bool) *live.Snapshot
	// NoNodes says why these jobs start on no nodes of our choice, as where another program places them; "" = they do.
	NoNodes string
}

// Suite checks what every adapter must do. fresh makes an empty cluster for each claim. Claims about actions that Can
// excludes become the claim that such an action is refused and changes nothing.
func Suite(t *testing.T, fresh func(t *testing.T) *Bench) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"snapshots are consistent", (*suite).observes},
		{"ranks order the jobs that wait", (*suite).ranks},
		{"held jobs wait until they are released", (*suite).holds},
		{"jobs start on the nodes that were chosen", (*suite).starts},
		{"requeued jobs wait again", (*suite).requeues},
		{"jobs that have gone are told apart", (*suite).gone},
		{"a cancelled context changes nothing", (*suite).cancelled},
		{"each action has a result of its own", (*suite).results},
		{"another process finds what was done", (*suite).another},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Bench: fresh(t), ctx: context.Background()}
			caps, err := s.Cluster.Can(s.ctx)
			if err != nil {
				t.Fatalf("Can: %v", err)
			}
			s.caps = caps
			first := s.observe()
			for _, n := range first.Nodes {
				if !n.Down && n.GPUs > 0 {
					s.nodes = append(s.nodes, n.Name)
					s.size = n.GPUs
				}
			}
			if len(s.nodes) < 2 || len(first.Jobs) > 0 {
				t.Fatalf("%d nodes with GPUs are up and %d jobs are there, want two nodes and no job", len(s.nodes),
					len(first.Jobs))
			}
			c.run(s)
		})
	}
}

type suite struct {
	*testing.T
	*Bench
	ctx   context.Context
	caps  live.Caps
	nodes []string
	size  int // GPUs of each
}

func (s *suite) observe() *live.Snapshot {
	s.Helper()
	snap, err := s.Cluster.Observe(s.ctx)
	if err != nil {
		s.Fatalf("Observe: %v", err)
	}
	if err := snap.Check(); err != nil {
		s.Fatalf("Observe: %v", err)
	}
	return snap
}

// act asks for actions that must all be taken.
func (s *suite) act(actions ...live.Action) {
	s.Helper()
	results := s.Cluster.Act(s.ctx, actions)
	if len(results) != len(actions) {
		s.Fatalf("%d results of %d actions", len(results), len(actions))
	}
	for i, r := range results {
		if r.Err != nil {
			s.Fatalf("%v: %v", actions[i], r.Err)
		}
	}
}

// fill has a job on all GPUs.
func (s *suite) fill(name string) string {
	s.Helper()
	id := s.Submit(s.T, name, s.size*len(s.nodes))
	s.Settle(s.T, name+" fills the cluster", runs(id))
	return id
}

func runs(id string) func(*live.Snapshot) bool  { return is(id, live.Running) }
func waits(id string) func(*live.Snapshot) bool { return is(id, live.Waiting) }

func is(id string, state live.State) func(*live.Snapshot) bool {
	return func(s *live.Snapshot) bool { j := s.Job(id); return j != nil && j.State == state }
}

func (s *suite) observes() {
	a, b := s.Submit(s.T, "a", s.size), s.Submit(s.T, "b", 1)
	full := s.Submit(s.T, "c", s.size*len(s.nodes))
	snap := s.Settle(s.T, "a and b run, c waits",
		func(s *live.Snapshot) bool { return runs(a)(s) && runs(b)(s) && waits(full)(s) })
	if err := snap.Check(); err != nil {
		s.Error(err)
	}
	if snap.At.IsZero() || snap.Version == "" {
		s.Errorf("At %v, Version %q, want both", snap.At, snap.Version)
	}
	for id, want := range map[string]int{a: s.size, b: 1, full: s.size * len(s.nodes)} {
		j := snap.Job(id)
		if j.GPUs != want || j.Submit.IsZero() || j.Start.IsZero() != (id == full) || j.Ours || j.Freed || j.Blocked != "" ||
			j.Rank != 0 {
			s.Errorf("job %s: %+v, want %d GPUs and nothing done to it", id, j, want)
		}
		if id == full && j.Anywhere != (s.NoNodes != "") {
			s.Errorf("job %s: Anywhere is %v, and starts with nodes are refused: %q", id, j.Anywhere, s.NoNodes)
		}
	}
	again := s.observe()
	if len(again.Nodes) != len(snap.Nodes) || len(again.Jobs) != len(snap.Jobs) {
		s.Errorf("%d nodes and %d jobs, then %d and %d", len(snap.Nodes), len(snap.Jobs), len(again.Nodes), len(again.Jobs))
	}
	snap.Jobs[0].ID, snap.Nodes[0].Name = "changed", "changed"
	if s.observe().Nodes[0].Name == "changed" {
		s.Error("a snapshot is not its caller's own")
	}
	s.Finish(s.T, a)
	s.Settle(s.T, "a has ended", func(s *live.Snapshot) bool { return s.Job(a) == nil })
}

func (s *suite) ranks() {
	blocker := s.fill("blocker")
	var ids []string
	for i := range 3 {
		ids = append(ids, s.Submit(s.T, fmt.Sprintf("r%d", i), s.size*len(s.nodes)))
	}
	s.Settle(s.T, "all wait", func(snap *live.Snapshot) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !waits(id)(snap) })
	})
	actions := []live.Action{{Op: live.RankJob, Job: ids[0], Score: 10},
		{Op: live.RankJob, Job: ids[1], Score: live.MaxScore}, {Op: live.RankJob, Job: ids[2], Score: live.MaxScore / 2}}
	if s.caps.Rank != "" {
		s.refused(s.caps.Rank, actions...)
		return
	}
	s.act(actions...)
	snap := s.observe()
	for _, a := range actions {
		if got := snap.Job(a.Job).Rank; got != a.Score {
			s.Errorf("%v: the rank is %d", a, got)
		}
	}
	outside := []live.Action{
		{Op: live.RankJob, Job: ids[0], Score: -1}, {Op: live.RankJob, Job: ids[0], Score: live.MaxScore + 1},
	}
	for _, r := range s.Cluster.Act(s.ctx, outside) {
		if !errors.Is(r.Err, live.ErrUnsupported) {
			s.Errorf("a score out of range: %v, want ErrUnsupported", r.Err)
		}
	}
	for _, next := range []string{ids[1], ids[2], ids[0]} {
		s.Finish(s.T, blocker)
		s.Settle(s.T, next+" runs", runs(next))
		blocker = next
	}
}

// refused checks that actions fail and leave the jobs as they are.
func (s *suite) refused(why string, actions ...live.Action) {
	s.Helper()
	before := s.observe()
	for i, r := range s.Cluster.Act(s.ctx, actions) {
		if !errors.Is(r.Err, live.ErrUnsupported) && !errors.Is(r.Err, live.ErrDenied) {
			s.Errorf("%v: %v, want ErrUnsupported or ErrDenied since %q", actions[i], r.Err, why)
		}
	}
	after := s.observe()
	for _, a := range actions {
		if b, n := before.Job(a.Job), after.Job(a.Job); b == nil || n == nil || b.Rank != n.Rank || b.Ours != n.Ours ||
			b.Freed != n.Freed {
			s.Errorf("%v was refused; before %+v, after %+v", a, b, n)
		}
	}
}

func (s *suite) holds() {
	blocker := s.fill("blocker")
	held, free := s.Submit(s.T, "held", s.size), s.Submit(s.T, "free", s.size)
	s.Settle(s.T, "both wait", func(snap *live.Snapshot) bool { return waits(held)(snap) && waits(free)(snap) })
	if s.caps.Gate != "" {
		s.refused(s.caps.Gate, live.Action{Op: live.HoldJob, Job: held}, live.Action{Op: live.ReleaseJob, Job: free},
			live.Action{Op: live.StartJob, Job: free})
		return
	}
	for range 2 { // twice is once
		s.act(live.Action{Op: live.HoldJob, Job: held})
		if j := s.observe().Job(held); j == nil || j.State != live.Waiting || !j.Ours || j.Freed {
			s.Fatalf("held: %+v, want it to wait and Ours", j)
		}
	}
	s.Finish(s.T, blocker)
	snap := s.Settle(s.T, "free runs", runs(free))
	if j := snap.Job(held); j == nil || j.State != live.Waiting {
		s.Errorf("held: %+v, want it to wait though there is room", j)
	}
	s.act(live.Action{Op: live.ReleaseJob, Job: held})
	if j := s.observe().Job(held); j == nil || j.Ours {
		s.Fatalf("released: %+v, want it not to be Ours", j)
	}
	// Twice is once, unless it has started in the meantime.
	again := s.Cluster.Act(s.ctx, []live.Action{{Op: live.ReleaseJob, Job: held}})
	if j := s.observe().Job(held); j == nil || j.Ours || again[0].Err != nil && j.State != live.Running {
		s.Fatalf("released again: %v, %+v, want it not to be Ours", again[0].Err, j)
	}
	s.Settle(s.T, "held runs", runs(held))
}

func (s *suite) starts() {
	if why := cmp.Or(s.caps.Gate, s.NoNodes); why != "" {
		s.Skip(why)
	}
	blocker := s.fill("blocker")
	one, two, third := s.Submit(s.T, "one", 1), s.Submit(s.T, "two", 2), s.Submit(s.T, "any", 1)
	wide := s.Submit(s.T, "wide", s.size+s.size/2)
	all := []string{one, two, third, wide}
	s.Settle(s.T, "all wait", func(snap *live.Snapshot) bool {
		return !slices.ContainsFunc(all, func(id string) bool { return !waits(id)(snap) })
	})
	for _, id := range all {
		s.act(live.Action{Op: live.HoldJob, Job: id})
	}
	// The settled cluster has no pods or processes of the held jobs.
	s.Settle(s.T, "all are held", func(snap *live.Snapshot) bool {
		return !slices.ContainsFunc(all, func(id string) bool { j := snap.Job(id); return j == nil || !j.Ours })
	})
	first, last := s.nodes[0], s.nodes[len(s.nodes)-1]
	r := s.Cluster.Act(s.ctx, []live.Action{{Op: live.StartJob, Job: one, Nodes: []string{"no-such-node"}}})
	if !errors.Is(r[0].Err, live.ErrUnsupported) {
		s.Errorf("a node that is not there: %v, want ErrUnsupported", r[0].Err)
	}
	s.act(live.Action{Op: live.StartJob, Job: one, Nodes: []string{last}},
		live.Action{Op: live.StartJob, Job: two, Nodes: []string{first}})
	snap := s.observe()
	if j := snap.Job(one); j.State == live.Waiting && (!slices.Equal(j.Nodes, []string{last}) || !j.Freed || j.Ours) {
		s.Errorf("started: %+v, want Freed on %s and not Ours", j, last)
	}
	s.Finish(s.T, blocker)
	snap = s.Settle(s.T, "one and two run", func(snap *live.Snapshot) bool { return runs(one)(snap) && runs(two)(snap) })
	for id, want := range map[string]string{one: last, two: first} {
		if p := snap.Job(id).Places; len(p) != 1 || p[0].Node != want {
			s.Errorf("%s runs on %v, want %s", id, p, want)
		}
	}
	s.Finish(s.T, one)
	s.Finish(s.T, two)
	s.act(live.Action{Op: live.StartJob, Job: wide, Nodes: []string{first, last}})
	snap = s.Settle(s.T, "wide runs", runs(wide))
	for _, p := range snap.Job(wide).Places {
		if p.Node != first && p.Node != last {
			s.Errorf("wide runs on %v, want %s and %s", snap.Job(wide).Places, first, last)
		}
	}
	s.act(live.Action{Op: live.StartJob, Job: third})
	s.Settle(s.T, "any runs", runs(third))
}

func (s *suite) requeues() {
	id := s.Submit(s.T, "again", s.size)
	s.Settle(s.T, "it runs", runs(id))
	if s.caps.Requeue != "" {
		s.refused(s.caps.Requeue, live.Action{Op: live.RequeueJob, Job: id})
		return
	}
	s.act(live.Action{Op: live.RequeueJob, Job: id})
	snap := s.Settle(s.T, "it waits, or runs again", func(snap *live.Snapshot) bool {
		j := snap.Job(id)
		return j != nil && (j.State == live.Waiting || j.Restarts > 0)
	})
	if snap.Job(id).Ours {
		s.act(live.Action{Op: live.ReleaseJob, Job: id})
	}
	snap = s.Settle(s.T, "it runs again", runs(id))
	if j := snap.Job(id); j.Restarts == 0 {
		s.Errorf("%+v, want a restart", j)
	}
}

func (s *suite) gone() {
	id := s.Submit(s.T, "short", 1)
	s.Settle(s.T, "it runs", runs(id))
	for _, op := range []live.Op{live.RankJob, live.HoldJob, live.ReleaseJob, live.StartJob} {
		if s.excluded(op) {
			continue
		}
		if r := s.Cluster.Act(s.ctx, []live.Action{{Op: op, Job: id, Score: 1}}); !errors.Is(r[0].Err, live.ErrGone) {
			s.Errorf("%v of a job that runs: %v, want ErrGone", op, r[0].Err)
		}
	}
	if snap := s.observe(); snap.Job(id) == nil || snap.Job(id).State != live.Running {
		s.Error("the job does not run any more")
	}
	s.Finish(s.T, id)
	s.Settle(s.T, "it has ended", func(snap *live.Snapshot) bool { return snap.Job(id) == nil })
	for _, op := range []live.Op{live.RankJob, live.HoldJob, live.ReleaseJob, live.StartJob, live.RequeueJob} {
		if s.excluded(op) {
			continue
		}
		for _, id := range []string{id, strings.Replace(id, "short", "never", 1) + "0", "", "no/such\njob"} {
			if r := s.Cluster.Act(s.ctx, []live.Action{{Op: op, Job: id, Score: 1}}); !errors.Is(r[0].Err, live.ErrGone) {
				s.Errorf("%v of job %q, which has ended or never was: %v, want ErrGone", op, id, r[0].Err)
			}
		}
	}
}

func (s *suite) excluded(op live.Op) bool { return *excludes(&s.caps, op) != "" }

func (s *suite) cancelled() {
	blocker := s.fill("blocker")
	id := s.Submit(s.T, "waits", s.size)
	s.Settle(s.T, "it waits", waits(id))
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := s.Cluster.Observe(ctx); err == nil {
		s.Error("Observe after the context has ended: no error")
	}
	if _, err := s.Cluster.Can(ctx); err == nil {
		s.Error("Can after the context has ended: no error")
	}
	actions := []live.Action{{Op: live.HoldJob, Job: id}, {Op: live.RankJob, Job: id, Score: 5},
		{Op: live.RequeueJob, Job: blocker}}
	results := s.Cluster.Act(ctx, actions)
	if len(results) != len(actions) {
		s.Fatalf("%d results of %d actions", len(results), len(actions))
	}
	for i, r := range results {
		if r.Err == nil {
			s.Errorf("%v after the context has ended: no error", actions[i])
		}
	}
	snap := s.observe()
	if j := snap.Job(id); j == nil || j.Ours || j.Rank != 0 || !runs(blocker)(snap) {
		s.Errorf("%+v and %+v, want nothing changed", j, snap.Job(blocker))
	}
}

func (s *suite) results() {
	if r := s.Cluster.Act(s.ctx, nil); len(r) != 0 {
		s.Errorf("%d results of no actions", len(r))
	}
	s.fill("blocker")
	id := s.Submit(s.T, "waits", s.size)
	s.Settle(s.T, "it waits", waits(id))
	good := live.Action{Op: live.HoldJob, Job: id}
	if s.caps.Gate != "" {
		good = live.Action{Op: live.RankJob, Job: id, Score: 7}
	}
	if s.excluded(good.Op) {
		s.Skip("the cluster takes no action")
	}
	results := s.Cluster.Act(s.ctx,
		[]live.Action{{Op: good.Op, Job: "never-was"}, good, {Op: live.Op(200), Job: id}, good})
	if len(results) != 4 {
		s.Fatalf("%d results of 4 actions", len(results))
	}
	for i, want := range []error{live.ErrGone, nil, live.ErrUnsupported, nil} {
		if !errors.Is(results[i].Err, want) {
			s.Errorf("result %d: %v, want %v", i, results[i].Err, want)
		}
	}
	if j := s.observe().Job(id); !j.Ours && j.Rank != 7 {
		s.Errorf("%+v, want the good action done", j)
	}
}

func (s *suite) another() {
	if s.caps.Gate != "" {
		s.Skip(s.caps.Gate)
	}
	blocker := s.fill("blocker")
	held, pinned := s.Submit(s.T, "held", 1), s.Submit(s.T, "pinned", 1)
	s.Settle(s.T, "both wait", func(snap *live.Snapshot) bool { return waits(held)(snap) && waits(pinned)(snap) })
	s.act(live.Action{Op: live.HoldJob, Job: held}, live.Action{Op: live.HoldJob, Job: pinned})
	s.Settle(s.T, "both are held", func(snap *live.Snapshot) bool { return snap.Job(held).Ours && snap.Job(pinned).Ours })
	nodes := s.nodes[:1]
	if s.NoNodes != "" {
		nodes = nil
	}
	s.act(live.Action{Op: live.StartJob, Job: pinned, Nodes: nodes})

	s.Cluster = s.Another(s.T)
	snap := s.observe()
	if j := snap.Job(held); j == nil || !j.Ours {
		s.Errorf("held: %+v, want Ours", j)
	}
	if j := snap.Job(pinned); j == nil || j.Ours || !j.Freed || !slices.Equal(j.Nodes, nodes) {
		s.Errorf("pinned: %+v, want Freed on %s", j, nodes)
	}
	for _, j := range snap.Jobs {
		if j.State == live.Waiting && (j.Ours || j.Freed) {
			s.act(live.Action{Op: live.ReleaseJob, Job: j.ID})
		}
	}
	for _, j := range s.observe().Jobs {
		if j.Ours || j.Freed || len(j.Nodes) > 0 {
			s.Errorf("released: %+v, want nothing of ours on it", j)
		}
	}
	s.Finish(s.T, blocker)
	s.Settle(s.T, "both run", func(snap *live.Snapshot) bool { return runs(held)(snap) && runs(pinned)(snap) })
}
