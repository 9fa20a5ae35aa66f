package workqueue

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inNamespaceVar marks the test's program inside a user namespace, where it may make networks.
const inNamespaceVar = "CLUSTERGYM_TEST_NETNS"

func TestALinkThatIsDown(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, tool := range []string{"ip", "unshare", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no program %s, which makes networks", tool)
		}
	}
	if os.Getuid() != 0 {
		again(t)
		return
	}
	// A machine of its own for the worker: a network namespace, and a cable to it.
	machine := exec.Command("unshare", "-n", "sleep", "600")
	if err := machine.Start(); err != nil {
		t.Skipf("unshare -n: %v", err)
	}
	t.Cleanup(func() {
		_ = machine.Process.Kill() // it may have ended
		_ = machine.Wait()
	})
	pid := strconv.Itoa(machine.Process.Pid)
	cable := "cg" + pid
	run := func(args ...string) error {
		out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
		}
		return err
	}
	inside := []string{"nsenter", "-t", pid, "-n"}
	until(t, "a namespace", func() bool {
		own, err := os.Readlink("/proc/self/ns/net")
		other, err2 := os.Readlink("/proc/" + pid + "/ns/net")
		return err == nil && err2 == nil && own != other
	})
	net := "10." + strconv.Itoa(100+machine.Process.Pid%100) + "." + strconv.Itoa(machine.Process.Pid/100%250) + "."
	for _, args := range [][]string{
		{"ip", "link", "add", cable, "type", "veth", "peer", "name", cable + "w", "netns", pid},
		{"ip", "addr", "add", net + "1/24", "dev", cable},
		{"ip", "link", "set", cable, "up"},
		append(inside, "ip", "addr", "add", net+"2/24", "dev", cable+"w"),
		append(inside, "ip", "link", "set", cable+"w", "up"),
	} {
		if err := run(args...); err != nil {
			t.Skipf("no network can be made here: %v", err)
		}
	}
	t.Cleanup(func() { _ = run("ip", "link", "del", cable) }) // it goes with its namespace

	dir := t.TempDir()
	gate, begun := filepath.Join(dir, "gate"), filepath.Join(dir, "begun")
	const token = "correct-horse-battery"
	c, _ := listen(t, Options{Listen: net + "1:0", Token: token, AckWait: 2 * time.Second, Tries: 1000})
	w := workerRole{URL: c.URL(), Token: token, Name: "far", Dir: t.TempDir()}
	far := spawn(t, "far", role{Worker: &w}, inside...)
	end := background(t, c, newTask("gate", "task", gated{gate, begun, 6}))
	until(t, "begun by far", func() bool { return doing(c, "far") == "task" && exists(begun) })
	if err := run("ip", "link", "set", cable, "down"); err != nil {
		t.Fatal(err)
	}
	near := spawnWorker(t, workerRole{URL: c.URL(), Token: token, Name: "near"})
	until(t, "begun by near", func() bool { return doing(c, "near") == "task" })
	touch(t, gate)
	if o := within(t, end); o.err != nil || o.r.Worker != "near" {
		t.Errorf("got %+v", o)
	}
	if err := run("ip", "link", "set", cable, "up"); err != nil {
		t.Fatal(err)
	}
	// The machine that was cut off delivers what it has done, and that is the same.
	until(t, "compared", func() bool { return c.Status().Equal >= 1 })
	until(t, "back", func() bool { return len(c.Status().Workers) == 2 })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range []*process{near, far} {
		if err := p.ends(t); err != nil {
			t.Errorf("%v: %s", err, p.text())
		}
	}
}

// again runs this test in a user namespace, as its root.
func again(t *testing.T) {
	t.Helper()
	if os.Getenv(inNamespaceVar) != "" {
		t.Skip("unshare -rn made nobody root")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("unshare", "-rn", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare -rn: %v: %s", err, out)
	}
	cmd := exec.Command("unshare", "-rn", exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespaceVar+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a namespace: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("in a namespace: %s", out)
	}
}
