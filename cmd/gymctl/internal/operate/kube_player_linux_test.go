package operate_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"clustergym/internal/kubetest"
)

// tree is JSON to send.
type tree = kubetest.Tree

// How says how a job is handed in.
type How int

// The ways to hand in a job.
const (
	Plain  How = iota // a Job that starts as soon as it can
	Handed            // a suspended Job with the label clustergym/gate
	Gated             // a pod with the scheduling gate clustergym/gate
	Queued            // a Job in a queue of Kueue
)

// Player plays what a namespace lacks: the controller of Jobs, the kubelets, and Kueue. Each job has one pod. Time is
// the player's own and goes on with Tick alone, so that waits do not depend on how fast the machine is. It is not safe
// for concurrent use.
type Player struct {
	Namespace string
	Now       int
	// Started and Ended are when jobs did, by name, and Nodes where they ran.
	Started, Ended map[string]int
	Nodes          map[string]string
	Hold           bool // Kueue admits nothing

	k      *kubetest.Cluster
	t      testing.TB
	work   map[string]int
	asks   map[string]int
	queued bool
	pods   int

	managed bool // Kueue itself runs
}

// newPlayer makes a namespace.
func newPlayer(t testing.TB, k *kubetest.Cluster, namespace string) *Player {
	t.Helper()
	p := &Player{Namespace: namespace, Started: map[string]int{}, Ended: map[string]int{}, Nodes: map[string]string{},
		k: k, t: t, work: map[string]int{}, asks: map[string]int{}}
	k.Must(http.MethodPost, kubetest.Core+"/namespaces", tree{"metadata": tree{"name": namespace}}, nil)
	t.Cleanup(func() { // so that others have the nodes
		for _, name := range []string{"jobs", "pods"} {
			api := map[string]string{"jobs": kubetest.Batch, "pods": kubetest.Core}[name]
			_, _ = k.Call(http.MethodDelete, p.in(api, name), tree{"gracePeriodSeconds": 0, "propagationPolicy": "Background"},
				nil)
		}
	})
	return p
}

func (p *Player) in(api, resource string) string {
	return api + "/namespaces/" + p.Namespace + "/" + resource
}

type meta struct {
	Name              string    `json:"name"`
	UID               string    `json:"uid"`
	CreationTimestamp time.Time `json:"creationTimestamp"`
	ResourceVersion   string    `json:"resourceVersion"`
	Owners            []struct {
		UID string `json:"uid"`
	} `json:"ownerReferences"`
	Annotations map[string]string `json:"annotations"`
}

type condition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// Job is a Job as the player sees it.
type Job struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Suspend  bool `json:"suspend"`
		Template struct {
			Spec tree `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status struct {
		Active     int         `json:"active"`
		StartTime  *time.Time  `json:"startTime"`
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// Pod is a pod as the player sees it.
type Pod struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
		Gates    []tree `json:"schedulingGates"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// Workload is a Workload of Kueue as the player sees it.
type Workload struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Priority int32 `json:"priority"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

func isTrue(all []condition, kind string) bool {
	return slices.Contains(all, condition{kind, "True"})
}

// Submit hands in a job of one pod that takes so long, by the player's time, and says that it takes limit at most.
func (p *Player) Submit(name string, gpus, work int, limit time.Duration, how How) {
	p.t.Helper()
	p.work[name], p.asks[name] = work, gpus
	pod := kubetest.PodSpec(gpus)
	seconds := int(limit / time.Second)
	if how == Gated {
		pod["activeDeadlineSeconds"], pod["schedulingGates"] = seconds, []tree{{"name": "clustergym/gate"}}
		p.k.Must(http.MethodPost, p.in(kubetest.Core, "pods"), tree{"metadata": tree{"name": name}, "spec": pod}, nil)
		return
	}
	labels := tree{}
	switch how {
	case Handed:
		labels["clustergym/gate"] = "steer"
	case Queued:
		labels["kueue.x-k8s.io/queue-name"], p.queued = "gpus", !p.managed
	}
	var j Job
	p.k.Must(http.MethodPost, p.in(kubetest.Batch, "jobs"),
		tree{"metadata": tree{"name": name, "labels": labels},
			"spec": tree{"suspend": how != Plain, "activeDeadlineSeconds": seconds,
				"template": tree{"spec": pod}}}, &j)
	if p.queued && how == Queued {
		p.k.Must(http.MethodPost, p.in(kubetest.Kueue, "workloads"),
			tree{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": tree{"name": name,
				"ownerReferences": []tree{{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": j.Metadata.UID,
					"controller": true}}},
				"spec": tree{"queueName": "gpus", "active": true,
					"podSets": []tree{{"name": "main", "count": 1, "template": tree{"spec": pod}}}}}, nil)
	}
}

// list returns objects in the order in which they were made.
func list[T any](p *Player, path string) []T {
	p.t.Helper()
	var l struct {
		Items []T `json:"items"`
	}
	p.k.Must(http.MethodGet, path, nil, &l)
	return l.Items
}

// Jobs returns the Jobs of the namespace.
func (p *Player) Jobs() []Job { return list[Job](p, p.in(kubetest.Batch, "jobs")) }

// Pods returns the pods of the namespace.
func (p *Player) Pods() []Pod { return list[Pod](p, p.in(kubetest.Core, "pods")) }

// Workloads returns the Workloads of the namespace.
func (p *Player) Workloads() []Workload { return list[Workload](p, p.in(kubetest.Kueue, "workloads")) }

// try lets pass what a change in between explains.
func (p *Player) try(method, path string, body any) {
	p.t.Helper()
	if code, err := p.k.Call(method, path, body, nil); err != nil && code != http.StatusNotFound &&
		code != http.StatusConflict && code != http.StatusUnprocessableEntity {
		p.t.Error(err)
	}
}

// Step does what controllers have to do now.
func (p *Player) Step() {
	p.t.Helper()
	of := map[string]*Pod{} // by the Job's uid
	pods := p.Pods()
	for i := range pods {
		x := &pods[i]
		name := x.Metadata.Name
		if len(x.Metadata.Owners) > 0 {
			of[x.Metadata.Owners[0].UID] = x
			continue
		}
		p.runs(name, x)
	}
	for _, j := range p.Jobs() {
		name, x := j.Metadata.Name, of[j.Metadata.UID]
		status := p.in(kubetest.Batch, "jobs/"+name+"/status")
		_, ended := p.Ended[name]
		switch {
		case ended:
		case j.Spec.Suspend:
			if x != nil {
				p.try(http.MethodDelete, p.in(kubetest.Core, "pods/"+x.Metadata.Name), tree{"gracePeriodSeconds": 0})
			}
			if j.Status.Active > 0 || !isTrue(j.Status.Conditions, "Suspended") {
				p.try(http.MethodPatch, status,
					tree{"metadata": tree{"resourceVersion": j.Metadata.ResourceVersion},
						"status": tree{"active": 0, "ready": 0, "conditions": kubetest.Conditions("True", "Suspended")}})
			}
		case x != nil:
			p.runs(name, x)
		case j.Status.StartTime == nil || isTrue(j.Status.Conditions, "Suspended"):
			p.try(http.MethodPatch, status,
				tree{"metadata": tree{"resourceVersion": j.Metadata.ResourceVersion}, "status": tree{"active": 1, "ready": 0,
					"startTime": kubetest.Now(), "conditions": kubetest.Conditions("False", "Suspended")}})
		default:
			p.pods++
			p.try(http.MethodPost, p.in(kubetest.Core, "pods"),
				tree{"metadata": tree{"name": fmt.Sprintf("%s-%04d", name, p.pods),
					"labels": tree{"batch.kubernetes.io/controller-uid": j.Metadata.UID},
					"ownerReferences": []tree{{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": j.Metadata.UID,
						"controller": true}}}, "spec": j.Spec.Template.Spec})
		}
	}
	if p.queued && !p.Hold {
		p.admit()
	}
}

// runs notes that a pod has its node, and is its kubelet.
func (p *Player) runs(name string, x *Pod) {
	p.t.Helper()
	if _, known := p.Started[name]; known || x.Spec.NodeName == "" {
		return
	}
	p.Started[name], p.Nodes[name] = p.Now, x.Spec.NodeName
	p.try(http.MethodPatch, p.in(kubetest.Core, "pods/"+x.Metadata.Name+"/status"),
		tree{"status": tree{"phase": "Running", "startTime": kubetest.Now()}})
}

// admit is Kueue: of the Workloads that fit, those of the highest priority are admitted, and of those the oldest.
func (p *Player) admit() {
	p.t.Helper()
	all := p.Workloads()
	slices.SortStableFunc(all, func(a, b Workload) int {
		if a.Spec.Priority != b.Spec.Priority {
			return int(b.Spec.Priority) - int(a.Spec.Priority)
		}
		return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp)
	})
	room := Room
	for i := range all {
		if isTrue(all[i].Status.Conditions, "Admitted") && !isTrue(all[i].Status.Conditions, "Finished") {
			room -= p.asks[all[i].Metadata.Name]
		}
	}
	for i := range all {
		name := all[i].Metadata.Name
		if isTrue(all[i].Status.Conditions, "Admitted") || p.asks[name] > room {
			continue
		}
		room -= p.asks[name]
		p.try(http.MethodPatch, p.in(kubetest.Kueue, "workloads/"+name+"/status"),
			tree{"status": tree{"conditions": kubetest.Conditions("True", "Admitted")}})
		p.try(http.MethodPatch, p.in(kubetest.Batch, "jobs/"+name), tree{"spec": tree{"suspend": false}})
	}
}

// Room is how many GPUs there are: four nodes of eight.
const Room = 32

// Full reports whether no job can start: all GPUs are taken, or all jobs have started.
func (p *Player) Full() bool {
	taken := 0
	for name := range p.Started {
		if _, ended := p.Ended[name]; !ended {
			taken += p.asks[name]
		}
	}
	return taken == Room || len(p.Started) == len(p.work)
}

// Tick goes on to the next end of a job, and ends those that end then. It reports whether all have ended.
func (p *Player) Tick() bool {
	p.t.Helper()
	next := -1
	for name, at := range p.Started {
		if _, ended := p.Ended[name]; !ended && (next < 0 || at+p.work[name] < next) {
			next = at + p.work[name]
		}
	}
	if next >= 0 {
		p.Now = next
	}
	pods := p.Pods()
	jobs := map[string]*Job{}
	all := p.Jobs()
	for i := range all {
		jobs[all[i].Metadata.Name] = &all[i]
	}
	for name, at := range p.Started {
		if _, ended := p.Ended[name]; ended || at+p.work[name] > p.Now {
			continue
		}
		p.Ended[name] = p.Now
		j := jobs[name]
		for i := range pods {
			x := &pods[i]
			if x.Metadata.Name == name || j != nil && len(x.Metadata.Owners) > 0 && x.Metadata.Owners[0].UID == j.Metadata.UID {
				p.k.Must(http.MethodPatch, p.in(kubetest.Core, "pods/"+x.Metadata.Name+"/status"),
					tree{"status": tree{"phase": "Succeeded"}}, nil)
			}
		}
		if j == nil {
			continue
		}
		kubetest.FinishJob(p.k.Must, p.in(kubetest.Batch, "jobs/"+name), 1)
		if p.queued {
			p.k.Must(http.MethodPatch, p.in(kubetest.Kueue, "workloads/"+name+"/status"),
				tree{"status": tree{"conditions": kubetest.Conditions("True", "Admitted", "Finished")}}, nil)
		}
	}
	return len(p.Ended) == len(p.work)
}

// Left returns how many jobs have not ended.
func (p *Player) Left() int { return len(p.work) - len(p.Ended) }

// MeanWait returns how long jobs waited, all of which were handed in at the beginning.
func (p *Player) MeanWait() float64 {
	sum := 0
	for _, at := range p.Started {
		sum += at
	}
	return float64(sum) / float64(max(1, len(p.Started)))
}

// expiredToken makes credentials as Token of a cluster does, which have run out an hour ago.
func expiredToken(t testing.TB, k *kubetest.Cluster, account string) string {
	t.Helper()
	var o struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	k.Must(http.MethodGet, kubetest.Core+"/namespaces/clustergym/serviceaccounts/"+account, nil, &o)
	now := time.Now().Unix()
	text := func(o any) string {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	signed := text(tree{"alg": "RS256", "typ": "JWT"}) + "." + text(tree{"iss": kubetest.Issuer,
		"aud": []string{kubetest.Issuer}, "iat": now - 7200, "nbf": now - 7200, "exp": now - 3600,
		"sub":           "system:serviceaccount:clustergym:" + account,
		"kubernetes.io": tree{"namespace": "clustergym", "serviceaccount": tree{"name": account, "uid": o.Metadata.UID}}})
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, k.Key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}
