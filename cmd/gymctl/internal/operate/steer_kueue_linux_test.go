package operate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/kubetest"
)

// kueueSteer is a Kubernetes whose queue is Kueue's.
type kueueSteer struct {
	kubeSteer
	kueue *Manager
	own   float64 // the mean wait of sixty Jobs without us
}

// TestKubernetesKueue runs gymctl steer against Kueue itself, an API server and a scheduler; make kubernetes builds
// them. The test plays the controller of Jobs and the kubelets, and time is the player's.
func TestKubernetesKueue(t *testing.T) {
	k := &kueueSteer{kubeSteer: *startKubeSteer(t)}
	k.kueue = startKueue(t, k.Cluster)
	k.kueue.AddQueue()
	t.Run("Kueue admits in order of submit", k.submitted)
	t.Run("rank reorders its queue", k.rank)
	t.Run("rank reorders a queue of the default kind", k.bestEffort)
	t.Run("after kill -9 the order stays, and ranks are taken back", k.killed)
	t.Run("what Kueue does to priorities", k.classes)
	t.Run("ranks that would stop running Workloads are refused", k.preempting)
	t.Run("gate holds and starts Workloads", k.gate)
}

// open lets Workloads in, and shut none.
func (k *kueueSteer) open() { k.kueue.SetQueue(kubetest.Tree{"stopPolicy": "None"}) }

func (k *kueueSteer) shut() { k.kueue.SetQueue(kubetest.Tree{"stopPolicy": "Hold"}) }

// sixty hands in all but the last of sixty Jobs of a node each, none of which is let in: twelve long ones first. Kueue
// tells their ages in seconds.
func (k *kueueSteer) sixty(t *testing.T, p *Player) {
	t.Helper()
	k.shut()
	for i := range 59 {
		if i < 12 {
			p.Submit(fmt.Sprintf("long-%02d", i), 8, 20, 10*time.Hour, Queued)
			continue
		}
		if i == 12 {
			k.queued(t, p, 12)
			last := time.Now()
			kubetest.Happens(t, "a second goes by", nil, func() bool { return time.Since(last) > time.Second })
		}
		p.Submit(fmt.Sprintf("short-%02d", i), 8, 1, 10*time.Minute, Queued)
	}
	k.queued(t, p, 59)
}

const lastOne = "short-59"

// last hands in one Job more, and waits until Kueue has seen it, and with it all that was written to Workloads before.
func (k *kueueSteer) last(t *testing.T, p *Player) {
	t.Helper()
	p.Submit(lastOne, 8, 1, 10*time.Minute, Queued)
	kubetest.Happens(t, "Kueue has said that the last one waits", p.Step, func() bool {
		w := p.InQueue()[lastOne]
		return w != nil && len(w.Status.Conditions) > 0
	})
}

// queued waits until Kueue has made a Workload for each of so many Jobs.
func (k *kueueSteer) queued(t *testing.T, p *Player, jobs int) {
	t.Helper()
	kubetest.Happens(t, fmt.Sprintf("Kueue has %d Workloads", jobs), p.Step,
		func() bool { return len(p.InQueue()) == jobs })
	if len(p.Started) > 0 {
		t.Fatalf("%v have started, and the queue is shut", p.Started)
	}
}

// ranks starts steer as rank.yaml does, and waits until all Workloads that wait have ranks.
func (k *kueueSteer) ranks(t *testing.T, p *Player, more ...string) *steering {
	t.Helper()
	r := k.run(t, k.Kubeconfig("rank", k.Token("steer-rank"), ""), manifestArgs(t, "rank", "steer-rank"),
		append([]string{"--namespace", p.Namespace, "--every", "1s"}, more...)...)
	kubetest.Happens(t, "all Workloads that wait have ranks", func() { p.Step(); runs(r) },
		func() bool { return len(unranked(p)) == 0 })
	return r
}

// runs ends the test if steer has ended.
func runs(r *steering) {
	r.t.Helper()
	select {
	case <-r.ended:
		r.t.Fatalf("it has ended: %s", r.says())
	default:
	}
}

// unranked returns the Jobs that wait and whose Workloads do not have the priority that a rank has written.
func unranked(p *Player) (names []string) {
	for name, w := range p.InQueue() {
		var r struct{ Wrote int32 }
		if err := json.Unmarshal([]byte(w.Metadata.Annotations["clustergym/rank"]), &r); !w.Holds("QuotaReserved") &&
			(err != nil || r.Wrote != w.Spec.Priority) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// priorities returns those of the Workloads, by the Job's name.
func priorities(p *Player) map[string]int32 {
	all := map[string]int32{}
	for name, w := range p.InQueue() {
		all[name] = w.Spec.Priority
	}
	return all
}

// inOrder reports a Job of the second kind that started before one of the first.
func inOrder(t *testing.T, p *Player, first, second string) {
	t.Helper()
	for a, at := range p.Started {
		for b, sooner := range p.Started {
			if strings.HasPrefix(a, first) && strings.HasPrefix(b, second) && sooner < at && a != lastOne {
				t.Fatalf("%s started at %d, %s at %d", a, at, b, sooner)
			}
		}
	}
}

func (k *kueueSteer) submitted(t *testing.T) {
	p := k.kueue.Queues(t, "unranked")
	k.sixty(t, p)
	k.last(t, p)
	k.open()
	play(t, p)
	inOrder(t, p, "long", "short")
	k.own = p.MeanWait()
	t.Logf("mean wait of 60 jobs on 4 nodes: %.1f as Kueue admits them", k.own)
}

func (k *kueueSteer) rank(t *testing.T) {
	inOrder(t, k.ranked(t, "rank"), "short", "long")
}

// bestEffort uses a queue as Kueue makes it by default, in which one Workload may overtake another: Kueue looks only
// once a second at those that it has tried in vain.
func (k *kueueSteer) bestEffort(t *testing.T) {
	k.kueue.SetQueue(kubetest.Tree{"queueingStrategy": "BestEffortFIFO"})
	defer k.kueue.SetQueue(kubetest.Tree{"queueingStrategy": "StrictFIFO"})
	k.ranked(t, "best-effort")
}

// ranked plays the queue in the order of ranks.
func (k *kueueSteer) ranked(t *testing.T, namespace string) *Player {
	t.Helper()
	p := k.kueue.Queues(t, namespace)
	k.sixty(t, p)
	r := k.ranks(t, p)
	k.last(t, p)
	k.open()
	play(t, p)
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	t.Logf("mean wait of 60 jobs on 4 nodes: %.1f, %.1f as Kueue admits them", p.MeanWait(), k.own)
	if p.MeanWait() >= k.own {
		t.Errorf("mean wait %.1f, and %.1f as Kueue admits them", p.MeanWait(), k.own)
	}
	return p
}

func (k *kueueSteer) killed(t *testing.T) {
	p := k.kueue.Queues(t, "killed")
	k.sixty(t, p)
	before := priorities(p)
	r := k.ranks(t, p, "--clear")
	_ = r.end(syscall.SIGTERM)
	if now := priorities(p); !maps.Equal(before, now) {
		t.Errorf("priorities %v after --clear, %v before", now, before)
	}
	r = k.ranks(t, p, "--lease", "30m", "--lease-file", filepath.Join(t.TempDir(), "lease")) // the guard waits
	_ = r.end(syscall.SIGKILL)
	k.last(t, p) // it gets no rank, and so comes after the long ones
	k.open()
	for range 6 {
		kubetest.Happens(t, "four jobs run", p.Step, p.Full)
		p.Tick()
	}
	kubetest.Happens(t, "four jobs run", p.Step, p.Full)
	for name := range p.Started {
		if !strings.HasPrefix(name, "short-") || name == lastOne {
			t.Errorf("%s is among the first 28 to start: %v", name, p.Started)
		}
	}
	if left := unranked(p); !slices.Equal(left, []string{lastOne}) {
		t.Errorf("%v have no ranks, want all but the last to have them", left)
	}
	k.releaseAll(t, p, "rank")
	before[lastOne] = 0
	for name, w := range p.InQueue() {
		if !w.Holds("QuotaReserved") && (w.Spec.Priority != before[name] || w.Metadata.Annotations["clustergym/rank"] != "") {
			t.Errorf("%s waits with priority %d after release-all, %d before, %v", name, w.Spec.Priority, before[name],
				w.Metadata.Annotations)
		}
	}
	play(t, p)
}

func (k *kueueSteer) releaseAll(t *testing.T, p *Player, mode string) {
	t.Helper()
	x := k.run(t, k.Kubeconfig(mode, k.Token("steer-"+mode), ""),
		[]string{"steer", "release-all", "--cluster", "kubernetes", "--namespace", p.Namespace})
	if code := x.end(nil); code != cli.ExitDone {
		t.Errorf("release-all: exit code %d: %s", code, x.says())
	}
}

// classes holds what Kueue does to priorities of classes of its own against what the documentation says of it.
func (k *kueueSteer) classes(t *testing.T) {
	p := k.kueue.Queues(t, "classes")
	k.shut()
	for name, value := range map[string]int{"team": 100, "urgent": 300} {
		k.Must("POST", KueueAPI+"/workloadpriorityclasses",
			kubetest.Tree{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
				"metadata": kubetest.Tree{"name": name}, "value": value}, nil)
	}
	class := func(job, name string) {
		k.Must("PATCH", kubetest.Batch+"/namespaces/"+p.Namespace+"/jobs/"+job,
			kubetest.Tree{"metadata": kubetest.Tree{"labels": kubetest.Tree{"kueue.x-k8s.io/priority-class": name}}}, nil)
	}
	for _, name := range []string{"long-0", "short-1", "none-2"} {
		p.Submit(name, 8, 1, map[bool]time.Duration{true: 10 * time.Hour, false: time.Minute}[name == "long-0"], Queued)
	}
	k.queued(t, p, 3)
	class("long-0", "team")
	class("short-1", "team")
	kubetest.Happens(t, "Kueue has written the priority of their class", p.Step, func() bool {
		return maps.Equal(priorities(p), map[string]int32{"long-0": 100, "short-1": 100, "none-2": 0})
	})
	above := func(x map[string]int32, low int32) bool {
		return 0 < x["none-2"] && x["none-2"] < low && low < x["long-0"] && x["long-0"] < x["short-1"]
	}
	r := k.ranks(t, p, "--lease", "30m", "--lease-file", filepath.Join(t.TempDir(), "lease")) // the guard waits
	kubetest.Happens(t, "ranks are above the class, in the policy's order", p.Step,
		func() bool { return above(priorities(p), 100) })
	_ = r.end(syscall.SIGKILL)
	ranked := priorities(p)

	// A start of Kueue writes the values of its classes anew.
	k.kueue.Kill()
	k.kueue.Revive()
	kubetest.Happens(t, "Kueue has written the priority of the class anew", p.Step, func() bool {
		return maps.Equal(priorities(p), map[string]int32{"long-0": 100, "short-1": 100, "none-2": ranked["none-2"]})
	})
	// A Job that changes its pods gets all of its Workload anew.
	k.Must("PATCH", kubetest.Batch+"/namespaces/"+p.Namespace+"/jobs/none-2",
		kubetest.Tree{
			"spec": kubetest.Tree{"template": kubetest.Tree{
				"spec": kubetest.Tree{"tolerations": []kubetest.Tree{{"key": "batch", "operator": "Exists"}}}}}}, nil)
	kubetest.Happens(t, "Kueue has written the whole Workload anew", p.Step,
		func() bool { return priorities(p)["none-2"] == 0 })
	r = k.ranks(t, p)

	// Changes of a class, and of a Job's class.
	k.Must("PATCH", KueueAPI+"/workloadpriorityclasses/team", kubetest.Tree{"value": 200}, nil)
	kubetest.Happens(t, "ranks are above the class's new value", p.Step, func() bool { return above(priorities(p), 200) })
	class("long-0", "urgent")
	kubetest.Happens(t, "the Job of a higher class is before the others, which stay below that class", p.Step,
		func() bool {
			x := priorities(p)
			return x["long-0"] > 300 && x["short-1"] > 200 && x["short-1"] < 300 && x["none-2"] > 0 && x["none-2"] < 200
		})
	_ = r.end(syscall.SIGTERM)
	k.releaseAll(t, p, "rank")
	if got, want := priorities(p), (map[string]int32{"long-0": 300, "short-1": 200, "none-2": 0}); !maps.Equal(got, want) {
		t.Errorf("priorities %v after release-all, want those of the classes, %v", got, want)
	}
	k.open()
	play(t, p)
}

func (k *kueueSteer) preempting(t *testing.T) {
	p := k.kueue.Queues(t, "preempting")
	k.kueue.SetQueue(kubetest.Tree{"preemption": kubetest.Tree{"withinClusterQueue": "LowerPriority"}})
	defer k.kueue.SetQueue(kubetest.Tree{"preemption": kubetest.Tree{"withinClusterQueue": "Never"}})
	r := k.run(t, k.Kubeconfig("rank", k.Token("steer-rank"), ""), manifestArgs(t, "rank", "steer-rank"), "--namespace",
		p.Namespace, "--cycles", "1")
	if code := r.end(nil); code != cli.ExitFailed ||
		!strings.Contains(r.says(), "ClusterQueue all stops running Workloads for waiting ones of higher priority") {
		t.Errorf("exit code %d: %s", code, r.says())
	}
}

// inactive returns the Jobs whose Workloads Kueue may not admit, or bear the mark of a hold.
func inactive(p *Player) (names []string) {
	for name, w := range p.InQueue() {
		if !w.Spec.Active || w.Metadata.Annotations["clustergym/held"] != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (k *kueueSteer) gate(t *testing.T) {
	p := k.kueue.Queues(t, "gate")
	k.sixty(t, p)
	k.last(t, p)
	cfg := k.Kubeconfig("gate", k.Token("steer-gate"), "")
	k.guarded(t, cfg, p.Namespace, "--lease", "5m")
	r := k.gating(t, cfg, p.Namespace, "--lease", "5m")
	kubetest.Happens(t, "the policy has started four, and holds the rest", p.Step,
		func() bool { return len(inactive(p)) == 56 })
	k.open()
	for range 3 {
		kubetest.Happens(t, "four jobs run", p.Step, p.Full)
		p.Tick()
	}
	kubetest.Happens(t, "four jobs run", p.Step, p.Full)
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if left := inactive(p); len(left) > 0 {
		t.Errorf("%v are held after the end: %s", left, r.says())
	}
	k.shut()
	r = k.gating(t, cfg, p.Namespace, "--lease", "5m")
	kubetest.Happens(t, "what waits is held again", p.Step, func() bool { return len(inactive(p)) == 60-16 })
	k.open()
	play(t, p)
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	for _, l := range r.lines() {
		for _, w := range l.Writes {
			if w.Error != "" {
				t.Errorf("%s: %s", w.Action, w.Error)
			}
		}
	}
	inOrder(t, p, "short", "long")
	t.Logf("mean wait of 60 jobs on 4 nodes: %.1f, %.1f as Kueue admits them", p.MeanWait(), k.own)
}
