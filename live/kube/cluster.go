package kube

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"clustergym/live"
	"clustergym/traces/kube"
)

// Cluster is a Kubernetes cluster. The first Observe lists the objects and begins to watch them; Close ends that.
type Cluster struct {
	cfg      Config
	c        *client
	patience time.Duration
	started  bool
	cancel   context.CancelFunc
	running  sync.WaitGroup

	jobs      []*store[kube.Job] // by namespace
	pods      []*store[kube.Pod]
	nodes     *store[Node]
	workloads []*store[kube.Workload] // nil without Kueue
	mirrors   []mirror                // all of these
	kueue     kueue
}

// mirror is a store of any kind of objects.
type mirror interface {
	run(ctx context.Context)
	ready(ctx context.Context) error
}

var _ live.Cluster = (*Cluster)(nil)

// Node is a v1 Node, as far as it matters here.
type Node struct {
	kube.Meta `json:"metadata"`
	Spec      struct {
		Unschedulable bool `json:"unschedulable"`
		Taints        []struct {
			Key    string `json:"key"`
			Value  string `json:"value"`
			Effect string `json:"effect"`
		} `json:"taints"`
	} `json:"spec"`
	Status struct {
		Capacity    map[string]kube.Quantity `json:"capacity"`
		Allocatable map[string]kube.Quantity `json:"allocatable"`
		Conditions  []kube.Condition         `json:"conditions"`
	} `json:"status"`
}

// racks are the labels of nodes that name a rack or zone; the first that is there counts.
var racks = kube.Default().Racks

// hostLabel is the label of a node by which pods choose it. Its value is not always the node's name.
const hostLabel = "kubernetes.io/hostname"

// Open prepares a cluster. It does not call it yet.
func Open(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	c, err := newClient(cfg)
	if err != nil {
		return nil, err
	}
	return &Cluster{cfg: cfg, c: c, patience: patience}, nil
}

// Close ends the watches.
func (c *Cluster) Close() error {
	if c.cancel != nil {
		c.cancel()
	}
	c.running.Wait()
	c.c.http.CloseIdleConnections()
	return nil
}

// in returns the path of a resource in a namespace, "" = in all of them.
func in(api, namespace, resource string) string {
	if namespace == "" {
		return api + "/" + resource
	}
	return api + "/namespaces/" + namespace + "/" + resource
}

const (
	core  = "/api/v1"
	batch = "/apis/batch/v1"
)

// start begins to watch. It is tried again by the next call if it fails.
func (c *Cluster) start(ctx context.Context) error {
	if c.started {
		return nil
	}
	if err := c.kueue.discover(ctx, c.c, c.cfg.Namespaces[0]); err != nil {
		return err
	}
	r := &c.cfg.Reading
	running, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	for _, ns := range c.cfg.Namespaces {
		jobs := newStore(c.c, in(batch, ns, "jobs"), func(j *kube.Job) bool { return r.Pod(&j.Spec.Template.Spec).GPUs > 0 })
		pods := newStore(c.c, in(core, ns, "pods"), func(p *kube.Pod) bool { return r.Pod(&p.Spec).GPUs > 0 })
		c.jobs, c.pods, c.mirrors = append(c.jobs, jobs), append(c.pods, pods), append(c.mirrors, jobs, pods)
		if c.kueue.version != "" && c.kueue.hidden == nil {
			w := newStore(c.c, in(c.kueue.api(), ns, "workloads"), func(w *kube.Workload) bool { return r.Workload(w).GPUs > 0 })
			c.workloads, c.mirrors = append(c.workloads, w), append(c.mirrors, w)
		}
	}
	c.nodes = newStore(c.c, core+"/nodes", func(*Node) bool { return true })
	c.mirrors = append(c.mirrors, c.nodes)
	for _, m := range c.mirrors {
		c.running.Go(func() { m.run(running) })
	}
	c.started = true
	return nil
}

// follow waits until all mirrors follow the server.
func (c *Cluster) follow(ctx context.Context) error {
	if err := c.start(ctx); err != nil {
		return err
	}
	for _, m := range c.mirrors {
		if err := m.ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Observe implements live.Cluster. Times are by the server's clock.
func (c *Cluster) Observe(ctx context.Context) (*live.Snapshot, error) {
	// The mirrors could be those of a server that has gone without a word: this asks it.
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	at, err := c.c.call(ctx, http.MethodGet, "/version", nil, nil, &version)
	if err != nil {
		return nil, err
	}
	if err := c.follow(ctx); err != nil {
		return nil, err
	}
	if at.IsZero() {
		at = time.Now()
	}
	s := &live.Snapshot{At: at, Cluster: c.cfg.Name, Version: version.GitVersion}
	v := c.view()
	v.fill(s)
	s.Sort()
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// view is the mirrors' contents, joined: which pods and which Workload are which job's.
type view struct {
	c     *Cluster
	nodes []*Node
	hosts map[string]string // hostname label → node
	units map[string]*unit
	// owners finds the unit of whatever a pod may belong to, by uid.
	owners map[string]*unit
	spans  map[int32]int64 // what room returns
}

// unit is one job: a Job, a Workload of something else, or pods.
type unit struct {
	id   string
	job  *kube.Job
	wl   *kube.Workload
	pods []*kube.Pod // in order of name
}

func (c *Cluster) view() *view {
	v := &view{c: c, nodes: c.nodes.all(), hosts: map[string]string{}, units: map[string]*unit{},
		owners: map[string]*unit{}}
	for _, n := range v.nodes {
		if h := n.Labels[hostLabel]; h != "" {
			v.hosts[h] = n.Name
		}
	}
	byOwner := map[string]*kube.Workload{}
	var workloads []*kube.Workload
	for _, s := range c.workloads {
		workloads = append(workloads, s.all()...)
	}
	// In order, so that of two Workloads of one Job, which a change of the Job leaves for a moment, the newer one counts.
	slices.SortFunc(workloads, func(a, b *kube.Workload) int { return a.CreationTimestamp.Compare(b.CreationTimestamp) })
	for _, w := range workloads {
		for _, o := range w.OwnerReferences {
			byOwner[o.UID] = w
		}
	}
	ofJobs := map[*kube.Workload]bool{}
	var within []*kube.Job // Jobs that are part of something larger, which has a Workload
	for _, s := range c.jobs {
		for _, j := range s.all() {
			if w := byOwner[j.Controller().UID]; w != nil && j.Controller().UID != "" {
				within = append(within, j)
				continue
			}
			u := v.unit(kube.ID("job", j.Namespace, j.Name, j.UID))
			u.job, u.wl = j, byOwner[j.UID]
			v.owners[j.UID] = u
			if u.wl != nil {
				ofJobs[u.wl] = true
			}
		}
	}
	for _, w := range workloads {
		if ofJobs[w] {
			continue
		}
		u := v.unit(kube.ID("workload", w.Namespace, w.Name, w.UID))
		u.wl = w
		for _, o := range w.OwnerReferences {
			v.owners[o.UID] = u
		}
	}
	for _, j := range within {
		v.owners[j.UID] = v.owners[j.Controller().UID]
	}
	for _, s := range c.pods {
		for _, p := range s.all() {
			v.pod(p)
		}
	}
	for _, u := range v.units {
		slices.SortFunc(u.pods, func(a, b *kube.Pod) int { return strings.Compare(a.Name, b.Name) })
	}
	return v
}

func (v *view) unit(id string) *unit {
	u := v.units[id]
	if u == nil {
		u = &unit{id: id}
		v.units[id] = u
	}
	return u
}

// pod adds a pod to the job that it is part of.
func (v *view) pod(p *kube.Pod) {
	o := p.Controller()
	u := v.owners[o.UID]
	if u == nil {
		u = v.owners[p.UID] // a pod that Kueue queues by itself
	}
	switch {
	case u != nil:
	case o.Kind == "Job" && strings.HasPrefix(o.APIVersion, "batch/"):
		if !holds(p) {
			return // the Job has been deleted, and this pod will be
		}
		u = v.unit(kube.ID("job", p.Namespace, o.Name, o.UID))
	default:
		u = v.unit(kube.PodsID(p))
	}
	u.pods = append(u.pods, p)
}

// holds reports whether a pod has GPUs of its node.
func holds(p *kube.Pod) bool { return p.Spec.NodeName != "" && !p.Over() }

// fill writes the snapshot.
func (v *view) fill(s *live.Snapshot) {
	used := map[string]int{}
	v.spans = v.room()
	for _, u := range v.units {
		j, there := v.job(u)
		switch {
		case !there:
		case j.State == live.Ended:
			s.Ended = append(s.Ended, j)
		default:
			for _, p := range j.Places {
				used[p.Node] += p.GPUs
			}
			s.Jobs = append(s.Jobs, j)
		}
	}
	for _, n := range v.nodes {
		if m := v.node(n, used[n.Name]); m.GPUs > 0 {
			s.Nodes = append(s.Nodes, m)
		}
		delete(used, n.Name)
	}
	for name, gpus := range used { // the snapshot is sorted later
		if name != "" {
			s.Nodes = append(s.Nodes,
				live.Node{Name: name, GPUs: gpus, Down: true, Why: "it has been deleted, with pods still on it"})
		}
	}
}

// node is a node as a snapshot shows it. used are the GPUs that running jobs hold: it has no fewer, even if its device
// plug-in says nothing for a while.
func (v *view) node(n *Node, used int) live.Node {
	m := live.Node{Name: n.Name, GPUs: v.gpus(n.Status.Allocatable), Rack: label(n, racks),
		GPUType: label(n, v.c.cfg.Reading.Types)}
	m.CPUMilli, _ = n.Status.Allocatable["cpu"].Milli()
	m.MemBytes, _ = n.Status.Allocatable["memory"].Value()
	var why []string
	// its device plug-in is away; the kubelet forgets the capacity some minutes later
	if has := v.gpus(n.Status.Capacity); m.GPUs == 0 && has > 0 {
		m.GPUs = has
		why = append(why, "none of its GPUs can be allocated")
	}
	if used > m.GPUs {
		m.GPUs, m.Short = used, true
		why = append(why, "it shows fewer GPUs than jobs hold")
	}
	if n.Spec.Unschedulable {
		why = append(why, "cordoned")
	}
	if i := slices.IndexFunc(n.Status.Conditions, func(c kube.Condition) bool { return c.Type == "Ready" }); i >= 0 &&
		n.Status.Conditions[i].Status != "True" {
		why = append(why, strings.TrimSpace("not ready: "+n.Status.Conditions[i].Reason))
	}
	for _, t := range n.Spec.Taints {
		known := slices.Contains(v.c.cfg.Tolerated,
			t.Key) || slices.Contains(v.c.cfg.Reading.GPUs, t.Key) || strings.HasPrefix(t.Key,
			"node.kubernetes.io/") && len(why) > 0
		if t.Effect != "PreferNoSchedule" && !known {
			why = append(why, "taint "+t.Key)
		}
	}
	m.Down, m.Why = len(why) > 0, strings.Join(why, ", ")
	return m
}

func (v *view) gpus(all map[string]kube.Quantity) (n int) {
	for _, name := range v.c.cfg.Reading.GPUs {
		if q, ok := all[name]; ok {
			k, _ := q.Value()
			n += int(min(k, 1<<20))
		}
	}
	return n
}

func label(n *Node, keys []string) string {
	for _, k := range keys {
		if v := n.Labels[k]; v != "" {
			return v
		}
	}
	return ""
}

// job is a unit as a snapshot shows it, false if it is not to be shown.
func (v *view) job(u *unit) (live.Job, bool) {
	r := &v.c.cfg.Reading
	var j live.Job
	var deleted bool
	switch {
	case u.job != nil:
		j.Job, j.Submit, deleted = r.FromJob(u.job, u.pods, u.wl), u.job.CreationTimestamp, !u.job.DeletionTimestamp.IsZero()
	case u.wl != nil:
		j.Job, j.Submit, deleted = r.FromWorkload(u.wl), u.wl.CreationTimestamp, !u.wl.DeletionTimestamp.IsZero()
	default:
		j.Job, j.Submit = r.FromPods(u.pods), u.pods[0].CreationTimestamp
		deleted = !slices.ContainsFunc(u.pods, func(p *kube.Pod) bool { return p.DeletionTimestamp.IsZero() })
		if o := u.pods[0].Controller(); o.Kind == "Job" {
			j.Name = o.Name
		}
	}
	j.ID = u.id
	u.restarts(&j)
	v.rank(u, &j)
	held, start := v.places(u, &j)
	end, ended := u.ended()
	switch {
	case held > 0:
		j.State, j.GPUs, j.Start = live.Running, held, start
		return j, true
	case ended:
		j.State, j.End, j.Start = live.Ended, end, u.began(start, end)
		return j, true
	}
	j.State, j.Places = live.Waiting, nil
	v.waiting(u, &j)
	return j, !deleted && j.GPUs > 0
}

func (u *unit) restarts(j *live.Job) {
	if u.job != nil {
		j.Restarts += number(u.job.Annotations[requeuesKey])
	}
	if u.wl != nil {
		j.Restarts += number(u.wl.Annotations[requeuesKey]) + u.wl.Status.RequeueState.Count
	}
}

// rank fills in what the unit's rank says. Where a class of priorities has come or gone, those that were written before
// leave another room, and would put jobs among the wrong ones.
func (v *view) rank(u *unit, j *live.Job) {
	if u.wl == nil {
		return
	}
	r := u.rank()
	j.Rank = r.Score
	if room, waits := v.spans[r.Base]; r.Score > 0 && waits && int64(r.Wrote) != int64(r.Base)+raise(r.Score, room) {
		j.Rank = -1
	}
}

// places fills in where the unit runs, or ran, and returns how many GPUs it holds, since when.
func (v *view) places(u *unit, j *live.Job) (held int, start time.Time) {
	on, was := map[string]int{}, map[string]int{}
	for _, p := range u.pods {
		gpus := v.c.cfg.Reading.Pod(&p.Spec).GPUs
		switch {
		case holds(p):
			on[p.Spec.NodeName] += gpus
			held += gpus
			if t := p.Started(); start.IsZero() || t.Before(start) {
				start = t
			}
		case p.Spec.NodeName != "":
			was[p.Spec.NodeName] += gpus
		}
	}
	if held == 0 {
		on = was
	}
	for node, gpus := range on { // the snapshot is sorted later
		j.Places = append(j.Places, live.Place{Node: node, GPUs: gpus})
	}
	if held > 0 && start.IsZero() {
		start = j.Submit
	}
	return held, start
}

// ended reports whether a unit that holds nothing has ended.
func (u *unit) ended() (time.Time, bool) {
	switch {
	case u.job != nil:
		at, _ := u.job.Finished()
		return at, !at.IsZero()
	case u.wl != nil:
		if c := kube.Holds(u.wl.Status.Conditions, "Finished"); c != nil {
			return c.LastTransitionTime, true
		}
		return time.Time{}, false
	}
	var at time.Time
	for _, p := range u.pods {
		if !p.Over() {
			return time.Time{}, false
		}
		if t := p.Finished(); t.After(at) {
			at = t
		}
	}
	return at, true
}

// began returns when the last run of a unit that has ended began: a job that was evicted waits in between.
func (u *unit) began(start, end time.Time) time.Time {
	width := 0
	if u.job != nil {
		width = u.job.Gang()
	}
	if run := kube.LastRun(u.pods, width, end); !run.Start.IsZero() {
		return run.Start
	}
	if start.IsZero() && u.job != nil {
		start = u.job.Status.StartTime
	}
	if start.IsZero() && u.wl != nil {
		start = u.wl.Admitted()
	}
	return start
}

// waiting fills in why a unit waits, and on which nodes it may run.
func (v *view) waiting(u *unit, j *live.Job) {
	var spec *kube.PodSpec
	switch {
	case u.job != nil:
		spec = &u.job.Spec.Template.Spec
		j.Freed = u.job.Annotations[freedKey] != ""
		switch {
		case u.job.Annotations[heldKey] != "" && u.job.Spec.Suspend:
			j.Ours = true
		case u.wl == nil && v.c.kueue.queues(u.job) && v.c.kueue.lacks() == "":
			j.Blocked = "Kueue has not made its Workload yet"
		case u.wl != nil || v.c.kueue.queues(u.job): // Kueue says when it runs
			j.Ours, j.Blocked = u.deactivated()
		case u.job.Spec.Suspend && handed(&u.job.Meta):
			j.Ours = true
		case u.job.Spec.Suspend:
			j.Blocked = "suspended by its owner"
		}
	case u.wl != nil:
		j.Ours, j.Blocked = u.deactivated()
		if s := u.wl.Spec.PodSets; len(s) > 0 {
			spec = &s[0].Template.Spec
		}
	default:
		spec = &u.pods[0].Spec
		j.Freed = u.pods[0].Annotations[freedKey] != ""
	}
	for _, p := range u.pods {
		for _, g := range p.Spec.SchedulingGates {
			switch {
			case g.Name == gate && u.job == nil && u.wl == nil:
				j.Ours = true
			case j.Blocked == "" && !strings.HasPrefix(g.Name, "kueue.x-k8s.io/"):
				j.Blocked = "scheduling gate " + g.Name
			}
		}
	}
	if u.wl != nil {
		j.Freed = u.wl.Annotations[freedKey] != ""
	}
	j.Anywhere = u.wl != nil || u.job != nil && v.c.kueue.queues(u.job)
	if j.Blocked != "" {
		j.Ours = false
	}
	j.Freed = j.Freed && !j.Ours
	if spec != nil {
		j.Nodes = v.may(spec)
	}
}

// deactivated says whose hold keeps Kueue from admitting a Workload.
func (u *unit) deactivated() (ours bool, blocked string) {
	if u.wl == nil || u.wl.Spec.Active == nil || *u.wl.Spec.Active {
		return false, ""
	}
	if u.wl.Annotations[heldKey] != "" {
		return true, ""
	}
	return false, "its Workload is not active"
}

// may returns the nodes that a pod asks for by name, nil = any.
func (v *view) may(p *kube.PodSpec) []string {
	var hosts []string
	narrow := func(by []string) {
		if hosts == nil {
			hosts = slices.Clone(by)
			return
		}
		hosts = slices.DeleteFunc(hosts, func(h string) bool { return !slices.Contains(by, h) })
	}
	if h := p.NodeSelector[hostLabel]; h != "" {
		narrow([]string{h})
	}
	var union []string // of the alternatives, if all of them name hosts
	for _, t := range p.Terms() {
		i := slices.IndexFunc(t.MatchExpressions,
			func(e kube.Requirement) bool { return e.Key == hostLabel && e.Operator == "In" })
		if i < 0 {
			union = nil
			break
		}
		named := t.MatchExpressions[i].Values
		for _, e := range t.MatchExpressions[i+1:] { // ours may stand beside its owner's
			if e.Key == hostLabel && e.Operator == "In" {
				named = slices.DeleteFunc(slices.Clone(named), func(h string) bool { return !slices.Contains(e.Values, h) })
			}
		}
		union = append(union, named...)
	}
	if union != nil {
		narrow(union)
	}
	var names []string
	for _, h := range hosts {
		if n := v.hosts[h]; n != "" {
			h = n
		}
		names = append(names, h)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func number(s string) int {
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || n < 0 || n > 1<<20 {
		return 0
	}
	return n
}
