//go:build linux

package kubetest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"clustergym/internal/slurmtest"
)

// Var is the environment variable without which Start skips the test. It names the folder of the programs.
const Var = "CLUSTERGYM_KUBERNETES"

// AdminToken are the credentials of somebody who may do everything.
const AdminToken = "admin-of-these-tests"

// Issuer issues the tokens of service accounts.
const Issuer = "https://kubernetes.default.svc"

// Cluster is a Kubernetes that runs.
type Cluster struct {
	Server string // address of the API server, as https://127.0.0.1:6443
	Dir    string
	t      testing.TB
	bin    string
	ports  []string
	api    *exec.Cmd
	Key    *rsa.PrivateKey // signs the tokens of service accounts
	http   *http.Client
}

// FreePort returns an address of loopback that nobody listens on, and that it has not returned before.
func FreePort(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(slurmtest.FreePort(t)))
}

// patience is how long something may take on a machine that is busy with other things.
const patience = 4 * time.Minute

// Happens waits for something that other processes do, with controllers at work; step may be nil.
func Happens(t testing.TB, what string, step func(), holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("it does not happen that %s", what)
		}
		if step != nil {
			step()
		}
	}
}

// Start starts a cluster without nodes, and skips the test without Var.
func Start(t testing.TB) *Cluster {
	t.Helper()
	bin := os.Getenv(Var)
	if bin == "" {
		t.Skip(Var + " names no folder with kube-apiserver, kube-scheduler and etcd: make kubernetes builds them")
	}
	k := &Cluster{t: t, bin: bin, Dir: t.TempDir()}
	for range 3 {
		k.ports = append(k.ports, FreePort(t))
	}
	k.Server = "https://" + k.ports[2]
	var err error
	if k.Key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	k.File("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY",
		Bytes: x509.MarshalPKCS1PrivateKey(k.Key)})))
	k.File("tokens.csv", AdminToken+",admin,1,system:masters\nscheduler-of-these-tests,system:kube-scheduler,2\n")
	k.Begin("etcd", "--dir", filepath.Join(k.Dir, "etcd"), "--client", k.ports[0], "--peer", k.ports[1])
	k.Revive()
	// A pod that has found no room is tried again within a second once there is some, in place of ten.
	k.File("scheduler.yaml", fmt.Sprintf(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 500, burst: 500}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
`, k.Kubeconfig("scheduler", "scheduler-of-these-tests", "")))
	k.Begin("kube-scheduler", "--config", filepath.Join(k.Dir, "scheduler.yaml"), "--secure-port=0")
	return k
}

// File writes a file into the cluster's folder.
func (k *Cluster) File(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.Dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// CA returns the certificate that signs the server's.
func (k *Cluster) CA() []byte {
	k.t.Helper()
	ca, err := os.ReadFile(filepath.Join(k.Dir, "certs", "apiserver.crt"))
	if err != nil {
		k.t.Fatal(err)
	}
	return ca
}

// Kubeconfig writes a kubeconfig file of a user and returns its path. server is an address in place of the API
// server's; "" = none.
func (k *Cluster) Kubeconfig(name, token, server string) string {
	k.t.Helper()
	ca := fmt.Sprintf(", certificate-authority: %q", filepath.Join(k.Dir, "certs", "apiserver.crt"))
	if server == "" {
		server = k.Server
	}
	if strings.HasPrefix(server, "http:") {
		ca = ""
	}
	k.File(name+".conf", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  clusters: [{name: a, cluster: {server: %q%s}}], users: [{name: a, user: {token: %q}}]}`, server, ca, token))
	return filepath.Join(k.Dir, name+".conf")
}

// Begin starts a program, by its path or of the folder of programs, that ends with the test. If the test has failed,
// the end of what it said is shown.
func (k *Cluster) Begin(program string, args ...string) *exec.Cmd {
	k.t.Helper()
	if !filepath.IsAbs(program) {
		program = filepath.Join(k.bin, program)
	}
	cmd := exec.Command(program, args...) //nolint:gosec // of a test
	program = filepath.Base(program)
	log, err := os.OpenFile(filepath.Join(k.Dir, program+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && k.t.Failed() {
			k.t.Logf("%s said at last:\n%s", program, text[max(0, len(text)-2000):])
		}
	})
	return cmd
}

// Kill ends the API server at once, as a crash does, and Revive starts it again.
func (k *Cluster) Kill() {
	_ = k.api.Process.Kill()
	_ = k.api.Wait()
	k.http.CloseIdleConnections()
}

// Revive starts the API server, and waits until it is ready.
func (k *Cluster) Revive() {
	k.t.Helper()
	_, listen, _ := net.SplitHostPort(k.ports[2])
	key := filepath.Join(k.Dir, "sa.key")
	k.api = k.Begin("kube-apiserver", "--etcd-servers=http://"+k.ports[0], "--bind-address=127.0.0.1",
		"--secure-port="+listen, "--cert-dir="+filepath.Join(k.Dir, "certs"),
		"--authorization-mode=RBAC", "--token-auth-file="+filepath.Join(k.Dir,
			"tokens.csv"), "--service-account-issuer="+Issuer,
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--disable-admission-plugins=ServiceAccount", "--watch-cache-sizes=", "--v=0")
	Happens(k.t, "the API server is ready", nil, func() bool {
		if _, err := os.Stat(filepath.Join(k.Dir, "certs", "apiserver.crt")); err != nil {
			return false
		}
		if k.http == nil {
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(k.CA())
			k.http = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true,
				TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
		}
		// The roles of system users are there when this role is.
		return k.answers("/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler") && k.answers("/readyz")
	})
}

func (k *Cluster) answers(path string) bool {
	_, err := k.Call(http.MethodGet, path, nil, nil)
	return err == nil
}

// Call asks the API server for something as the admin. Patches are merge patches. code is the answer's; an error is one
// that is not good.
func (k *Cluster) Call(method, path string, body, out any) (code int, err error) {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		text = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, k.Server+path, text) //nolint:noctx // it ends with the server
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+AdminToken)
	req.Header.Set("User-Agent", "controllers")
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := k.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it has been read
	said, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return resp.StatusCode, err
	case resp.StatusCode/100 != 2:
		return resp.StatusCode, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, said)
	case out != nil:
		return resp.StatusCode, json.Unmarshal(said, out)
	}
	return resp.StatusCode, nil
}

// Transport reaches the API server without credentials.
func (k *Cluster) Transport() http.RoundTripper { return k.http.Transport }

// Must is Call, and ends the test if it fails.
func (k *Cluster) Must(method, path string, body, out any) {
	k.t.Helper()
	if _, err := k.Call(method, path, body, out); err != nil {
		k.t.Fatal(err)
	}
}

// AddNode makes a node of eight GPUs that is ready.
func (k *Cluster) AddNode(name string) {
	k.t.Helper()
	AddNode(k.Must, name)
}

// Object is an object of a manifest.
type Object struct {
	Kind     string
	Name     string
	Contents Tree
}

// Manifest reads the objects of a file.
func Manifest(t testing.TB, file string) (all []Object) {
	t.Helper()
	text, err := os.ReadFile(file) //nolint:gosec // of this repository
	if err != nil {
		t.Fatal(err)
	}
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var o Tree
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(file, err)
		}
		all = append(all, Object{o["kind"].(string), o["metadata"].(Tree)["name"].(string), o})
	}
}

// Apply creates the objects of a manifest whose namespace is clustergym. What is there already stays as it is.
func (k *Cluster) Apply(file string) {
	k.t.Helper()
	collections := map[string]string{"Namespace": Core + "/namespaces",
		"ServiceAccount":                   Core + "/namespaces/clustergym/serviceaccounts",
		"ClusterRole":                      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"ClusterRoleBinding":               "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		"Role":                             "/apis/rbac.authorization.k8s.io/v1/namespaces/clustergym/roles",
		"RoleBinding":                      "/apis/rbac.authorization.k8s.io/v1/namespaces/clustergym/rolebindings",
		"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
		"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
		"Lease":                            "/apis/coordination.k8s.io/v1/namespaces/clustergym/leases",
		"Deployment":                       "/apis/apps/v1/namespaces/clustergym/deployments"}
	for _, o := range Manifest(k.t, file) {
		if code, err := k.Call(http.MethodPost, collections[o.Kind], o.Contents, nil); err != nil &&
			code != http.StatusConflict {
			k.t.Fatal(file, err)
		}
	}
}

// Token makes credentials of a service account in the namespace clustergym.
func (k *Cluster) Token(account string) string {
	k.t.Helper()
	var o struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	k.Must(http.MethodPost, Core+"/namespaces/clustergym/serviceaccounts/"+account+"/token", Tree{"spec": Tree{}}, &o)
	return o.Status.Token
}

// InstallKueue registers Workloads and ClusterQueues of Kueue in these versions, without controller and the rest of
// their schema. Objects are stored in the first version, which stays if it is called again.
func (k *Cluster) InstallKueue(versions ...string) {
	k.t.Helper()
	for _, kind := range []string{"Workload", "ClusterQueue"} {
		plural, scope := strings.ToLower(kind)+"s", "Namespaced"
		if kind == "ClusterQueue" {
			scope = "Cluster"
		}
		anything := Tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		spec := anything
		if kind == "Workload" {
			spec = Tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				"properties": Tree{"queueName": Tree{"type": "string"}, "active": Tree{"type": "boolean", "default": true},
					"priority": Tree{"type": "integer", "format": "int32"}}}
		}
		var served []Tree
		for i, v := range versions {
			served = append(served, Tree{"name": v, "served": true, "storage": i == 0, "subresources": Tree{"status": Tree{}},
				"schema": Tree{"openAPIV3Schema": Tree{"type": "object", "properties": Tree{"spec": spec, "status": anything}}}})
		}
		const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		if name := plural + ".kueue.x-k8s.io"; k.answers(definitions + "/" + name) {
			k.Must(http.MethodPatch, definitions+"/"+name, Tree{"spec": Tree{"versions": served}}, nil)
		} else {
			// The group is protected: a definition of it names the review in which it was approved.
			k.Must(http.MethodPost, definitions,
				Tree{"metadata": Tree{"name": name, "annotations": Tree{"api-approved.kubernetes.io": "unapproved, for a test"}},
					"spec": Tree{"group": "kueue.x-k8s.io", "scope": scope,
						"names":    Tree{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
						"versions": served}}, nil)
		}
	}
	Happens(k.t, "the kinds of Kueue are there", nil, func() bool {
		return !slices.ContainsFunc(versions, func(v string) bool {
			api := "/apis/kueue.x-k8s.io/" + v
			return !k.answers(api+"/workloads") || !k.answers(api+"/clusterqueues")
		})
	})
}
