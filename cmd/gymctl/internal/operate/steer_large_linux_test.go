package operate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/clitest"
)

// recordedSlurm makes commands that print what a Slurm 22.05 has printed, with n jobs more that wait, and returns their
// folder.
func recordedSlurm(tb testing.TB, n int) string {
	tb.Helper()
	dir := tb.TempDir()
	from, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "live", "slurm", "testdata", "22.05"))
	if err != nil {
		tb.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(from, "squeue.json")) //nolint:gosec // of these tests
	if err != nil {
		tb.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var all strings.Builder
	all.WriteString(strings.Join(lines[:len(lines)-1], "\n"))
	for _, l := range lines {
		if !strings.Contains(l, `"name": "typed2"`) {
			continue
		}
		for i := range n {
			gpus := fmt.Sprint(1 << (i % 5))
			all.WriteString(",\n" + strings.NewReplacer(`"job_id": 52`, fmt.Sprintf(`"job_id": %d`, 1000+i), `"typed2"`,
				fmt.Sprintf(`"train %d"`, i%500), ":a100:12", ":a100:"+gpus,
				"gpu=12", "gpu="+gpus, ":a100=12", ":a100="+gpus, `"time_limit": 60`,
				fmt.Sprintf(`"time_limit": %d`, 10+i*7919%1440), `"ann"`,
				fmt.Sprintf(`"user%d"`, i%50)).Replace(strings.TrimSuffix(l, ",")))
		}
	}
	all.WriteString("\n" + lines[len(lines)-1] + "\n")
	queue := filepath.Join(dir, "squeue.json")
	if err := os.WriteFile(queue, []byte(all.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	for name, script := range map[string]string{
		"squeue": "exec cat " + queue, "sinfo": "exec cat " + from + "/sinfo.json",
		"sprio": "exec cat " + from + "/sprio.txt", "id": "echo slurm",
		"scontrol": `if [ $# = 0 ]; then exec sed -n 's/^clustergym-line-/invalid keyword: &/p' >&2; fi; exec cat ` + from +
			"/config.txt",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // must run
			tb.Fatal(err)
		}
	}
	return dir
}

// mostMemory watches a process until it ends, and then returns the most bytes of memory that it has held. (What wait4
// says of a child is at least what its parent held when it was started.)
func mostMemory(pid int) <-chan float64 {
	result := make(chan float64, 1)
	go func() {
		most := 0.0
		for {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			_, line, found := strings.Cut(string(text), "VmHWM:")
			if err != nil || !found { // it has ended
				result <- most
				return
			}
			var kib float64
			if _, err := fmt.Sscan(line, &kib); err == nil {
				most = max(most, kib*1024)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	return result
}

// BenchmarkSteerTenThousand is gymctl steer, as a process, over a recorded queue with 10,000 jobs more that wait. It
// reports a look (cycle-s) and what of it went to reading the cluster, the policy, and writing (read-s, think-s,
// write-s); the processor time of the agent for each look, without what it takes to start (cpu-s); and the most memory
// that it held (rss-MB). Checkpoints are trained for a moment: what they have learned does not change what they cost.
func BenchmarkSteerTenThousand(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := recordedSlurm(b, 10_000)
	runs := b.TempDir()
	program := func(args ...string) *exec.Cmd {
		c := exec.Command(self, args...) //nolint:gosec // this program
		c.Env, c.Dir = append(os.Environ(), clitest.AsProgram+"=1", "PATH="+dir+":/usr/bin:/bin",
			"RUNTIME_DIRECTORY="+runs), runs
		return c
	}
	for run, preset := range map[string]string{"jobselect": "quickstart-v1", "gpupick": "gpupick-ppo",
		"queuerank": "queuerank-ppo"} {
		args := append(strings.Fields("train -c "+preset+" --cluster 4x8 --run-dir "+run), clitest.Brief...)
		if out,
			err := program(append(args, "--set", "train.imitate=", "--set", "eval.windows=2", "--set",
			"train.group=2")...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out[max(0, len(out)-1000):])
		}
	}
	for _, x := range []struct{ mode, policy string }{
		{"shadow", "sjf+skip"}, {"rank", "sjf+skip"}, {"gate", "sjf+skip"}, {"rank", "sjf@slots"},
		{"rank", "rollout:sjf+skip"}, {"gate", "rollout:sjf+skip"},
		{"rank", "jobselect"}, {"gate", "jobselect"}, {"gate", "gpupick"}, {"rank", "queuerank"}, {"gate", "queuerank"},
	} {
		b.Run(x.mode+"/"+x.policy, func(b *testing.B) {
			const looks = 4
			run := func(n int) (cpu, rss float64, spent [4]float64) {
				log := filepath.Join(b.TempDir(), "log")
				args := []string{"steer", "--cluster", "slurm", "--policy", x.policy, "--estimates", "trace", "--mode", x.mode,
					"--every", "1s", "--cycles", fmt.Sprint(n), "--log", log, "--max-writes-per-minute", "0"}
				switch x.mode {
				case "rank":
					args = append(args, "--max-writes", "0")
				case "gate":
					args = append(args, "--dry-run") // nothing is there to be released at the end
				}
				c := program(args...)
				var out bytes.Buffer
				c.Stdout, c.Stderr = &out, &out
				if err := c.Start(); err != nil {
					b.Fatal(err)
				}
				most := mostMemory(c.Process.Pid)
				if err := c.Wait(); err != nil {
					b.Fatalf("%v: %s", err, out.Bytes()[max(0, out.Len()-1000):])
				}
				rss = <-most
				for _, l := range steerLog(b, log) {
					for i, s := range []float64{l.Took, l.Read, l.Think, l.Write} {
						spent[i] += s / float64(n)
					}
				}
				return (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), rss, spent
			}
			var cpu, rss float64
			var spent [4]float64
			for b.Loop() {
				once, _, _ := run(1)
				all, most, took := run(1 + looks)
				cpu, rss = cpu+(all-once)/looks, max(rss, most/1e6)
				for i := range spent {
					spent[i] += took[i]
				}
			}
			for i, name := range []string{"cycle-s", "read-s", "think-s", "write-s"} {
				b.ReportMetric(spent[i]/float64(b.N), name)
			}
			b.ReportMetric(cpu/float64(b.N), "cpu-s")
			b.ReportMetric(rss, "rss-MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
