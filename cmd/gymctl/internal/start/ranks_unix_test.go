//go:build unix

package start_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/internal/raced"
	"clustergym/internal/testseed"
)

// inRanks starts n ranks of gymctl train in a folder.
func inRanks(t *testing.T, dir string, n int, args ...string) []*clitest.RankProcess {
	t.Helper()
	all := make([]*clitest.RankProcess, n)
	at := "127.0.0.1:0"
	for k := range all {
		all[k] = clitest.Begin(t, dir, nil,
			append([]string{"train", "--workers", "1", "--world", fmt.Sprint(n), "--rank", fmt.Sprint(k), "--rendezvous", at},
				args...)...)
		if k == 0 {
			at = all[0].Await(t, fmt.Sprintf("rank 0 of %d at ", n))
			at, _, _ = strings.Cut(at, ",")
		}
	}
	return all
}

// Whichever rank dies and whenever, the others end with a sentence that names it, and all together go on from the last
// checkpoint to the bytes of a run that nothing happened to.
func TestARankIsKilledAndAllGoOn(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	args := clitest.SmallTraining(3)
	if code, _,
		said := clitest.Run(t, append([]string{"train", "--workers", "1", "--run-dir", filepath.Join(dir, "alone")},
		args...)...); code != 0 {
		t.Fatal(said)
	}
	want := clitest.RunFiles(t, filepath.Join(dir, "alone"))
	seed := testseed.Or(71)
	t.Logf("seed %d (%s)", seed, testseed.Key)
	draw := mrand.New(mrand.NewPCG(seed, 1))
	for round := range 2 {
		run := fmt.Sprintf("run-%d", round)
		ranks := inRanks(t, dir, 3, append(args, "--run-dir", run)...)
		ranks[0].Await(t, "validation: mean")
		victim := (round + draw.IntN(2)) % 3
		time.Sleep(time.Duration(draw.IntN(300)) * time.Millisecond)
		if err := ranks[victim].Cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Logf("round %d: rank %d has ended: %v", round, victim, err)
		}
		<-ranks[victim].Done
		if ranks[victim].Code == 0 {
			t.Logf("round %d: the training ended before rank %d was killed", round, victim)
			continue
		}
		for k, p := range ranks {
			if k == victim {
				continue
			}
			p.End(t, fmt.Sprintf("rank %d without rank %d", k, victim), 1,
				fmt.Sprintf("rank %d of 3 is lost: its connection has ended", victim))
			if said := p.Text(); !strings.Contains(said, "its last checkpoint is step ") ||
				!strings.Contains(said, "go on with --resume "+run+" at all ranks") {
				t.Errorf("rank %d does not say how to go on:\n%s", k, said)
			}
		}
		for k, p := range inRanks(t, dir, 3, "--resume", run, "--no-eval") {
			p.End(t, fmt.Sprintf("rank %d, resumed", k), 0, "")
		}
		clitest.SameRuns(t, fmt.Sprintf("round %d, rank %d killed", round, victim),
			clitest.RunFiles(t, filepath.Join(dir, run)), want)
	}
}

// A rank that is stopped is as good as dead: after the timeout all others end.
func TestARankIsStopped(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	ranks := inRanks(t, dir, 3,
		append(clitest.SmallTraining(3), "--set", "train.steps=100000000", "--run-dir", "run", "--rank-timeout", "1s")...)
	ranks[0].Await(t, "validation: mean")
	if err := ranks[1].Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{0, 2} {
		ranks[k].End(t, fmt.Sprintf("rank %d", k), 1,
			"rank 1 of 3 is lost: nothing was heard from it for 1s; the training ends at all ranks, its last checkpoint is step ")
	}
	if err := ranks[1].Cmd.Process.Signal(syscall.SIGCONT); err != nil { // it wakes up alone
		t.Fatal(err)
	}
	ranks[1].End(t, "rank 1, woken", 1, " of 3 is lost")
}

// srun and torchrun tell their processes by variables which rank they are.
func TestRanksComeFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"train", "--workers", "1", "--run-dir", "run"},
		append(clitest.SmallTraining(2), "--set", "train.steps=2000")...)
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
		var all []*clitest.RankProcess
		for k := range 2 {
			env := append([]string{fmt.Sprintf(vars[0], k)}, vars[1:]...)
			all = append(all, clitest.Begin(t, dir, env, append(args, more...)...))
		}
		for k, p := range all {
			p.End(t, fmt.Sprintf("%s: rank %d", how, k), 0, "")
		}
	}
}

// Ctrl-C at any rank saves and ends all.
func TestRanksAreInterruptedTogether(t *testing.T) {
	if raced.On || testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := t.TempDir()
	ranks := inRanks(t, dir, 2, append(clitest.SmallTraining(2), "--set", "train.steps=100000000", "--run-dir", "run")...)
	ranks[0].Await(t, "validation: mean")
	if err := ranks[1].Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ranks[0].End(t, "rank 0", cli.ExitInterrupted, "saved, continue with --resume run")
	ranks[1].End(t, "rank 1", cli.ExitInterrupted, "rank 0 has saved it, continue all ranks with --resume run")
}

// Who does not belong to the group is refused, in a sentence on both sides, and the group goes on waiting for who does.
func TestStrangersAreRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"right": "0123456789abcdef\n", "wrong": "0123456789abcdeX\n",
		"short": "x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := append(clitest.SmallTraining(3), "--set", "train.steps=2000", "--token-file")
	rank := func(k int, at, token string, more ...string) *clitest.RankProcess {
		return clitest.Begin(t, dir, nil,
			append(append([]string{"train", "--workers", "1", "--world", "3", "--run-dir", "run", "--rank", fmt.Sprint(k), "--rendezvous", at}, append(args, token)...), more...)...)
	}
	first := rank(0, "127.0.0.1:0", "right")
	at, _, _ := strings.Cut(first.Await(t, "rank 0 of 3 at "), ",")

	rank(1, at,
		"wrong").End(t, "a wrong token", cli.ExitMistake, "refused this rank: its token (--token-file) is another one")
	first.Await(t, "the token (token-file) is another one")
	rank(1, at, "short").End(t, "a short token", cli.ExitMistake, "got a token of 1 characters, want 16 or more")
	one, two := rank(1, at, "right"), rank(1, at, "right")
	select { // which of them comes second is open
	case <-one.Done:
		one, two = two, one
	case <-two.Done:
	case <-time.After(time.Minute):
		t.Fatal("there are two of rank 1")
	}
	two.End(t, "a rank that is there already", cli.ExitMistake, "rank 1 is there already, at ")
	first.Await(t, "rank 1 is there already")
	rank(2, at, "right", "--world", "4", "--set", "ppo.replicas=4", "--set",
		"train.envs=8").End(t, "another number of ranks", cli.ExitMistake, "it counts 4 ranks, want the 3 of rank 0")
	other, err := net.Dial("tcp", at) // a stranger that says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	last := rank(2, at, "right")
	for _, p := range []*clitest.RankProcess{first, one, last} {
		p.End(t, "a rank", 0, "")
	}

	first = rank(0, "127.0.0.1:0", "right", "--run-dir", "late", "--rank-wait", "5s") // in which a loaded machine starts rank 1
	at, _, _ = strings.Cut(first.Await(t, "rank 0 of 3 at "), ",")
	one = rank(1, at, "right")
	first.End(t, "rank 0", cli.ExitFailed, "rank 2 of 3 has not come within 5s (there: 0, 1)")
	one.End(t, "rank 1", cli.ExitFailed, "rank 2 of 3 has not come within 5s (there: 0, 1)")
	rank(1, at, "right", "--rank-wait",
		"300ms").End(t, "rank 1 without rank 0", cli.ExitFailed, "rank 0 of 3 has not come within 300ms")
}

// With TLS the ranks talk to those alone whose certificate they trust.
func TestRanksOverTLS(t *testing.T) {
	dir := t.TempDir()
	rankCertificate(t, dir, "mine")
	rankCertificate(t, dir, "other")
	with := func(cert, ca string) []string {
		return append(clitest.SmallTraining(2), "--set", "train.steps=2000", "--run-dir", "run", "--tls-cert", cert+".pem",
			"--tls-key", cert+"-key.pem", "--tls-ca", ca+".pem")
	}
	for k, p := range inRanks(t, dir, 2, with("mine", "mine")...) {
		p.End(t, fmt.Sprintf("rank %d", k), 0, "")
	}
	first := clitest.Begin(t, dir, nil,
		append([]string{"train", "--workers", "1", "--world", "2", "--rank", "0", "--rendezvous", "127.0.0.1:0",
			"--rank-wait", "30s"}, with("other", "other")...)...)
	at, _, _ := strings.Cut(first.Await(t, "rank 0 of 2 at "), ",")
	clitest.Begin(t, dir, nil,
		append([]string{"train", "--workers", "1", "--world", "2", "--rank", "1", "--rendezvous", at},
			with("mine", "mine")...)...).
		End(t, "a rank that trusts others", cli.ExitMistake, "--tls-ca says what to trust")
	clitest.Begin(t, dir, nil,
		append([]string{"train", "--workers", "1", "--world", "2", "--rank", "1", "--rendezvous", at, "--run-dir", "run"},
			clitest.SmallTraining(2)...)...).
		End(t, "a rank without TLS", cli.ExitMistake, "all ranks use TLS or none")
}

// rankCertificate writes NAME.pem and NAME-key.pem, made out to 127.0.0.1.
func rankCertificate(t *testing.T, dir, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1")}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + "-key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
