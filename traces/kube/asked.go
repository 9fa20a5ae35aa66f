package kube

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/plain"
	"clustergym/traces"
)

// asked is what a job asks for that may be GPUs, or parts of them, and does not count as such: amounts by name.
type asked map[string]float64

// noDevices are the beginnings of names of extended resources that compute nothing.
var noDevices = []string{"kubernetes.io/", "hugepages-", "attachable-volumes-", "rdma/", "devices.kubevirt.io/",
	"vpc.amazonaws.com/", "bridge.network.kubevirt.io/", "ovs-cni.network.kubevirt.io/",
	"nvidia.com/hostdev", "nvidia.com/mlnx", "intel.com/intel_sriov", "openshift.io/", "squat.ai/", "smarter-devices/",
	"github.com/fuse", "networking.gke.io", "aliyun/eni", "tencentcloud.com/eni"}

// fractions are the annotations by which schedulers that share GPUs are asked for a part of one.
var fractions = []string{"gpu-fraction", "gpu-memory", "runai/gpu-fraction", "runai/gpu-memory", "gpu.run.ai/fraction"}

// claimed are names of what claims ask for.
const claimed = "resource claim "

// device reports whether a resource may be a GPU, a part of one, or another accelerator: it is no core, memory or disk,
// and no network card.
func (r *Reading) device(name string) bool {
	if !strings.Contains(name, "/") || slices.Contains(r.GPUs, name) {
		return false
	}
	return !slices.ContainsFunc(noDevices, func(p string) bool { return strings.HasPrefix(name, p) })
}

// asks adds what n pods ask for: the sum over containers, but at least what one that runs before them does.
func (r *Reading) asks(a asked, p *PodSpec, n int, metas ...*Meta) {
	one, before := asked{}, asked{}
	amounts := func(c *Container) asked {
		all := maps.Clone(c.Resources.Limits)
		if all == nil {
			all = map[string]Quantity{}
		}
		maps.Copy(all, c.Resources.Requests)
		of := asked{}
		for name, q := range all {
			if v, ok := q.Milli(); ok && v > 0 && r.device(name) {
				of[name] = float64(v) / 1000
			}
		}
		return of
	}
	for i := range p.InitContainers {
		for name, v := range amounts(&p.InitContainers[i]) {
			if p.InitContainers[i].RestartPolicy == "Always" {
				one[name] += v
			} else {
				before[name] = max(before[name], v)
			}
		}
	}
	for i := range p.Containers {
		for name, v := range amounts(&p.Containers[i]) {
			one[name] += v
		}
	}
	for name, v := range before {
		one[name] = max(one[name], v)
	}
	for _, c := range p.ResourceClaims {
		one[claimed+cmp.Or(c.TemplateName, c.ClaimName, c.Source.TemplateName, c.Source.ClaimName, c.Name)]++
	}
	for _, key := range fractions {
		for _, m := range metas {
			if v := cmp.Or(m.Annotations[key], m.Labels[key]); v != "" {
				f, err := strconv.ParseFloat(v, 64)
				if err != nil || !(f > 0) || f > 1e12 {
					f = 1
				}
				one[key] = f
				break
			}
		}
	}
	for name, v := range one {
		a[name] += v * float64(min(max(0, n), traces.MaxGPUs))
	}
}

func (r *Reading) ofJob(j *Job, pods []*Pod) asked {
	a := asked{}
	r.asks(a, &j.Spec.Template.Spec, j.Gang(), &j.Spec.Template.Meta, &j.Meta)
	if len(a) == 0 && len(pods) > 0 { // what a scheduler has added to them
		r.asks(a, &pods[0].Spec, j.Gang(), &pods[0].Meta)
	}
	return a
}

func (r *Reading) ofWorkload(w *Workload) asked {
	a := asked{}
	for i := range w.Spec.PodSets {
		s := &w.Spec.PodSets[i]
		r.asks(a, &s.Template.Spec, s.Count, &s.Template.Meta)
	}
	return a
}

func (r *Reading) ofPods(pods []*Pod) asked {
	a := asked{}
	for _, p := range members(pods) {
		r.asks(a, &p.Spec, 1, &p.Meta)
	}
	return a
}

// Other is what some jobs ask for in place of GPUs.
type Other struct {
	Jobs    int
	Names   []string  // in order
	Amounts []float64 // of all jobs together
}

// mostOthers is the number of other kinds that are counted separately.
const mostOthers = 20

// asks counts jobs by what they ask for.
type asks map[string]*Other

func (a *asks) add(of asked) {
	names := slices.Sorted(maps.Keys(of))
	if *a == nil {
		*a = asks{}
	}
	key := strings.Join(names, "\n")
	x := (*a)[key]
	if x == nil {
		x = &Other{Names: names, Amounts: make([]float64, len(names))}
		(*a)[key] = x
	}
	x.Jobs++
	for i, name := range names {
		x.Amounts[i] += of[name]
	}
}

// list returns the others, those of most jobs first. Those beyond the bound are in one without names.
func (a asks) list() []Other {
	all := make([]Other, 0, len(a))
	for _, x := range a {
		all = append(all, *x)
	}
	slices.SortFunc(all, func(a, b Other) int { return cmp.Or(b.Jobs-a.Jobs, slices.Compare(a.Names, b.Names)) })
	if len(all) > mostOthers {
		rest := Other{}
		for _, x := range all[mostOthers-1:] {
			rest.Jobs += x.Jobs
		}
		all = append(all[:mostOthers-1], rest)
	}
	return all
}

// String returns the names and amounts.
func (x *Other) String() string {
	if len(x.Names) == 0 {
		return "other resources"
	}
	var list []string
	for i, name := range x.Names {
		text := fmt.Sprintf("%s (%g in all)", plain.Clip(name, 80), x.Amounts[i])
		if slices.Contains(fractions, name) {
			text = "annotation " + text
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// reason says why such jobs are left out, and how they would count.
func (x *Other) reason() string {
	why := "no GPUs that count: it asks for " + x.String()
	for _, name := range x.Names {
		if !strings.HasPrefix(name, claimed) && !slices.Contains(fractions, name) {
			return why + "; --gpu-resource " + plain.Clip(name, 80) + " counts each as a GPU"
		}
	}
	if len(x.Names) == 0 {
		return why
	}
	return why + "; only resources can be counted, with --gpu-resource NAME"
}
