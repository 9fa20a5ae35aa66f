// Package kubetest starts a Kubernetes of a test's own on the loopback address: etcd, API server with RBAC, and
// scheduler, without kubelets, containers or controllers. All files are in one folder, and everything ends with the
// test. Tests play controllers and kubelets. make kubernetes builds the programs.
//
// The objects of this file do for servers that a test plays, too, on any system.
package kubetest

import (
	"net/http"
	"strconv"
	"time"
)

// The beginnings of paths.
const (
	Core  = "/api/v1"
	Batch = "/apis/batch/v1"
	Kueue = "/apis/kueue.x-k8s.io/v1beta1"
)

// Tree is JSON to send.
type Tree = map[string]any

// Must is a request that ends the test if it fails. Patches are merge patches.
type Must func(method, path string, body, out any)

// AddNode makes a node of eight GPUs that is ready.
func AddNode(must Must, name string) {
	must(http.MethodPost, Core+"/nodes",
		Tree{"apiVersion": "v1", "kind": "Node", "metadata": Tree{"name": name, "labels": Tree{"kubernetes.io/hostname": name,
			"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "topology.kubernetes.io/zone": "z1"}}}, nil)
	amounts := Tree{"nvidia.com/gpu": "8", "cpu": "128", "memory": "1Ti", "pods": "110"}
	must(http.MethodPatch, Core+"/nodes/"+name+"/status",
		Tree{"status": Tree{"capacity": amounts, "allocatable": amounts, "conditions": Conditions("True", "Ready")}}, nil)
	// The controller of nodes would take this taint away now; there is none.
	must(http.MethodPatch, Core+"/nodes/"+name, Tree{"spec": Tree{"taints": nil}}, nil)
}

// PodSpec asks for so many GPUs.
func PodSpec(gpus int) Tree {
	amounts := Tree{"nvidia.com/gpu": strconv.Itoa(gpus), "cpu": "1", "memory": "1Gi"}
	return Tree{"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
		"containers": []Tree{{"name": "main", "image": "example.org/train:1",
			"resources": Tree{"requests": amounts, "limits": amounts}}}}
}

// Conditions are conditions of these kinds, since now.
func Conditions(status string, kinds ...string) (all []Tree) {
	for _, k := range kinds {
		all = append(all,
			Tree{"type": k, "status": status, "reason": "Played", "message": "", "lastTransitionTime": Now(),
				"lastProbeTime": Now()})
	}
	return all
}

// Now is the time as objects have it.
func Now() string { return time.Now().UTC().Format(time.RFC3339) }

// FinishJob ends the Job at a path, so many pods of which have ended, as the controller of Jobs does.
func FinishJob(must Must, path string, succeeded int) {
	must(http.MethodPatch, path+"/status",
		Tree{"status": Tree{"active": 0, "ready": 0, "succeeded": succeeded,
			"conditions": Conditions("True", "SuccessCriteriaMet")}}, nil)
	must(http.MethodPatch, path+"/status",
		Tree{"status": Tree{"completionTime": Now(), "conditions": Conditions("True", "SuccessCriteriaMet", "Complete")}},
		nil)
}
