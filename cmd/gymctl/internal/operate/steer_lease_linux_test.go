package operate_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/cmd/gymctl/internal/options"
)

// rankedSlurm makes commands of a Slurm that remembers the ranks that are written, and returns their folder.
func rankedSlurm(t *testing.T) string {
	t.Helper()
	dir := recordedSlurm(t, 5)
	ranks := filepath.Join(dir, "ranks")
	clitest.Write(t, ranks, "")
	for name, script := range map[string]string{
		// what a Slurm has held and let go before stays as it was recorded, so it is not ours
		"squeue": `exec sed 's/"admin_comment": "[^"]*"/"admin_comment": ""/' ` + filepath.Join(dir, "squeue.json"),
		"sprio":  `exec awk -F'|' '{r[$1]=$2} END{for(i in r) print i "|" r[i]}' ` + ranks,
		"scontrol": `if [ $# = 0 ]; then
	while read -r verb job what; do
		case $verb/$what in
		update/SiteFactor=*) echo "${job#JobId=}|${what#SiteFactor=}" >>` + ranks + `;;
		clustergym-line-*/*) echo "invalid keyword: $verb" >&2;;
		esac
	done
	exit
fi
exec cat ` + filepath.Join(sources(t), "live", "slurm", "testdata", "22.05", "config.txt"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // must run
			t.Fatal(err)
		}
	}
	return dir
}

// sources returns the root of the sources.
func sources(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// highest returns how many jobs have a rank.
func highest(t *testing.T, slurm string) (n int) {
	t.Helper()
	last := map[string]string{}
	for line := range strings.Lines(clitest.Read(t, filepath.Join(slurm, "ranks"))) {
		job, rank, _ := strings.Cut(strings.TrimSpace(line), "|")
		last[job] = rank
	}
	for _, rank := range last {
		if rank != "0" {
			n++
		}
	}
	return n
}

// If a rank is killed, its guard takes the ranks back, writes that to a file of its own, and keeps no output of steer
// open. Until then a second rank is refused with a sentence that names the first.
func TestAKilledRankLeavesNoRanks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slurm, dir := rankedSlurm(t), t.TempDir()
	lease := filepath.Join(dir, "gymctl-steer-slurm.lease")
	args := append([]string{self},
		strings.Fields(
			"steer --cluster slurm --policy sjf+skip --estimates trace --mode rank --every 1s --max-age 1000000h --lease 3s")...)
	env := []string{clitest.AsProgram + "=1", "PATH=" + slurm + ":/usr/bin:/bin"}
	p := startSteering(t, dir, args, env)
	p.lease = lease
	p.looks(2)
	if n := highest(t, slurm); n < 3 {
		t.Fatalf("%d jobs have ranks", n)
	}
	second := exec.Command(args[0], args[1:]...) //nolint:gosec // this program
	second.Env = append(append(os.Environ(), "RUNTIME_DIRECTORY="+dir), env...)
	said, err := second.CombinedOutput()
	if err == nil || strings.Count(string(said), "\n") != 1 ||
		!strings.Contains(string(said), "by another program (process ") || !strings.Contains(string(said), "mode rank") {
		t.Errorf("a second rank: %v, %s", err, said)
	}
	if code := p.end(syscall.SIGKILL); code == cli.ExitDone {
		t.Error(code)
	}
	clitest.Eventually(t, "the guard takes ranks back", func() bool { return highest(t, slurm) == 0 })
	p.unguarded()
	if text := clitest.Read(t, lease+".log"); !strings.Contains(text, "ranks are taken back") ||
		!strings.Contains(text, "nothing is held back") {
		t.Errorf("the guard says %q", text)
	}
	if text := p.says(); strings.Contains(text, "taken back") {
		t.Errorf("the guard says on another's output: %q", text)
	}
}

// Who reads what steer says sees its end, though its guard still watches.
func TestAGuardHoldsNoOutput(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slurm, dir := rankedSlurm(t), t.TempDir()
	c := exec.Command(self, strings.Fields("steer --cluster slurm --policy sjf+skip --estimates trace --mode rank --max-age 1000000h --lease 10m --log "+filepath.Join(dir, "log"))...) //nolint:gosec // this program
	c.Env = append(os.Environ(), clitest.AsProgram+"=1", "PATH="+slurm+":/usr/bin:/bin", "RUNTIME_DIRECTORY="+dir)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the process has its own
	p := &steering{t: t, lease: filepath.Join(dir, "gymctl-steer-slurm.lease")}
	t.Cleanup(func() {
		for _, pid := range p.guards() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it would watch for ten minutes
		}
	})
	clitest.Eventually(t, "steer looks", func() bool { return len(steerLog(t, filepath.Join(dir, "log"))) > 0 })
	_ = c.Process.Kill()
	_ = c.Wait() // killed
	if len(p.guards()) != 1 {
		t.Fatalf("guards: %v", p.guards())
	}
	if err := r.SetReadDeadline(time.Now().Add(clitest.Patience)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil {
		t.Errorf("a reader waits for the guard: %v after %q", err, text)
	}
}

// A lease lives in a folder in which only its user can create files, never in a shared one, whatever variable names it.
func TestWhereALeaseLives(t *testing.T) {
	open, own, log := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_RUNTIME_DIR", open)
	for _, x := range []struct{ service, session, log, want string }{
		{own + ":" + open, "", "", own},
		{open, own, "", own},
		{"", own, filepath.Join(log, "steer.jsonl"), own},
	} {
		t.Setenv("RUNTIME_DIRECTORY", x.service)
		t.Setenv("XDG_RUNTIME_DIR", x.session)
		g := operate.SteerFlags{LogFile: x.log}
		if dir, err := g.LeaseFolder(); err != nil || dir != x.want {
			t.Errorf("%+v: %s, %v", x, dir, err)
		}
	}
	t.Setenv("RUNTIME_DIRECTORY", open)
	t.Setenv("XDG_RUNTIME_DIR", "")
	g := operate.SteerFlags{LogFile: filepath.Join(open, "steer.jsonl")}
	if dir, err := g.LeaseFolder(); err != nil || dir == open || dir == os.TempDir() {
		t.Errorf("%s, %v", dir, err)
	}
	t.Setenv("SLURM_CONF", "")
	names := map[string]bool{}
	for _, g := range []operate.SteerFlags{
		{ClusterFlags: operate.ClusterFlags{Kind: operate.SlurmCluster}},
		{ClusterFlags: operate.ClusterFlags{Kind: operate.SlurmCluster,
			Slurm: operate.SlurmSteerFlags{SlurmAccess: options.SlurmAccess{Ssh: "a"}}}},
		{ClusterFlags: operate.ClusterFlags{Kind: operate.SlurmCluster,
			Slurm: operate.SlurmSteerFlags{SlurmAccess: options.SlurmAccess{Conf: "a"}}}},
		{ClusterFlags: operate.ClusterFlags{Kind: operate.KubeCluster}},
		{ClusterFlags: operate.ClusterFlags{Kind: operate.KubeCluster, Kube: options.KubeFlags{Context: "a"}}},
		{ClusterFlags: operate.ClusterFlags{Kind: operate.KubeCluster, Kube: options.KubeFlags{Namespaces: []string{"a"}}}},
	} {
		if name := g.LeaseName(); names[name] || strings.ContainsAny(name, "/ ") {
			t.Errorf("%+v has the lease %s", g.ClusterFlags, name)
		} else {
			names[name] = true
		}
	}
}
