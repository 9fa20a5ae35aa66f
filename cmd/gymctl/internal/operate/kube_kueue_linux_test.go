package operate_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/kubetest"
)

// KueueVar is the environment variable without which startKueue skips the test. It names the folder of Kueue, which
// make kubernetes builds.
const KueueVar = "CLUSTERGYM_KUEUE"

// KueueAPI is the beginning of paths of the objects of Kueue, in the version that it stores.
const KueueAPI = "/apis/kueue.x-k8s.io/v1beta2"

const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert" //nolint:gosec // a name
)

// Manager is the controller of Kueue, as its makers have written it. It has queues in front of the GPUs, starts Jobs by
// taking their suspension away, and its webhooks change and check what is written. Only pods for its own container are
// missing.
type Manager struct {
	k      *kubetest.Cluster
	t      testing.TB
	bin    string
	health string
	cmd    *exec.Cmd
}

// startKueue installs the kinds and webhooks of Kueue, starts it, and waits until it answers. It ends with the test.
func startKueue(t testing.TB, k *kubetest.Cluster) *Manager {
	t.Helper()
	dir := os.Getenv(KueueVar)
	if dir == "" {
		t.Skip(KueueVar + " names no folder with kueue: make kubernetes builds it")
	}
	_, port, _ := net.SplitHostPort(kubetest.FreePort(t))
	m := &Manager{k: k, t: t, bin: filepath.Join(dir, "kueue"), health: kubetest.FreePort(t)}
	certs := filepath.Join(k.Dir, "kueue-certs")
	k.File("kueue.yaml", fmt.Sprintf(`apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
health: {healthProbeBindAddress: %q}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %s, certDir: %q}
leaderElection: {leaderElect: false}
clientConnection: {qps: 500, burst: 500}
integrations: {frameworks: [batch/job]}
featureGates: {VisibilityOnDemand: false}
`, kueueNamespace, m.health, port, certs))

	// Kueue makes its certificates itself, for the name of this service. No network leads to a service here, but the API
	// server follows a service that is another name of this machine.
	k.Must(http.MethodPost, kubetest.Core+"/namespaces", tree{"metadata": tree{"name": kueueNamespace}}, nil)
	k.Must(http.MethodPost, kubetest.Core+"/namespaces/"+kueueNamespace+"/services",
		tree{"metadata": tree{"name": kueueService}, "spec": tree{"type": "ExternalName", "externalName": "localhost"}}, nil)
	k.Must(http.MethodPost, kubetest.Core+"/namespaces/"+kueueNamespace+"/secrets",
		tree{"metadata": tree{"name": kueueSecret}}, nil)
	service := func(path any) tree {
		return tree{"namespace": kueueNamespace, "name": kueueService, "path": path, "port": number(t, port)}
	}
	files, err := filepath.Glob(filepath.Join(dir, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no folder crds: %v", dir, err)
	}
	for _, file := range files {
		for _, o := range kubetest.Manifest(t, file) {
			// Their versions differ where Kueue's own installation has it convert them.
			if plural, _,
				_ := strings.Cut(o.Name, "."); slices.Contains(
				[]string{"localqueues", "clusterqueues", "cohorts", "workloads", "multikueueclusters"}, plural) {
				o.Contents["spec"].(tree)["conversion"] = tree{"strategy": "Webhook",
					"webhook": tree{"conversionReviewVersions": []string{"v1"}, "clientConfig": tree{"service": service("/convert")}}}
			}
			k.Must(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", o.Contents, nil)
		}
	}
	for _, o := range kubetest.Manifest(t, filepath.Join(dir, "webhooks.yaml")) {
		hooks := slices.DeleteFunc(o.Contents["webhooks"].([]any), func(h any) bool { // those of kinds that are not here
			group := h.(tree)["rules"].([]any)[0].(tree)["apiGroups"].([]any)[0]
			return group != "batch" && group != "kueue.x-k8s.io"
		})
		for _, h := range hooks {
			c := h.(tree)["clientConfig"].(tree)
			c["service"] = service(c["service"].(tree)["path"])
		}
		o.Contents["webhooks"] = hooks
		o.Contents["metadata"].(tree)["name"] = "kueue-" + o.Name
		k.Must(http.MethodPost, "/apis/admissionregistration.k8s.io/v1/"+strings.ToLower(o.Kind)+"s", o.Contents, nil)
	}
	m.Revive()
	return m
}

func number(t testing.TB, s string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Kill ends Kueue at once, as a crash does, and Revive starts it again.
func (m *Manager) Kill() {
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// Revive starts Kueue, and waits until it is ready.
func (m *Manager) Revive() {
	m.t.Helper()
	m.cmd = m.k.Begin(m.bin, "--config", filepath.Join(m.k.Dir, "kueue.yaml"), "--kubeconfig",
		m.k.Kubeconfig("kueue", kubetest.AdminToken, ""))
	client := http.Client{Timeout: 5 * time.Second}
	kubetest.Happens(m.t, "Kueue is ready", m.mount, func() bool {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+m.health+"/readyz", nil)
		if err != nil {
			m.t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK && m.reached()
	})
}

// reached reports whether the API server reaches Kueue's webhook.
func (m *Manager) reached() bool {
	_, err := m.k.Call(http.MethodPost, KueueAPI+"/resourceflavors?dryRun=All",
		tree{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": tree{"name": "probe"}}, nil)
	return err == nil
}

// mount is the kubelet: it writes what Kueue has put into its secret where Kueue looks for it.
func (m *Manager) mount() {
	m.t.Helper()
	var secret struct {
		Data map[string]string `json:"data"`
	}
	m.k.Must(http.MethodGet, kubetest.Core+"/namespaces/"+kueueNamespace+"/secrets/"+kueueSecret, nil, &secret)
	dir := filepath.Join(m.k.Dir, "kueue-certs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	for _, name := range []string{"ca.crt", "tls.key", "tls.crt"} { // the last one tells that they are there
		text, err := base64.StdEncoding.DecodeString(secret.Data[name])
		if err != nil {
			m.t.Fatal(err)
		}
		if was, err := os.ReadFile(filepath.Join(dir, name)); len(text) == 0 || err == nil && bytes.Equal(was, text) { //nolint:gosec // of a test
			continue
		}
		m.k.File(filepath.Join("kueue-certs", name), string(text))
	}
}

// AddQueue makes a ClusterQueue over all GPUs, of the name all, that keeps to its order. LocalQueues of namespaces lead
// to it.
func (m *Manager) AddQueue() {
	m.t.Helper()
	m.k.Must(http.MethodPost, KueueAPI+"/resourceflavors",
		tree{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": tree{"name": "gpus"}}, nil)
	var quotas []tree
	for _, q := range [][2]string{{"nvidia.com/gpu", fmt.Sprint(Room)}, {"cpu", "512"}, {"memory", "4Ti"}} {
		quotas = append(quotas, tree{"name": q[0], "nominalQuota": q[1]})
	}
	m.k.Must(http.MethodPost, KueueAPI+"/clusterqueues",
		tree{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": tree{"name": "all"},
			"spec": tree{"namespaceSelector": tree{}, "queueingStrategy": "StrictFIFO",
				"resourceGroups": []tree{{"coveredResources": []string{"nvidia.com/gpu", "cpu", "memory"},
					"flavors": []tree{{"name": "gpus", "resources": quotas}}}}}}, nil)
}

// SetQueue changes the spec of the ClusterQueue: {"stopPolicy": "Hold"} lets nothing more in.
func (m *Manager) SetQueue(spec tree) {
	m.t.Helper()
	m.k.Must(http.MethodPatch, KueueAPI+"/clusterqueues/all", tree{"spec": spec}, nil)
}

// Queues makes a namespace whose Jobs wait in the queue, and whose player leaves admission to Kueue.
func (m *Manager) Queues(t testing.TB, namespace string) *Player {
	t.Helper()
	p := newPlayer(t, m.k, namespace)
	p.managed = true
	m.k.Must(http.MethodPost, p.in(KueueAPI, "localqueues"),
		tree{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": tree{"name": "gpus"},
			"spec": tree{"clusterQueue": "all"}}, nil)
	return p
}

// InQueue is a Workload that Kueue has made for a Job.
type InQueue struct {
	Metadata meta `json:"metadata"`
	Spec     struct {
		Priority int32 `json:"priority"`
		Active   bool  `json:"active"`
	} `json:"spec"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// Holds reports whether a condition is true.
func (w *InQueue) Holds(kind string) bool { return isTrue(w.Status.Conditions, kind) }

// InQueue returns the Workloads that Kueue has made for the namespace's Jobs and that have not ended, by the name of
// the Job.
func (p *Player) InQueue() map[string]*InQueue {
	p.t.Helper()
	names, all := map[string]string{}, map[string]*InQueue{}
	for _, j := range p.Jobs() {
		names[j.Metadata.UID] = j.Metadata.Name
	}
	for _, w := range list[InQueue](p, p.in(KueueAPI, "workloads")) {
		if len(w.Metadata.Owners) == 1 && !w.Holds("Finished") {
			all[names[w.Metadata.Owners[0].UID]] = &w
		}
	}
	return all
}
