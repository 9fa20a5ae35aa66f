package kube

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/kubetest"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces/kube"
)

// real is a Kubernetes of its own. The tests play controllers and kubelets.
type realCluster struct {
	*kubetest.Cluster
	admin *world
}

// TestKubernetes needs the programs that make kubernetes builds.
func TestKubernetes(t *testing.T) {
	r := &realCluster{Cluster: kubetest.Start(t)}
	r.admin = newWorld(t, r.as(kubetest.AdminToken), "default")
	for i := range 4 {
		r.AddNode(fmt.Sprintf("g%d", i))
	}
	for _, mode := range modes {
		r.Apply(filepath.Join("..", "..", "deploy", "kubernetes", mode+".yaml"))
	}
	t.Run("each mode has its rights and no others", r.rights)
	t.Run("the adapter meets the contract with the rights of gate", r.contract)
	t.Run("shadow changes nothing", r.shadow)
	t.Run("sixty jobs start where and when they were chosen", r.gate)
	t.Run("gated pods start where they were chosen", r.gatedPods)
	t.Run("priorities are those of the scheduler", r.priorities)
	t.Run("a device plug-in restarts under a running job",
		func(t *testing.T) { pluginRestarts(t, r.world(t), opened(t, r.as(r.token("shadow")))) })
	t.Run("a killed agent strands no job", r.killed)
	t.Run("an API server that restarts is survived", r.restart)
	t.Run("ranks order the Workloads of Kueue", r.ranks)
	t.Run("each mode needs each of its rights", r.needed)
	t.Run("credentials that are withdrawn are said to be", r.withdrawn)
}

var modes = []string{"shadow", "rank", "gate"}

// as is the configuration of a user.
func (r *realCluster) as(token string) Config {
	return Config{Server: r.Server, CA: r.CA(), Token: token, Name: "test"}
}

// token makes credentials of a mode's service account.
func (r *realCluster) token(mode string) string { return r.Token("steer-" + mode) }

// world is an empty namespace; what is in it goes with the test.
func (r *realCluster) world(t *testing.T) *world {
	t.Helper()
	seq++
	w := newWorld(t, r.as(kubetest.AdminToken), fmt.Sprintf("test-%d", seq))
	w.must(http.MethodPost, core+"/namespaces", tree{"metadata": tree{"name": w.namespace}}, nil)
	t.Cleanup(func() {
		for _, j := range list[kube.Job](w, in(batch, w.namespace, "jobs")) {
			w.must(http.MethodDelete, w.jobPath(j.Name), tree{"propagationPolicy": "Background"}, nil)
		}
		for _, p := range list[kube.Pod](w, in(core, w.namespace, "pods")) {
			w.ignoring(w.try(http.MethodDelete, w.podPath(p.Name), tree{"gracePeriodSeconds": 0}, nil))
		}
		if w.queue != "" {
			for _, wl := range list[kube.Workload](w, w.workloads()) {
				w.must(http.MethodDelete, w.workloads()+"/"+wl.Name, nil, nil)
			}
		}
	})
	return w
}

func (r *realCluster) contract(t *testing.T) {
	token := r.token("gate")
	livetest.Suite(t, func(t *testing.T) *livetest.Bench {
		return r.world(t).bench(func(t *testing.T) *Cluster { return opened(t, r.as(token)) })
	})
}

// rights asks the server about everything that somebody could want, and tries some of it.
func (r *realCluster) rights(t *testing.T) {
	reads := []string{" nodes", " pods", "batch jobs", kueueGroup + " workloads"}
	want := map[string][]string{"shadow": nil,
		"rank": {"get batch jobs", "get " + kueueGroup + " workloads", "patch " + kueueGroup + " workloads",
			"list " + kueueGroup + " clusterqueues"},
		"gate": {"get batch jobs", "get  pods", "get " + kueueGroup + " workloads", "patch " + kueueGroup + " workloads",
			"patch batch jobs", "patch batch jobs/status", "patch  pods"}}
	for _, mode := range modes {
		for _, res := range reads {
			for _, verb := range []string{"list", "watch"} {
				want[mode] = append(want[mode], verb+" "+res)
			}
		}
		c := opened(t, r.as(r.token(mode)))
		var got []string
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
			for _, res := range append(slices.Clone(reads), kueueGroup+" clusterqueues", "batch jobs/status", "batch cronjobs",
				" pods/status", " pods/binding", " pods/eviction", " pods/exec", " pods/log", " pods/ephemeralcontainers",
				" secrets", " configmaps",
				" nodes/status", " namespaces", " serviceaccounts", " events", " persistentvolumes", "apps deployments",
				"coordination.k8s.io leases", "scheduling.k8s.io priorityclasses", kueueGroup+" workloads/status",
				kueueGroup+" localqueues",
				"rbac.authorization.k8s.io clusterroles", "rbac.authorization.k8s.io clusterrolebindings",
				"admissionregistration.k8s.io mutatingwebhookconfigurations") {
				group, resource, _ := strings.Cut(res, " ")
				missing, err := c.may(ctx, verb, group, resource)
				if err != nil {
					t.Fatal(err)
				}
				if missing == "" {
					got = append(got, verb+" "+res)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want[mode])
		if !slices.Equal(got, want[mode]) {
			t.Errorf("%s may %q, want %q", mode, got, want[mode])
		}
	}
	w := r.world(t)
	id := w.submit("a", 8, tree{"metadata": tree{"annotations": tree{"owner": "ada"}}})
	w.must(http.MethodPost, in(core, w.namespace, "pods"),
		tree{"metadata": tree{"name": "p", "annotations": tree{"owner": "ada"}},
			"spec": merged(podSpec(0), tree{"schedulingGates": []tree{{"name": gate}, {"name": "example.org/quota"}}})}, nil)
	for _, mode := range modes {
		may := mode == "gate"
		c := opened(t, r.as(r.token(mode)))
		caps, err := c.Can(ctx)
		if err != nil || (caps.Gate == "") != may || !strings.Contains(caps.Rank, "no Kueue") {
			t.Errorf("%s: %+v, %v", mode, caps, err)
		}
		if s := observed(t, c); len(s.Nodes) != 4 || len(s.Jobs) != 1 ||
			s.Version != "v1.36.3" && !strings.HasPrefix(s.Version, "v1.") {
			t.Errorf("%s: %+v", mode, s)
		}
		err = c.Act(ctx, []live.Action{{Op: live.HoldJob, Job: id}})[0].Err
		if may && err != nil || !may && !errors.Is(err, live.ErrDenied) {
			t.Errorf("%s: hold: %v", mode, err)
		}
		// What only the server keeps it from: nothing of the adapter does this.
		job, pod := w.jobPath("a"), w.podPath("p")
		after := func(what string) tree { // every pod has two of these, which must stay
			return tree{"key": "node.kubernetes.io/" + what, "operator": "Exists", "effect": "NoExecute",
				"tolerationSeconds": 300}
		}
		metadata := []tree{{"labels": tree{"x": "y"}}, {"annotations": tree{"x": "y"}}, {"annotations": tree{"owner": nil}},
			{"annotations": tree{"owner": "z"}}, {"finalizers": []string{"example.org/stay"}},
			{"ownerReferences": []tree{{"apiVersion": "v1", "kind": "ConfigMap", "name": "none",
				"uid": "0a0a0a0a-0000-4000-8000-000000000000"}}}}
		tries := map[string][]tree{
			core + "/nodes/g0": {{"spec": tree{"unschedulable": true}}},
			job: {{"spec": tree{"parallelism": 7}}, {"spec": tree{"activeDeadlineSeconds": 1}},
				{"spec": tree{"ttlSecondsAfterFinished": 1}}, {"spec": tree{"backoffLimit": 1}},
				{"spec": tree{"template": tree{"spec": tree{"tolerations": []tree{{"operator": "Exists"}}}}}},
				{"spec": tree{"template": tree{"spec": tree{"schedulingGates": []tree{{"name": "example.org/x"}}}}}},
				{"spec": tree{"template": tree{"metadata": tree{"labels": tree{"x": "y"}}}}},
				{"spec": tree{"template": tree{"metadata": tree{"annotations": tree{"clustergym/x": "y"}}}}}},
			job + "/status": {{"status": tree{"active": 7}},
				{"status": tree{"conditions": kubetest.Conditions("False", "Suspended")}}},
			pod: {{"spec": tree{"containers": []tree{merged(podSpec(0)["containers"].([]tree)[0],
				tree{"image": "example.org/other:1"})}}}, {"spec": tree{"activeDeadlineSeconds": 1}},
				{"spec": tree{"tolerations": []tree{after("not-ready"), after("unreachable"), {"operator": "Exists"}}}},
				{"spec": tree{"schedulingGates": []tree{{"name": gate}}}}},
		}
		for _, m := range metadata {
			for _, path := range []string{job, pod} {
				tries[path] = append(tries[path], tree{"metadata": m})
			}
		}
		for path, bodies := range tries {
			for i, body := range bodies {
				c.refuses(t, fmt.Sprintf("%s, %d", mode, i), path, body)
			}
		}
		if _, err := c.c.call(ctx, http.MethodDelete, w.jobPath("a"), nil, nil, nil); !errors.Is(err, live.ErrDenied) {
			t.Errorf("%s deletes a Job: %v", mode, err)
		}
	}
}

// refuses patches until the server forbids it, as a policy does that is in force after a moment.
func (c *Cluster) refuses(t *testing.T, what, path string, body tree) {
	t.Helper()
	var err error
	kubetest.Happens(t, fmt.Sprintf("%s: %s may not be patched by %v", what, path, body), nil, func() bool {
		_, err = c.c.call(ctx, http.MethodPatch, path, nil, body, nil)
		return err != nil
	})
	if !errors.Is(err, live.ErrDenied) {
		t.Errorf("%s patches %s by %v: %v", what, path, body, err)
	}
}

// needed takes one right after the other from each mode, and sees what fails then: by name, and nothing else.
func (r *realCluster) needed(t *testing.T) {
	for _, mode := range modes {
		var role struct {
			Rules []struct{ APIGroups, Resources, Verbs []string }
		}
		path := "/apis/rbac.authorization.k8s.io/v1/clusterroles/clustergym-steer-" + mode
		r.admin.must(http.MethodGet, path, nil, &role)
		type right struct{ group, resource, verb string }
		var all []right
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, right{rule.APIGroups[0], resource, verb})
				}
			}
		}
		c := opened(t, r.as(r.token(mode)))
		grant := func(but right) {
			var rules []tree
			for _, x := range all {
				if x != but {
					rules = append(rules,
						tree{"apiGroups": []string{x.group}, "resources": []string{x.resource}, "verbs": []string{x.verb}})
				}
			}
			r.admin.must(http.MethodPatch, path, tree{"rules": rules}, nil)
			kubetest.Happens(t, "the server knows the rights", nil, func() bool {
				return !slices.ContainsFunc(all, func(x right) bool {
					missing, err := c.may(ctx, x.verb, x.group, x.resource)
					return err != nil || (missing == "") == (x == but)
				})
			})
		}
		w := r.world(t)
		w.queue = "gpus"
		for n, without := range append(all, right{}) {
			grant(without)
			said := r.use(t, w, mode, n)
			want := fmt.Sprintf("cannot %s resource %q", without.verb, without.resource)
			switch {
			// servers before 1.36 need that; a test with one of them shows it
			case without == right{} || without.resource == "jobs/status":
				if len(said) > 0 {
					t.Errorf("%s, without %v: %q", mode, without, said)
				}
			case len(said) == 0 || slices.ContainsFunc(said, func(s string) bool {
				return !strings.Contains(s,
					want) && !strings.Contains(s, "may not "+without.verb+" "+without.resource) && !strings.Contains(s,
					"grant "+without.verb+" on "+without.resource)
			}):
				t.Errorf("%s, without %s of %s: %q", mode, without.verb, without.resource, said)
			}
		}
		grant(right{})
	}
}

// use does all that a mode does, on objects of its own, and returns what has failed.
func (r *realCluster) use(t *testing.T, w *world, mode string, n int) (said []string) {
	t.Helper()
	failed := func(err error) {
		if err != nil {
			said = append(said, err.Error())
		}
	}
	queued := w.submit(fmt.Sprintf("queued-%d", n), 40, nil) // it is never admitted
	w.queue = ""
	held := w.submit(fmt.Sprintf("held-%d", n), 8, hand)
	w.queue = "gpus"
	var p kube.Pod
	w.must(http.MethodPost, in(core, w.namespace, "pods"),
		tree{"metadata": tree{"name": fmt.Sprintf("pod-%d", n)},
			"spec": merged(podSpec(8), tree{"schedulingGates": []tree{{"name": gate}}})}, &p)
	w.makeWorkloads()
	c := opened(t, r.as(r.token(mode)))
	_, err := c.Observe(ctx)
	failed(err)
	if err != nil {
		return said
	}
	caps, err := c.Can(ctx)
	failed(err)
	if why := c.kueue.lacks(); why != "" { // also a shadow must see Workloads
		return append(said, why)
	}
	var actions []live.Action
	switch mode {
	case "rank":
		if caps.Rank != "" {
			said = append(said, caps.Rank)
		}
		actions = []live.Action{{Op: live.RankJob, Job: queued, Score: 3}}
	case "gate":
		if caps.Gate != "" {
			said = append(said, caps.Gate)
		}
		actions = []live.Action{{Op: live.StartJob, Job: held, Nodes: []string{"g1"}},
			{Op: live.StartJob, Job: kube.PodsID(&p), Nodes: []string{"g1"}},
			{Op: live.HoldJob, Job: queued}, {Op: live.ReleaseJob, Job: queued}}
	}
	for _, res := range c.Act(ctx, actions) {
		failed(res.Err)
	}
	w.must(http.MethodDelete, w.podPath(p.Name), tree{"gracePeriodSeconds": 0}, nil)
	return said
}

// versions returns the version of everything that an agent could have touched, and which of it the adapter has written,
// by the server's books. Of pods, which the scheduler may still write to, there is no version.
func (w *world) versions() (all map[string]string, ours []string) {
	all = map[string]string{}
	for _, path := range []string{batch + "/jobs", core + "/pods", core + "/nodes", core + "/namespaces",
		"/apis/scheduling.k8s.io/v1/priorityclasses"} {
		for _, o := range list[struct {
			Metadata struct {
				kube.Meta
				ManagedFields []struct {
					Manager string `json:"manager"`
				} `json:"managedFields"`
			} `json:"metadata"`
		}](w, path) {
			name := path + "/" + o.Metadata.Namespace + "/" + o.Metadata.Name
			if path != core+"/pods" {
				all[name] = o.Metadata.ResourceVersion
			}
			for _, f := range o.Metadata.ManagedFields {
				if f.Manager == "clustergym" {
					ours = append(ours, name)
				}
			}
		}
	}
	return all, ours
}

// sixty hands in sixty Jobs of 1 to 16 GPUs and returns their IDs.
func (w *world) sixty(more tree) (ids []string) {
	w.t.Helper()
	sizes := []int{1, 2, 4, 8, 16, 1, 8, 4, 2, 8, 12, 1}
	for i := range 60 {
		ids = append(ids, w.submit(fmt.Sprintf("job-%02d", i), sizes[i%len(sizes)], more))
	}
	return ids
}

var hand = tree{"spec": tree{"suspend": true}, "metadata": tree{"labels": tree{gate: "steer"}}}

func (r *realCluster) shadow(t *testing.T) {
	w := r.world(t)
	w.sixty(nil)
	for range 3 {
		w.step()
	}
	c := opened(t, r.as(r.token("shadow")))
	before, _ := w.versions()
	for range 50 {
		if s := observed(t, c); len(s.Jobs) != 60 {
			t.Fatalf("%d jobs, want 60", len(s.Jobs))
		}
	}
	var actions []live.Action
	for _, j := range observed(t, c).Jobs {
		for op := live.RankJob; op <= live.RequeueJob; op++ {
			actions = append(actions, live.Action{Op: op, Job: j.ID, Score: 1, Nodes: []string{"g0"}})
		}
	}
	for i, res := range c.Act(ctx, actions) {
		if !errors.Is(res.Err, live.ErrDenied) {
			t.Errorf("%v: %v, want ErrDenied", actions[i], res.Err)
		}
	}
	if after, ours := w.versions(); !same(before, after) || len(ours) > 0 {
		t.Errorf("versions before %v, after %v; written by the adapter: %v", before, after, ours)
	}
}

// gate is a small agent: it starts the smallest job that waits on the highest node with room for it, and checks that
// this is what happens.
func (r *realCluster) gate(t *testing.T) {
	w := r.world(t)
	ids := w.sixty(hand)
	w.step()
	c := opened(t, r.as(r.token("gate")))
	chosen := map[string][]string{}
	started := map[string]bool{}
	ran := map[string]bool{}
	kubetest.Happens(t, "sixty jobs have run", nil, func() bool {
		s := observed(t, c)
		free := map[string]int{}
		for _, n := range s.Nodes {
			free[n.Name] = n.GPUs
		}
		for i := range s.Jobs {
			j := &s.Jobs[i]
			switch {
			case j.State == live.Running:
				for _, p := range j.Places {
					free[p.Node] -= p.GPUs
					if !slices.Contains(chosen[j.ID], p.Node) {
						t.Fatalf("%s runs on %v, chosen was %v", j.ID, j.Places, chosen[j.ID])
					}
				}
			case !j.Ours: // it has been started, and has its place
				gpus := j.GPUs
				for _, n := range j.Nodes {
					k := min(gpus, 8)
					free[n], gpus = free[n]-k, gpus-k
				}
			}
		}
		waiting := slices.DeleteFunc(slices.Clone(s.Jobs), func(j live.Job) bool { return !j.Ours })
		slices.SortStableFunc(waiting, func(a, b live.Job) int { return a.GPUs - b.GPUs })
		for i := range waiting {
			nodes := choose(free, waiting[i].GPUs)
			if nodes == nil {
				break
			}
			chosen[waiting[i].ID] = nodes
			if err := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: waiting[i].ID, Nodes: nodes}})[0].Err; err != nil {
				t.Fatal(err)
			}
			started[waiting[i].ID] = true
		}
		w.step()
		for _, j := range observed(t, c).Jobs {
			if j.State != live.Running {
				continue
			}
			if !started[j.ID] {
				t.Fatalf("%s runs, and was not started", j.ID)
			}
			if j.GPUs == fullSize(w, j.ID) {
				ran[j.ID] = true
				w.finish(j.ID)
			}
		}
		return len(ran) == len(ids)
	})
}

// fullSize is what a Job asks for; while its pods come one by one, it runs on fewer.
func fullSize(w *world, id string) int {
	var j kube.Job
	w.must(http.MethodGet, w.jobPath(nameOf(id)), nil, &j)
	return w.reading.Pod(&j.Spec.Template.Spec).GPUs * j.Gang()
}

// choose takes room on the highest nodes, nil if there is too little; pods of a gang have 4 or 8 GPUs.
func choose(free map[string]int, gpus int) []string {
	var nodes []string
	for i := 3; i >= 0; i-- {
		if n := fmt.Sprintf("g%d", i); free[n] >= min(gpus, 8) {
			if gpus <= 8 && nodes == nil {
				free[n] -= gpus
				return []string{n}
			}
			nodes = append(nodes, n)
			if len(nodes)*8 >= gpus {
				left := gpus
				for _, n := range nodes {
					k := min(left, 8)
					free[n], left = free[n]-k, left-k
				}
				return nodes
			}
		}
	}
	return nil
}

func (r *realCluster) gatedPods(t *testing.T) {
	w := r.world(t)
	var ids []string
	for i := range 3 {
		var p kube.Pod
		labels := tree{}
		if i > 0 {
			labels["scheduling.x-k8s.io/pod-group"] = "pair"
		}
		w.must(http.MethodPost, in(core, w.namespace, "pods"),
			tree{"metadata": tree{"name": fmt.Sprintf("p%d", i), "labels": labels},
				"spec": merged(podSpec(8), tree{"schedulingGates": []tree{{"name": gate}}})}, &p)
		ids = append(ids, kube.PodsID(&p))
	}
	c := opened(t, r.as(r.token("gate")))
	s := observed(t, c)
	if j := s.Job(ids[1]); ids[1] != ids[2] || j == nil || !j.Ours || j.GPUs != 16 {
		t.Fatalf("%v: %+v, want two pods of one gang", ids, j)
	}
	for _, res := range c.Act(ctx, []live.Action{{Op: live.StartJob, Job: ids[0], Nodes: []string{"g2"}}, {Op: live.StartJob, Job: ids[1], Nodes: []string{"g3", "g0"}}}) {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	s = eventually(t, c, "all run", func(s *live.Snapshot) bool {
		return s.Job(ids[0]).State == live.Running && s.Job(ids[1]).State == live.Running && s.Job(ids[1]).GPUs == 16
	})
	if p, q := s.Job(ids[0]).Places, s.Job(ids[1]).Places; p[0].Node != "g2" || len(q) != 2 || q[0].Node != "g0" ||
		q[1].Node != "g3" {
		t.Errorf("on %v and %v, want g2, and g0 and g3", p, q)
	}
	if err := c.Act(ctx, []live.Action{{Op: live.HoldJob, Job: ids[0]}})[0].Err; !errors.Is(err, live.ErrGone) {
		t.Errorf("hold of a pod that runs: %v", err)
	}
	r.tied(t, w, c)
}

// priorities sees the number of a class in pods, where the server has put it.
func (r *realCluster) priorities(t *testing.T) {
	w := r.world(t)
	w.must(http.MethodPost, "/apis/scheduling.k8s.io/v1/priorityclasses",
		tree{"metadata": tree{"name": "urgent"}, "value": 1000, "preemptionPolicy": "Never"}, nil)
	class := tree{"spec": tree{"template": tree{"spec": merged(podSpec(8), tree{"priorityClassName": "urgent"})}}}
	blocker := w.submit("blocker", 32, nil)
	c := opened(t, r.as(r.token("shadow")))
	kubetest.Happens(t, "all GPUs are taken", w.step,
		func() bool { s := observed(t, c); return is(s, blocker, live.Running) && s.Job(blocker).GPUs == 32 })
	id, suspended := w.submit("a", 8, class), w.submit("b", 8, merged(class, hand))
	kubetest.Happens(t, "a pod waits", w.step,
		func() bool { return len(list[kube.Pod](w, in(core, w.namespace, "pods"))) == 5 })
	s := eventually(t, c, "the pod is seen",
		func(s *live.Snapshot) bool { j := s.Job(id); return j != nil && j.Priority != 0 })
	if a, b := s.Job(id), s.Job(suspended); a.Priority != 1000 || a.State != live.Waiting || b == nil || b.Priority != 0 {
		t.Errorf("%+v, %+v, want the priority of the one that has a pod", a, b)
	}
}

// tied starts a pod and a Job on g2, which has no room for them, and takes that back: of the Job it can be, of the pod
// nobody can.
func (r *realCluster) tied(t *testing.T, w *world, c *Cluster) {
	gated := merged(podSpec(8), tree{"schedulingGates": []tree{{"name": gate}}})
	var p kube.Pod
	w.must(http.MethodPost, in(core, w.namespace, "pods"), tree{"metadata": tree{"name": "waits"}, "spec": gated}, &p)
	pod, job := kube.PodsID(&p), w.submit("waits", 8, hand)
	eventually(t, c, "both are seen", func(s *live.Snapshot) bool { return s.Job(pod) != nil && s.Job(job) != nil })
	for _, res := range c.Act(ctx, []live.Action{{Op: live.StartJob, Job: pod, Nodes: []string{"g2"}}, {Op: live.StartJob, Job: job, Nodes: []string{"g2"}}}) {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	kubetest.Happens(t, "the scheduler has found no room", w.step, func() bool {
		pods := list[kube.Pod](w, in(core, w.namespace, "pods"))
		return len(pods) == 5 && !slices.ContainsFunc(pods, func(p *kube.Pod) bool {
			return p.Spec.NodeName == "" &&
				!slices.ContainsFunc(p.Status.Conditions,
					func(c kube.Condition) bool { return c.Type == "PodScheduled" && c.Status == "False" })
		})
	})
	for _, id := range []string{pod, job} {
		if j := observed(t, c).Job(id); j.State != live.Waiting || !j.Freed || !slices.Equal(j.Nodes, []string{"g2"}) {
			t.Errorf("%+v, want it to wait for g2", j)
		}
	}
	for _, patch := range []tree{{"nodeSelector": tree{hostLabel: nil}}, {"nodeSelector": tree{hostLabel: "g1"}},
		{"schedulingGates": []tree{{"name": gate}}}} {
		if err := w.try(http.MethodPatch, w.podPath("waits"), tree{"spec": patch}, nil); !errors.Is(err, errInvalid) {
			t.Errorf("%v is changed by somebody who may do everything: %v", patch, err)
		}
	}
	stop := w.stepping()
	release := c.Act(ctx, []live.Action{{Op: live.ReleaseJob, Job: pod}, {Op: live.ReleaseJob, Job: job}})
	stop()
	if !errors.Is(release[0].Err, live.ErrTied) || !strings.Contains(release[0].Err.Error(), "waits for node g2") ||
		release[1].Err != nil {
		t.Errorf("%v, want ErrTied of the pod alone", release)
	}
	kubetest.Happens(t, "the Job runs elsewhere", w.step, func() bool { return is(observed(t, c), job, live.Running) })
	if p := observed(t, c).Job(job).Places; p[0].Node != "g1" {
		t.Errorf("on %v, want g1, which is free", p)
	}
	// As the error says.
	w.must(http.MethodDelete, w.podPath("waits"), tree{"gracePeriodSeconds": 0}, nil)
	w.must(http.MethodPost, in(core, w.namespace, "pods"), tree{"metadata": tree{"name": "waits"}, "spec": gated}, &p)
	again := kube.PodsID(&p)
	if s := eventually(t, c, "it is held again",
		func(s *live.Snapshot) bool { return s.Job(again) != nil && s.Job(pod) == nil }); !s.Job(again).Ours ||
		s.Job(again).Freed {
		t.Errorf("%+v", s.Job(again))
	}
}

// killed kills an agent ten times, each time after one more of its writes, and has another process put things right.
func (r *realCluster) killed(t *testing.T) {
	token := r.token("gate")
	for moment := range 10 {
		w := r.world(t)
		w.t = t
		for i := range 8 { // half of them are handed over, the others would start by themselves
			more := hand
			if i%2 == 1 {
				more = nil
			}
			w.submit(fmt.Sprintf("k%d", i), 8, more)
		}
		w.submit("blocker", 32, nil)
		w.step()
		agent := exec.Command(os.Args[0], "-test.run=^TestAgentProcess$") //nolint:gosec // this test
		cfg, err := json.Marshal(r.as(token))
		if err != nil {
			t.Fatal(err)
		}
		agent.Env = append(os.Environ(), "CLUSTERGYM_KUBE_AGENT="+string(cfg))
		out, err := agent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		agent.Stderr = os.Stderr
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		stop := w.stepping()
		said := bufio.NewScanner(out)
		for n := 0; n <= moment*2 && said.Scan(); n++ {
		}
		if err := agent.Process.Kill(); err != nil {
			t.Error(err)
		}
		_ = agent.Wait()
		other := opened(t, r.as(token))
		kubetest.Happens(t, "all are released", nil, func() bool {
			touched := false
			for _, j := range observed(t, other).Jobs {
				if j.State == live.Waiting && (j.Ours || j.Freed) {
					touched = true
					if err := other.Act(ctx, []live.Action{{Op: live.ReleaseJob, Job: j.ID}})[0].Err; err != nil &&
						!errors.Is(err, live.ErrGone) && !errors.Is(err, live.ErrNotYet) {
						t.Error(err)
					}
				}
			}
			return !touched
		})
		stop()
		for _, j := range w.allJobs() {
			if j.Spec.Suspend || j.Annotations[heldKey] != "" {
				t.Errorf("moment %d: %s is stranded: %+v", moment, j.Name, j.Annotations)
			}
		}
		ended := map[string]bool{}
		kubetest.Happens(t, fmt.Sprintf("moment %d: 9 jobs have ended", moment), w.step, func() bool {
			for _, j := range observed(t, other).Jobs {
				if j.State == live.Running && j.GPUs == fullSize(w, j.ID) && !ended[j.ID] {
					w.finish(j.ID)
					ended[j.ID] = true
				}
			}
			return len(ended) == 9
		})
	}
}

// TestAgentProcess is the agent that is killed: it holds every job that waits and starts it on a node of its choice,
// over and over, and says what it is about to write.
func TestAgentProcess(t *testing.T) {
	text := os.Getenv("CLUSTERGYM_KUBE_AGENT")
	if text == "" {
		t.Skip("it is started by TestKubernetes")
	}
	var cfg Config
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		t.Fatal(err)
	}
	c := opened(t, cfg)
	for n := 0; ; n++ {
		s, err := c.Observe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range s.Jobs {
			if j.State != live.Waiting || j.Blocked != "" {
				continue
			}
			a := live.Action{Op: live.HoldJob, Job: j.ID}
			if j.Ours {
				a = live.Action{Op: live.StartJob, Job: j.ID, Nodes: []string{fmt.Sprintf("g%d", n%4)}}
				if j.GPUs > 8 {
					a.Nodes = []string{"g0", "g1", "g2", "g3"}
				}
			}
			fmt.Println(a)
			if err := c.Act(ctx, []live.Action{a})[0].Err; err != nil {
				fmt.Println(err)
			}
			n++
		}
	}
}

func (r *realCluster) restart(t *testing.T) {
	w := r.world(t)
	held, free := w.submit("held", 8, hand), w.submit("free", 8, nil)
	w.step()
	c := opened(t, r.as(r.token("gate")))
	eventually(t, c, "one runs", func(s *live.Snapshot) bool { return s.Job(free).State == live.Running })
	r.Kill()
	if _, err := c.Observe(ctx); !errors.Is(err, live.ErrUnreachable) {
		t.Errorf("Observe: %v, want ErrUnreachable", err)
	}
	if err := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: held, Nodes: []string{"g1"}}})[0].Err; !errors.Is(err,
		live.ErrUnreachable) {
		t.Errorf("Act: %v, want ErrUnreachable", err)
	}
	r.Revive()
	kubetest.Happens(t, "the cluster is observed again", nil, func() bool {
		s, err := c.Observe(ctx)
		if err != nil {
			return false
		}
		if j := s.Job(held); j == nil || !j.Ours || s.Job(free).State != live.Running {
			t.Errorf("%+v", s.Jobs)
		}
		return true
	})
	if err := c.Act(ctx, []live.Action{{Op: live.StartJob, Job: held, Nodes: []string{"g3"}}})[0].Err; err != nil {
		t.Fatal(err)
	}
	// The scheduler finds its way back in its own time.
	kubetest.Happens(t, "the job starts after the restart", w.step,
		func() bool { return is(observed(t, c), held, live.Running) })
	if p := observed(t, c).Job(held).Places; p[0].Node != "g3" {
		t.Errorf("on %v, want g3", p)
	}
}

// withdrawn deletes the service account of an agent that observes.
func (r *realCluster) withdrawn(t *testing.T) {
	c := opened(t, r.as(r.token("shadow")))
	observed(t, c)
	r.admin.must(http.MethodDelete, core+"/namespaces/clustergym/serviceaccounts/steer-shadow", nil, nil)
	var err error
	// The server believes a token for some seconds without looking.
	kubetest.Happens(t, "the account is not known any more", nil, func() bool {
		_, err = c.Observe(ctx)
		return err != nil
	})
	if !errors.Is(err, live.ErrDenied) || !strings.Contains(err.Error(), "credentials have expired") {
		t.Errorf("%v, want ErrDenied", err)
	}
}

// ranks registers the kinds of Kueue, as far as the adapter knows them, and plays its controller.
func (r *realCluster) ranks(t *testing.T) {
	r.InstallKueue("v1beta1")
	for mode, says := range map[string][2]string{"rank": {"", "this user may not patch jobs.batch in all namespaces: deploy/kubernetes/gate.yaml has the rights"}, "gate": {"grant list on clusterqueues", ""}} {
		caps, err := opened(t, r.as(r.token(mode))).Can(ctx)
		if err != nil || !strings.Contains(caps.Rank, says[0]) || !strings.Contains(caps.Gate, says[1]) ||
			(caps.Rank == "") != (says[0] == "") || (caps.Gate == "") != (says[1] == "") {
			t.Errorf("%s: %+v, %v", mode, caps, err)
		}
	}
	t.Run("with the rights of rank", func(t *testing.T) {
		w := r.world(t)
		w.queue = "gpus"
		blocker, id := w.submit("blocker", 32, nil), w.submit("ranked", 8, nil)
		c := opened(t, r.as(r.token("rank")))
		kubetest.Happens(t, "the first one runs", w.step, func() bool { return is(observed(t, c), blocker, live.Running) })
		if err := c.Act(ctx, []live.Action{{Op: live.RankJob, Job: id, Score: 3}})[0].Err; err != nil {
			t.Errorf("with the rights of rank: %v", err)
		}
		if j := observed(t, c).Job(id); j.Rank != 3 {
			t.Errorf("%+v, want rank 3", j)
		}
		for mode, bodies := range map[string][]tree{"rank": {{"spec": tree{"active": false}}}, "gate": nil} {
			for _, body := range append(bodies, tree{"spec": tree{"queueName": "other"}},
				tree{"metadata": tree{"labels": tree{"x": "y"}}},
				tree{"metadata": tree{"finalizers": []string{"example.org/stay"}}}) {
				opened(t, r.as(r.token(mode))).refuses(t, mode, w.workloads()+"/job-ranked", body)
			}
		}
	})
	t.Run("the contract with the rights of rank and gate", func(t *testing.T) {
		const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		r.admin.must(http.MethodPost, bindings,
			tree{"metadata": tree{"name": "both"},
				"roleRef":  tree{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clustergym-steer-rank"},
				"subjects": []tree{{"kind": "ServiceAccount", "name": "steer-gate", "namespace": "clustergym"}}}, nil)
		t.Cleanup(func() { r.admin.must(http.MethodDelete, bindings+"/both", nil, nil) })
		token := r.token("gate")
		kubetest.Happens(t, "the account may rank, too", nil, func() bool {
			caps, err := opened(t, r.as(token)).Can(ctx)
			return err == nil && caps == live.Caps{}
		})
		livetest.Suite(t, func(t *testing.T) *livetest.Bench {
			w := r.world(t)
			w.queue = "gpus"
			b := w.bench(func(t *testing.T) *Cluster { return opened(t, r.as(token)) })
			b.NoNodes = "Kueue chooses where its Workloads run"
			return b
		})
	})
}
