package operate_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/look"
	"clustergym/internal/raced"
	"clustergym/internal/slurmtest"
	"clustergym/internal/testseed"
)

// cheap is the experiment of these tests: 42 cells that take ten seconds of one core together.
var cheap = []string{"experiment", "run", "estimates", "--quick"}

// alone is what cheap gives without workers, once for all tests.
var alone = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "gymctl-alone-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the results are read
	var said bytes.Buffer
	if code := clitest.Execute(context.Background(), append(cheap, "--out", dir, "--workers", "1"), io.Discard,
		&said); code != cli.ExitDone {
		return nil, fmt.Errorf("exit code %d: %s", code, said.String())
	}
	return results(dir)
})

// results reads what an experiment came to.
func results(dir string) (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{"results.csv", "rows.csv", "table.txt"} {
		text, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // of this test
		if err != nil {
			return nil, err
		}
		all[name] = string(text)
	}
	return all, nil
}

// crew is a coordinator of cheap in a process of its own, for workers that a test starts.
type crew struct {
	dir, token string
	url        string
	cmd        *exec.Cmd
	said       cli.Locked
	text       bytes.Buffer
	ended      chan struct{}
}

var queueURL = regexp.MustCompile(`(?:nats|tls)://[^\s,;]+`)

// coordinate starts the coordinator, which does no cell itself.
func coordinate(t *testing.T, args ...string) *crew {
	t.Helper()
	c := &crew{dir: t.TempDir(), ended: make(chan struct{})}
	c.said.W = &c.text
	c.token = filepath.Join(c.dir, "token")
	clitest.Write(t, c.token, "a-token-of-these-tests\n")
	c.cmd = clitest.Program(t,
		append(append([]string{}, cheap...), append([]string{"--out", filepath.Join(c.dir, "run"), "--workers", "0",
			"--listen", "127.0.0.1:0", "--token-file", c.token}, args...)...)...)
	r, w := io.Pipe()
	c.cmd.Stdout, c.cmd.Stderr = io.Discard, io.MultiWriter(&c.said, w)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if url := queueURL.FindString(lines.Text()); url != "" {
				select {
				case found <- url:
				default:
				}
			}
		}
	}()
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait() // its exit code is checked below
		_ = w.Close()
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		if t.Failed() {
			t.Logf("the coordinator said:\n%s", c.text.String())
		}
	})
	select {
	case c.url = <-found:
	case <-c.ended:
		t.Fatalf("the coordinator ended: %s", c.text.String())
	case <-time.After(clitest.Patience):
		t.Fatalf("the coordinator does not say where it listens: %s", c.text.String())
	}
	return c
}

// worker starts a worker.
func (c *crew) worker(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	w := clitest.Program(t, append([]string{"worker", c.url, "--token-file", c.token, "--workers", "1"}, args...)...)
	w.Stdout, w.Stderr = &c.said, &c.said
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

// same waits for the coordinator's end and holds its results against those without workers.
func (c *crew) same(t *testing.T) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(5 * time.Minute):
		t.Fatal("the coordinator does not end")
	}
	if code := c.cmd.ProcessState.ExitCode(); code != cli.ExitDone {
		t.Fatalf("the coordinator ended with %d", code)
	}
	want, err := alone()
	if err != nil {
		t.Fatal(err)
	}
	got, err := results(filepath.Join(c.dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s is another one with workers", name)
		}
	}
}

func skipClusters(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("takes a minute; left out with -short, and under the race detector, which does not see into other processes")
	}
}

// TestWorkersThatDieChangeNothing has four workers. Every second one is killed, and another one stands still for longer
// than the coordinator waits.
func TestWorkersThatDieChangeNothing(t *testing.T) {
	skipClusters(t)
	seed := testseed.Or(1)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	c := coordinate(t, "--ack-wait", "2s", "--tries", "1000")
	crew := make([]*exec.Cmd, 4)
	end := func(w *exec.Cmd) {
		_ = w.Process.Signal(syscall.SIGKILL)
		_ = w.Wait()
	}
	for i := range crew {
		crew[i] = c.worker(t)
	}
	defer func() {
		for _, w := range crew {
			end(w)
		}
	}()
	killed := 0
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-c.ended:
			running = false
		case <-tick.C:
			if killed == 12 { // the longest cell must come to its end on a slow machine, too
				for _, w := range crew {
					_ = w.Process.Signal(syscall.SIGCONT)
				}
				tick.Stop()
				continue
			}
			i := rng.IntN(len(crew))
			end(crew[i])
			killed++
			crew[i] = c.worker(t)
			_ = crew[(i+1)%len(crew)].Process.Signal(syscall.SIGSTOP)
			_ = crew[(i+3)%len(crew)].Process.Signal(syscall.SIGCONT)
		}
	}
	t.Logf("%d workers were killed", killed)
	c.same(t)
}

// overSSH starts an sshd for hosts node1 and node2, which are both this machine, and returns a folder with a program
// ssh that goes to it, for a PATH.
func overSSH(t *testing.T) string {
	t.Helper()
	sshd := "/usr/sbin/sshd"
	for _, name := range []string{sshd, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s (Debian: openssh-server)", name)
		}
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "key"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil { //nolint:gosec // of this test
			t.Fatalf("%v: %s", err, out)
		}
	}
	port := freePort(t)
	clitest.Write(t, filepath.Join(dir, "sshd_config"), fmt.Sprintf(`ListenAddress 127.0.0.1
Port %d
HostKey %[2]s/host
PidFile none
AuthorizedKeysFile %[2]s/key.pub
AcceptEnv %[3]s
StrictModes no
PasswordAuthentication no
UsePAM no
`, port, dir, clitest.AsProgram))
	clitest.Write(t, filepath.Join(dir, "config"), fmt.Sprintf(`Host node1 node2
  HostName 127.0.0.1
  Port %d
  IdentityFile %[2]s/key
  UserKnownHostsFile %[2]s/known
  StrictHostKeyChecking accept-new
  SendEnv %[3]s
  LogLevel ERROR
`, port, dir, clitest.AsProgram))
	if os.Geteuid() == 0 {
		// Debian makes it when the service starts.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command(sshd, "-D", "-e", "-f", filepath.Join(dir, "sshd_config")) //nolint:gosec // found above
	var said bytes.Buffer
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	client, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Write(t, filepath.Join(bin, "ssh"), "#!/bin/sh\nexec "+client+" -F "+filepath.Join(dir, "config")+" \"$@\"\n")
	if err := os.Chmod(filepath.Join(bin, "ssh"), 0o755); err != nil { //nolint:gosec // of a test
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command(filepath.Join(bin, "ssh"), "-n", "node1", "true").CombinedOutput() //nolint:gosec // of a test
		if err == nil {
			return bin
		}
		if time.Since(begun) > clitest.Patience {
			t.Skipf("this machine has no working sshd: %v: %s%s", err, out, said.String())
		}
	}
}

// TestWorkersOverSSH starts workers as docs/guides/many-machines.md does, on two hosts that are both this machine.
func TestWorkersOverSSH(t *testing.T) {
	skipClusters(t)
	bin := overSSH(t)
	c := coordinate(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	begin := exec.Command("bash", "-c", fmt.Sprintf(`for h in node1 node2; do ssh -n $h %s worker %s --token-file %s --workers 1 & done; wait`, self, c.url, c.token)) //nolint:gosec // of this test
	begin.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), clitest.AsProgram+"=1")
	out, err := begin.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	c.same(t)
}

// inSlurm starts a private Slurm and returns what runs a command in it.
func inSlurm(t *testing.T) func(command string) string {
	t.Helper()
	skipClusters(t)
	if os.Getenv("CLUSTERGYM_SLURM") == "" {
		t.Skip("needs a Slurm: make slurm installs one and runs this test")
	}
	script, err := filepath.Abs(filepath.Join("testdata", "slurm.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "slurm-") // munge's socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(script, "start", dir).Output() //nolint:gosec // ours
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			out = exit.Stderr
		}
		t.Fatalf("%v: %s", err, out)
	}
	conf := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "slurmctld.log")) //nolint:gosec // ours
			t.Logf("slurmctld said:\n%s", log)
		}
		if out, err := exec.Command(script, "stop", dir).CombinedOutput(); err != nil { //nolint:gosec // ours
			t.Errorf("%v: %s", err, out)
		}
		_ = os.RemoveAll(dir)
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(command string) string {
		t.Helper()
		c := exec.Command("bash", "-c", command) //nolint:gosec // of this test
		c.Dir = dir
		c.Env = append(os.Environ(), "SLURM_CONF="+conf, clitest.AsProgram+"=1", "gymctl="+self)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
		return string(out)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its number is wanted
	return l.Addr().(*net.TCPAddr).Port
}

// TestWorkersUnderSlurm has an array of workers. One is requeued, then a job of a higher partition takes the nodes of
// all; both times Slurm ends them with SIGTERM.
func TestWorkersUnderSlurm(t *testing.T) {
	slurm := inSlurm(t)
	c := coordinate(t, "--ack-wait", "5s", "--tries", "1000")
	id := strings.TrimSpace(
		slurm(fmt.Sprintf(`sbatch --parsable --array=1-4 --requeue --open-mode=append -o %%a.out --wrap "$gymctl worker %s --token-file %s --workers 1 --patience 1m"`, c.url, c.token)))
	clitest.Eventually(t, "four workers run",
		func() bool { return strings.Count(slurm("squeue -h -r -t R -o %i"), id+"_") == 4 })
	slurm("scontrol requeue " + id + "_2")
	slurm("srun -p high -N 2 --exclusive true")
	restart(slurm)
	over := false
	clitest.Eventually(t, "the workers run again", func() bool {
		select {
		case <-c.ended: // on a fast machine
			over = true
			return true
		default:
		}
		return strings.Count(slurm("squeue -h -r -t R -o %i"), id+"_") == 4
	})
	c.same(t)
	clitest.Eventually(t, "the workers end", func() bool { return slurm("squeue -h -r -o %i") == "" })
	jobs := slurm("scontrol show job " + id)
	if strings.Count(jobs, "JobState=COMPLETED") != 4 || !over && strings.Contains(jobs, "Restarts=0") {
		t.Errorf("want four completed jobs, each restarted unless all was done before (%v):\n%s", over, jobs)
	}
	t.Logf("the second worker said:\n%s", slurm("cat 2.out"))
}

// restart lets requeued jobs start again. Slurm would wait for two minutes; jobs that start in the second in which they
// were ended are refused ("Job credential revoked").
func restart(slurm func(command string) string) {
	slurm("for j in $(squeue -h -r -t PD -o %i); do scontrol update jobid=$j StartTime=now+3; done")
}

// TestRanksUnderSlurm trains in four ranks on two nodes, which a job of a higher partition takes meanwhile. All ranks
// save together, go on when they are back, and end with the checkpoint of one process.
func TestRanksUnderSlurm(t *testing.T) {
	slurm := inSlurm(t)
	train := "train -c cartpole-ppo --no-eval --workers 1"
	for _, set := range []string{
		"ppo.replicas=4", "train.envs=8", "train.steps=200000", "train.eval_every=9000", "train.checkpoint_every=30000",
		"ppo.steps=64", "eval.validation=2",
	} {
		train += " --set " + set
	}
	slurm("$gymctl " + train + " --run-dir alone")
	slurm(`echo a-token-of-these-tests > token; cat > train.sh <<'END'
#!/bin/bash
srun $gymctl ` + train + ` --run-dir runs --continue --ranks slurm --token-file token
END`)
	id := strings.TrimSpace(slurm("sbatch --parsable -N 2 -n 4 --requeue --open-mode=append -o train.log train.sh"))
	clitest.Eventually(t, "they train", func() bool { return strings.Contains(slurm("cat train.log || true"), "\nstep ") })
	slurm("srun -p high -N 2 --exclusive true")
	restart(slurm)
	clitest.Eventually(t, "they are done", func() bool { return slurm("squeue -h -o %i") == "" })
	job, log := slurm("scontrol show job "+id), slurm("cat train.log")
	t.Logf("%s", log)
	if !strings.Contains(job, "JobState=COMPLETED") {
		t.Fatalf("want a completed job:\n%s", job)
	}
	if strings.Contains(job, "Restarts=1") &&
		(!strings.Contains(log, "gymctl: interrupted at step") || !strings.Contains(log, "\nresume ")) {
		t.Error("it was preempted, and did not save and go on")
	}
	slurm("diff -r alone/checkpoints/200000 runs/checkpoints/200000 && cmp alone/best.json runs/best.json")
}

// TestHistoryOfSlurm fetches the accounting of a Slurm, and reads it as a trace.
func TestHistoryOfSlurm(t *testing.T) {
	skipClusters(t)
	s := slurmtest.Start(t, slurmtest.Options{Accounting: true})
	s.Sh(`sb() { sbatch --parsable -A lab -o /dev/null "$@"; }
sb -J train --gres=gpu:a100:2 -t 10 --wrap 'sleep 2'
sb -J 'with|bar' --gpus=9 --wrap 'sleep 1'
sb -J array --array=1-3 --gpus=1 --wrap 'sleep 1'
sb -J both --gres=gpu:1 : --gres=gpu:2 -N 2 --wrap 'sleep 1'
sb -J never -H --gpus=1 --wrap true`)
	s.Eventually("the jobs are done", func() bool { return strings.TrimSpace(s.Sh("squeue -h -o %j")) == "never" })
	bin := overSSH(t)
	t.Chdir(t.TempDir())
	var d look.FetchedHistory
	s.Eventually("the accounting has all of them", func() bool {
		clitest.Strict(t, clitest.Must(t, "trace", "get", "slurm", "--slurm-conf", s.Conf, "-S", "2h", "--json"), &d)
		return d.Jobs == 6
	})
	if d.GPUJobs != 6 || !slices.Equal(d.GPUTypes, []string{"a100"}) || d.Users != 1 || d.VCs != 1 || d.Estimates != 6 {
		t.Errorf("%+v", d)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var far look.FetchedHistory
	clitest.Strict(t,
		clitest.Must(t, "trace", "get", "slurm", "--ssh", "node1", "--slurm-conf", s.Conf, "-S", "2h", "-o", "far.txt.gz",
			"--json"), &far)
	if far.File = d.File; !reflect.DeepEqual(far, d) {
		t.Errorf("over ssh %+v, here %+v", far, d)
	}
	clitest.Write(t, "sacct.json", s.Sh("sacct -a -X -D --json"))
	var again look.FetchedHistory
	clitest.Strict(t, clitest.Must(t, "trace", "get", "slurm", "--from", "sacct.json", "-o", "again.txt", "--json"),
		&again)
	if again.Jobs != d.Jobs || again.GPUJobs != d.GPUJobs || again.Span != d.Span {
		t.Errorf("from JSON %+v, from sacct %+v", again, d)
	}
	if out := clitest.Must(t, "sim", "--trace", "slurm-jobs.txt.gz", "--cluster", "4x8", "--policy",
		"fifo"); !strings.Contains(out, "6") {
		t.Errorf("sim prints %s", out)
	}
}
