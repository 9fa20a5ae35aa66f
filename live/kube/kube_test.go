package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces/kube"
)

// small is a server with four nodes of eight GPUs and its controllers.
func small(t *testing.T) (*apiServer, *world) {
	s := newAPI(t)
	w := newWorld(t, Config{Server: s.URL}, "ml")
	w.schedules = true
	for i := range 4 {
		w.addNode(fmt.Sprintf("g%d", i))
	}
	return s, w
}

func newWorld(t *testing.T, cfg Config, namespace string) *world {
	t.Helper()
	cfg = cfg.withDefaults()
	c, err := newClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.agent = "controllers"
	return &world{t: t, c: c, namespace: namespace, reading: cfg.Reading}
}

func opened(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.patience = long
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func observed(t *testing.T, c *Cluster) *live.Snapshot {
	t.Helper()
	s, err := c.Observe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually observes until ok is true: the mirror follows the server in a moment.
func eventually(t *testing.T, c *Cluster, what string, ok func(*live.Snapshot) bool) *live.Snapshot {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < long; time.Sleep(time.Millisecond) {
		if s := observed(t, c); ok(s) {
			return s
		}
	}
	t.Fatalf("waited in vain: %s", what)
	return nil
}

// long is how long something may take on a machine that is busy with other things.
const long = 4 * time.Minute

func TestJobsMeetTheContract(t *testing.T) {
	livetest.Suite(t, func(t *testing.T) *livetest.Bench {
		s, w := small(t)
		w.t = t
		return w.bench(func(t *testing.T) *Cluster { return opened(t, Config{Server: s.URL}) })
	})
}

func TestWorkloadsOfKueueMeetTheContract(t *testing.T) {
	livetest.Suite(t, func(t *testing.T) *livetest.Bench {
		s, w := small(t)
		s.kueue = []string{"v1beta1"}
		w.queue = "gpus"
		b := w.bench(func(t *testing.T) *Cluster { return opened(t, Config{Server: s.URL}) })
		b.NoNodes = "Kueue chooses where its Workloads run"
		return b
	})
}

func TestListsComeInPagesAndWatchesGoOn(t *testing.T) {
	s, w := small(t)
	for i := range pageSize + 20 {
		w.submit(fmt.Sprintf("j%04d", i), 1, tree{"spec": tree{"suspend": true}, "metadata": tree{"labels": tree{gate: ""}}})
	}
	c := opened(t, Config{Server: s.URL})
	if n := len(observed(t, c).Jobs); n != pageSize+20 {
		t.Fatalf("%d jobs, want %d", n, pageSize+20)
	}
	id := w.submit("later", 2, nil)
	eventually(t, c, "the new job", func(s *live.Snapshot) bool { return s.Job(id) != nil })
	w.must(http.MethodDelete, w.jobPath("later"), nil, nil)
	eventually(t, c, "it has been deleted", func(s *live.Snapshot) bool { return s.Job(id) == nil })
}

func TestAnExpiredWatchListsAnew(t *testing.T) {
	s, w := small(t)
	c := opened(t, Config{Server: s.URL})
	observed(t, c)
	// While nobody watches, the history is forgotten.
	s.mu.Lock()
	s.down = 1 << 20
	s.mu.Unlock()
	s.CloseClientConnections()
	if _, err := c.Observe(ctx); !errors.Is(err, live.ErrUnreachable) {
		t.Fatalf("%v, want ErrUnreachable", err)
	}
	s.mu.Lock()
	s.down, s.compact = 0, s.version+1 // a list from after the next event is new enough
	before := len(s.requests)
	s.mu.Unlock()
	id := w.submit("meanwhile", 2, nil)
	for begun := time.Now(); time.Since(begun) < long; { // a list that was refused before may still be told of
		if _, err := c.Observe(ctx); !errors.Is(err, live.ErrUnreachable) {
			break
		}
	}
	eventually(t, c, "the job that came meanwhile", func(s *live.Snapshot) bool { return s.Job(id) != nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.requests[before:], "GET /apis/batch/v1/jobs") {
		t.Errorf("%v", s.requests[before:])
	}
}

// A start is one patch, so that nothing is half done if the process is killed.
func TestAHandedJobStartsByOnePatch(t *testing.T) {
	s, w := small(t)
	id := w.submit("a", 8, tree{"spec": tree{"suspend": true}, "metadata": tree{"labels": tree{gate: ""}}})
	wide := w.submit("b", 16, tree{"spec": tree{"suspend": true}, "metadata": tree{"labels": tree{gate: ""}}})
	c := opened(t, Config{Server: s.URL})
	if j := observed(t, c).Job(id); !j.Ours || j.Blocked != "" || j.State != live.Waiting {
		t.Fatalf("%+v, want it to be ours", j)
	}
	s.log = nil
	for _, r := range c.Act(ctx, []live.Action{{Op: live.StartJob, Job: id, Nodes: []string{"g2"}}, {Op: live.StartJob, Job: wide, Nodes: []string{"g3", "g1"}}}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	got, _ := json.Marshal(s.log)
	want := `[{"metadata":{"annotations":{"clustergym/freed":"g2","clustergym/held":null}},"spec":{"suspend":false,"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"g2"}}}}},` +
		`{"metadata":{"annotations":{"clustergym/freed":"g1,g3","clustergym/held":null}},"spec":{"suspend":false,"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":` +
		`{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["g1","g3"]}]}]}}},"nodeSelector":{"kubernetes.io/hostname":null}}}}}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestASuspendedJobWithoutTheLabelIsItsOwners(t *testing.T) {
	s, w := small(t)
	id := w.submit("a", 8, tree{"spec": tree{"suspend": true}})
	c := opened(t, Config{Server: s.URL})
	if j := observed(t, c).Job(id); j.Ours || j.Blocked != "suspended by its owner" {
		t.Errorf("%+v", j)
	}
	for op, want := range map[live.Op]error{live.StartJob: live.ErrUnsupported, live.HoldJob: live.ErrUnsupported,
		live.ReleaseJob: nil} {
		if r := c.Act(ctx, []live.Action{{Op: op, Job: id}}); !errors.Is(r[0].Err, want) {
			t.Errorf("%v: %v, want %v", op, r[0].Err, want)
		}
	}
	if len(s.log) > 0 && strings.Contains(fmt.Sprint(s.log), "suspend") {
		t.Errorf("written: %v", s.log)
	}
}

func TestOwnersNodesAreKept(t *testing.T) {
	s, w := small(t)
	hand := tree{"labels": tree{gate: ""}}
	affinity := tree{
		"nodeAffinity": tree{"requiredDuringSchedulingIgnoredDuringExecution": tree{"nodeSelectorTerms": []tree{
			{"matchExpressions": []tree{{"key": "nvidia.com/gpu.product", "operator": "In",
				"values": []string{"NVIDIA-A100-SXM4-80GB"}}}},
			{"matchExpressions": []tree{{"key": "big", "operator": "Exists"}}}}}}}
	id := w.submit("a", 16,
		tree{"metadata": hand, "spec": tree{"suspend": true,
			"template": tree{"spec": merged(podSpec(8), tree{"affinity": affinity})}}})
	one := w.submit("b", 8,
		tree{"metadata": hand, "spec": tree{"suspend": true,
			"template": tree{"spec": merged(podSpec(8), tree{"nodeSelector": tree{hostLabel: "g1"}})}}})
	c := opened(t, Config{Server: s.URL})
	snap := observed(t, c)
	if n := snap.Job(one).Nodes; !slices.Equal(n, []string{"g1"}) || snap.Job(one).Freed {
		t.Errorf("nodes %v", n)
	}
	if r := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: one, Nodes: []string{"g2"}}}); !errors.Is(r[0].Err,
		live.ErrUnsupported) || !strings.Contains(r[0].Err.Error(), "g1") {
		t.Errorf("%v, want its owner's node named", r[0].Err)
	}
	act := func(a live.Action) {
		t.Helper()
		if r := c.Act(ctx, []live.Action{a}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
	}
	act(live.Action{Op: live.StartJob, Job: one, Nodes: []string{"g1"}})
	if j := observed(t, c).Job(one); !j.Freed || !slices.Equal(j.Nodes, []string{"g1"}) {
		t.Errorf("%+v, want it started on its owner's node", j)
	}
	act(live.Action{Op: live.StartJob, Job: id, Nodes: []string{"g0", "g3"}})
	j := observed(t, c).Job(id)
	if !slices.Equal(j.Nodes, []string{"g0", "g3"}) || !j.Freed || j.Ours {
		t.Errorf("%+v, want it pinned", j)
	}
	stop := w.stepping()
	act(live.Action{Op: live.HoldJob, Job: id})
	act(live.Action{Op: live.StartJob, Job: id, Nodes: []string{"g2"}})
	act(live.Action{Op: live.HoldJob, Job: id})
	act(live.Action{Op: live.ReleaseJob, Job: id})
	stop()
	var full struct {
		Metadata struct{ Annotations tree }
		Spec     struct{ Template struct{ Spec tree } }
	}
	w.must(http.MethodGet, w.jobPath("a"), nil, &full)
	if got := full.Spec.Template.Spec; !same(got["affinity"], affinity) ||
		got["nodeSelector"] != nil && len(got["nodeSelector"].(tree)) > 0 || len(full.Metadata.Annotations) > 0 {
		t.Errorf("after all: %v, %v, want its owner's affinity and no annotations", got, full.Metadata.Annotations)
	}
}

func TestGatedPodsStartWhereTheyShould(t *testing.T) {
	s, w := small(t)
	pod := func(name string, gates ...tree) string {
		var p kube.Pod
		w.must(http.MethodPost, in(core, w.namespace, "pods"),
			tree{"metadata": tree{"name": name}, "spec": merged(podSpec(4), tree{"schedulingGates": gates})}, &p)
		return kube.ID("pod", p.Namespace, p.Name, p.UID)
	}
	ours, both, free := pod("a",
		tree{"name": gate}), pod("b", tree{"name": gate}, tree{"name": "example.org/quota"}), pod("c")
	c := opened(t, Config{Server: s.URL})
	snap := observed(t, c)
	if j := snap.Job(ours); !j.Ours || j.GPUs != 4 {
		t.Errorf("%+v, want ours", j)
	}
	if j := snap.Job(both); j.Ours || j.Blocked != "scheduling gate example.org/quota" {
		t.Errorf("%+v, want another's", j)
	}
	r := c.Act(ctx,
		[]live.Action{{Op: live.StartJob, Job: ours, Nodes: []string{"g3"}}, {Op: live.HoldJob, Job: free},
			{Op: live.HoldJob, Job: both}, {Op: live.ReleaseJob, Job: free}})
	if r[0].Err != nil || !errors.Is(r[1].Err, live.ErrUnsupported) || r[2].Err != nil || r[3].Err != nil {
		t.Errorf("%v", r)
	}
	if j := observed(t, c).Job(ours); j.Ours || !j.Freed || !slices.Equal(j.Nodes, []string{"g3"}) {
		t.Errorf("%+v, want it let go to g3", j)
	}
	for _, a := range []live.Action{{Op: live.ReleaseJob, Job: ours}, {Op: live.HoldJob, Job: ours},
		{Op: live.StartJob, Job: ours, Nodes: []string{"g1"}}} {
		if err := c.Act(ctx, []live.Action{a})[0].Err; !errors.Is(err, live.ErrTied) ||
			!strings.Contains(err.Error(), "pod a waits for node g3") ||
			!strings.Contains(err.Error(), "kubectl delete pod -n ml a, then create it again") {
			t.Errorf("%v: %v, want ErrTied", a, err)
		}
	}
	w.step()
	j := eventually(t, c, "it runs", func(s *live.Snapshot) bool { return s.Job(ours).State == live.Running }).Job(ours)
	if j.Places[0].Node != "g3" {
		t.Errorf("it runs on %v", j.Places)
	}
}

// Pods of a gang are released one by one: those that have their gate are, whatever has become of the others.
func TestAGangOfPodsIsReleasedAsFarAsItCanBe(t *testing.T) {
	s, w := small(t)
	labels := tree{"scheduling.x-k8s.io/pod-group": "pair"}
	for i, annotations := range []tree{{freedKey: "g1,g2"}, nil} {
		spec := merged(podSpec(8), tree{"schedulingGates": []tree{{"name": gate}}})
		if i == 0 {
			spec["schedulingGates"] = []tree{}
		}
		w.must(http.MethodPost, in(core, w.namespace, "pods"),
			tree{"metadata": tree{"name": fmt.Sprint("p", i), "labels": labels, "annotations": annotations,
				"ownerReferences": []tree{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "serve", "uid": "1",
					"controller": true}}}, "spec": spec}, nil)
	}
	c := opened(t, Config{Server: s.URL})
	release := live.Action{Op: live.ReleaseJob, Job: "pods/ml/pair"}
	if j := observed(t, c).Job(release.Job); !j.Ours {
		t.Fatalf("%+v, want it held", j)
	}
	if err := c.Act(ctx, []live.Action{release})[0].Err; err != nil {
		t.Error(err)
	}
	var p kube.Pod
	w.must(http.MethodGet, w.podPath("p1"), nil, &p)
	if isGated(&p) {
		t.Error("p1 still has its gate")
	}
	if err := c.Act(ctx, []live.Action{release})[0].Err; !errors.Is(err, live.ErrTied) ||
		!strings.Contains(err.Error(), "p0 waits for node g1 or g2") ||
		!strings.Contains(err.Error(), "then ReplicaSet serve makes it again") {
		t.Errorf("%v, want ErrTied", err)
	}
}

func TestOthersWritesAreNotOverwritten(t *testing.T) {
	s, w := small(t)
	hand := tree{"spec": tree{"suspend": true}, "metadata": tree{"labels": tree{gate: ""}}}
	id := w.submit("a", 8, hand)
	c := opened(t, Config{Server: s.URL})
	observed(t, c)
	s.mu.Lock()
	s.conflict = 2
	s.mu.Unlock()
	if r := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: id}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	var j kube.Job
	w.must(http.MethodGet, w.jobPath("a"), nil, &j)
	if j.Labels["touched"] == "" || j.Spec.Suspend {
		t.Errorf("%+v", j)
	}
	again := w.submit("b", 8, hand)
	s.mu.Lock()
	s.conflict = 1000
	s.mu.Unlock()
	if r := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: again}}); !errors.Is(r[0].Err, errConflict) {
		t.Errorf("%v, want a conflict in the end", r[0].Err)
	}
	// A name that is used again is another job.
	s.mu.Lock()
	s.conflict = 0
	s.mu.Unlock()
	w.must(http.MethodDelete, w.jobPath("b"), nil, nil)
	w.submit("b", 8, hand)
	if r := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: again}}); !errors.Is(r[0].Err, live.ErrGone) {
		t.Errorf("%v, want ErrGone", r[0].Err)
	}
}

func TestRanksKeepPrioritiesInForce(t *testing.T) {
	s, w := small(t)
	s.kueue = []string{"v1beta1", "v1beta2"}
	workload := func(name string, priority any) string {
		var o kube.Workload
		w.must(http.MethodPost, in("/apis/"+kueueGroup+"/v1beta2", w.namespace, "workloads"),
			tree{"metadata": tree{"name": name}, "spec": tree{"queueName": "q", "priority": priority,
				"podSets": []tree{{"count": 2, "template": tree{"spec": podSpec(8)}}}}}, &o)
		return kube.ID("workload", o.Namespace, o.Name, o.UID)
	}
	low, low2, high, none := workload("low", 100), workload("low2", 100), workload("high", 110), workload("none", nil)
	c := opened(t, Config{Server: s.URL})
	rank := func(id string, score int64) live.Action { return live.Action{Op: live.RankJob, Job: id, Score: score} }
	for i, r := range c.Act(ctx, []live.Action{rank(low, live.MaxScore), rank(low2, 1), rank(high, 5), rank(none, live.MaxScore/2)}) {
		if r.Err != nil {
			t.Fatal(i, r.Err)
		}
	}
	priorities := func() (all []int32) {
		for _, n := range []string{"low", "low2", "high", "none"} {
			var o kube.Workload
			w.must(http.MethodGet, in("/apis/"+kueueGroup+"/v1beta2", w.namespace, "workloads/"+n), nil, &o)
			if o.Spec.Priority == nil {
				all = append(all, -1)
				continue
			}
			all = append(all, *o.Spec.Priority)
		}
		return all
	}
	// 9 steps of room above 100, below 110; 99 above 0; all of it above 110.
	if got, want := priorities(), []int32{109, 101, 115, 49}; !slices.Equal(got, want) {
		t.Errorf("priorities %v, want %v", got, want)
	}
	snap := observed(t, c)
	if j := snap.Job(low); j.Rank != live.MaxScore || j.GPUs != 16 || j.Group != "q" {
		t.Errorf("%+v", j)
	}
	// When another class comes, ranks of the one below are written anew; where there is no room any more, they are taken
	// back.
	came := func(id string) *live.Snapshot {
		return eventually(t, c, id+" is seen", func(s *live.Snapshot) bool { return s.Job(id) != nil })
	}
	snap = came(workload("middle", 105))
	for id, want := range map[string]int64{low: -1, low2: 1, high: 5, none: live.MaxScore / 2} {
		if got := snap.Job(id).Rank; got != want {
			t.Errorf("%s has rank %d, want %d", id, got, want)
		}
	}
	if r := c.Act(ctx, []live.Action{rank(low, live.MaxScore)}); r[0].Err != nil || priorities()[0] != 104 {
		t.Errorf("%v, priority %d, want 104, below 105", r[0].Err, priorities()[0])
	}
	came(workload("next", 101))
	if r := c.Act(ctx, []live.Action{rank(low, live.MaxScore)}); r[0].Err != nil || priorities()[0] != 100 {
		t.Errorf("%v, priority %d, want that of before, 100", r[0].Err, priorities()[0])
	}
	if r := c.Act(ctx, []live.Action{rank(low, live.MaxScore)}); !errors.Is(r[0].Err, live.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", r[0].Err)
	}
	// Another process takes them back.
	other := opened(t, Config{Server: s.URL})
	for _, j := range observed(t, other).Jobs {
		if r := other.Act(ctx, []live.Action{rank(j.ID, 0)}); r[0].Err != nil {
			t.Error(r[0].Err)
		}
	}
	if got, want := priorities(), []int32{100, 100, 110, -1}; !slices.Equal(got, want) {
		t.Errorf("priorities %v, want those of before, %v", got, want)
	}
}

func TestRanksAreNotWrittenWhereTheyWouldStopJobs(t *testing.T) {
	s, w := small(t)
	s.kueue = []string{"v1beta1"}
	w.queue = "gpus"
	id := w.submit("wide", 40, nil) // it waits for ever
	w.admit()
	w.must(http.MethodPost, "/apis/"+kueueGroup+"/v1beta1/clusterqueues",
		tree{"metadata": tree{"name": "all", "namespace": ""},
			"spec": tree{"preemption": tree{"withinClusterQueue": "LowerPriority"}}}, nil)
	c := opened(t, Config{Server: s.URL})
	caps, err := c.Can(ctx)
	if err != nil || !strings.Contains(caps.Rank, "ClusterQueue all stops running Workloads") {
		t.Errorf("%+v, %v", caps, err)
	}
	if r := c.Act(ctx, []live.Action{{Op: live.RankJob, Job: id, Score: 1}}); !errors.Is(r[0].Err, live.ErrUnsupported) ||
		!strings.Contains(r[0].Err.Error(), "ClusterQueue all") {
		t.Errorf("%v", r)
	}
}

// Jobs in queues of a Kueue that is not known here, or whose Workloads may not be seen, are left to it, whatever is
// asked.
func TestJobsOfAnUnknownKueueAreLeftToIt(t *testing.T) {
	for _, c := range []struct {
		versions []string
		may      func(verb, resource string) bool
		says     string
	}{
		{[]string{"v3"}, func(string, string) bool { return true }, "Kueue offers version v3"},
		{[]string{"v1beta1"}, func(_, resource string) bool { return resource != "workloads" },
			`cannot list resource "workloads"`},
	} {
		s, w := small(t)
		s.kueue, s.may = c.versions, c.may
		queued := tree{"metadata": tree{"labels": tree{kube.QueueLabel: "gpus", gate: ""}}}
		admitted, waits, plain := w.submit("a", 8,
			queued), w.submit("b", 8, merged(queued, tree{"spec": tree{"suspend": true}})), w.submit("c", 8, nil)
		s.log = nil
		k := opened(t, Config{Server: s.URL})
		for _, j := range observed(t, k).Jobs {
			if j.State != live.Waiting || j.Ours || j.Blocked != "" {
				t.Errorf("%+v, want it to wait", j)
			}
		}
		for _, id := range []string{admitted, waits} {
			for op := live.RankJob; op < live.RequeueJob; op++ {
				if r := k.Act(ctx, []live.Action{{Op: op, Job: id, Score: 1}}); !errors.Is(r[0].Err, live.ErrUnsupported) ||
					!strings.Contains(r[0].Err.Error(), c.says) {
					t.Errorf("%v: %v, want %q", op, r[0].Err, c.says)
				}
			}
		}
		if len(s.log) > 0 {
			t.Errorf("written: %v", s.log)
		}
		if r := k.Act(ctx, []live.Action{{Op: live.HoldJob, Job: plain}}); r[0].Err != nil {
			t.Errorf("the Job that is in no queue: %v", r[0].Err)
		}
	}
}

func TestCanNamesWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name       string
		kueue      []string
		may        func(verb, resource string) bool
		rank, gate string
	}{
		{"all rights", []string{"v1beta1"}, func(string, string) bool { return true }, "", ""},
		{"no Kueue", nil, func(string, string) bool { return true }, "the cluster has no Kueue", ""},
		{"a newer Kueue", []string{"v3", "v2"}, func(string, string) bool { return true },
			"Kueue offers version v3, v2 of kueue.x-k8s.io, and this program knows v1beta2, v1beta1", ""},
		{"shadow", []string{"v1beta1"}, func(v, _ string) bool { return v == "get" || v == "list" },
			"may not patch workloads.kueue.x-k8s.io", "may not patch jobs.batch in all namespaces"},
		{"no Workloads", []string{"v1beta1"}, func(_, r string) bool { return r != "workloads" }, "Workloads may not be seen",
			""},
		{"no ClusterQueues", []string{"v1beta1"}, func(_, r string) bool { return r != "clusterqueues" },
			"grant list on clusterqueues", ""},
	} {
		s, _ := small(t)
		s.kueue, s.may = c.kueue, c.may
		caps, err := opened(t, Config{Server: s.URL}).Can(ctx)
		if err != nil || !strings.Contains(caps.Rank, c.rank) || !strings.Contains(caps.Gate, c.gate) ||
			(c.rank == "") != (caps.Rank == "") || (c.gate == "") != (caps.Gate == "") {
			t.Errorf("%s: %+v, %v", c.name, caps, err)
		}
	}
}

func TestFailuresAreOneSentence(t *testing.T) {
	s, _ := small(t)
	for _, c := range []struct {
		name string
		code int
		want error
		says string
	}{
		{"expired", http.StatusUnauthorized, live.ErrDenied, "the credentials have expired or are not known here"},
		{"forbidden", http.StatusForbidden, live.ErrDenied, "refused by the test"},
		{"busy", http.StatusTooManyRequests, live.ErrUnreachable, "429"},
		{"starting", http.StatusServiceUnavailable, live.ErrUnreachable, "503"},
		{"another API", http.StatusNotFound, live.ErrUnsupported, "does not offer /apis/batch/v1/jobs"},
	} {
		s.mu.Lock()
		s.refuse = func(r *http.Request) int {
			if strings.HasSuffix(r.URL.Path, "/jobs") {
				return c.code
			}
			return 0
		}
		s.mu.Unlock()
		_, err := opened(t, Config{Server: s.URL}).Observe(ctx)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	gone := newAPI(t)
	gone.Close()
	c := opened(t, Config{Server: gone.URL})
	if _, err := c.Observe(ctx); !errors.Is(err, live.ErrUnreachable) {
		t.Errorf("%v", err)
	}
	r := c.Act(ctx, []live.Action{{Op: live.HoldJob, Job: "job/ml/a@1"}, {Op: live.HoldJob, Job: "job/ml/b@1"}})
	if !errors.Is(r[0].Err, live.ErrUnreachable) || !errors.Is(r[1].Err, live.ErrUnreachable) {
		t.Errorf("%v", r)
	}
	if _, err := c.Can(ctx); !errors.Is(err, live.ErrUnreachable) {
		t.Errorf("%v", err)
	}
	silent := opened(t, Config{Server: s.URL})
	short, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.refuse = nil
	s.before = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			cancel()
		}
	}
	s.mu.Unlock()
	if _, err := silent.Observe(short); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
}

func TestTokensAreReadAgain(t *testing.T) {
	s, _ := small(t)
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "old\n")
	s.token = "old"
	c := opened(t, Config{Server: s.URL, TokenFile: file})
	observed(t, c)
	s.mu.Lock()
	s.token = "new"
	s.mu.Unlock()
	if _, err := c.Observe(ctx); !errors.Is(err, live.ErrDenied) {
		t.Errorf("%v, want ErrDenied", err)
	}
	write(t, file, "new\n")
	observed(t, c)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Before Kubernetes 1.36 a Job that has been started must forget that before its nodes change.
func TestOlderServersAreAskedToForgetTheStart(t *testing.T) {
	s, w := small(t)
	s.old = true
	blocker := w.submit("blocker", 32, nil)
	id := w.submit("a", 8, nil)
	for range 3 {
		w.step()
	}
	c := opened(t, Config{Server: s.URL})
	stop := w.stepping()
	for _, a := range []live.Action{{Op: live.HoldJob, Job: id}, {Op: live.StartJob, Job: id, Nodes: []string{"g1"}}} {
		if r := c.Act(ctx, []live.Action{a}); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
	}
	stop()
	if j := observed(t, c).Job(id); !j.Freed || !slices.Equal(j.Nodes, []string{"g1"}) {
		t.Errorf("%+v, want it started on g1", j)
	}
	if n := strings.Count(fmt.Sprint(s.log), "startTime:<nil>"); n != 1 {
		t.Errorf("%d resets of the start time, want 1: %v", n, s.log)
	}
	for range 2 {
		w.step() // it is started again, by its own controller
	}
	// Without the right to, the job stays held, and the error says what is missing.
	s.mu.Lock()
	s.refuse = func(r *http.Request) int {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") &&
			strings.Contains(r.Header.Get("User-Agent"), "clustergym") {
			return http.StatusForbidden
		}
		return 0
	}
	s.mu.Unlock()
	stop = w.stepping()
	r := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: id, Nodes: []string{"g2"}}})
	stop()
	if j := observed(t, c).Job(id); !errors.Is(r[0].Err, live.ErrDenied) || !j.Ours {
		t.Errorf("%v, %+v", r, j)
	}
	if !is(observed(t, c), blocker, live.Running) {
		t.Error("the blocker does not run")
	}
}

// With Roles in some namespaces, nothing is asked of the others.
func TestNamespacesAreAskedOneByOne(t *testing.T) {
	s, w := small(t)
	s.kueue = []string{"v1beta1"}
	id := w.submit("a", 8, nil)
	w.namespace = "other"
	w.submit("b", 8, nil)
	w.namespace = "empty"
	s.mu.Lock()
	s.refuse = func(r *http.Request) int {
		if path := r.URL.Path; strings.HasSuffix(path, "/jobs") || strings.HasSuffix(path, "/pods") ||
			strings.HasSuffix(path, "/workloads") {
			if !strings.Contains(path, "/namespaces/ml/") && !strings.Contains(path, "/namespaces/empty/") {
				return http.StatusForbidden
			}
		}
		return 0
	}
	s.mu.Unlock()
	c := opened(t, Config{Server: s.URL, Namespaces: []string{"ml", "empty"}})
	if snap := observed(t, c); len(snap.Jobs) != 1 || snap.Job(id) == nil {
		t.Errorf("%+v", snap.Jobs)
	}
	if r := c.Act(ctx, []live.Action{{Op: live.HoldJob, Job: "job/other/b@00000001"},
		{Op: live.HoldJob, Job: id}}); !errors.Is(r[0].Err, live.ErrGone) || r[1].Err != nil {
		t.Errorf("%v", r)
	}
	if caps, err := c.Can(ctx); err != nil || caps != (live.Caps{}) {
		t.Errorf("%+v, %v", caps, err)
	}
	if o, err := c.History(ctx); err != nil || len(o.Jobs) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestNodesAndJobsAreUnderstood(t *testing.T) {
	s, w := small(t)
	w.must(http.MethodPatch, core+"/nodes/g0", tree{"spec": tree{"unschedulable": true}}, nil)
	w.must(http.MethodPatch, core+"/nodes/g1/status",
		tree{"status": tree{"conditions": []tree{{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}}}},
		nil)
	w.must(http.MethodPatch, core+"/nodes/g2",
		tree{"spec": tree{"taints": []tree{{"key": "nvidia.com/gpu", "effect": "NoSchedule"},
			{"key": "team", "value": "b", "effect": "NoSchedule"}}}}, nil)
	w.must(http.MethodPatch, core+"/nodes/g3",
		tree{"spec": tree{"taints": []tree{{"key": "nvidia.com/gpu", "effect": "NoSchedule"}}},
			"metadata": tree{"labels": tree{"topology.kubernetes.io/rack": "r7"}}}, nil)
	w.must(http.MethodPost, core+"/nodes",
		tree{"metadata": tree{"name": "cpu0"}, "status": tree{"allocatable": tree{"cpu": "4"}}}, nil)
	w.addNode("g4")
	w.must(http.MethodPatch, core+"/nodes/g4",
		tree{"spec": tree{"taints": []tree{{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}}}}, nil)
	id := w.submit("sweep-1", 16,
		tree{"metadata": tree{"labels": tree{"user": "ada"}, "generateName": "sweep-"},
			"spec": tree{"activeDeadlineSeconds": 7200, "completions": 10,
				"template": tree{"spec": merged(podSpec(8),
					tree{"nodeSelector": tree{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}})}}})
	w.submit("cores", 0, nil)
	c := opened(t, Config{Server: s.URL, Name: "prod", Tolerated: []string{"dedicated"}})
	snap := observed(t, c)
	var nodes []string
	for _, n := range snap.Nodes {
		nodes = append(nodes,
			fmt.Sprintf("%s %s %s %d %d %v %s", n.Name, n.Rack, n.GPUType, n.GPUs, n.CPUMilli, n.Down, n.Why))
	}
	want := []string{
		"g0 z1 NVIDIA-A100-SXM4-80GB 8 128000 true cordoned",
		"g1 z1 NVIDIA-A100-SXM4-80GB 8 128000 true not ready: NodeStatusUnknown",
		"g2 z1 NVIDIA-A100-SXM4-80GB 8 128000 true taint team", "g3 r7 NVIDIA-A100-SXM4-80GB 8 128000 false ",
		"g4 z1 NVIDIA-A100-SXM4-80GB 8 128000 false ",
	}
	if !slices.Equal(nodes, want) {
		t.Errorf("nodes %q, want %q", nodes, want)
	}
	if len(snap.Jobs) != 1 || snap.Cluster != "prod" || snap.Version != "v1.36.3" {
		t.Errorf("%+v", snap)
	}
	j := snap.Job(id)
	if j.GPUs != 16 || j.User != "ada" || j.VC != "ml" || j.Name != "sweep" || j.Estimate != 2*time.Hour ||
		j.CPUMilli != 2000 || j.MemBytes != 2<<30 ||
		!slices.Equal(j.GPUTypes, []string{"NVIDIA-A100-SXM4-80GB"}) || j.State != live.Waiting || j.Nodes != nil {
		t.Errorf("%+v", j)
	}
}

// The priority of a job is what orders it: its Workload's, or its pods'. The server writes the number of a class into
// pods.
func TestPrioritiesAreThoseThatOrderJobs(t *testing.T) {
	s, w := small(t)
	s.kueue = []string{"v1beta1"}
	class := tree{"spec": tree{"template": tree{"spec": merged(podSpec(8), tree{"priorityClassName": "urgent"})}}}
	id, suspended := w.submit("a", 8, class), w.submit("b", 8, merged(class, tree{"spec": tree{"suspend": true}}))
	w.must(http.MethodPost, in(core, w.namespace, "pods"),
		tree{"metadata": tree{"name": "a-1",
			"ownerReferences": []tree{{"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": uidOf(w, "a"),
				"controller": true}}},
			"spec": merged(podSpec(8), tree{"priority": 1000})}, nil)
	w.must(http.MethodPost, in(core, w.namespace, "pods"),
		tree{"metadata": tree{"name": "alone"}, "spec": merged(podSpec(8), tree{"priority": -5})}, nil)
	w.queue = "gpus"
	queued := w.submit("c", 40, class)
	w.makeWorkloads()
	w.must(http.MethodPatch, w.workloads()+"/job-c", tree{"spec": tree{"priority": 7}}, nil)
	c := opened(t, Config{Server: s.URL})
	snap := observed(t, c)
	for _, j := range snap.Jobs {
		want := map[string]int{id: 1000, suspended: 0, queued: 7}
		if strings.HasPrefix(j.ID, "pod/") {
			want[j.ID] = -5
		}
		if j.Priority != want[j.ID] || !j.Planned.IsZero() {
			t.Errorf("%s: priority %d, planned %v, want %d and none", j.ID, j.Priority, j.Planned, want[j.ID])
		}
	}
	if len(snap.Jobs) != 4 {
		t.Errorf("%d jobs", len(snap.Jobs))
	}
	if r := c.Act(ctx, []live.Action{{Op: live.RankJob, Job: queued, Score: live.MaxScore}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	if j := observed(t, c).Job(queued); j.Priority <= 7 {
		t.Errorf("priority %d with a rank, want more than 7", j.Priority)
	}
}

func uidOf(w *world, name string) string {
	w.t.Helper()
	var j kube.Job
	w.must(http.MethodGet, w.jobPath(name), nil, &j)
	return j.UID
}

// A node whose device plug-in goes away under a running job is down, with the GPUs that it had, or that jobs hold; then
// it is as before.
func TestANodeWhoseDevicePluginRestarts(t *testing.T) {
	s, w := small(t)
	pluginRestarts(t, w, opened(t, Config{Server: s.URL}))
}

func pluginRestarts(t *testing.T, w *world, c *Cluster) {
	t.Helper()
	id := w.submit("runs", 5,
		tree{"spec": tree{"template": tree{"spec": merged(podSpec(5), tree{"nodeSelector": tree{hostLabel: "g1"}})}}})
	node := func(ok func(n live.Node) bool) live.Node {
		t.Helper()
		var n live.Node
		eventually(t, c, "the node changes", func(s *live.Snapshot) bool {
			if j := s.Job(id); j == nil || j.State != live.Running {
				w.step()
				return false
			}
			n = s.Nodes[slices.IndexFunc(s.Nodes, func(n live.Node) bool { return n.Name == "g1" })]
			return ok(n)
		})
		return n
	}
	up := node(func(n live.Node) bool { return !n.Down })
	for _, x := range []struct {
		allocatable, capacity string
		gpus                  int
		short                 bool
		why                   string
	}{{"0", "8", 8, false, "none of its GPUs can be allocated"},
		{"0", "0", 5, true, "it shows fewer GPUs than jobs hold"}} {
		w.must(http.MethodPatch, core+"/nodes/g1/status",
			tree{"status": tree{"allocatable": tree{"nvidia.com/gpu": x.allocatable},
				"capacity": tree{"nvidia.com/gpu": x.capacity}}}, nil)
		if n := node(func(n live.Node) bool { return n.Down && n.Why == x.why }); n.GPUs != x.gpus || n.Short != x.short {
			t.Errorf("%+v: %+v", x, n)
		}
	}
	w.must(http.MethodPatch, core+"/nodes/g1/status",
		tree{"status": tree{"allocatable": tree{"nvidia.com/gpu": "8"}, "capacity": tree{"nvidia.com/gpu": "8"}}}, nil)
	if n := node(func(n live.Node) bool { return !n.Down }); n.GPUs != up.GPUs || n.Short || n.Why != "" {
		t.Errorf("%+v, want %+v", n, up)
	}
}

// A node that has been deleted under a running job, and a Job that has been deleted before its pods, are still there.
func TestWhatRunsOnWhatHasGoneIsShown(t *testing.T) {
	s, w := small(t)
	id := w.submit("a", 8, nil)
	for range 3 {
		w.step()
	}
	w.must(http.MethodDelete, core+"/nodes/g0", nil, nil)
	w.must(http.MethodDelete, w.jobPath("a"), nil, nil)
	c := opened(t, Config{Server: s.URL})
	snap := observed(t, c)
	if j := snap.Job(id); j == nil || j.State != live.Running || j.Places[0].Node != "g0" || j.GPUs != 8 {
		t.Errorf("%+v", j)
	}
	if n := snap.Nodes[0]; n.Name != "g0" || !n.Down || n.GPUs != 8 {
		t.Errorf("%+v", n)
	}
}

func TestKubeconfigsAreRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "secret")
	file := filepath.Join(dir, "config")
	write(t, file, `
apiVersion: v1
kind: Config
current-context: prod
clusters:
- {name: prod, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Y2VydA==, tls-server-name: kubernetes}}
- {name: bad, cluster: {server: 10.0.0.1}}
users:
- {name: a, user: {tokenFile: token}}
- {name: b, user: {token: abc}}
- {name: cloud, user: {exec: {command: cloud-auth, apiVersion: client.authentication.k8s.io/v1}}}
- {name: old, user: {auth-provider: {name: gcp}}}
- {name: half, user: {client-certificate-data: Y2VydA==}}
- {name: basic, user: {username: a, password: b}}
contexts:
- {name: prod, context: {cluster: prod, user: a}}
- {name: b, context: {cluster: prod, user: b}}
- {name: cloud, context: {cluster: prod, user: cloud}}
- {name: old, context: {cluster: prod, user: old}}
- {name: half, context: {cluster: prod, user: half}}
- {name: basic, context: {cluster: prod, user: basic}}
- {name: bad, context: {cluster: bad, user: a}}
- {name: nobody, context: {cluster: prod, user: who}}
`)
	c, err := Kubeconfig(file, "")
	if err != nil || c.Server != "https://10.0.0.1:6443" || string(c.CA) != "cert" || c.ServerName != "kubernetes" ||
		c.TokenFile != filepath.Join(dir, "token") || c.Name != "prod" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Kubeconfig(file, "b"); err != nil || c.Token != "abc" {
		t.Errorf("%+v, %v", c, err)
	}
	for context, want := range map[string]string{
		"cloud": `gets its credentials from the program "cloud-auth", want a token`, "old": "auth-provider",
		"half": "want both", "basic": "a name and a password",
		"bad": "want an address as https://", "nobody": `there is no user "who"`, "none": "want one of prod, b, cloud",
	} {
		if _, err := Kubeconfig(file, context); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", context, err, want)
		}
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "no such file",
		file + ":" + file: "names several files"} {
		if _, err := Kubeconfig(path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	text, err := os.ReadFile(file) //nolint:gosec // of this test
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{string(text), "a: b\n", "---\na: b\n"} {
		two := filepath.Join(dir, "two")
		write(t, two, string(text)+"---\n"+more)
		if _, err := Kubeconfig(two, ""); err == nil ||
			!strings.Contains(err.Error(), "has a second document behind ---, want one") {
			t.Errorf("%.10q behind ---: %v", more, err)
		}
		write(t, two, string(text)+"---\n# nothing\n")
		if _, err := Kubeconfig(two, ""); err != nil {
			t.Error(err)
		}
	}
	if _, err := InCluster("", "", dir); err == nil {
		t.Error("no error outside of a pod")
	}
	write(t, filepath.Join(dir, "ca.crt"), "cert")
	if c, err := InCluster("fd00::1", "443", dir); err != nil || c.Server != "https://[fd00::1]:443" ||
		c.TokenFile != filepath.Join(dir, "token") {
		t.Errorf("%+v, %v", c, err)
	}
}
