//go:build linux

// Package slurmtest starts a Slurm of a test's own on this machine, without systemd, cgroups or rights: munged, a
// controller and nodes whose GPUs are empty files. All files are in one folder, and everything ends with the test.
// Debian has what it needs in slurmctld, slurmd, slurm-client and munge; slurmd -N, which runs several nodes on a
// machine, must be built in.
package slurmtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Var is the environment variable without which Start skips the test.
const Var = "CLUSTERGYM_SLURM"

// patience is how long something may take to start.
const patience = time.Minute

// Node is a machine of the cluster.
type Node struct {
	Name, Type string // of its GPUs
	GPUs       int
}

// Options are the settings of a cluster.
type Options struct {
	Nodes []Node   // nil = g0 to g2 with eight a100 each, and g3 with eight v100
	Conf  []string // further lines of slurm.conf, such as partitions; without any there is one of all nodes, batch
	Whole bool     // jobs take whole nodes (select/linear in place of select/cons_tres)
	// Accounting starts slurmdbd and a database for it. The test is skipped if this machine has none of these (Debian:
	// slurmdbd, mariadb-server-core, mariadb-client-core).
	Accounting bool
}

// Cluster is a Slurm that runs. Conf is the path of its slurm.conf, for $SLURM_CONF.
type Cluster struct {
	Dir, Conf string
	t         testing.TB
	env       []string
}

// Need skips a test that starts clusters in its parts, without Var.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv(Var) == "" {
		t.Skip("needs a Slurm: make slurm installs one and runs this test")
	}
}

// Start starts a cluster and waits until its nodes are idle. It skips the test without Var.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	Need(t)
	if o.Nodes == nil {
		o.Nodes = []Node{{"g0", "a100", 8}, {"g1", "a100", 8}, {"g2", "a100", 8}, {"g3", "v100", 8}}
	}
	if o.Accounting {
		for _, p := range []string{"slurmdbd", "mariadbd", "mariadb", "mariadb-install-db"} {
			if _, err := exec.LookPath(p); err != nil {
				t.Skipf("there is no %s, which accounting needs", p)
			}
		}
	}
	dir, err := os.MkdirTemp("", "slurm-") // munge's socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Dir: dir, Conf: filepath.Join(dir, "slurm.conf"), t: t}
	c.env = append(os.Environ(), "SLURM_CONF="+c.Conf, "MYSQL_UNIX_PORT="+filepath.Join(dir, "db.sock"))
	t.Cleanup(func() { c.stop(o) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // munge wants others to see its socket, and nothing else is secret
		t.Fatal(err)
	}
	c.write(o)
	c.Sh("mungekey --create --keyfile=munge.key && munged --key-file=$PWD/munge.key --socket=$PWD/munge.socket " +
		"--pid-file=$PWD/munge.pid --log-file=$PWD/munge.log --seed-file=$PWD/munge.seed")
	if o.Accounting {
		c.account()
	}
	c.Sh("slurmctld -c -f " + c.Conf)
	for _, n := range o.Nodes {
		c.Sh(fmt.Sprintf("mkdir %s && slurmd -N %s -f %s", n.Name, n.Name, c.Conf))
	}
	c.Eventually("all nodes are idle", func() bool {
		return len(strings.Fields(c.Sh("sinfo -h -N -t idle -o %N | sort -u"))) == len(o.Nodes)
	})
	return c
}

// write writes slurm.conf and gres.conf.
func (c *Cluster) write(o Options) {
	c.t.Helper()
	host := strings.TrimSpace(c.Sh("hostname -s"))
	me, err := user.Current()
	if err != nil {
		c.t.Fatal(err)
	}
	choose := "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory"
	if o.Whole {
		choose = "SelectType=select/linear\nSelectTypeParameters=CR_Memory"
	}
	var conf, gres strings.Builder
	fmt.Fprintf(&conf, `ClusterName=private
SlurmctldHost=%[1]s(127.0.0.1)
SlurmctldPort=%[2]d
AuthType=auth/munge
AuthInfo=socket=%[3]s/munge.socket
CredType=cred/munge
SlurmUser=%[4]s
SlurmdUser=%[4]s
StateSaveLocation=%[3]s/state
SlurmctldPidFile=%[3]s/slurmctld.pid
SlurmctldLogFile=%[3]s/slurmctld.log
SlurmdSpoolDir=%[3]s/%%n
SlurmdPidFile=%[3]s/%%n.pid
SlurmdLogFile=%[3]s/%%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
MinJobAge=3600
%[5]s
DefMemPerCPU=10
PriorityType=priority/multifactor
PriorityWeightAge=1000
SchedulerParameters=bf_interval=1,sched_interval=1
GresTypes=gpu
`, host, FreePort(c.t), c.Dir, me.Username, choose)
	if o.Accounting {
		fmt.Fprintf(&conf, `AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePass=%[1]s/munge.socket
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
`, c.Dir)
		port := FreePort(c.t)
		fmt.Fprintf(&conf, "AccountingStoragePort=%d\n", port)
		c.file("slurmdbd.conf", fmt.Sprintf(`AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.socket
DbdHost=localhost
DbdPort=%[2]d
SlurmUser=%[3]s
LogFile=%[1]s/slurmdbd.log
PidFile=%[1]s/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=acct
`, c.Dir, port, me.Username))
	}
	for _, n := range o.Nodes {
		fmt.Fprintf(&conf, "NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=64 RealMemory=64000 Gres=gpu:%s:%d\n",
			n.Name, host, FreePort(c.t), n.Type, n.GPUs)
		fmt.Fprintf(&gres, "NodeName=%s AutoDetect=off Name=gpu Type=%s File=%s/gpu[0-%d]\n", n.Name, n.Type, c.Dir, n.GPUs-1)
		for i := range n.GPUs {
			c.file(fmt.Sprintf("gpu%d", i), "")
		}
	}
	if o.Conf == nil {
		o.Conf = []string{"PartitionName=batch Nodes=ALL Default=YES DefaultTime=01:00:00"}
	}
	conf.WriteString(strings.Join(o.Conf, "\n") + "\n")
	c.file("slurm.conf", conf.String())
	c.file("gres.conf", gres.String())
	if err := os.Mkdir(filepath.Join(c.Dir, "state"), 0o755); err != nil { //nolint:gosec // of a test
		c.t.Fatal(err)
	}
}

func (c *Cluster) file(name, text string) {
	c.t.Helper()
	mode := os.FileMode(0o644) //nolint:gosec // others run commands in it, too
	if name == "slurmdbd.conf" {
		mode = 0o600 // it insists
	}
	if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), mode); err != nil {
		c.t.Fatal(err)
	}
}

// account starts a database and slurmdbd, and enters an account lab with this user in it.
func (c *Cluster) account() {
	c.t.Helper()
	c.Sh(`mariadb-install-db --no-defaults --user=$(id -un) --datadir=$PWD/db --auth-root-authentication-method=normal --skip-test-db >mdb.log 2>&1
mariadbd --no-defaults --user=$(id -un) --datadir=$PWD/db --socket=$PWD/db.sock --skip-networking --pid-file=$PWD/mariadb.pid --innodb-buffer-pool-size=64M >mariadbd.log 2>&1 &`)
	c.Eventually("the database answers", func() bool {
		return strings.Contains(
			c.Sh("mariadb --no-defaults -S $PWD/db.sock -u root -e \"create user if not exists 'slurm'@'localhost'; grant all "+
				"on *.* to 'slurm'@'localhost'; select 'it is'\" 2>&1 || true"), "it is")
	})
	c.Sh("slurmdbd")
	c.Eventually("slurmdbd answers", func() bool {
		return strings.Contains(
			c.Sh("sacctmgr -i add cluster private 2>&1; sacctmgr -n -P show cluster format=cluster 2>&1 || true"), "\nprivate\n")
	})
	c.Sh("sacctmgr -i add account lab && sacctmgr -i add user $(id -un) account=lab")
}

// Sh runs a line of shell in the cluster's folder, and returns what it prints. The test ends if it fails.
func (c *Cluster) Sh(line string) string {
	c.t.Helper()
	cmd := exec.Command("bash", "-c", line) //nolint:gosec // of a test
	cmd.Dir, cmd.Env = c.Dir, c.env
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		said := []byte(nil)
		if errors.As(err, &exit) {
			said = exit.Stderr
		}
		c.t.Fatalf("%s: %v: %s%s", line, err, out, said)
	}
	return string(out)
}

// Eventually waits for something that happens in other processes.
func (c *Cluster) Eventually(what string, holds func() bool) {
	c.t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Since(begun) > 3*patience {
			c.t.Fatalf("it does not happen that %s", what)
		}
	}
}

// Kill ends the controller at once, as a crash does: what it was told in the last seconds is lost. Revive starts it
// again.
func (c *Cluster) Kill() {
	c.t.Helper()
	c.end("slurmctld", syscall.SIGKILL)
}

// Stop ends the controller in order, as systemctl does. Revive starts it again.
func (c *Cluster) Stop() {
	c.t.Helper()
	c.end("slurmctld", syscall.SIGTERM)
}

// Revive starts the controller again, with the state that it has saved.
func (c *Cluster) Revive() {
	c.t.Helper()
	c.Sh("slurmctld -f " + c.Conf)
	c.Eventually("the controller answers", func() bool { return strings.Contains(c.Sh("scontrol ping || true"), "is UP") })
}

// end signals a program by the process id that it noted, and waits for its end.
func (c *Cluster) end(name string, sig syscall.Signal) {
	text, err := os.ReadFile(filepath.Join(c.Dir, name+".pid"))
	if err != nil {
		return // it never ran
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return
	}
	for begun := time.Now(); syscall.Kill(pid, sig) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			sig = syscall.SIGKILL
		}
		if time.Since(begun) > 20*time.Second {
			c.t.Errorf("%s does not end", name)
			return
		}
	}
}

func (c *Cluster) stop(o Options) {
	if c.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(c.Dir, "slurmctld.log")); err == nil {
			c.t.Logf("slurmctld said:\n%s", log[max(0, len(log)-1<<14):])
		}
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "slurmctld.pid")); err == nil {
		cmd := exec.Command("bash", "-c", "scancel -u $(id -un); sleep 1") //nolint:gosec // of a test; their processes are not ours to wait for
		cmd.Env = c.env
		_ = cmd.Run()
	}
	for _, n := range o.Nodes {
		c.end(n.Name, syscall.SIGTERM)
	}
	for _, name := range []string{"slurmctld", "slurmdbd", "mariadb", "munge"} {
		c.end(name, syscall.SIGTERM)
	}
	_ = os.RemoveAll(c.Dir)
}

// ports are the three hundred ports of this process: it listens on the first of them as long as it lives, so that tests
// of another package, which run beside, take others. They lie below those that the kernel gives to outgoing
// connections.
var ports struct {
	sync.Mutex
	claim net.Listener
	next  int
}

// FreePort returns a port of loopback that nobody listens on, and that it has not returned before.
func FreePort(t testing.TB) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	const first, last, block = 20_100, 32_100, 300
	for from := first; ports.claim == nil && from < last; from += block {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", from)); err == nil {
			ports.claim, ports.next = l, from+1
		}
	}
	for ; ports.claim != nil && ports.next%block != first%block; ports.next++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports.next)); err == nil {
			port := ports.next
			ports.next++
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
