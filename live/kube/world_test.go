package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/kubetest"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces/kube"
)

// world plays what a cluster has beside its API server: the controller of Jobs, the kubelets, where asked for the
// scheduler and Kueue. Tests call step; nothing runs by itself.
type world struct {
	t         *testing.T
	c         *client
	namespace string
	schedules bool // it binds pods
	queue     string
	reading   kube.Reading
}

var ctx = context.Background()

func (w *world) must(method, path string, body, out any) {
	w.t.Helper()
	if err := w.try(method, path, body, out); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) try(method, path string, body, out any) error {
	_, err := w.c.call(ctx, method, path, nil, body, out)
	return err
}

func (w *world) jobPath(name string) string { return in(batch, w.namespace, "jobs/"+name) }
func (w *world) podPath(name string) string { return in(core, w.namespace, "pods/"+name) }

// addNode makes a node of 8 GPUs that is ready.
func (w *world) addNode(name string) {
	w.t.Helper()
	kubetest.AddNode(w.must, name)
}

// podSpec asks for so many GPUs.
func podSpec(gpus int) tree { return kubetest.PodSpec(gpus) }

// submit makes a Job and returns its ID. Gangs of more than a node have a pod for each; more adds to the Job.
func (w *world) submit(name string, gpus int, more tree) string {
	w.t.Helper()
	pods, each := 1, gpus
	if gpus > 8 {
		pods, each = gpus/4, 4
		if gpus%8 == 0 {
			pods, each = gpus/8, 8
		}
	}
	o := tree{"apiVersion": "batch/v1", "kind": "Job", "metadata": tree{"name": name, "namespace": w.namespace},
		"spec": tree{
			"parallelism": pods, "completions": pods, "suspend": false, "template": tree{"spec": podSpec(each)}}}
	if w.queue != "" {
		o = merged(o, tree{"metadata": tree{"labels": tree{kube.QueueLabel: w.queue}}, "spec": tree{"suspend": true}})
	}
	o = merged(o, more)
	var j kube.Job
	w.must(http.MethodPost, in(batch, w.namespace, "jobs"), o, &j)
	return kube.ID("job", j.Namespace, j.Name, j.UID)
}

func nameOf(id string) string {
	name, _, _ := strings.Cut(id[strings.LastIndex(id, "/")+1:], "@")
	return name
}

func list[T any](w *world, path string) []*T {
	w.t.Helper()
	var l struct {
		Items []*T `json:"items"`
	}
	w.must(http.MethodGet, path, nil, &l)
	return l.Items
}

func (w *world) allJobs() []*kube.Job {
	jobs := list[kube.Job](w, in(batch, w.namespace, "jobs"))
	slices.SortFunc(jobs, func(a, b *kube.Job) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp); c != 0 {
			return c
		}
		return len(a.ResourceVersion) - len(b.ResourceVersion) // the version stands for the order of creation within a second
	})
	return jobs
}

// step does what controllers have to do now.
func (w *world) step() {
	w.t.Helper()
	if w.queue != "" {
		w.admit()
	}
	for _, j := range w.allJobs() {
		w.syncJob(j)
	}
	if w.schedules {
		w.bind()
	}
	for _, p := range list[kube.Pod](w, in(core, w.namespace, "pods")) {
		if p.Spec.NodeName != "" && p.Status.Phase != "Running" && !p.Over() {
			w.ignoring(w.try(http.MethodPatch, w.podPath(p.Name)+"/status",
				tree{"status": tree{"phase": "Running", "startTime": kubetest.Now()}}, nil))
		}
	}
}

// ignoring lets pass what a change in between explains.
func (w *world) ignoring(err error) {
	w.t.Helper()
	if err != nil && !errors.Is(err, errMissing) && !errors.Is(err, errConflict) {
		w.t.Fatal(err)
	}
}

func (w *world) podsOf(j *kube.Job) []*kube.Pod {
	var mine []*kube.Pod
	for _, p := range list[kube.Pod](w, in(core, w.namespace, "pods")) {
		if p.Controller().UID == j.UID && !p.Over() {
			mine = append(mine, p)
		}
	}
	return mine
}

// syncJob is the controller of Jobs. It makes the pods of a gang only when all of them have room, as a plug-in for
// gangs would.
func (w *world) syncJob(j *kube.Job) {
	w.t.Helper()
	if at, _ := j.Finished(); !at.IsZero() {
		return
	}
	pods := w.podsOf(j)
	if j.Spec.Suspend {
		for _, p := range pods {
			w.ignoring(w.try(http.MethodDelete, w.podPath(p.Name), tree{"gracePeriodSeconds": 0}, nil))
		}
		if j.Status.Active > 0 || kube.Holds(j.Status.Conditions, "Suspended") == nil {
			w.ignoring(w.try(http.MethodPatch, w.jobPath(j.Name)+"/status",
				tree{"metadata": tree{"resourceVersion": j.ResourceVersion}, "status": tree{"active": 0,
					"ready": 0, "conditions": kubetest.Conditions("True", "Suspended")}}, nil))
		}
		return
	}
	if j.Status.StartTime.IsZero() || kube.Holds(j.Status.Conditions, "Suspended") != nil {
		// The real one does not wait with the start time either until pods run.
		err := w.try(http.MethodPatch, w.jobPath(j.Name)+"/status",
			tree{"metadata": tree{"resourceVersion": j.ResourceVersion}, "status": tree{"startTime": kubetest.Now(),
				"conditions": kubetest.Conditions("False", "Suspended")}}, nil)
		w.ignoring(err)
		if err != nil {
			return
		}
	}
	want := j.Gang()
	if want > 1 && len(pods) == 0 && !w.fits(j) {
		return
	}
	for i := len(pods); i < want; i++ {
		w.podSeq(j)
	}
	if len(pods) < want {
		w.ignoring(w.try(http.MethodPatch, w.jobPath(j.Name)+"/status", tree{"status": tree{"active": want, "ready": 0}},
			nil))
	}
}

// podSeq makes one more pod of a Job.
func (w *world) podSeq(j *kube.Job) {
	w.t.Helper()
	var full struct {
		Spec struct {
			Template tree `json:"template"`
		} `json:"spec"`
	}
	w.must(http.MethodGet, w.jobPath(j.Name), nil, &full)
	seq++
	labels := tree{"batch.kubernetes.io/controller-uid": j.UID, "batch.kubernetes.io/job-name": j.Name}
	w.must(http.MethodPost, in(core, w.namespace, "pods"),
		tree{"apiVersion": "v1", "kind": "Pod",
			"metadata": tree{"name": fmt.Sprintf("%s-%05d", j.Name, seq), "namespace": w.namespace, "labels": labels,
				"ownerReferences": []tree{{"apiVersion": "batch/v1", "kind": "Job", "name": j.Name, "uid": j.UID,
					"controller": true}}}, "spec": full.Spec.Template["spec"]}, nil)
}

var seq int

// free returns the GPUs of each node that no pod has, bound or not yet bound by name.
func (w *world) free() map[string]int {
	free := map[string]int{}
	for _, n := range list[Node](w, core+"/nodes") {
		if !n.Spec.Unschedulable {
			free[n.Name] = 8
		}
	}
	for _, p := range list[kube.Pod](w, in(core, w.namespace, "pods")) {
		if holds(p) {
			free[p.Spec.NodeName] -= w.reading.Pod(&p.Spec).GPUs
		}
	}
	return free
}

// allowed reports whether a pod may run on a node; the names of nodes are their host labels.
func allowed(p *kube.PodSpec, node string) bool {
	v := view{hosts: map[string]string{}}
	may := v.may(p)
	return may == nil || slices.Contains(may, node)
}

func (w *world) fits(j *kube.Job) bool {
	spec := &j.Spec.Template.Spec
	each, room := w.reading.Pod(spec).GPUs, 0
	for node, gpus := range w.free() {
		if allowed(spec, node) {
			room += gpus / each
		}
	}
	for _, p := range list[kube.Pod](w, in(core, w.namespace, "pods")) { // those that wait go first
		if p.Spec.NodeName == "" {
			room--
		}
	}
	return room >= j.Gang()
}

// bind is the scheduler.
func (w *world) bind() {
	w.t.Helper()
	pods := list[kube.Pod](w, in(core, w.namespace, "pods"))
	slices.SortStableFunc(pods, func(a, b *kube.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp) })
	for _, p := range pods {
		if p.Spec.NodeName != "" || len(p.Spec.SchedulingGates) > 0 || p.Over() {
			continue
		}
		free := w.free()
		for _, n := range []string{"g0", "g1", "g2", "g3"} {
			if free[n] >= w.reading.Pod(&p.Spec).GPUs && allowed(&p.Spec, n) {
				w.ignoring(w.try(http.MethodPatch, w.podPath(p.Name), tree{"spec": tree{"nodeName": n}}, nil))
				break
			}
		}
	}
}

// finish ends a running Job.
func (w *world) finish(id string) {
	w.t.Helper()
	name := nameOf(id)
	var j kube.Job
	w.must(http.MethodGet, w.jobPath(name), nil, &j)
	for _, p := range w.podsOf(&j) {
		w.must(http.MethodPatch, w.podPath(p.Name)+"/status", tree{"status": tree{"phase": "Succeeded"}}, nil)
	}
	kubetest.FinishJob(w.must, w.jobPath(name), j.Gang())
	if w.queue != "" {
		for _, wl := range list[kube.Workload](w, w.workloads()) {
			if wl.Controller().UID == j.UID {
				w.must(http.MethodPatch, w.workloads()+"/"+wl.Name+"/status",
					tree{"status": tree{"conditions": kubetest.Conditions("True", "Finished")}}, nil)
			}
		}
	}
}

func (w *world) workloads() string {
	return in("/apis/"+kueueGroup+"/v1beta1", w.namespace, "workloads")
}

// makeWorkloads makes the Workloads of Jobs, as Kueue does, and returns the Jobs by their uid.
func (w *world) makeWorkloads() map[string]*kube.Job {
	w.t.Helper()
	all := list[kube.Workload](w, w.workloads())
	jobs := map[string]*kube.Job{}
	for _, j := range w.allJobs() {
		jobs[j.UID] = j
		if j.Labels[kube.QueueLabel] == "" {
			continue
		}
		if at, _ := j.Finished(); !at.IsZero() ||
			slices.ContainsFunc(all, func(wl *kube.Workload) bool { return wl.Controller().UID == j.UID }) {
			continue
		}
		var full struct {
			Spec struct {
				Template tree `json:"template"`
			} `json:"spec"`
		}
		w.must(http.MethodGet, w.jobPath(j.Name), nil, &full)
		w.must(http.MethodPost, w.workloads(),
			tree{"apiVersion": kueueGroup + "/v1beta1", "kind": "Workload",
				"metadata": tree{"name": "job-" + j.Name, "namespace": w.namespace,
					"ownerReferences": []tree{{"apiVersion": "batch/v1", "kind": "Job", "name": j.Name, "uid": j.UID,
						"controller": true}}},
				"spec": tree{"queueName": w.queue, "active": true,
					"podSets": []tree{{"name": "main", "count": j.Gang(), "template": tree{"spec": full.Spec.Template["spec"]}}}}},
			nil)
	}
	return jobs
}

// admit is Kueue: it starts those of the highest priority that fit.
func (w *world) admit() {
	w.t.Helper()
	jobs := w.makeWorkloads()
	all := list[kube.Workload](w, w.workloads())
	priority := func(wl *kube.Workload) int32 {
		if wl.Spec.Priority == nil {
			return 0
		}
		return *wl.Spec.Priority
	}
	slices.SortStableFunc(all, func(a, b *kube.Workload) int {
		if c := int(priority(b)) - int(priority(a)); c != 0 {
			return c
		}
		return a.CreationTimestamp.Compare(b.CreationTimestamp)
	})
	room := 0
	for _, gpus := range w.free() {
		room += gpus
	}
	for _, wl := range all { // admitted, and without pods yet
		if j := jobs[wl.Controller().UID]; j != nil && !wl.Admitted().IsZero() &&
			kube.Holds(wl.Status.Conditions, "Finished") == nil && len(w.podsOf(j)) == 0 {
			room -= w.reading.Workload(wl).GPUs
		}
	}
	for _, wl := range all {
		j := jobs[wl.Controller().UID]
		active := wl.Spec.Active == nil || *wl.Spec.Active
		switch {
		case j == nil || kube.Holds(wl.Status.Conditions, "Finished") != nil:
		case !active && !wl.Admitted().IsZero(): // evicted
			w.must(http.MethodPatch, w.workloads()+"/"+wl.Name+"/status",
				tree{"status": tree{"conditions": kubetest.Conditions("False", "Admitted")}}, nil)
			w.must(http.MethodPatch, w.jobPath(j.Name), tree{"spec": tree{"suspend": true}}, nil)
		case active && wl.Admitted().IsZero():
			if gpus := w.reading.Workload(wl).GPUs; gpus <= room {
				room -= gpus
				w.must(http.MethodPatch, w.workloads()+"/"+wl.Name+"/status",
					tree{"status": tree{"conditions": kubetest.Conditions("True", "Admitted")}}, nil)
				w.must(http.MethodPatch, w.jobPath(j.Name), tree{"spec": tree{"suspend": false}}, nil)
			}
		}
	}
}

// bench is a cluster for the suite.
func (w *world) bench(open func(*testing.T) *Cluster) *livetest.Bench {
	b := &livetest.Bench{
		Cluster: acted{open(w.t), w},
		Another: func(t *testing.T) live.Cluster { return acted{open(t), w} },
		Submit: func(t *testing.T, name string, gpus int) string {
			id := w.submit(name, gpus, nil)
			w.step()
			return id
		},
		Finish: func(t *testing.T, id string) { w.finish(id) },
	}
	if w.queue != "" { // a Job in a queue of Kueue is a job once its Workload is there
		submit := b.Submit
		b.Submit = func(t *testing.T, name string, gpus int) string {
			id := submit(t, name, gpus)
			b.Settle(t, "the Workload of "+id,
				func(s *live.Snapshot) bool { j := s.Job(id); return j != nil && j.Blocked == "" })
			return id
		}
	}
	b.Settle = func(t *testing.T, what string, ok func(*live.Snapshot) bool) *live.Snapshot {
		t.Helper()
		var last *live.Snapshot
		for begun := time.Now(); time.Since(begun) < long; {
			s, err := b.Cluster.Observe(ctx)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if ok(s) {
				return s
			}
			last = s
			w.step()
			time.Sleep(5 * time.Millisecond) // the mirror follows the server in a moment
		}
		t.Fatalf("waited in vain: %s; at last %+v", what, last)
		return nil
	}
	return b
}

// acted is a cluster whose controllers go on while it acts.
type acted struct {
	*Cluster
	w *world
}

func (a acted) Act(ctx context.Context, actions []live.Action) []live.Result {
	defer a.w.stepping()()
	return a.Cluster.Act(ctx, actions)
}

// stepping lets controllers work while Act waits for them; the returned function ends that.
func (w *world) stepping() (stop func()) {
	w.t.Helper()
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				w.step()
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(done); <-over })
	w.t.Cleanup(stop) // before the server ends
	return stop
}

func is(s *live.Snapshot, id string, state live.State) bool {
	j := s.Job(id)
	return j != nil && j.State == state
}
