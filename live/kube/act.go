package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/live"
	"clustergym/traces/kube"
)

// The annotations that mark what was done, and the label, or scheduling gate, by which owners hand a job over.
const (
	heldKey     = "clustergym/held"
	freedKey    = "clustergym/freed"
	requeuesKey = "clustergym/requeues"
	rankKey     = "clustergym/rank"
	gate        = "clustergym/gate"
)

// anyNode is the mark of what we have let start anywhere; it is no host name.
const anyNode = "*"

// handed reports whether an owner has handed a suspended Job over.
func handed(m *kube.Meta) bool { _, ok := m.Labels[gate]; return ok }

// mostTries is how often an action is tried anew because somebody else has changed the object.
const mostTries = 8

// patience is how long an action waits for the pods of a Job that it has suspended to go, asking at every pace.
const (
	patience = 10 * time.Second
	pace     = 100 * time.Millisecond
)

// acting is one call of Act: what is looked up once for all its actions.
type acting struct {
	*Cluster
	view       *view
	room       map[int32]int64
	preempting *string
}

// Act implements live.Cluster. Each action reads the job from the server first, and writes on the condition that nobody
// has changed it since.
func (c *Cluster) Act(ctx context.Context, actions []live.Action) []live.Result {
	results := make([]live.Result, len(actions))
	a := &acting{Cluster: c}
	var gone error // the server, not the job
	if len(actions) > 0 {
		gone = c.start(ctx)
	}
	for i, action := range actions {
		err := gone
		if err == nil {
			err = a.act(ctx, action)
		}
		if errors.Is(err, live.ErrUnreachable) || err != nil && ctx.Err() != nil {
			gone = err
		}
		if err != nil {
			results[i].Err = fmt.Errorf("%v: %w", action, err)
		}
	}
	return results
}

// look returns the joined mirrors, of the moment at which they are first asked for.
func (a *acting) look(ctx context.Context) (*view, error) {
	if a.view == nil {
		if err := a.follow(ctx); err != nil {
			return nil, err
		}
		a.view = a.Cluster.view()
	}
	return a.view, nil
}

// parse takes an ID apart.
func (c *Cluster) parse(id string) (kind, namespace, name, uid string, ok bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || strings.ContainsAny(id, " \n?#%") {
		return "", "", "", "", false
	}
	kind, namespace = parts[0], parts[1]
	name, uid, ok = strings.Cut(parts[2], "@")
	if kind == "pods" {
		ok = !ok && name != ""
	}
	if namespace == "" || name == "" || !slices.Contains(c.cfg.Namespaces, "") &&
		!slices.Contains(c.cfg.Namespaces, namespace) {
		ok = false
	}
	return kind, namespace, name, uid, ok
}

func (a *acting) act(ctx context.Context, action live.Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case action.Op > live.RequeueJob:
		return fmt.Errorf("%w: there is no such action", live.ErrUnsupported)
	case action.Op == live.RankJob && (action.Score < 0 || action.Score > live.MaxScore):
		return fmt.Errorf("%w: want a score from 0 to %d", live.ErrUnsupported, live.MaxScore)
	}
	kind, namespace, name, uid, ok := a.parse(action.Job)
	do := map[string]func(context.Context, live.Action, string, string, string) error{"job": a.onJob,
		"workload": a.onWorkload, "pod": a.onPods, "pods": a.onPods}[kind]
	if !ok || do == nil {
		return live.ErrGone
	}
	var err error
	for range mostTries {
		err = do(ctx, action, namespace, name, uid)
		switch {
		case errors.Is(err, errMissing):
			return live.ErrGone
		case !errors.Is(err, errConflict):
			return err
		}
	}
	return err
}

// get reads an object that must be the one of this uid.
func get[T any](ctx context.Context, c *client, path, uid string) (*T, error) {
	o := new(T)
	if _, err := c.call(ctx, http.MethodGet, path, nil, nil, o); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(head(o).UID, uid) {
		return nil, live.ErrGone // the name has been used again
	}
	return o, nil
}

// tree is JSON to send.
type tree = map[string]any

// marks begins a patch of an object: on the condition that it has not changed, with annotations to set, nil = to take
// away.
func marks(m *kube.Meta, annotations tree) tree {
	return tree{"resourceVersion": m.ResourceVersion, "annotations": annotations}
}

// patch writes an object, and lets the next snapshot know.
func patch[T any](ctx context.Context, c *client, path string, body tree, mirrors []*store[T]) (*T, error) {
	o := new(T)
	if _, err := c.call(ctx, http.MethodPatch, path, nil, body, o); err != nil {
		return nil, err
	}
	for _, s := range mirrors {
		s.put(o)
	}
	return o, nil
}

func (a *acting) patchJob(ctx context.Context, j *kube.Job, body tree) (*kube.Job, error) {
	return patch(ctx, a.c, in(batch, j.Namespace, "jobs/"+j.Name), body, a.jobs)
}

// onJob does an action on a Job.
func (a *acting) onJob(ctx context.Context, action live.Action, namespace, name, uid string) error {
	j, err := get[kube.Job](ctx, a.c, in(batch, namespace, "jobs/"+name), uid)
	if err != nil {
		return err
	}
	if at, _ := j.Finished(); !at.IsZero() || !j.DeletionTimestamp.IsZero() {
		return live.ErrGone
	}
	running, err := a.runs(ctx, j)
	if err != nil {
		return err
	}
	if running && action.Op != live.RequeueJob {
		return live.ErrGone
	}
	if action.Op == live.RankJob || a.kueue.version != "" {
		v, err := a.look(ctx)
		if err != nil {
			return err
		}
		if u := v.units[action.Job]; u != nil && u.wl != nil {
			return a.onWorkload(ctx, action, u.wl.Namespace, u.wl.Name, u.wl.UID)
		}
		if action.Op == live.RankJob {
			if why := a.kueue.lacks(); why != "" {
				return fmt.Errorf("%w: %s", live.ErrUnsupported, why)
			}
			return fmt.Errorf("%w: the Job is in no queue of Kueue", live.ErrUnsupported)
		}
	}
	if a.kueue.queues(j) {
		if why := a.kueue.lacks(); why != "" {
			return fmt.Errorf("%w: the Job is in a queue of Kueue, which starts it by its Workload: %s", live.ErrUnsupported,
				why)
		}
		return fmt.Errorf("%w: Kueue has not made the Job's Workload", live.ErrNotYet)
	}
	if o := j.Controller(); o.Kind != "" && o.Kind != "CronJob" {
		return fmt.Errorf("%w: the Job belongs to %s %s, which decides when it runs", live.ErrUnsupported, o.Kind, o.Name)
	}
	if m := j.Spec.ManagedBy; m != "" && m != "kubernetes.io/job-controller" {
		return fmt.Errorf("%w: the Job is managed by %s", live.ErrUnsupported, m)
	}
	ours := j.Annotations[heldKey] != "" || handed(&j.Meta)
	freed := j.Annotations[freedKey] != ""
	switch action.Op {
	case live.RequeueJob:
		if !running || j.Spec.Suspend {
			return nil
		}
		_, err := a.patchJob(ctx, j, tree{"spec": tree{"suspend": true}, "metadata": marks(&j.Meta, tree{heldKey: "true",
			requeuesKey: strconv.Itoa(number(j.Annotations[requeuesKey]) + 1)})})
		return err
	case live.HoldJob:
		if j.Spec.Suspend && ours {
			return nil
		}
		if j.Spec.Suspend {
			return fmt.Errorf("%w: its owner has suspended it, without the label %s", live.ErrUnsupported, gate)
		}
		_, err := a.suspend(ctx, j)
		return err
	case live.ReleaseJob:
		if !j.Spec.Suspend && !freed || j.Spec.Suspend && !ours {
			return nil
		}
		return a.reshape(ctx, j, nil, false)
	default: // StartJob
		if j.Spec.Suspend && !ours {
			return fmt.Errorf("%w: its owner has suspended it, without the label %s", live.ErrUnsupported, gate)
		}
		if !j.Spec.Suspend && !freed && len(action.Nodes) == 0 {
			return nil
		}
		return a.reshape(ctx, j, action.Nodes, true)
	}
}

// runs reports whether a pod of the Job has a node. The mirror may be late, so the server is asked.
func (a *acting) runs(ctx context.Context, j *kube.Job) (bool, error) {
	if j.Spec.Suspend && j.Status.Active == 0 {
		return false, nil
	}
	var list struct {
		Items []*kube.Pod `json:"items"`
	}
	query := url.Values{"labelSelector": {"batch.kubernetes.io/controller-uid=" + j.UID}}
	if _, err := a.c.call(ctx, http.MethodGet, in(core, j.Namespace, "pods"), query, nil, &list); err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Items, holds), nil
}

func (a *acting) suspend(ctx context.Context, j *kube.Job) (*kube.Job, error) {
	return a.patchJob(ctx, j, tree{"spec": tree{"suspend": true}, "metadata": marks(&j.Meta, tree{heldKey: "true"})})
}

// reshape lets a Job start, on nodes alone if there are any. Nodes can be written only while it is suspended and has no
// pods: if it is not, it is suspended first, and stays held if it ends in between.
func (a *acting) reshape(ctx context.Context, j *kube.Job, nodes []string, freed bool) error {
	template, mark, err := a.pin(ctx, &j.Spec.Template.Spec, j.Annotations[freedKey], nodes)
	if err != nil {
		return err
	}
	if mark == nil && freed {
		mark = anyNode
	}
	if mark == j.Annotations[freedKey] && !j.Spec.Suspend {
		return nil // it is as asked for
	}
	if template != nil {
		if !j.Spec.Suspend {
			if j, err = a.suspend(ctx, j); err != nil {
				return err
			}
		}
		if j, err = a.emptied(ctx, j); err != nil {
			return err
		}
	}
	spec := tree{"suspend": false}
	if template != nil {
		spec["template"] = tree{"spec": template}
	}
	body := tree{"spec": spec, "metadata": marks(&j.Meta, tree{heldKey: nil, freedKey: mark})}
	_, err = a.patchJob(ctx, j, body)
	if errors.Is(err, errInvalid) && template != nil && !j.Status.StartTime.IsZero() {
		// Before Kubernetes 1.36 a Job that was once started must forget that before its nodes can change.
		reset := tree{"metadata": tree{"resourceVersion": j.ResourceVersion}, "status": tree{"startTime": nil}}
		o, err := patch[kube.Job](ctx, a.c, in(batch, j.Namespace, "jobs/"+j.Name+"/status"), reset, nil)
		if err != nil {
			return err
		}
		body["metadata"].(tree)["resourceVersion"] = o.ResourceVersion
		_, err = a.patchJob(ctx, j, body)
		return err
	}
	return err
}

// emptied waits until a suspended Job has no pods any more.
func (a *acting) emptied(ctx context.Context, j *kube.Job) (*kube.Job, error) {
	done, tick := time.NewTimer(a.patience), time.NewTicker(pace)
	defer done.Stop()
	defer tick.Stop()
	for {
		if j.Status.Active == 0 && (j.Status.StartTime.IsZero() || kube.Holds(j.Status.Conditions, "Suspended") != nil) {
			return j, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-done.C:
			return nil, fmt.Errorf("%w: it is suspended, and its pods have not gone within %v", live.ErrNotYet, a.patience)
		case <-tick.C:
		}
		next, err := get[kube.Job](ctx, a.c, in(batch, j.Namespace, "jobs/"+j.Name), j.UID)
		if err != nil {
			return nil, err
		}
		if !next.Spec.Suspend || !next.DeletionTimestamp.IsZero() {
			return nil, fmt.Errorf("%w: somebody else has taken its suspension back", errConflict)
		}
		j = next
	}
}

// pin returns what to patch in a pod's spec so that it runs on nodes alone, nil = nothing, and the mark for it. before
// is the mark of what we have written there earlier, which is taken away.
func (a *acting) pin(ctx context.Context, p *kube.PodSpec, before string,
	nodes []string) (patch tree, mark any, err error) {
	selector, terms := p.NodeSelector[hostLabel], p.Terms()
	changed := false
	if before != "" && before != anyNode {
		old := strings.Split(before, ",")
		if len(old) == 1 && selector == old[0] {
			selector, changed = "", true
		}
		if len(old) > 1 {
			terms = without(terms, old)
			changed = true
		}
	}
	if len(nodes) > 0 {
		v, err := a.look(ctx)
		if err != nil {
			return nil, nil, err
		}
		hosts, err := v.hostsOf(nodes)
		if err != nil {
			return nil, nil, err
		}
		own := kube.PodSpec{NodeSelector: map[string]string{hostLabel: selector}}
		own.Affinity.NodeAffinity.Required.Terms = terms
		if may := v.may(&own); may != nil {
			for _, n := range nodes {
				if !slices.Contains(may, n) {
					return nil, nil, fmt.Errorf("%w: node %s is none of those that its owner asks for (%s)", live.ErrUnsupported, n,
						strings.Join(may, ", "))
				}
			}
		}
		switch {
		case selector != "": // its owner wants this node alone
		case len(hosts) == 1:
			selector, mark, changed = hosts[0], hosts[0], true
		default:
			terms = with(terms, hosts)
			mark, changed = strings.Join(hosts, ","), true
		}
	}
	if !changed {
		return nil, nil, nil
	}
	patch = tree{"nodeSelector": tree{hostLabel: nil}}
	if selector != "" {
		patch["nodeSelector"] = tree{hostLabel: selector}
	}
	if len(p.Terms()) > 0 || len(terms) > 0 {
		var required any // nil takes it away
		if len(terms) > 0 {
			required = tree{"nodeSelectorTerms": terms}
		}
		patch["affinity"] = tree{"nodeAffinity": tree{"requiredDuringSchedulingIgnoredDuringExecution": required}}
	}
	return patch, mark, nil
}

// hostsOf returns the host labels of nodes.
func (v *view) hostsOf(nodes []string) ([]string, error) {
	var hosts []string
	for _, name := range nodes {
		i := slices.IndexFunc(v.nodes, func(n *Node) bool { return n.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: there is no node %q", live.ErrUnsupported, name)
		}
		h := v.nodes[i].Labels[hostLabel]
		if h == "" || strings.Contains(h, ",") {
			return nil, fmt.Errorf("%w: node %s has no label %s, by which pods choose a node", live.ErrUnsupported, name,
				hostLabel)
		}
		hosts = append(hosts, h)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

// with returns alternatives that also demand one of the hosts.
func with(terms []kube.Term, hosts []string) []kube.Term {
	ours := kube.Requirement{Key: hostLabel, Operator: "In", Values: hosts}
	if len(terms) == 0 {
		return []kube.Term{{MatchExpressions: []kube.Requirement{ours}}}
	}
	terms = slices.Clone(terms)
	for i := range terms {
		terms[i].MatchExpressions = append(slices.Clone(terms[i].MatchExpressions), ours)
	}
	return terms
}

// without takes away what with has added.
func without(terms []kube.Term, hosts []string) []kube.Term {
	var left []kube.Term
	for _, t := range terms {
		i := len(t.MatchExpressions) - 1
		for ; i >= 0; i-- {
			if e := t.MatchExpressions[i]; e.Key == hostLabel && e.Operator == "In" && slices.Equal(e.Values, hosts) {
				break
			}
		}
		if i >= 0 {
			t.MatchExpressions = slices.Delete(slices.Clone(t.MatchExpressions), i, i+1)
		}
		if len(t.MatchExpressions)+len(t.MatchFields) > 0 {
			left = append(left, t)
		}
	}
	return left
}

// onPods does an action on pods without a Job.
func (a *acting) onPods(ctx context.Context, action live.Action, namespace, name, uid string) error {
	if action.Op == live.RankJob {
		why := a.kueue.lacks()
		if why == "" {
			why = "it has no Workload of Kueue"
		}
		return fmt.Errorf("%w: %s", live.ErrUnsupported, why)
	}
	names := []string{name}
	if kind, _, _ := strings.Cut(action.Job, "/"); kind == "pods" {
		v, err := a.look(ctx)
		if err != nil {
			return err
		}
		u := v.units[action.Job]
		if u == nil {
			return live.ErrGone
		}
		names = nil
		for _, p := range u.pods {
			names = append(names, p.Name)
		}
	}
	var pods []*kube.Pod
	running, gated, freed := false, false, false
	var tied []*kube.Pod // let go to nodes, which cannot change any more
	for _, n := range names {
		p, err := get[kube.Pod](ctx, a.c, in(core, namespace, "pods/"+n), uid)
		if err != nil {
			return err
		}
		if p.Over() || !p.DeletionTimestamp.IsZero() && !holds(p) {
			continue
		}
		pods = append(pods, p)
		running = running || holds(p)
		gated = gated || isGated(p)
		switch m := p.Annotations[freedKey]; {
		case m == "" || isGated(p):
		case m == anyNode:
			freed = true
		default:
			tied = append(tied, p)
		}
	}
	switch {
	case len(pods) == 0:
		return live.ErrGone
	case action.Op == live.RequeueJob && !running:
		return nil
	case action.Op == live.RequeueJob:
		return fmt.Errorf("%w: pods without a Job do not come back when they are stopped", live.ErrUnsupported)
	case running:
		return live.ErrGone
	case gated && action.Op == live.HoldJob:
		return nil
	case gated:
	case len(tied) > 0:
		return untied(tied[0])
	case action.Op == live.HoldJob:
		return fmt.Errorf("%w: a pod can be held only by a scheduling gate %s that it was created with", live.ErrUnsupported,
			gate)
	case action.Op == live.StartJob && len(action.Nodes) > 0:
		return fmt.Errorf("%w: the nodes of a pod without the scheduling gate %s cannot be changed", live.ErrUnsupported,
			gate)
	case action.Op == live.StartJob || !freed:
		return nil
	}
	for _, p := range pods {
		if !isGated(p) && (action.Op != live.ReleaseJob || p.Annotations[freedKey] != anyNode) {
			continue
		}
		if err := a.letGo(ctx, p, action.Nodes, action.Op == live.StartJob); err != nil {
			return err
		}
	}
	return nil
}

// untied says what can be done about a pod that waits for the nodes it was let go to.
func untied(p *kube.Pod) error {
	again := "create it again"
	if o := p.Controller(); o.Kind != "" {
		again = o.Kind + " " + o.Name + " makes it again"
	}
	return fmt.Errorf(
		"%w: pod %s waits for node %s, and Kubernetes changes no nodes of a pod that has been let go; kubectl delete pod "+
			"-n %s %s, then %s",
		live.ErrTied, p.Name, strings.ReplaceAll(p.Annotations[freedKey], ",", " or "), p.Namespace, p.Name, again)
}

func isGated(p *kube.Pod) bool {
	for _, g := range p.Spec.SchedulingGates {
		if g.Name == gate {
			return true
		}
	}
	return false
}

// letGo takes our gate from a pod, and narrows its nodes in the same patch.
func (a *acting) letGo(ctx context.Context, p *kube.Pod, nodes []string, freed bool) error {
	spec, mark, err := a.pin(ctx, &p.Spec, "", nodes)
	if err != nil {
		return err
	}
	if spec == nil {
		spec = tree{}
	}
	if mark == nil && freed {
		mark = anyNode
	}
	if sel, ok := spec["nodeSelector"].(tree); ok && sel[hostLabel] == nil {
		delete(spec, "nodeSelector") // of a pod, nothing may be taken away
	}
	left := []tree{}
	for _, g := range p.Spec.SchedulingGates {
		if g.Name != gate {
			left = append(left, tree{"name": g.Name})
		}
	}
	if isGated(p) {
		spec["schedulingGates"] = left
	}
	body := tree{"metadata": marks(&p.Meta, tree{freedKey: mark}), "spec": spec}
	_, err = patch(ctx, a.c, in(core, p.Namespace, "pods/"+p.Name), body, a.pods)
	return err
}

// onWorkload does an action on a Workload of Kueue.
func (a *acting) onWorkload(ctx context.Context, action live.Action, namespace, name, uid string) error {
	v, err := a.look(ctx)
	if err != nil {
		return err
	}
	if a.kueue.version == "" {
		return live.ErrGone
	}
	path := in(a.kueue.api(), namespace, "workloads/"+name)
	w, err := get[kube.Workload](ctx, a.c, path, uid)
	if err != nil {
		return err
	}
	running := !w.Admitted().IsZero()
	active := w.Spec.Active == nil || *w.Spec.Active
	held := w.Annotations[heldKey] != ""
	if kube.Holds(w.Status.Conditions, "Finished") != nil || !w.DeletionTimestamp.IsZero() ||
		running && action.Op != live.RequeueJob {
		return live.ErrGone
	}
	var body tree
	switch action.Op {
	case live.RankJob:
		u := &unit{wl: w}
		body, err = a.rankPatch(ctx, v, u, action.Score)
		if err != nil || body == nil {
			return err
		}
	case live.HoldJob:
		if !active && held {
			return nil
		}
		if !active {
			return fmt.Errorf("%w: its Workload is not active, and not by us", live.ErrUnsupported)
		}
		body = tree{"spec": tree{"active": false}, "metadata": marks(&w.Meta, tree{heldKey: "true", freedKey: nil})}
	case live.RequeueJob:
		if !running || !active {
			return nil
		}
		requeues := strconv.Itoa(number(w.Annotations[requeuesKey]) + 1)
		body = tree{"spec": tree{"active": false}, "metadata": marks(&w.Meta, tree{heldKey: "true", requeuesKey: requeues})}
	default:
		if action.Op == live.StartJob && len(action.Nodes) > 0 {
			return fmt.Errorf("%w: Kueue chooses where its Workloads run: start it without nodes", live.ErrUnsupported)
		}
		var mark any
		if action.Op == live.StartJob {
			mark = anyNode
		}
		switch {
		case held: // nothing else of a Workload that is not active is ours
			body = tree{"spec": tree{"active": true}, "metadata": marks(&w.Meta, tree{heldKey: nil, freedKey: mark})}
		case action.Op == live.ReleaseJob && w.Annotations[freedKey] != "":
			body = tree{"metadata": marks(&w.Meta, tree{freedKey: nil})}
		default:
			return nil
		}
	}
	_, err = patch(ctx, a.c, path, body, a.workloads)
	return err
}

// rankPatch is what writes a rank, nil = it is there.
func (a *acting) rankPatch(ctx context.Context, v *view, u *unit, score int64) (tree, error) {
	was, base := u.rank(), u.base()
	if a.room == nil {
		a.room = v.room()
	}
	room, known := a.room[base]
	switch {
	case was.Score > 0 && (score == 0 || known && room == 0): // without room it would stay among another class
		var priority any = was.Base
		if was.Unset {
			priority = nil
		}
		return tree{"spec": tree{"priority": priority}, "metadata": marks(&u.wl.Meta, tree{rankKey: nil})}, nil
	case score == 0 && u.wl.Annotations[rankKey] == "":
		return nil, nil
	case score == 0:
		return tree{"metadata": marks(&u.wl.Meta, tree{rankKey: nil})}, nil
	}
	if a.preempting == nil { // what was written is taken back whatever the queues do
		why, err := a.kueue.preempting(ctx, a.c)
		if err != nil {
			return nil, err
		}
		a.preempting = &why
	}
	if *a.preempting != "" {
		return nil, fmt.Errorf("%w: %s", live.ErrUnsupported, *a.preempting)
	}
	if room == 0 {
		return nil, fmt.Errorf("%w: there is no room above its priority %d: another class of Workloads follows at once",
			live.ErrUnsupported, base)
	}
	r := ranked{Score: score, Base: base, Wrote: int32(int64(base) + raise(score, room)),
		Unset: was.Unset || was.Score == 0 && u.wl.Spec.Priority == nil}
	if r == was {
		return nil, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return tree{"spec": tree{"priority": r.Wrote}, "metadata": marks(&u.wl.Meta, tree{rankKey: string(text)})}, nil
}
