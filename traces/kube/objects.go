package kube

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/traces"
)

// Meta is what every object has. Times that are not given are zero.
type Meta struct {
	Name              string            `json:"name"`
	GenerateName      string            `json:"generateName"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	CreationTimestamp time.Time         `json:"creationTimestamp"`
	DeletionTimestamp time.Time         `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []Owner           `json:"ownerReferences"`
}

// Owner is an object that another one belongs to.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Controller bool   `json:"controller"`
}

// Head returns what the object has as every object; types that embed a Meta have it.
func (m *Meta) Head() *Meta { return m }

// Controller returns the owner that manages the object, the zero Owner if there is none.
func (m *Meta) Controller() Owner {
	for _, o := range m.OwnerReferences {
		if o.Controller {
			return o
		}
	}
	return Owner{}
}

// Condition is a statement of a controller about an object.
type Condition struct {
	Type               string    `json:"type"`
	Status             string    `json:"status"`
	Reason             string    `json:"reason"`
	LastTransitionTime time.Time `json:"lastTransitionTime"`
}

// Holds returns the condition of this type if it is true, nil otherwise.
func Holds(all []Condition, kind string) *Condition {
	for i := range all {
		if all[i].Type == kind && all[i].Status == "True" {
			return &all[i]
		}
	}
	return nil
}

// Quantity is an amount as Kubernetes writes it: 8, 500m, 64Gi, 1e3, as a string or a number.
type Quantity string

// UnmarshalJSON takes strings and numbers.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*q = Quantity(s)
		return nil
	}
	*q = Quantity(b)
	return nil
}

var suffixes = map[string]*big.Rat{
	"n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3), "": big.NewRat(1, 1),
	"k": big.NewRat(1e3,
		1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1), "P": big.NewRat(1e15,
		1), "E": big.NewRat(1e18, 1),
	"Ki": big.NewRat(1<<10,
		1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1), "Pi": big.NewRat(1<<50,
		1), "Ei": big.NewRat(1<<60, 1),
}

// whole are the units of the short way; 2^16 of each fit an int64 in thousandths.
var whole = [...]struct {
	suffix string
	unit   int64
}{{"", 1}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}, {"G", 1e9}, {"M", 1e6}}

// Milli returns the amount in thousandths, rounded up as Kubernetes does; false if it is none or does not fit an int64.
// More than 32 digits are none, so that an exponent cannot fill the memory.
func (q Quantity) Milli() (int64, bool) { return q.times(1000) }

// Value returns the amount as a whole number, rounded up.
func (q Quantity) Value() (int64, bool) { return q.times(1) }

func (q Quantity) times(k int64) (int64, bool) {
	s := strings.TrimSpace(string(q))
	// Nearly all of them are a whole number of a unit that is one.
	for _, w := range whole {
		number, ok := strings.CutSuffix(s, w.suffix)
		if n, err := strconv.ParseUint(number, 10, 16); ok && err == nil {
			return int64(n) * w.unit * k, true
		}
	}
	if n, ok := strings.CutSuffix(s, "m"); ok && k == 1000 {
		if n, err := strconv.ParseUint(n, 10, 32); err == nil {
			return int64(n), true
		}
	}
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' || end == 0 && s[end] == '+') {
		end++
	}
	digits, suffix := s[:end], s[end:]
	if len(suffix) > 1 && (suffix[0] == 'e' || suffix[0] == 'E') {
		if e, err := strconv.Atoi(suffix[1:]); err == nil {
			if e < -18 || e > 18 {
				return 0, false
			}
			digits, suffix = digits+"e"+strconv.Itoa(e), ""
		}
	}
	unit := suffixes[suffix]
	v, ok := new(big.Rat).SetString(digits)
	if !ok || unit == nil || len(digits) > 36 {
		return 0, false
	}
	v.Mul(v.Mul(v, unit), big.NewRat(k, 1))
	up := new(big.Int).Add(v.Num(), new(big.Int).Sub(v.Denom(), big.NewInt(1)))
	up.Quo(up, v.Denom())
	return up.Int64(), up.IsInt64() && up.Sign() >= 0
}

// Container is one program of a pod.
type Container struct {
	Name          string `json:"name"`
	RestartPolicy string `json:"restartPolicy"` // Always makes an init container run beside the others
	Resources     struct {
		Requests map[string]Quantity `json:"requests"`
		Limits   map[string]Quantity `json:"limits"`
	} `json:"resources"`
}

// Requirement is one demand on a node's labels or fields.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Term is a set of demands on a node, which must all hold.
type Term struct {
	MatchExpressions []Requirement `json:"matchExpressions,omitempty"`
	MatchFields      []Requirement `json:"matchFields,omitempty"`
}

// PodSpec is how a pod is to run, as far as it matters here.
type PodSpec struct {
	Containers            []Container       `json:"containers"`
	InitContainers        []Container       `json:"initContainers"`
	NodeName              string            `json:"nodeName"`
	NodeSelector          map[string]string `json:"nodeSelector"`
	Priority              *int32            `json:"priority"`
	ActiveDeadlineSeconds int64             `json:"activeDeadlineSeconds"`
	SchedulingGates       []struct {
		Name string `json:"name"`
	} `json:"schedulingGates"`
	ResourceClaims []Claim `json:"resourceClaims"`
	Affinity       struct {
		NodeAffinity struct {
			Required struct {
				Terms []Term `json:"nodeSelectorTerms"`
			} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
		} `json:"nodeAffinity"`
	} `json:"affinity"`
}

// Claim is a pod's claim on devices. Its source stood in a field of its own before resource.k8s.io/v1alpha3.
type Claim struct {
	Name         string `json:"name"`
	ClaimName    string `json:"resourceClaimName"`
	TemplateName string `json:"resourceClaimTemplateName"`
	Source       struct {
		ClaimName    string `json:"resourceClaimName"`
		TemplateName string `json:"resourceClaimTemplateName"`
	} `json:"source"`
}

// Terms returns the alternatives of which a node must meet one.
func (p *PodSpec) Terms() []Term { return p.Affinity.NodeAffinity.Required.Terms }

// Pod is a v1 Pod.
type Pod struct {
	Meta   `json:"metadata"`
	Spec   PodSpec `json:"spec"`
	Status struct {
		Phase             string            `json:"phase"`
		StartTime         time.Time         `json:"startTime"`
		Conditions        []Condition       `json:"conditions"`
		ContainerStatuses []ContainerStatus `json:"containerStatuses"`
	} `json:"status"`
}

// ContainerStatus is what became of a container.
type ContainerStatus struct {
	State struct {
		Terminated *struct {
			FinishedAt time.Time `json:"finishedAt"`
		} `json:"terminated"`
	} `json:"state"`
}

// Over reports whether the pod has ended, so that its GPUs are free.
func (p *Pod) Over() bool { return p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" }

// Started returns when the pod got its node, zero if it has none or does not tell.
func (p *Pod) Started() time.Time {
	if c := Holds(p.Status.Conditions, "PodScheduled"); c != nil && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime
	}
	return p.Status.StartTime
}

// Finished returns when its last container ended, zero if it does not tell.
func (p *Pod) Finished() (at time.Time) {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt
		}
	}
	return at
}

// Job is a batch/v1 Job.
type Job struct {
	Meta `json:"metadata"`
	Spec struct {
		Parallelism           *int   `json:"parallelism"`
		Completions           *int   `json:"completions"`
		Suspend               bool   `json:"suspend"`
		ActiveDeadlineSeconds int64  `json:"activeDeadlineSeconds"`
		ManagedBy             string `json:"managedBy"`
		Template              struct {
			Meta `json:"metadata"`
			Spec PodSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Active         int         `json:"active"`
		StartTime      time.Time   `json:"startTime"`
		CompletionTime time.Time   `json:"completionTime"`
		Conditions     []Condition `json:"conditions"`
	} `json:"status"`
}

// Gang returns how many pods run at once: parallelism, or what is left to complete if that is less.
func (j *Job) Gang() int {
	n := 1
	if j.Spec.Parallelism != nil {
		n = *j.Spec.Parallelism
	}
	if j.Spec.Completions != nil {
		n = min(n, *j.Spec.Completions)
	}
	return max(0, n)
}

// Finished returns when and how the Job ended; zero time if it has not.
func (j *Job) Finished() (at time.Time, status traces.Status) {
	if c := Holds(j.Status.Conditions, "Complete"); c != nil {
		if !j.Status.CompletionTime.IsZero() {
			return j.Status.CompletionTime, traces.Completed
		}
		return c.LastTransitionTime, traces.Completed
	}
	if c := Holds(j.Status.Conditions, "Failed"); c != nil {
		return c.LastTransitionTime, traces.Failed
	}
	return time.Time{}, traces.StatusUnknown
}

// Workload is what Kueue queues, kueue.x-k8s.io/v1beta1 or later: a Job's pods as a whole.
type Workload struct {
	Meta `json:"metadata"`
	Spec struct {
		QueueName                   string `json:"queueName"`
		Priority                    *int32 `json:"priority"`
		Active                      *bool  `json:"active"`
		MaximumExecutionTimeSeconds int64  `json:"maximumExecutionTimeSeconds"`
		PodSets                     []struct {
			Name     string `json:"name"`
			Count    int    `json:"count"`
			Template struct {
				Meta `json:"metadata"`
				Spec PodSpec `json:"spec"`
			} `json:"template"`
		} `json:"podSets"`
	} `json:"spec"`
	Status struct {
		Conditions   []Condition `json:"conditions"`
		RequeueState struct {
			Count int `json:"count"`
		} `json:"requeueState"`
		SchedulingStats struct {
			Evictions []struct {
				Count int `json:"count"`
			} `json:"evictions"`
		} `json:"schedulingStats"`
		// How long it was admitted before, in seconds; v1beta1 spells it in its own way.
		Before      int64 `json:"accumulatedPastExecutionTimeSeconds"`
		BeforeBeta1 int64 `json:"accumulatedPastExexcutionTimeSeconds"`
	} `json:"status"`
}

// Evictions returns how often the Workload was evicted, as far as it tells: 1 may stand for several.
func (w *Workload) Evictions() int {
	n := 0
	for _, c := range w.Status.Conditions {
		if c.Type == "Evicted" {
			n = 1
		}
	}
	sum := 0
	for _, e := range w.Status.SchedulingStats.Evictions {
		sum += max(0, e.Count)
	}
	return max(n, sum, w.Status.RequeueState.Count)
}

// pods returns how many pods the Workload has at once.
func (w *Workload) pods() (n int) {
	for i := range w.Spec.PodSets {
		n += min(max(0, w.Spec.PodSets[i].Count), traces.MaxGPUs)
	}
	return n
}

// Earlier returns how long the Workload was admitted before it was evicted, 0 if it does not tell.
func (w *Workload) Earlier() time.Duration {
	return limit(w.Status.Before, w.Status.BeforeBeta1)
}

// Admitted returns since when the Workload may run, zero if it waits.
func (w *Workload) Admitted() time.Time {
	for _, kind := range []string{"Admitted", "QuotaReserved"} {
		if c := Holds(w.Status.Conditions, kind); c != nil {
			return c.LastTransitionTime
		}
	}
	return time.Time{}
}

// Reading says how objects are understood. Use Default and change what is different.
type Reading struct {
	// GPUs are the resources that count as GPUs.
	GPUs []string
	// Types are the labels of nodes that name the type of their GPUs, Users the labels and annotations that name whose a
	// job is, Racks the labels of nodes that name a rack or zone; the first that is there counts.
	Types, Users, Racks []string
}

// Default is right for clusters with the device plugins of NVIDIA and AMD.
func Default() Reading {
	return Reading{
		GPUs: []string{"nvidia.com/gpu", "amd.com/gpu"},
		Types: []string{"nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator",
			"gpu.nvidia.com/class"},
		Users: []string{"clustergym/user", "user", "owner", "app.kubernetes.io/created-by"},
		Racks: []string{"topology.kubernetes.io/rack", "network.topology.nvidia.com/leaf",
			"topology.k8s.aws/network-node-layer-3", "topology.kubernetes.io/zone"},
	}
}

// Amounts are what a pod, or a gang of them, asks for.
type Amounts struct {
	GPUs               int
	CPUMilli, MemBytes int64
}

// Pod returns what one pod asks for: the sum over its containers, or the largest of those that run before them.
func (r *Reading) Pod(p *PodSpec) (a Amounts) {
	var before Amounts
	for i := range p.InitContainers {
		c := &p.InitContainers[i]
		one := r.container(c)
		if c.RestartPolicy == "Always" {
			a = a.plus(one, 1)
			continue
		}
		before = Amounts{max(before.GPUs, one.GPUs), max(before.CPUMilli, one.CPUMilli), max(before.MemBytes, one.MemBytes)}
	}
	for i := range p.Containers {
		a = a.plus(r.container(&p.Containers[i]), 1)
	}
	return Amounts{max(a.GPUs, before.GPUs), max(a.CPUMilli, before.CPUMilli), max(a.MemBytes, before.MemBytes)}
}

// plus adds the amounts of n more. What is too much stays the most.
func (a Amounts) plus(b Amounts, n int) Amounts {
	n = max(n, 0)
	return Amounts{int(min(sum(int64(a.GPUs), int64(b.GPUs), n), traces.MaxGPUs)), sum(a.CPUMilli, b.CPUMilli, n),
		sum(a.MemBytes, b.MemBytes, n)}
}

func sum(a, b int64, n int) int64 {
	if n > 0 && b > (math.MaxInt64-a)/int64(n) {
		return math.MaxInt64
	}
	return a + b*int64(n)
}

// Times returns the amounts of n pods.
func (a Amounts) Times(n int) Amounts { return Amounts{}.plus(a, n) }

func (r *Reading) container(c *Container) (a Amounts) {
	of := func(name string) Quantity {
		if q, ok := c.Resources.Requests[name]; ok {
			return q
		}
		return c.Resources.Limits[name]
	}
	for _, name := range r.GPUs {
		if q := of(name); q != "" {
			if n, ok := q.Value(); ok {
				a.GPUs = int(min(int64(a.GPUs)+min(n, traces.MaxGPUs), traces.MaxGPUs))
			}
		}
	}
	if n, ok := of("cpu").Milli(); ok {
		a.CPUMilli = n
	}
	if n, ok := of("memory").Value(); ok {
		a.MemBytes = n
	}
	return a
}

// Workload returns what all pods of a Workload ask for.
func (r *Reading) Workload(w *Workload) (a Amounts) {
	for i := range w.Spec.PodSets {
		s := &w.Spec.PodSets[i]
		a = a.plus(r.Pod(&s.Template.Spec), s.Count)
	}
	return a
}

// GPUTypes returns the types of GPU that a pod may run on, nil = any.
func (r *Reading) GPUTypes(p *PodSpec) []string {
	for _, label := range r.Types {
		if v := p.NodeSelector[label]; v != "" {
			return []string{v}
		}
		for _, t := range p.Terms() {
			for _, e := range t.MatchExpressions {
				if e.Key == label && e.Operator == "In" && len(p.Terms()) == 1 {
					return slices.Clone(e.Values)
				}
			}
		}
	}
	return nil
}

// User returns whose an object is, "" if nothing says so.
func (r *Reading) User(metas ...*Meta) string {
	for _, key := range r.Users {
		for _, m := range metas {
			if v := m.Labels[key]; v != "" {
				return v
			}
			if v := m.Annotations[key]; v != "" {
				return v
			}
		}
	}
	return ""
}

// Repeated is the name that repetitions of a job share: that of the CronJob or other object that made it, its
// generateName, or its own name.
func Repeated(m *Meta) string {
	if o := m.Controller(); o.Kind == "CronJob" {
		return o.Name
	}
	if m.GenerateName != "" {
		return strings.TrimRight(m.GenerateName, "-.")
	}
	return m.Name
}

// The labels that make pods a gang, and that name a Kueue queue.
const (
	QueueLabel = "kueue.x-k8s.io/queue-name"
	LimitLabel = "kueue.x-k8s.io/max-exec-time-seconds"
)

var groupLabels = []string{"kueue.x-k8s.io/pod-group-name", "scheduling.x-k8s.io/pod-group",
	"pod-group.scheduling.sigs.k8s.io"}

// Group returns the gang that a pod without a Job belongs to, "" if it runs alone.
func Group(p *Pod) string {
	for _, l := range groupLabels {
		if v := p.Labels[l]; v != "" {
			return v
		}
	}
	return ""
}

// ID is how a job is called here: kind, namespace, name, and the beginning of its uid, since a name can be used again.
func ID(kind, namespace, name, uid string) string {
	return kind + "/" + namespace + "/" + name + "@" + uid[:min(8, len(uid))]
}

// FromJob fills a trace's job from a Job, with its pods as far as they are known, and its Workload if it has one;
// Submit and Work are not set. The priority is the Workload's, by which Kueue orders its queue, or else that of the
// pods, by which the scheduler does. Pods have the number of their class, their Job has its name alone, so that a Job
// without pods does not tell.
func (r *Reading) FromJob(j *Job, pods []*Pod, w *Workload) traces.Job {
	t := &j.Spec.Template
	a := r.Pod(&t.Spec).Times(j.Gang())
	out := traces.Job{
		ID: ID("job", j.Namespace, j.Name,
			j.UID), VC: j.Namespace, Name: Repeated(&j.Meta), User: r.User(&j.Meta, &t.Meta), Group: j.Labels[QueueLabel],
		GPUs: a.GPUs, GPUMilli: 1000, CPUMilli: a.CPUMilli, MemBytes: a.MemBytes, GPUTypes: r.GPUTypes(&t.Spec),
		Estimate: limit(j.Spec.ActiveDeadlineSeconds, t.Spec.ActiveDeadlineSeconds, seconds(j.Labels[LimitLabel])),
	}
	if len(pods) > 0 && pods[0].Spec.Priority != nil {
		out.Priority = int(*pods[0].Spec.Priority)
	}
	if w != nil {
		r.fromWorkload(&out, w)
	}
	return out
}

func (r *Reading) fromWorkload(out *traces.Job, w *Workload) {
	if w.Spec.Priority != nil {
		out.Priority = int(*w.Spec.Priority)
	}
	if w.Spec.QueueName != "" {
		out.Group = w.Spec.QueueName
	}
	if out.Estimate == 0 {
		out.Estimate = limit(w.Spec.MaximumExecutionTimeSeconds)
	}
}

// FromWorkload fills a trace's job from a Workload that is no Job's.
func (r *Reading) FromWorkload(w *Workload) traces.Job {
	a := r.Workload(w)
	out := traces.Job{
		ID: ID("workload", w.Namespace, w.Name, w.UID), VC: w.Namespace, Name: w.Name, User: r.User(&w.Meta),
		GPUs: a.GPUs, GPUMilli: 1000, CPUMilli: a.CPUMilli, MemBytes: a.MemBytes,
	}
	if o := w.Controller(); o.Name != "" {
		out.Name = o.Name
	}
	if len(w.Spec.PodSets) > 0 {
		t := &w.Spec.PodSets[0].Template
		out.GPUTypes = r.GPUTypes(&t.Spec)
		if out.User == "" {
			out.User = r.User(&t.Meta)
		}
	}
	r.fromWorkload(&out, w)
	return out
}

// FromPods fills a trace's job from pods without a Job: one, or those of one gang.
func (r *Reading) FromPods(pods []*Pod) traces.Job {
	p := pods[0]
	out := traces.Job{ID: PodsID(p), VC: p.Namespace, Name: Repeated(&p.Meta), User: r.User(&p.Meta),
		Group:    p.Labels[QueueLabel],
		GPUMilli: 1000, GPUTypes: r.GPUTypes(&p.Spec), Estimate: limit(p.Spec.ActiveDeadlineSeconds,
			seconds(p.Labels[LimitLabel]))}
	if g := Group(p); g != "" {
		out.Name = g
	}
	if p.Spec.Priority != nil {
		out.Priority = int(*p.Spec.Priority)
	}
	var a Amounts
	for _, p := range members(pods) {
		a = a.plus(r.Pod(&p.Spec), 1)
	}
	out.GPUs, out.CPUMilli, out.MemBytes = a.GPUs, a.CPUMilli, a.MemBytes
	return out
}

// members returns the pods that a gang has at once: the latest ones, if the gang names its size and other pods were
// replaced.
func members(pods []*Pod) []*Pod {
	n, err := strconv.Atoi(pods[0].Annotations["kueue.x-k8s.io/pod-group-total-count"])
	if err != nil || n < 1 || n >= len(pods) {
		return pods
	}
	list := slices.Clone(pods)
	slices.SortStableFunc(list, func(a, b *Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp) })
	return list[len(list)-n:]
}

// PodsID is the ID of the job that a pod without a Job is, or is part of.
func PodsID(p *Pod) string {
	if g := Group(p); g != "" {
		return fmt.Sprintf("pods/%s/%s", p.Namespace, g)
	}
	return ID("pod", p.Namespace, p.Name, p.UID)
}

func seconds(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// limit returns the first of the limits that is given.
func limit(all ...int64) time.Duration {
	for _, n := range all {
		if n > 0 {
			return time.Duration(min(n, int64(traces.MaxTime/time.Second))) * time.Second
		}
	}
	return 0
}
