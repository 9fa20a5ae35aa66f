package operate_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"clustergym/cmd/gymctl/internal/cli"
	"clustergym/cmd/gymctl/internal/clitest"
	"clustergym/cmd/gymctl/internal/operate"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces"
)

// inMemory lets steer see a cluster of n nodes with eight GPUs, on which jobs wait.
func inMemory(t *testing.T, n int) *livetest.Cluster {
	t.Helper()
	c := livetest.New(livetest.Machines(n, 8)...)
	for i := range 20 {
		c.Submit(traces.Job{ID: fmt.Sprintf("%02d", i), Work: time.Duration(60-i) * time.Minute, Estimate: time.Hour, GPUs: 8,
			GPUMilli: 1000})
	}
	c.Advance(0)
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	before, guards := operate.Steered, operate.Guarded
	operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) { return c, nil }
	operate.Guarded = func(*operate.SteerFlags, *cobra.Command) (func() error, error) {
		return func() error { return nil }, nil
	}
	t.Cleanup(func() { operate.Steered, operate.Guarded = before, guards })
	return c
}

// Every kind of policy looks at a cluster; what does not fit it is refused with the reason.
func TestSteer(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InYard(t)
	clitest.Must(t,
		append(strings.Fields("train --trace jobs.csv --cluster 2x8 --set env.window=16 --set env.warm=4 --set env.images=true --set train.group=2 --set train.imitate_steps=600 --set eval.windows=2 --run-dir run"), clitest.Brief...)...)
	c := inMemory(t, 2)
	for _, policy := range []string{"sjf+skip", "fifo@slots", "rollout:sjf+skip", "run"} {
		clitest.Must(t, strings.Fields("steer --cluster slurm --cycles 1 --log log --policy "+policy)...)
	}
	if n := len(c.Log()); n > 0 {
		t.Errorf("shadows have asked for %d actions", n)
	}
	clitest.Must(t, strings.Fields("steer --cluster slurm --cycles 1 --policy run --mode rank --max-age 1000000h")...)
	if n := len(c.Log()); n != 18 { // two jobs run
		t.Errorf("a checkpoint has asked for %d ranks of 18 jobs", n)
	}
	clitest.Must(t, strings.Fields("steer release-all --cluster slurm")...)
	if n := len(c.Log()); n != 36 {
		t.Errorf("%d ranks were taken back", n-18)
	}
	if log := clitest.Read(t, "log"); strings.Count(log, "\n") != 4 || !strings.Contains(log, `"order":[`) {
		t.Error(log)
	}
	clitest.Must(t, strings.Fields("ckpt export run -o model.onnx")...)
	for _, flags := range []string{
		"--policy-onnx model.onnx", "--policy sjf+skip --history jobs.csv",
		"--policy sjf+skip --history jobs.csv --estimates gbdt --history-end 2020-01-31",
		"--policy run --history jobs.csv", "--policy sjf+skip --estimates trace",
	} {
		clitest.Must(t, strings.Fields("steer --cluster slurm --cycles 2 --every 1s "+flags)...)
	}
	inMemory(t, 3)
	for _, x := range []struct{ args, want string }{
		{"--policy run", "2 nodes of 8 GPUs there, 3 here"},
		{"--policy srtf", "stops running jobs"},
		{"--policy sjff+skip", "did you mean sjf+skip?"},
		{"--policy runs/none", "there is no such folder, and policy"},
		{"--policy jobs.csv", "jobs.csv is neither a checkpoint"},
		{"--policy sjf --estimates exact", "nobody knows the run times"},
		{"--policy sjf --estimates gbdt:jobs.csv", "it is no model of gymctl predict fit"},
		{"--policy sjf --think 20s", "--think: got 20s, want 1ms to --every (10s)"},
		{"--policy sjf --mode rnk", "shadow, rank, gate"},
		{"--policy sjf --clear", "--mode rank"},
		{"--policy sjf --estimates exact --every 1ms", "--every"},
		{"--policy sjf --mode gate --lease 1s", "want 2s or more"},
		{"", "--policy"},
		{"--policy sjf --history jobs.csv --history-end 2999-01-31", "still to come"},
		{"--policy sjf --history jobs.csv --history-end yesterday", "--history-end"},
	} {
		clitest.Wrong(t, strings.Fields("steer --cluster slurm --cycles 1 "+x.args), x.want)
	}
}

// mute is a cluster that cannot be reached.
type mute struct{ live.Cluster }

func (mute) Observe(context.Context) (*live.Snapshot, error) {
	return nil, fmt.Errorf("%w: nobody answers", live.ErrUnreachable)
}

// A release that cannot get through says so at once and while it goes on, and says at an interrupt what may be left.
func TestReleaseAllSaysThatItTries(t *testing.T) {
	before := operate.Steered
	operate.Steered = func(*operate.ClusterFlags) (live.Cluster, error) { return mute{}, nil }
	t.Cleanup(func() { operate.Steered = before })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	u := &clitest.Until{Text: "not released yet", Cancel: cancel}
	code := clitest.Execute(ctx, strings.Fields("steer release-all --cluster slurm"), &out, u)
	if text := u.Said.String(); code != cli.ExitInterrupted || out.Len() > 0 ||
		!strings.Contains(text, "nobody answers; it is tried again") ||
		!strings.Contains(text, "call gymctl steer release-all again") {
		t.Errorf("exit code %d: %s%s", code, &out, text)
	}
}

// Policies of QueueRank-v1 rank; those whose actions give no order are refused, with those that do.
func TestCheckpointsThatRank(t *testing.T) {
	clitest.OneGoroutine(t)
	clitest.InYard(t)
	for run, preset := range map[string]string{"queuerank": "queuerank-ppo", "gpupick": "gpupick-ppo"} {
		clitest.Must(t,
			append(strings.Fields("train -c "+preset+" --cluster 2x8 --set eval.windows=2 --run-dir "+run), clitest.Brief...)...)
	}
	c := inMemory(t, 2)
	clitest.Must(t,
		strings.Fields("steer --cluster slurm --cycles 1 --policy queuerank --mode rank --max-age 1000000h --log log")...)
	s, err := c.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[int64]bool{}
	for i := range s.Jobs {
		if s.Jobs[i].State == live.Waiting && s.Jobs[i].Rank > 0 {
			ranks[s.Jobs[i].Rank] = true
		}
	}
	if len(ranks) != 18 {
		t.Errorf("of 18 waiting jobs %d have ranks of their own: %v", len(ranks), c.Log())
	}
	for _, a := range c.Log() {
		if !strings.HasPrefix(a, "rank ") {
			t.Error(a)
		}
	}
	if code, _,
		said := clitest.Run(t, strings.Fields("steer --cluster slurm --cycles 1 --policy gpupick --mode rank")...); code ==
		cli.ExitDone || !strings.Contains(said, "JobSelect-v2 or QueueRank-v1") {
		t.Errorf("a policy of GPUPick-v1 in rank: %d, %s", code, said)
	}
}

// The clock of a history is that of its file, where the file has one.
func TestHistoryKeepsItsClock(t *testing.T) {
	clitest.InYard(t)
	clitest.Write(t, "old.txt",
		"JobID|User|Submit|Start|End|ElapsedRaw|State|AllocTRES\n1|a|1000|1010|1500|490|COMPLETED|gres/gpu=2\n2|a|2000|2000|2600|600|COMPLETED|gres/gpu=2\n")
	now := time.Unix(1_000_000, 0)
	for _, x := range []struct {
		file, end string
		want      int64
	}{{"old.txt", "", 1000}, {"old.txt", "1970-01-02T00:00:00Z", 86400 - 1600}, {"jobs.csv", "", 1_000_000 - 1600}} {
		g := operate.PastFlags{File: x.file, End: x.end}
		at,
			err := g.Epoch([]traces.Job{{Submit: 0, Work: 490 * time.Second},
			{Submit: 1000 * time.Second, Work: 600 * time.Second}}, now)
		if err != nil || at.Unix() != x.want {
			t.Errorf("%s %s: %d, want %d (%v)", x.file, x.end, at.Unix(), x.want, err)
		}
	}
}

// steer shadow, rank and gate are what steer --mode was; each has only the flags that it uses.
func TestTheModesOfSteerAreVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	c := inMemory(t, 2)
	const rest = " --cluster slurm --policy sjf+skip --cycles 1 --max-age 1000000h"
	clitest.Must(t, strings.Fields("steer shadow"+rest)...)
	if n := len(c.Log()); n > 0 {
		t.Errorf("shadow has asked for %d actions", n)
	}
	clitest.Must(t, strings.Fields("steer rank --clear"+rest)...)
	ranked := len(c.Log())
	clitest.Must(t, strings.Fields("steer --mode rank --clear"+rest)...)
	if n := len(c.Log()); ranked != 36 || n != 2*ranked { // ranks of 18 jobs that wait, and taken back
		t.Errorf("rank has asked for %d actions, --mode rank for %d", ranked, n-ranked)
	}
	for args, want := range map[string]string{
		"steer rank --grace 1m":   "steer rank: flag --grace is unknown",
		"steer gate --clear":      "steer gate: flag --clear is unknown",
		"steer shadow --lease 5s": "steer shadow: flag --lease is unknown",
		"steer shdow":             `steer: verb "shdow" is unknown; did you mean shadow?`,
		"steer --mode rank":       "want either --policy POLICY or --policy-onnx FILE",
	} {
		clitest.Wrong(t, strings.Fields(args), want)
	}
	if out := clitest.Must(t, "steer"); !strings.Contains(out, "shadow ") || strings.Contains(out, "--mode") {
		t.Errorf("steer alone prints %s", out)
	}
}
