package operate_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/internal/slurmtest"
)

// Over ssh a shadow logs what it logs here, and ranks arrive; a host that lets nobody in, or is not there, ends steer
// with a sentence.
func TestRealSteerOverSSH(t *testing.T) {
	t.Parallel()
	s := slurmSite(t, slurmtest.Options{})
	path := []string{"PATH=" + overSSH(t) + ":" + os.Getenv("PATH")}
	s.block()
	s.submit(3, 60, "--gpus=8 -t 60")
	short := s.submit(3, 60, "--gpus=1 -t 10")
	here := s.start(nil, nil, steerArgs("shadow", "--cycles", "1")...)
	far := s.start(path, nil, steerArgs("shadow", "--cycles", "1", "--ssh", "node1")...)
	for _, a := range []*steering{here, far} {
		if code, said := a.wait(); code != cli.ExitDone || said != "" {
			t.Fatalf("a shadow ended with %d: %s", code, said)
		}
	}
	a, b := here.lines()[0], far.lines()[0]
	if b.Waiting != 6 || !slices.Equal(a.Order, b.Order) {
		t.Errorf("over ssh %d jobs in order %v, here %d in order %v", b.Waiting, b.Order, a.Waiting, a.Order)
	}
	rank := s.start(path, nil, steerArgs("rank", "--cycles", "1", "--ssh", "node1")...)
	if code, said := rank.wait(); code != cli.ExitDone {
		t.Fatalf("rank ended with %d: %s", code, said)
	}
	if j := s.look().Job(short[0]); j == nil || j.Rank == 0 {
		t.Errorf("the first short job is %+v, want a rank", j)
	}
	code, said := s.start(path, nil, steerArgs("shadow", "--ssh", "nobody@node1", "--cycles", "1")...).wait()
	if code != cli.ExitFailed || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, "the cluster refuses this: ssh: ") {
		t.Errorf("a user who is not let in: %d, %s", code, said)
	}
	code, said = s.start(path, nil, steerArgs("shadow", "--ssh", "node.invalid", "--cycles", "1")...).wait()
	if code != cli.ExitFailed || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, "the cluster cannot be reached: ssh: ") {
		t.Errorf("a host that is not there: %d, %s", code, said)
	}
}
