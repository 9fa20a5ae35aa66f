//go:build unix

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"clustergym/experiments/rundir"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
)

// rankProcess is gymctl in a process of its own.
type rankProcess struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	code int

	mu   sync.Mutex
	said bytes.Buffer // on stderr
	grew chan struct{}
}

func (p *rankProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.said.Write(b)
	select {
	case p.grew <- struct{}{}:
	default:
	}
	return n, err
}

func (p *rankProcess) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// begin starts gymctl in a folder.
func begin(t *testing.T, dir string, env []string, args ...string) *rankProcess {
	t.Helper()
	return beginProgram(t, dir, env, os.Args[0], args...)
}

// beginProgram is begin for a program that starts gymctl.
func beginProgram(t *testing.T, dir string, env []string, program string, args ...string) *rankProcess {
	t.Helper()
	p := &rankProcess{done: make(chan struct{}), grew: make(chan struct{}, 1)}
	p.cmd = exec.Command(program, args...) //nolint:gosec // this test
	p.cmd.Env = append(append(os.Environ(), asProgram+"=1"), env...)
	p.cmd.Dir, p.cmd.Stderr = dir, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the code says it
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	})
	return p
}

// await returns what follows a text on its line, once it was said.
func (p *rankProcess) await(t *testing.T, text string) string {
	t.Helper()
	late := time.After(time.Minute)
	for {
		_, rest, ok := strings.Cut(p.text(), text)
		if line, _, whole := strings.Cut(rest, "\n"); ok && whole {
			return line
		}
		select {
		case <-p.grew:
		case <-p.done:
			if !strings.Contains(p.text(), text) {
				t.Fatalf("it ended with %d and did not say %q:\n%s", p.code, text, p.text())
			}
		case <-late:
			t.Fatalf("it does not say %q:\n%s", text, p.text())
		}
	}
}

// end waits for a process and checks its code and, unless it is empty, a text that it has said.
func (p *rankProcess) end(t *testing.T, what string, code int, text string) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end:\n%s", what, p.text())
	}
	if p.code != code || !strings.Contains(p.text(), text) {
		t.Errorf("%s ends with %d, want %d and %q:\n%s", what, p.code, code, text, p.text())
	}
}

// inRanks starts n ranks of gymctl train in a folder.
func inRanks(t *testing.T, dir string, n int, args ...string) []*rankProcess {
	t.Helper()
	all := make([]*rankProcess, n)
	at := "127.0.0.1:0"
	for k := range all {
		all[k] = begin(t, dir, nil, append([]string{"train", "--workers", "1", "--world", fmt.Sprint(n), "--rank", fmt.Sprint(k), "--rendezvous", at}, args...)...)
		if k == 0 {
			at = all[0].await(t, fmt.Sprintf("rank 0 of %d at ", n))
			at, _, _ = strings.Cut(at, ",")
		}
	}
	return all
}

// small is a training of a second or two.
func smallTraining(replicas int) []string {
	args := []string{"-c", "cartpole-ppo", "--no-eval"}
	for _, s := range []string{
		fmt.Sprintf("ppo.replicas=%d", replicas), "train.envs=6", "train.steps=48000", "train.eval_every=9000", "train.checkpoint_every=3000", "train.log_every=5000", "train.keep=0",
		"ppo.steps=64", "eval.validation=2", "ppo.target_kl=0.02", "ppo.shards=2",
	} {
		args = append(args, "--set", s)
	}
	return args
}

// runFiles returns the files of a run that must repeat.
func runFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "events.out.") || d.Name() == "lock" {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			return err
		}
		text := string(b)
		if d.Name() == rundir.ProgressFile {
			text = ""
			for row := range bytes.Lines(b) {
				var m map[string]any
				if err := json.Unmarshal(row, &m); err != nil {
					return err
				}
				delete(m, "timing")
				line, err := json.Marshal(m)
				if err != nil {
					return err
				}
				text += string(line) + "\n"
			}
		}
		files[path] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sameRuns(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s differs or is missing", what, name)
		}
	}
}

// Whichever rank dies and whenever, the others end with a sentence that names it, and all together go on from the last
// checkpoint to the bytes of a run that nothing happened to.
func TestARankIsKilledAndAllGoOn(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	args := smallTraining(3)
	if code, _, said := gymctl(t, append([]string{"train", "--workers", "1", "--run-dir", filepath.Join(dir, "alone")}, args...)...); code != 0 {
		t.Fatal(said)
	}
	want := runFiles(t, filepath.Join(dir, "alone"))
	seed := testseed.Or(71)
	t.Logf("seed %d (%s)", seed, testseed.Key)
	draw := mrand.New(mrand.NewPCG(seed, 1))
	for round := range 2 {
		run := fmt.Sprintf("run-%d", round)
		ranks := inRanks(t, dir, 3, append(args, "--run-dir", run)...)
		ranks[0].await(t, "validation: mean")
		victim := (round + draw.IntN(2)) % 3
		time.Sleep(time.Duration(draw.IntN(300)) * time.Millisecond)
		if err := ranks[victim].cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Logf("round %d: rank %d has ended: %v", round, victim, err)
		}
		<-ranks[victim].done
		if ranks[victim].code == 0 {
			t.Logf("round %d: the training ended before rank %d was killed", round, victim)
			continue
		}
		for k, p := range ranks {
			if k == victim {
				continue
			}
			p.end(t, fmt.Sprintf("rank %d without rank %d", k, victim), 1, fmt.Sprintf("rank %d of 3 is lost: its connection has ended", victim))
			if said := p.text(); !strings.Contains(said, "its last checkpoint is step ") || !strings.Contains(said, "go on with --resume "+run+" at all ranks") {
				t.Errorf("rank %d does not say how to go on:\n%s", k, said)
			}
		}
		for k, p := range inRanks(t, dir, 3, "--resume", run, "--no-eval") {
			p.end(t, fmt.Sprintf("rank %d, resumed", k), 0, "")
		}
		sameRuns(t, fmt.Sprintf("round %d, rank %d killed", round, victim), runFiles(t, filepath.Join(dir, run)), want)
	}
}

// A rank that is stopped is as good as dead: after the timeout all others end.
func TestARankIsStopped(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	ranks := inRanks(t, dir, 3, append(smallTraining(3), "--set", "train.steps=100000000", "--run-dir", "run", "--rank-timeout", "1s")...)
	ranks[0].await(t, "validation: mean")
	if err := ranks[1].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 2} {
		ranks[k].end(t, fmt.Sprintf("rank %d", k), 1, "rank 1 of 3 is lost: nothing was heard from it for 1s; the training ends at all ranks, its last checkpoint is step ")
	}
	if err := ranks[1].cmd.Process.Signal(syscall.SIGCONT); err != nil { // it wakes up alone
		t.Fatal(err)
	}
	ranks[1].end(t, "rank 1, woken", 1, " of 3 is lost")
}

// srun and torchrun tell their processes by variables which rank they are.
func TestRanksComeFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"train", "--workers", "1", "--run-dir", "run"}, append(smallTraining(2), "--set", "train.steps=2000")...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port) // most likely still free in a moment
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for how, vars := range map[string][]string{
		"slurm": {"SLURM_PROCID=%d", "SLURM_NTASKS=2"},
		"env":   {"RANK=%d", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port},
	} {
		more := []string{"--ranks", how, "--set", "name=" + how, "--run-dir", how}
		if how == "slurm" {
			more = append(more, "--rendezvous", "127.0.0.1:"+port)
		}
		var all []*rankProcess
		for k := range 2 {
			env := append([]string{fmt.Sprintf(vars[0], k)}, vars[1:]...)
			all = append(all, begin(t, dir, env, append(args, more...)...))
		}
		for k, p := range all {
			p.end(t, fmt.Sprintf("%s: rank %d", how, k), 0, "")
		}
	}
}

// Ctrl-C at any rank saves and ends all.
func TestRanksAreInterruptedTogether(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	ranks := inRanks(t, dir, 2, append(smallTraining(2), "--set", "train.steps=100000000", "--run-dir", "run")...)
	ranks[0].await(t, "validation: mean")
	if err := ranks[1].cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ranks[0].end(t, "rank 0", exitInterrupted, "saved, continue with --resume run")
	ranks[1].end(t, "rank 1", exitInterrupted, "rank 0 has saved it, continue all ranks with --resume run")
}

// Who does not belong to the group is refused, in a sentence on both sides, and the group goes on waiting for who does.
func TestStrangersAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"right": "0123456789abcdef\n", "wrong": "0123456789abcdeX\n", "short": "x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append(smallTraining(3), "--set", "train.steps=2000", "--token-file")
	rank := func(k int, at, token string, more ...string) *rankProcess {
		return begin(t, dir, nil, append(append([]string{"train", "--workers", "1", "--world", "3", "--run-dir", "run", "--rank", fmt.Sprint(k), "--rendezvous", at}, append(args, token)...), more...)...)
	}
	first := rank(0, "127.0.0.1:0", "right")
	at, _, _ := strings.Cut(first.await(t, "rank 0 of 3 at "), ",")

	rank(1, at, "wrong").end(t, "a wrong token", exitMistake, "refused this rank: its token (--token-file) is another one")
	first.await(t, "the token (--token-file) is another one")
	rank(1, at, "short").end(t, "a short token", exitMistake, "got a token of 1 characters, want 16 or more")
	one, two := rank(1, at, "right"), rank(1, at, "right")
	select { // which of them comes second is open
	case <-one.done:
		one, two = two, one
	case <-two.done:
	case <-time.After(time.Minute):
		t.Fatal("there are two of rank 1")
	}
	two.end(t, "a rank that is there already", exitMistake, "rank 1 is there already, at ")
	first.await(t, "rank 1 is there already")
	rank(2, at, "right", "--world", "4", "--set", "ppo.replicas=4", "--set", "train.envs=8").end(t, "another number of ranks", exitMistake, "it counts 4 ranks, want the 3 of rank 0")
	other, err := net.Dial("tcp", at) // a stranger that says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	last := rank(2, at, "right")
	for _, p := range []*rankProcess{first, one, last} {
		p.end(t, "a rank", 0, "")
	}

	first = rank(0, "127.0.0.1:0", "right", "--run-dir", "late", "--rank-wait", "700ms")
	at, _, _ = strings.Cut(first.await(t, "rank 0 of 3 at "), ",")
	one = rank(1, at, "right")
	first.end(t, "rank 0", exitFailed, "rank 2 of 3 has not come within 700ms (there: 0, 1)")
	one.end(t, "rank 1", exitFailed, "rank 2 of 3 has not come within 700ms (there: 0, 1)")
	rank(1, at, "right", "--rank-wait", "300ms").end(t, "rank 1 without rank 0", exitFailed, "rank 0 of 3 has not come within 300ms")
}

// With TLS the ranks talk to those alone whose certificate they trust.
func TestRanksOverTLS(t *testing.T) {
	dir := t.TempDir()
	rankCertificate(t, dir, "mine")
	rankCertificate(t, dir, "other")
	with := func(cert, ca string) []string {
		return append(smallTraining(2), "--set", "train.steps=2000", "--run-dir", "run", "--tls-cert", cert+".pem", "--tls-key", cert+"-key.pem", "--tls-ca", ca+".pem")
	}
	for k, p := range inRanks(t, dir, 2, with("mine", "mine")...) {
		p.end(t, fmt.Sprintf("rank %d", k), 0, "")
	}
	first := begin(t, dir, nil, append([]string{"train", "--workers", "1", "--world", "2", "--rank", "0", "--rendezvous", "127.0.0.1:0", "--rank-wait", "30s"}, with("other", "other")...)...)
	at, _, _ := strings.Cut(first.await(t, "rank 0 of 2 at "), ",")
	begin(t, dir, nil, append([]string{"train", "--workers", "1", "--world", "2", "--rank", "1", "--rendezvous", at}, with("mine", "mine")...)...).
		end(t, "a rank that trusts others", exitMistake, "--tls-ca says what to trust")
	begin(t, dir, nil, append([]string{"train", "--workers", "1", "--world", "2", "--rank", "1", "--rendezvous", at, "--run-dir", "run"}, smallTraining(2)...)...).
		end(t, "a rank without TLS", exitMistake, "all ranks use TLS or none")
}

// rankCertificate writes NAME.pem and NAME-key.pem, made out to 127.0.0.1.
func rankCertificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + "-key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
