package slurm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/slurmtest"
	"clustergym/internal/testseed"
	"clustergym/live"
	"clustergym/traces"
)

// real starts a Slurm, and returns its cluster.
func realCluster(t *testing.T, o slurmtest.Options) (*slurmtest.Cluster, *Cluster) {
	t.Helper()
	s := slurmtest.Start(t, o)
	return s, New(Exec{Env: []string{"SLURM_CONF=" + s.Conf}}, Options{})
}

func look(t *testing.T, c *Cluster) *live.Snapshot {
	t.Helper()
	s, err := c.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, c *Cluster, actions ...live.Action) {
	t.Helper()
	for _, r := range c.Act(t.Context(), actions) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

// submit returns the ID of a job of sleep.
func submit(s *slurmtest.Cluster, sleep float64, args string) string {
	return strings.TrimSpace(s.Sh(fmt.Sprintf("sbatch --parsable -o /dev/null %s --wrap 'sleep %g'", args, sleep)))
}

// Sixty jobs of all kinds are observed as they were submitted, by JSON and as text.
func TestRealObserve(t *testing.T) {
	t.Parallel()
	s, c := realCluster(t, slurmtest.Options{Conf: []string{
		"PartitionName=batch Nodes=ALL Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00",
		"PartitionName=long Nodes=g[0-1]",
	}})
	seed := testseed.Or(1)
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	type want struct {
		gpus, tasks int
		types       string
		limit       time.Duration
		vc, blocked string
		nodes, not  string
	}
	wants := map[string]want{}
	block := submit(s, 600, "-N 4 --gres=gpu:8 -J block") // takes all GPUs
	s.Eventually("the first job runs", func() bool { return strings.Contains(s.Sh("squeue -h -t R -o %i"), block) })
	kinds := []struct {
		args string
		want want
	}{
		{"--gres=gpu:4", want{gpus: 4, vc: "batch", limit: time.Hour}},
		{"-N 2 --gres=gpu:a100:8", want{gpus: 16, types: "a100", vc: "batch", limit: time.Hour}},
		{"--gpus=v100:3 -t 10", want{gpus: 3, types: "v100", vc: "batch", limit: 10 * time.Minute}},
		{"--gpus-per-task=2 -n 3", want{gpus: 6, vc: "batch", limit: time.Hour}},
		{"--array=1-5%2 --gpus=1", want{gpus: 1, tasks: 5, vc: "batch", limit: time.Hour}},
		{"-d afterok:" + block + " --gpus=1",
			want{gpus: 1, vc: "batch", limit: time.Hour, blocked: "depends on afterok:" + block}},
		{"--begin=now+2hours --gpus=1", want{gpus: 1, vc: "batch", limit: time.Hour, blocked: "begins at "}},
		{"-H --gpus=1", want{gpus: 1, vc: "batch", limit: time.Hour, blocked: "held by its user"}},
		{"-w g1 -p long --gpus=5", want{gpus: 5, vc: "long", nodes: "g1"}},
		{"-x g0,g1 --gpus=5 -t 1-00:00:00", want{gpus: 5, vc: "batch", not: "g0 g1", limit: 24 * time.Hour}},
		{"--exclusive --gres=gpu:1", want{gpus: 8, vc: "batch", limit: time.Hour}},
		{"--gres=gpu:1 : --gres=gpu:2 -N 2", want{gpus: 5, vc: "batch", limit: time.Hour}},
		{"-n 4", want{gpus: 0, vc: "batch", limit: time.Hour}},
	}
	for i := range 59 {
		k := kinds[i%len(kinds)]
		if i >= len(kinds) {
			k = kinds[rng.IntN(len(kinds))]
		}
		wants[submit(s, 1, fmt.Sprintf("-J job%d %s", i, k.args))] = k.want
	}
	// Slurm tells of the begin time, the limit of an array and so on at once, of reasons after its next cycle.
	s.Sh("sleep 3")
	before := s.Sh("scontrol show job | grep -v -E 'RunTime|LastSchedEval|StartTime|Reason='")
	var texts []string
	for _, text := range []bool{false, true} {
		c.text = text
		snap := look(t, c)
		snap.At = time.Time{}
		texts = append(texts, printed(snap))
		if j := snap.Job(block); j == nil || j.State != live.Running || j.GPUs != 32 || len(j.Places) != 4 ||
			!slices.Equal(j.Places[2].Index, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
			t.Errorf("the first job is %+v", j)
		}
		seen := 1
		for id, w := range wants {
			ids, blocked := []string{id}, 0
			if w.tasks > 0 {
				ids = nil
				for i := range w.tasks {
					ids = append(ids, fmt.Sprintf("%s_%d", id, i+1))
				}
			}
			for _, id := range ids {
				seen++
				j := snap.Job(id)
				if j == nil {
					t.Errorf("job %s is missing", id)
					continue
				}
				if strings.HasPrefix(j.Blocked, "its array") {
					blocked++
				} else if !strings.HasPrefix(j.Blocked, w.blocked) || j.Blocked != "" && w.blocked == "" {
					t.Errorf("job %s is blocked: %q, want %q", id, j.Blocked, w.blocked)
				}
				if j.State != live.Waiting || j.GPUs != w.gpus || strings.Join(j.GPUTypes, " ") != w.types ||
					j.Estimate != w.limit || j.VC != w.vc ||
					strings.Join(j.Nodes,
						" ") != w.nodes || strings.Join(j.Excluded,
					" ") != w.not || j.Ours || j.Freed || j.Rank != 0 || j.Submit.IsZero() {
					t.Errorf("job %s: %+v\nwant %+v", id, j, w)
				}
			}
			if w.tasks > 0 && blocked != 3 {
				t.Errorf("%d tasks of array %s are blocked, want 3", blocked, id)
			}
		}
		if len(snap.Jobs) != seen {
			t.Errorf("%d jobs, want %d", len(snap.Jobs), seen)
		}
	}
	if texts[0] != texts[1] {
		a, b := strings.Split(texts[0], "\n"), strings.Split(texts[1], "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("JSON\n%s\ntext\n%s", a[i], b[i])
			}
		}
	}
	if caps, err := c.Can(t.Context()); err != nil || caps != (live.Caps{}) {
		t.Errorf("%+v, %v", caps, err)
	}
	if after := s.Sh("scontrol show job | grep -v -E 'RunTime|LastSchedEval|StartTime|Reason='"); after != before {
		t.Errorf("looking has changed the queue:\n%s\nwas\n%s", after, before)
	}
	if os.Geteuid() == 0 { // somebody without rights sees the same, and can do nothing
		nobody := New(Exec{Env: []string{"SLURM_CONF=" + s.Conf},
			Prefix: []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}}, Options{})
		if got := printed(look(t, nobody)); got != texts[0] {
			t.Errorf("nobody sees\n%s\nwant\n%s", got, texts[0])
		}
		caps, err := nobody.Can(t.Context())
		if err != nil || caps.Rank == "" || caps.Gate == "" || caps.Requeue == "" {
			t.Errorf("nobody can %+v, %v", caps, err)
		}
	}
}

// queue submits four wide jobs and then sixteen short ones behind one that takes all GPUs, and returns their mean wait.
func queue(t *testing.T, s *slurmtest.Cluster, c *Cluster, rank bool) time.Duration {
	t.Helper()
	// However long the submits and the ranks take, nothing starts before they are there.
	block := submit(s, 600, "-N 4 --gres=gpu:8 -J block")
	s.Eventually("the first job runs", func() bool { return strings.Contains(s.Sh("squeue -h -t R -o %i"), block) })
	var ids []string
	var actions []live.Action
	for range 4 {
		ids = append(ids, submit(s, 5, "-N 4 --gres=gpu:8 -J wide"))
		actions = append(actions, live.Action{Op: live.RankJob, Job: ids[len(ids)-1], Score: 10})
	}
	for range 16 {
		ids = append(ids, submit(s, 1, "--gres=gpu:8 -J short"))
		actions = append(actions, live.Action{Op: live.RankJob, Job: ids[len(ids)-1], Score: 5000})
	}
	if rank {
		must(t, c, actions...)
		snap := look(t, c)
		for _, a := range actions {
			if j := snap.Job(a.Job); j != nil && j.State == live.Waiting && j.Rank != a.Score {
				t.Errorf("job %s has rank %d, want %d", a.Job, j.Rank, a.Score)
			}
		}
	}
	s.Sh("scancel " + block)
	var snap *live.Snapshot
	s.Eventually("the queue is empty", func() bool { snap = look(t, c); return len(snap.Jobs) == 0 })
	sum := time.Duration(0)
	n := 0
	for _, j := range snap.Ended {
		if slices.Contains(ids, j.ID) {
			sum += j.Start.Sub(j.Submit)
			n++
		}
	}
	if n != len(ids) {
		t.Fatalf("%d of %d jobs have ended", n, len(ids))
	}
	return sum / time.Duration(n)
}

// Ranks reorder a queue. The short jobs wait 20 s and more in order of submit, and less than half of that before the
// wide ones.
func TestRealRank(t *testing.T) {
	t.Parallel()
	slurmtest.Need(t)
	waits := [2]time.Duration{}
	t.Run("both", func(t *testing.T) {
		for i := range waits {
			t.Run([]string{"fifo", "rank"}[i], func(t *testing.T) {
				t.Parallel()
				s, c := realCluster(t, slurmtest.Options{})
				waits[i] = queue(t, s, c, i == 1)
			})
		}
	})
	fifo, ranked := waits[0], waits[1]
	t.Logf("mean wait: %v in order of submit, %v by rank", fifo, ranked)
	if ranked >= fifo {
		t.Errorf("the mean wait is %v by rank, %v in order of submit", ranked, fifo)
	}
}

// Held jobs wait until they are let go, then run where they are told. Another process takes everything back, also after
// the controller has been killed in between.
func TestRealGate(t *testing.T) {
	t.Parallel()
	s, c := realCluster(t, slurmtest.Options{})
	block := submit(s, 600, "-N 4 --gres=gpu:8")
	s.Eventually("the first job runs", func() bool { return strings.Contains(s.Sh("squeue -h -t R -o %i"), block) })
	var ids []string
	for i := range 10 {
		args := "--gres=gpu:4"
		switch i {
		case 3:
			args += " --array=1-4"
		case 4:
			args += " : --gres=gpu:1"
		case 5:
			args += " -w g2"
		}
		if id := submit(s, 300, args); i == 3 {
			ids = append(ids, id+"_1", id+"_2", id+"_3", id+"_4")
		} else {
			ids = append(ids, id)
		}
	}
	words := "see ticket 5"
	s.Sh("scontrol update JobId=" + ids[0] + " AdminComment='" + words + "'")
	user := submit(s, 300, "-H --gres=gpu:1")
	clean := func() string {
		return s.Sh(
			"scontrol show job | grep -o -E '^JobId=[0-9]*|ExcNodeList=[^ ]*|JobState=P[^ ]* Reason=JobHeld.*|AdminComment=.*' | grep -v 'AdminComment= *$'")
	}
	before := clean()
	var holds []live.Action
	for _, id := range ids {
		holds = append(holds, live.Action{Op: live.HoldJob, Job: id})
	}
	must(t, c, holds...)
	must(t, c, holds...) // again changes nothing
	if r := c.Act(t.Context(), []live.Action{{Op: live.HoldJob, Job: user}, {Op: live.StartJob, Job: user},
		{Op: live.HoldJob, Job: block}}); r[0].Err == nil || r[1].Err == nil || r[2].Err == nil {
		t.Errorf("jobs of others' holds, or that run, are taken: %v", r)
	}
	s.Sh("scancel " + block)
	s.Eventually("the GPUs are free", func() bool { return look(t, c).Job(block) == nil })
	s.Sh("sleep 6") // Slurm saves its state every five seconds; what it was told since is lost when it is killed
	s.Kill()
	if _, err := c.Observe(t.Context()); err == nil || !strings.HasPrefix(err.Error(), live.ErrUnreachable.Error()) {
		t.Errorf("without a controller: %v", err)
	}
	for _, r := range c.Act(t.Context(), holds[:2]) {
		if r.Err == nil || !strings.Contains(r.Err.Error(), live.ErrUnreachable.Error()) {
			t.Errorf("without a controller: %v", r.Err)
		}
	}
	s.Revive()
	c = New(c.run, Options{}) // another process
	s.Sh("sleep 2")
	snap := look(t, c)
	for _, id := range ids {
		if j := snap.Job(id); j == nil || j.State != live.Waiting || !j.Ours || j.Blocked != "" {
			t.Errorf("held job %s is %+v", id, j)
		}
	}
	must(t, c, live.Action{Op: live.StartJob, Job: ids[1], Nodes: []string{"g3"}},
		live.Action{Op: live.StartJob, Job: ids[2], Nodes: []string{"g1"}},
		live.Action{Op: live.StartJob, Job: ids[4], Nodes: []string{"g3"}}, live.Action{Op: live.StartJob, Job: ids[0]})
	where := map[string]string{ids[1]: "g3", ids[2]: "g1", ids[4]: "g3", ids[0]: ""}
	s.Eventually("the four run", func() bool {
		snap = look(t, c)
		for id := range where {
			if snap.Job(id).State != live.Running {
				return false
			}
		}
		return true
	})
	for id, node := range where {
		if p := snap.Job(id).Places; len(p) != 1 || node != "" && p[0].Node != node || p[0].GPUs != 4 {
			t.Errorf("job %s runs on %v, want %s", id, p, node)
		}
	}
	running := 0
	for _, j := range snap.Jobs {
		if j.State == live.Running {
			running++
		}
	}
	if running != len(where) {
		t.Errorf("%d jobs run, want %d", running, len(where))
	}
	// One that cannot start is let go and taken back.
	must(t, c, live.Action{Op: live.StartJob, Job: ids[5], Nodes: []string{"g3"}})
	if j := look(t, c).Job(ids[5]); j.State != live.Waiting || !j.Freed || j.Ours ||
		!slices.Equal(j.Nodes, []string{"g3"}) || j.Excluded != nil {
		t.Errorf("a job that was let go is %+v", j)
	}
	s.Sh("scontrol update NodeName=g0,g1,g2,g3 State=drain Reason=test") // so that nothing starts
	var back []live.Action
	for _, j := range look(t, c).Jobs {
		if j.State == live.Waiting {
			back = append(back, live.Action{Op: live.ReleaseJob, Job: j.ID})
		}
	}
	must(t, New(c.run, Options{}), back...)
	must(t, New(c.run, Options{}), back...)
	for _, j := range look(t, c).Jobs {
		if j.State == live.Waiting && (j.Ours || j.Freed || (j.Blocked != "") != (j.ID == user)) {
			t.Errorf("after release %+v", j)
		}
	}
	var marks []string
	for _, line := range strings.Split(s.Sh("scontrol show job"), "\n\n") {
		if strings.Contains(line, "clustergym") && strings.Contains(line, "JobState=PENDING") {
			marks = append(marks, line)
		}
	}
	if len(marks) > 0 {
		t.Errorf("marks are left:\n%s\nbefore:\n%s", strings.Join(marks, "\n"), before)
	}
	if got := strings.Fields(
		s.Sh("scontrol show job | grep -A12 'JobState=PENDING' | grep -o 'ReqNodeList=.*' | sort -u")); !slices.Equal(got,
		[]string{"ReqNodeList=(null)", "ExcNodeList=(null)", "ReqNodeList=g2", "ExcNodeList=(null)"}) {
		t.Errorf("the nodes of waiting jobs are %q", got)
	}
	// A job that has started since we looked is not touched: neither held nor moved.
	busy := slices.Clone(snap.Job(ids[1]).Places)
	late := record{id: whole(ids[1]), task: -1, user: "somebody", states: []string{"PENDING"}, priority: 1}
	for _, a := range []live.Action{{Op: live.HoldJob, Job: ids[1]},
		{Op: live.StartJob, Job: ids[1], Nodes: []string{"g2"}}} {
		lines, err := c.lines(a, &late, nil, []string{"g0", "g1", "g2", "g3"})
		if err != nil || len(lines) != 1 {
			t.Fatal(lines, err)
		}
		c.write(t.Context(), []line{{lines[0], []int{0}}, {[]string{"update", "JobId=999999", "SiteFactor=1"}, []int{1}}},
			func(l *line, err error) {
				if !errors.Is(err, live.ErrGone) {
					t.Errorf("%v: %v", l.args, err)
				}
			})
		if j := look(t, c).Job(ids[1]); j.State != live.Running || j.Ours || !reflect.DeepEqual(j.Places, busy) ||
			strings.Contains(s.Sh("scontrol show job "+ids[1]), "Priority=0") {
			t.Errorf("%s has changed a job that runs: %+v", a, j)
		}
	}
	// A running job is requeued.
	must(t, c, live.Action{Op: live.RequeueJob, Job: ids[1]})
	s.Eventually("it waits again", func() bool {
		j := look(t, c).Job(ids[1])
		return j != nil && j.State == live.Waiting && j.Restarts == 1
	})
	if os.Geteuid() != 0 {
		return
	}
	nobody := New(Exec{Env: []string{"SLURM_CONF=" + s.Conf},
		Prefix: []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}}, Options{})
	before = s.Sh("squeue -r -h -o '%i %Q %t' | sort")
	for _, a := range []live.Action{{Op: live.RankJob, Job: ids[9]}, {Op: live.HoldJob, Job: ids[9]},
		{Op: live.RequeueJob, Job: ids[2]}} {
		if r := nobody.Act(context.Background(), []live.Action{a}); r[0].Err == nil ||
			!strings.Contains(r[0].Err.Error(), live.ErrDenied.Error()) {
			t.Errorf("nobody may %s: %v", a, r[0].Err)
		}
	}
	if after := s.Sh("squeue -r -h -o '%i %Q %t' | sort"); after != before {
		t.Errorf("nobody has changed the queue:\n%s\nwas\n%s", after, before)
	}
}

// While the epilog of a job runs, Slurm shows its GPUs as free and starts nothing on its node. After a minute that node
// is down.
func TestRealCompleting(t *testing.T) {
	t.Parallel()
	slurmtest.Need(t)
	dir := t.TempDir()
	over, epilog := filepath.Join(dir, "over"), filepath.Join(dir, "epilog")
	if err := os.WriteFile(epilog, []byte("#!/bin/sh\nuntil [ -e "+over+" ]; do sleep 0.2; done\n"), 0o700); err != nil { //nolint:gosec // a program of this test
		t.Fatal(err)
	}
	s, c := realCluster(t,
		slurmtest.Options{Conf: []string{"PartitionName=batch Nodes=ALL Default=YES DefaultTime=01:00:00",
			"Epilog=" + epilog}})
	t.Cleanup(func() { _ = os.WriteFile(over, nil, 0o600) }) // Slurm ends with its epilogs
	runs := func(id string) func() bool {
		return func() bool { j := look(t, c).Job(id); return j != nil && j.State == live.Running }
	}
	first := submit(s, 600, "-w g0 --gres=gpu:2")
	s.Eventually("the first job runs", runs(first))
	s.Sh("scancel " + first)
	s.Eventually("its epilog runs", func() bool { return strings.TrimSpace(s.Sh("sinfo -h -n g0 -o %T")) == "completing" })
	there := submit(s, 600, "-x g1,g2,g3 --gres=gpu:2")
	s.Eventually("Slurm starts what came later", runs(submit(s, 600, "-w g1 --gres=gpu:2")))
	late := New(c.run, Options{Now: func() time.Time { return time.Now().Add(2 * longCompleting) }})
	for _, x := range []struct {
		c    *Cluster
		down bool
	}{{c, false}, {late, true}} {
		for _, text := range []bool{false, true} {
			x.c.text = text
			snap := look(t, x.c)
			i := slices.IndexFunc(snap.Ended, func(j live.Job) bool { return j.ID == first })
			if i < 0 || snap.Ended[i].GPUs != 2 || snap.Ended[i].Status != traces.StatusUnknown || snap.Job(first) != nil ||
				snap.Job(there).State != live.Waiting {
				t.Errorf("text %v: %s", text, printed(snap))
			}
			for _, n := range snap.Nodes {
				if n.Down != (x.down && n.Name == "g0") || n.GPUs != 8 {
					t.Errorf("text %v, late %v: %+v", text, x.down, n)
				}
			}
		}
	}
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the next job runs there", runs(there))
}
