package operate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/kubetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/report"
	"clustergym/ops/twin"
)

// manifests is the folder of the manifests, and args the arguments of the container of a Deployment there.
var manifests = filepath.Join("..", "..", "..", "..", "deploy", "kubernetes")

func manifestArgs(t *testing.T, mode, deployment string) (args []string) {
	t.Helper()
	for _, o := range kubetest.Manifest(t, filepath.Join(manifests, mode+".yaml")) {
		if o.Kind != "Deployment" || o.Name != deployment {
			continue
		}
		text, err := json.Marshal(o.Contents)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := json.Unmarshal(text, &d); err != nil || len(d.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s: %v: %s", mode, err, text)
		}
		return d.Spec.Template.Spec.Containers[0].Args
	}
	t.Fatalf("%s.yaml has no Deployment %s", mode, deployment)
	return nil
}

// What the manifests call is there, with these flags.
func TestManifestsCallVerbsThatAreThere(t *testing.T) {
	for _, x := range [][2]string{{"shadow", "steer-shadow"}, {"rank", "steer-rank"}, {"gate", "steer-gate"},
		{"gate", "steer-gate-guard"}} {
		args := manifestArgs(t, x[0], x[1])
		c, rest, err := root(t).Find(args)
		if err != nil || !slices.Contains([]string{"shadow", "rank", "gate", "guard"}, c.Name()) {
			t.Errorf("%v: %v", args, err)
			continue
		}
		if err := c.ParseFlags(rest); err != nil || c.Flags().NArg() > 0 {
			t.Errorf("%v: %v, %d arguments that are no flags", args, err, c.Flags().NArg())
		}
	}
}

func root(t *testing.T) *cobra.Command {
	t.Helper()
	for _, c := range clitest.Commands() {
		if !c.HasParent() {
			return c
		}
	}
	t.Fatal("there is no root")
	return nil
}

// kubeSteer is a Kubernetes with the manifests, and gymctl as users have it.
type kubeSteer struct {
	*kubetest.Cluster
	Run string
}

// startKubeSteer starts an API server and a scheduler with four nodes and the manifests of all modes, and builds
// gymctl.
func startKubeSteer(t *testing.T) *kubeSteer {
	t.Helper()
	k := &kubeSteer{Cluster: kubetest.Start(t)}
	k.Run = filepath.Join(k.Dir, "gymctl")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", k.Run, ".").CombinedOutput(); err != nil { //nolint:gosec // this package
		t.Fatalf("%v: %s", err, out)
	}
	for i := range 4 {
		k.AddNode(fmt.Sprintf("g%d", i))
	}
	for _, mode := range steer.Modes() {
		k.Apply(filepath.Join(manifests, mode+".yaml"))
	}
	return k
}

// TestKubernetesSteer runs gymctl steer against an API server and a scheduler; make kubernetes builds them. The test
// plays the controller of Jobs, kubelets and Kueue, and time is the player's, so that waits are the same on any
// machine.
func TestKubernetesSteer(t *testing.T) {
	k := startKubeSteer(t)
	t.Run("what cannot be is one sentence, and nothing is written", k.refused)
	t.Run("shadow changes nothing", k.shadow)
	t.Run("a report on the log of a shadow", k.reported)
	t.Run("gate starts what the policy chose where it chose", k.gate)
	t.Run("SIGTERM releases all", k.terminated)
	t.Run("kill -9 strands no job", k.killed)
	k.InstallKueue("v9")
	t.Run("a Kueue of an unknown version is named, and its jobs are left to it", k.unknown)
	k.InstallKueue("v9", "v1beta1")
	t.Run("rank orders the queue of Kueue", k.rank)
	t.Run("a restart of the API server is survived in each mode", k.restarted)
}

// run starts gymctl steer as a manifest does, with the credentials of a kubeconfig; more arguments come last and count.
func (k *kubeSteer) run(t *testing.T, kubeconfig string, args []string, more ...string) *steering {
	t.Helper()
	return startSteering(t, t.TempDir(), slices.Concat([]string{k.Run}, args, []string{"--kubeconfig", kubeconfig}, more),
		nil)
}

// ours returns the versions of all Jobs and nodes, and what gymctl has written, by the server's books.
func (k *kubeSteer) ours() (versions map[string]string, written []string) {
	versions = map[string]string{}
	for _, path := range []string{kubetest.Batch + "/jobs", kubetest.Core + "/pods", kubetest.Core + "/nodes",
		"/apis/coordination.k8s.io/v1/namespaces/clustergym/leases"} {
		var l struct {
			Items []struct {
				Metadata struct {
					Name, Namespace, ResourceVersion string
					ManagedFields                    []struct{ Manager string }
				}
			}
		}
		k.Must(http.MethodGet, path, nil, &l)
		for _, o := range l.Items {
			name := path + "/" + o.Metadata.Namespace + "/" + o.Metadata.Name
			if path != kubetest.Core+"/pods" { // the scheduler may still write to them
				versions[name] = o.Metadata.ResourceVersion
			}
			for _, f := range o.Metadata.ManagedFields {
				if f.Manager == "clustergym" {
					written = append(written, name)
				}
			}
		}
	}
	return versions, written
}

func (k *kubeSteer) refused(t *testing.T) {
	p := newPlayer(t, k.Cluster, "refused")
	p.Submit("a", 8, 1, time.Hour, Plain)
	p.Step()
	before, _ := k.ours()
	nowhere := "https://" + kubetest.FreePort(t)
	shadow := k.Kubeconfig("shadow", k.Token("steer-shadow"), "")
	file := []string{"steer", "--cluster", "kubernetes", "--policy", "sjf+skip", "--cycles", "1", "--mode"}
	gate := func(i int) []string {
		return append(slices.Clone(file), "gate", "--lease-file", filepath.Join(k.Dir, fmt.Sprint("refused.", i)))
	}
	with := func(mode string) []string { return append(slices.Clone(file), mode) }
	object := append(with("gate"), "--lease-object", "clustergym/steer-gate")
	for i, x := range []struct {
		kubeconfig string
		args       []string
		want       string
	}{
		{k.Kubeconfig("stranger", "of-nobody", ""), with("shadow"), "credentials have expired or are not known"},
		{k.Kubeconfig("expired", expiredToken(t, k.Cluster, "steer-gate"), ""), with("shadow"),
			"credentials have expired or are not known"},
		{k.Kubeconfig("expired", expiredToken(t, k.Cluster, "steer-gate"), ""), gate(0),
			"credentials have expired or are not known"},
		{shadow, gate(1), "may not patch jobs.batch in all namespaces: deploy/kubernetes/gate.yaml has the rights"},
		{shadow, object, "may not patch jobs.batch"},
		{k.Kubeconfig("rank", k.Token("steer-rank"), ""), with("rank"), "the cluster has no Kueue"},
		{k.Kubeconfig("nowhere", "t", nowhere), gate(2), "the cluster cannot be reached"},
		{k.Kubeconfig("nowhere", "t", nowhere), with("rank"), "the cluster cannot be reached"},
	} {
		r := k.run(t, x.kubeconfig, x.args)
		if code := r.end(nil); code != cli.ExitFailed || strings.Count(r.says(), "\n") != 1 ||
			!strings.Contains(r.says(), x.want) {
			t.Errorf("%d: %v: exit code %d, said %q, want %d and a line with %q", i, x.args, code, r.says(), cli.ExitFailed,
				x.want)
		}
	}
	// A shadow, which nothing depends on, waits until the cluster is there.
	r := k.run(t, k.Kubeconfig("nowhere", "t", nowhere), with("shadow"))
	kubetest.Happens(t, "a shadow says that nobody answers", nil,
		func() bool { return strings.Contains(r.says(), "cannot be reached") })
	if code := r.end(syscall.SIGTERM); strings.Count(r.says(), "\n") != 1 {
		t.Errorf("exit code %d, said %q", code, r.says())
	}
	if after, written := k.ours(); !maps.Equal(before, after) || len(written) > 0 {
		t.Errorf("before %v, after %v, written %v", before, after, written)
	}
}

// sixty hands in sixty jobs of a node each: twelve long ones, and then those of the kinds in turn that are short.
func sixty(p *Player, long How, short ...How) {
	for i := range 60 {
		if i < 12 {
			p.Submit(fmt.Sprintf("long-%02d", i), 8, 20, 10*time.Hour, long)
		} else {
			p.Submit(fmt.Sprintf("short-%02d", i), 8, 1, 10*time.Minute, short[i%len(short)])
		}
	}
}

// play runs all jobs to their end. Time goes on only when nothing can start.
func play(t *testing.T, p *Player) {
	t.Helper()
	for over := false; !over; over = p.Tick() {
		kubetest.Happens(t, fmt.Sprintf("no job can start at %d, with %d left", p.Now, p.Left()), p.Step, p.Full)
	}
}

func (k *kubeSteer) shadow(t *testing.T) {
	p := newPlayer(t, k.Cluster, "shadow")
	sixty(p, Plain, Plain, Handed, Gated)
	kubetest.Happens(t, "four jobs run", p.Step, p.Full)
	p.Step()
	before, _ := k.ours()
	r := k.run(t, k.Kubeconfig("shadow", k.Token("steer-shadow"), ""), manifestArgs(t, "shadow", "steer-shadow"),
		"--namespace", p.Namespace, "--every", "1s", "--cycles", "4")
	if code := r.end(nil); code != cli.ExitDone || r.says() != "" {
		t.Fatalf("exit code %d: %s", code, r.says())
	}
	lines := r.lines()
	if len(lines) != 4 || lines[0].Waiting != 56 || lines[0].Running != 4 || len(lines[0].Order) != 56 ||
		len(lines[0].Arrived) != 60 {
		t.Errorf("%d lines: %+v", len(lines), lines)
	}
	k.twin(t, p.Namespace)
	if after, written := k.ours(); !maps.Equal(before, after) || len(written) > 0 {
		t.Errorf("before %v, after %v, written %v", before, after, written)
	}
}

// document runs gymctl and decodes the JSON that it prints.
func (k *kubeSteer) document(t *testing.T, out any, args ...string) {
	t.Helper()
	cmd := exec.Command(k.Run, args...) //nolint:gosec // this test's
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, text, said.String())
	}
}

// twin forecasts the queue of shadow with its rights: four of twelve long jobs run, and 48 short ones wait behind the
// others.
func (k *kubeSteer) twin(t *testing.T, namespace string) {
	t.Helper()
	var f twin.Report
	k.document(t, &f, "twin", "--cluster", "kubernetes", "--kubeconfig",
		k.Kubeconfig("shadow", k.Token("steer-shadow"), ""), "--namespace", namespace, "--estimates", "trace",
		"--draws", "20", "--workers", "1", "--json", "--drain", "g0", "--add", "4x8", "--submit", "8:10m")
	if len(f.Waiting) != 56 || len(f.Running) != 4 || len(f.Blocked) != 0 || f.Scheduler != "fifo+skip" ||
		len(f.WhatIfs) != 3 {
		t.Fatalf("%d wait, %d run, %d are blocked, by %s, %d what-ifs: %v", len(f.Waiting), len(f.Running), len(f.Blocked),
			f.Scheduler, len(f.WhatIfs), f.Notes)
	}
	hours := func(j *twin.JobForecast) float64 { return float64(j.Start[slices.Index(twin.Levels[:], 0.5)]) / 3600 }
	first, last := hours(&f.Waiting[0]), hours(&f.Waiting[0])
	for i := range f.Waiting {
		first, last = min(first, hours(&f.Waiting[i])), max(last, hours(&f.Waiting[i]))
	}
	effects := map[string]float64{}
	for _, w := range f.WhatIfs {
		if len(w.Effects) > 0 {
			effects[w.Name] = w.Effects[0].Change
		}
	}
	t.Logf("56 jobs start in %.1f to %.1f h; what-ifs change the %s by %.0f s (drain), %.0f s (add)", first, last,
		f.WhatIfs[0].Effects[0].What, effects["drain g0"], effects["add 4x8"])
	// Limits are 10 h and 10 min: the four that run end at 10 h at the latest, eight long ones are over at 30 h, and 48
	// short ones begin in twelve rounds.
	if first <= 0 || first > 10 || last <= 10 || last > 32 || effects["drain g0"] <= 0 || effects["add 4x8"] >= 0 {
		t.Errorf("the first starts in %.1f h, the last in %.1f h; %+v", first, last, f.WhatIfs)
	}
}

// reported lets a shadow look while jobs come and go, and has its log reported on.
func (k *kubeSteer) reported(t *testing.T) {
	p := newPlayer(t, k.Cluster, "reported")
	r := k.run(t, k.Kubeconfig("shadow", k.Token("steer-shadow"), ""), manifestArgs(t, "shadow", "steer-shadow"),
		"--namespace", p.Namespace, "--every", "1s")
	kubetest.Happens(t, "shadow looks", nil, func() bool { return len(r.lines()) > 0 })
	seen := func() (started, ended int) {
		for _, l := range r.lines() {
			started, ended = started+len(l.Started), ended+len(l.Ended)
		}
		return started, ended
	}
	tick := func() (over bool) { // what comes and ends between two looks is in no log
		kubetest.Happens(t, "no job can start", p.Step, p.Full)
		kubetest.Happens(t, "shadow has seen all starts", nil,
			func() bool { started, _ := seen(); return started == len(p.Started) })
		looks := len(r.lines())
		kubetest.Happens(t, "a second goes by, in which times are", nil, func() bool { return len(r.lines()) > looks+1 })
		return p.Tick()
	}
	const batches, each = 4, 8
	for b := range batches {
		for i := range each {
			p.Submit(fmt.Sprintf("j%d-%d", b, i), 8, 1+i%3, 10*time.Minute, Plain)
		}
		for !tick() { // so that jobs come in both halves of the log
		}
	}
	kubetest.Happens(t, "shadow has seen all ends", nil, func() bool { _, ended := seen(); return ended == batches*each })
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	var d report.Report
	page := filepath.Join(t.TempDir(), "report.html")
	k.document(t, &d, "steer", "report", r.log, "--json", "--html", page)
	waits := map[string]float64{}
	for _, row := range d.Rows {
		waits[row.Role] = row.Mean
	}
	t.Logf("%d looks at %d jobs, %d starts; the cluster is like %s; mean waits %v s, error of the model %.1f s a job",
		d.Looks, d.Jobs, d.Agreement.Starts, d.Incumbent, waits, d.Calibration.Absolute)
	if d.Looks != len(r.lines()) || d.Jobs != batches*each || d.Replayed != d.Jobs || d.Nodes != 4 || d.GPUs != Room ||
		d.Policy != "sjf+skip" || d.Agreement.Starts < d.Jobs-each || d.Belief == "" {
		t.Errorf("%+v, agreement %+v", d, d.Agreement)
	}
	if c := d.Calibration; c.N < each || c.N >= d.Jobs || c.Real <= 0 || c.Model < 0 || waits["cluster"] != c.Real ||
		waits["policy"] < 0 || waits["policy"] > 10*c.Real {
		t.Errorf("calibration %+v, mean waits %v", c, waits)
	}
	if info, err := os.Stat(page); err != nil || info.Size() == 0 {
		t.Errorf("the page: %v", err)
	}
}

// guarded starts the guard of gate.yaml.
func (k *kubeSteer) guarded(t *testing.T, kubeconfig, namespace string, more ...string) *steering {
	t.Helper()
	return k.run(t, kubeconfig, manifestArgs(t, "gate", "steer-gate-guard"),
		append([]string{"--namespace", namespace}, more...)...)
}

// gating starts steer as gate.yaml does.
func (k *kubeSteer) gating(t *testing.T, kubeconfig, namespace string, more ...string) *steering {
	t.Helper()
	return k.run(t, kubeconfig, manifestArgs(t, "gate", "steer-gate"),
		append([]string{"--namespace", namespace, "--every", "1s"}, more...)...)
}

func (k *kubeSteer) gate(t *testing.T) {
	plain := newPlayer(t, k.Cluster, "plain")
	sixty(plain, Plain, Plain)
	play(t, plain)
	p := newPlayer(t, k.Cluster, "gate")
	sixty(p, Handed, Handed, Gated)
	cfg := k.Kubeconfig("gate", k.Token("steer-gate"), "")
	k.guarded(t, cfg, p.Namespace, "--lease", "5m")
	// no start is taken back, however slow the machine is
	r := k.gating(t, cfg, p.Namespace, "--lease", "5m", "--grace", "1h")
	play(t, p)
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	at := map[string]string{}
	for _, l := range r.lines() {
		chosen := map[string]string{}
		for _, s := range l.Starts {
			chosen[s.ID] = strings.Join(s.Nodes, ",")
		}
		for _, w := range l.Writes {
			id, node, start := strings.Cut(strings.TrimPrefix(w.Action, "start "), " on ")
			if w.Error != "" {
				t.Errorf("%s: %s", w.Action, w.Error)
			}
			if start {
				if chosen[id] != node {
					t.Errorf("%s, and the policy chose %q", w.Action, chosen[id])
				}
				name, _, _ := strings.Cut(id[strings.LastIndex(id, "/")+1:], "@")
				at[name] = node
			}
		}
	}
	if !maps.Equal(at, p.Nodes) {
		t.Errorf("jobs ran on %v, and were started on %v", p.Nodes, at)
	}
	t.Logf("mean wait of 60 jobs on 4 nodes: %.1f with the scheduler alone, %.1f with gate", plain.MeanWait(),
		p.MeanWait())
	if p.MeanWait() >= plain.MeanWait() {
		t.Errorf("mean wait %.1f, and %.1f with the scheduler alone", p.MeanWait(), plain.MeanWait())
	}
}

// stuck returns what is held back or bears the mark of a hold.
func stuck(p *Player) (names []string) {
	for _, j := range p.Jobs() {
		if _, ended := p.Ended[j.Metadata.Name]; !ended &&
			(j.Spec.Suspend || j.Metadata.Annotations["clustergym/held"] != "") {
			names = append(names, j.Metadata.Name)
		}
	}
	for _, x := range p.Pods() {
		if len(x.Spec.Gates) > 0 {
			names = append(names, x.Metadata.Name)
		}
	}
	return names
}

func (k *kubeSteer) terminated(t *testing.T) {
	p := newPlayer(t, k.Cluster, "terminated")
	sixty(p, Plain, Plain, Handed, Gated)
	cfg := k.Kubeconfig("gate", k.Token("steer-gate"), "")
	k.guarded(t, cfg, p.Namespace, "--lease", "5m")
	r := k.gating(t, cfg, p.Namespace, "--lease", "5m")
	kubetest.Happens(t, "56 jobs are held", p.Step, func() bool { return len(stuck(p)) == 56 && len(p.Started) == 4 })
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	begun := time.Now()
	kubetest.Happens(t, "steer ends", p.Step, func() bool {
		return r.dead()
	})
	t.Logf("all are released %.1f s after SIGTERM", time.Since(begun).Seconds())
	if left := stuck(p); len(left) > 0 {
		t.Errorf("%v are held after the end: %s", left, r.says())
	}
	if code := r.cmd.ProcessState.ExitCode(); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// killer is an API server that kills a process at its n-th write: before the server has it if n is even, and otherwise
// before the process knows the answer.
func (k *kubeSteer) killer(t *testing.T, n int, kill func()) (address string) {
	t.Helper()
	to, err := url.Parse(k.Server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport, proxy.FlushInterval = k.Transport(), -1
	var writes atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && writes.Add(1) == int64(n+1) {
			if n%2 == 0 {
				kill()
				panic(http.ErrAbortHandler)
			}
			rec := httptest.NewRecorder()
			proxy.ServeHTTP(rec, r)
			kill()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// killed kills steer at ten of its writes, and has the guard, release-all, or another steer put things right.
func (k *kubeSteer) killed(t *testing.T) {
	k.Must(http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/clustergym/roles",
		kubetest.Tree{"metadata": kubetest.Tree{"name": "leases-of-tests"},
			"rules": []kubetest.Tree{{"apiGroups": []string{"coordination.k8s.io"}, "resources": []string{"leases"},
				"verbs": []string{"get", "patch"}}}}, nil)
	k.Must(http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/clustergym/rolebindings",
		kubetest.Tree{"metadata": kubetest.Tree{"name": "leases-of-tests"},
			"roleRef":  kubetest.Tree{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "leases-of-tests"},
			"subjects": []kubetest.Tree{{"kind": "ServiceAccount", "name": "steer-gate", "namespace": "clustergym"}}}, nil)
	token := k.Token("steer-gate")
	for n := range 10 {
		rescue := []string{"the guard", "release-all", "another steer"}[n%3]
		t.Run(fmt.Sprintf("at write %d, %s", n, rescue), func(t *testing.T) {
			t.Parallel()
			p := newPlayer(t, k.Cluster, fmt.Sprintf("killed-%d", n))
			for i := range 15 { // a Job that is not handed over may start before steer sees it; the others take a write each
				how := []How{Handed, Handed, Plain, Gated, Handed}[i%5]
				p.Submit(fmt.Sprintf("k%02d", i), 1, 1, time.Hour, how)
			}
			lease := []string{"--lease", "30s"} // a busy machine keeps steer from renewing it for long
			own := k.Kubeconfig(p.Namespace, token, "")
			args := []string{"steer", "--cluster", "kubernetes", "--policy", "sjf+skip", "--mode", "gate", "--every", "1s",
				"--namespace", p.Namespace}
			if n%2 == 0 { // as the manifests have it; otherwise with a guard that steer starts
				name := "clustergym/" + p.Namespace
				for _, x := range []string{p.Namespace, p.Namespace + "-guard"} {
					k.Must(http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/clustergym/leases",
						kubetest.Tree{"metadata": kubetest.Tree{"name": x}}, nil)
				}
				lease = append(lease, "--lease-object", name)
				k.guarded(t, own, p.Namespace, lease...)
			} else {
				lease = append(lease, "--lease-file", filepath.Join(t.TempDir(), "lease"))
			}
			var r *steering
			ready := make(chan struct{})
			proxied := k.Kubeconfig(p.Namespace+"-proxied", token, k.killer(t, n, func() {
				<-ready
				_ = r.cmd.Process.Kill()
				<-r.ended
			}))
			r = k.run(t, proxied, args, lease...)
			close(ready)
			kubetest.Happens(t, "steer is killed", p.Step, r.dead)
			if r.cmd.ProcessState.ExitCode() != -1 {
				t.Fatalf("it has ended by itself: %s", r.says())
			}
			switch rescue {
			case "the guard":
				kubetest.Happens(t, "the guard has released all", p.Step, func() bool { return len(stuck(p)) == 0 })
			case "release-all":
				x := k.run(t, own, []string{"steer", "release-all", "--cluster", "kubernetes", "--namespace", p.Namespace})
				kubetest.Happens(t, "release-all ends", p.Step, x.dead)
			default:
				x := k.run(t, own, args, lease...)
				kubetest.Happens(t, "another steer has started all", func() {
					p.Step()
					select {
					case <-x.ended: // the lease was still in force
						x = k.run(t, own, args, lease...)
					default:
					}
				}, func() bool { p.Tick(); return p.Left() == 0 })
				x.end(syscall.SIGTERM)
			}
			kubetest.Happens(t, "all jobs have run", p.Step, func() bool { p.Tick(); return p.Left() == 0 })
		})
	}
}

// unknown has a Job that Kueue has let go, and one in its queue, neither of which may be touched.
func (k *kubeSteer) unknown(t *testing.T) {
	p := newPlayer(t, k.Cluster, "unknown")
	for name, suspended := range map[string]bool{"admitted": false, "queued": true} {
		k.Must(http.MethodPost, kubetest.Batch+"/namespaces/unknown/jobs",
			kubetest.Tree{"metadata": kubetest.Tree{"name": name,
				"labels": kubetest.Tree{"kueue.x-k8s.io/queue-name": "gpus", "clustergym/gate": ""}},
				"spec": kubetest.Tree{"suspend": suspended, "template": kubetest.Tree{"spec": kubetest.PodSpec(8)}}}, nil)
	}
	before, _ := k.ours()
	r := k.run(t, k.Kubeconfig("rank", k.Token("steer-rank"), ""), manifestArgs(t, "rank", "steer-rank"), "--namespace",
		p.Namespace)
	if code := r.end(nil); code != cli.ExitFailed || strings.Count(r.says(), "\n") != 1 ||
		!strings.Contains(r.says(), "Kueue offers version v9 of kueue.x-k8s.io, and this program knows v1beta2, v1beta1") {
		t.Errorf("exit code %d, said %q", code, r.says())
	}
	lease := filepath.Join(t.TempDir(), "lease")
	r = k.run(t, k.Kubeconfig("gate", k.Token("steer-gate"), ""),
		[]string{"steer", "--cluster", "kubernetes", "--mode", "gate", "--policy", "sjf+skip", "--estimates", "trace"},
		"--namespace", p.Namespace,
		"--lease-file", lease, "--every", "1s", "--cycles", "3")
	if code := r.end(nil); code != cli.ExitDone ||
		!strings.Contains(r.says(),
			"the Job is in a queue of Kueue, which starts it by its Workload: Kueue offers version v9") {
		t.Errorf("exit code %d, said %q", code, r.says())
	}
	after, _ := k.ours()
	for _, name := range []string{"admitted", "queued"} {
		if key := kubetest.Batch + "/jobs/unknown/" + name; before[key] == "" || before[key] != after[key] {
			t.Errorf("%s was %q, is %q", name, before[key], after[key])
		}
	}
}

// rank plays sixty jobs in a queue of Kueue, in their own order and in that of a policy.
func (k *kubeSteer) rank(t *testing.T) {
	plain := newPlayer(t, k.Cluster, "unranked")
	sixty(plain, Queued, Queued)
	play(t, plain)
	p := newPlayer(t, k.Cluster, "rank")
	p.Hold = true // nothing is admitted before there are ranks
	sixty(p, Queued, Queued)
	r := k.run(t, k.Kubeconfig("rank", k.Token("steer-rank"), ""), manifestArgs(t, "rank", "steer-rank"), "--namespace",
		p.Namespace, "--every", "1s")
	kubetest.Happens(t, "all Workloads have ranks", p.Step, func() bool {
		return !slices.ContainsFunc(p.Workloads(),
			func(w Workload) bool { return w.Metadata.Annotations["clustergym/rank"] == "" })
	})
	for _, w := range p.Workloads() {
		for _, v := range p.Workloads() {
			if strings.HasPrefix(w.Metadata.Name, "short") && strings.HasPrefix(v.Metadata.Name, "long") &&
				w.Spec.Priority <= v.Spec.Priority {
				t.Fatalf("%s has priority %d, %s %d", w.Metadata.Name, w.Spec.Priority, v.Metadata.Name, v.Spec.Priority)
			}
		}
	}
	p.Hold = false
	play(t, p)
	if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	t.Logf("mean wait of 60 jobs on 4 nodes: %.1f in order of submit, %.1f by rank", plain.MeanWait(), p.MeanWait())
	if p.MeanWait() >= plain.MeanWait() {
		t.Errorf("mean wait %.1f, and %.1f in order of submit", p.MeanWait(), plain.MeanWait())
	}
}

func (k *kubeSteer) restarted(t *testing.T) {
	p := newPlayer(t, k.Cluster, "restarted")
	cfg := k.Kubeconfig("gate", k.Token("steer-gate"), "")
	p.Hold = true
	p.Submit("queued-0", 8, 1, time.Hour, Queued)
	k.guarded(t, cfg, p.Namespace, "--lease", "5m")
	all := map[string]*steering{"gate": k.gating(t, cfg, p.Namespace, "--lease", "5m")}
	for _, mode := range []string{"shadow", "rank"} {
		all[mode] = k.run(t, k.Kubeconfig(mode, k.Token("steer-"+mode), ""), manifestArgs(t, mode, "steer-"+mode),
			"--namespace", p.Namespace, "--every", "1s")
	}
	for mode, r := range all {
		kubetest.Happens(t, mode+" looks", p.Step, func() bool { return len(r.lines()) > 0 })
	}
	k.Kill()
	for mode, r := range all {
		kubetest.Happens(t, mode+" says that nobody answers", nil,
			func() bool { return strings.Contains(r.says(), "cannot be reached") })
	}
	k.Revive()
	p.Submit("queued-1", 8, 1, time.Hour, Queued)
	p.Submit("handed", 8, 1, time.Hour, Handed)
	kubetest.Happens(t, "the job that was handed over runs, and the new Workload has a rank", p.Step, func() bool {
		_, runs := p.Started["handed"]
		return runs && slices.ContainsFunc(p.Workloads(), func(w Workload) bool {
			return w.Metadata.Name == "queued-1" && w.Metadata.Annotations["clustergym/rank"] != ""
		})
	})
	for mode, r := range all {
		kubetest.Happens(t, mode+" has seen it", p.Step, func() bool {
			return slices.ContainsFunc(r.lines(), func(l steer.Line) bool {
				return slices.ContainsFunc(l.Arrived, func(j steer.JobLine) bool { return strings.Contains(j.ID, "/queued-1@") })
			})
		})
	}
	for mode, r := range all {
		if code := r.end(syscall.SIGTERM); code != cli.ExitDone && code != cli.ExitInterrupted ||
			!strings.Contains(r.says(), "the cluster answers again") {
			t.Errorf("%s: exit code %d, said %q", mode, code, r.says())
		}
	}
}
