package slurm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/live"
)

func act(t *testing.T, r *replay, actions ...live.Action) []string {
	t.Helper()
	var got []string
	for i, res := range r.cluster(Options{}).Act(t.Context(), actions) {
		s := "ok"
		if res.Err != nil {
			s = res.Err.Error()
			if !strings.HasPrefix(s, actions[i].String()+": ") {
				t.Errorf("%q does not name %s", s, actions[i])
			}
			s = strings.TrimPrefix(s, actions[i].String()+": ")
		}
		got = append(got, s)
	}
	return got
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is written is one script. Jobs that run, that somebody else holds or that are not there are left alone.
func TestActions(t *testing.T) {
	r := recorded(t, "22.05")
	got := act(t, r,
		live.Action{Op: live.RankJob, Job: "51", Score: live.MaxScore},
		live.Action{Op: live.RankJob, Job: "55_5", Score: 7},
		live.Action{Op: live.RankJob, Job: "55_6", Score: 7},
		live.Action{Op: live.RankJob, Job: "55_4", Score: 7}, // runs
		live.Action{Op: live.RankJob, Job: "52"},
		live.Action{Op: live.HoldJob, Job: "61"},
		live.Action{Op: live.HoldJob, Job: "71"},
		live.Action{Op: live.HoldJob, Job: "60"}, // ours already
		live.Action{Op: live.HoldJob, Job: "58"},
		live.Action{Op: live.HoldJob, Job: "59"},
		live.Action{Op: live.HoldJob, Job: "49"},
		live.Action{Op: live.HoldJob, Job: "99"},
		live.Action{Op: live.StartJob, Job: "60", Nodes: []string{"g3", "g2+v100", "g2"}}, // its owner excludes g0
		live.Action{Op: live.StartJob, Job: "65"},
		live.Action{Op: live.StartJob, Job: "69", Nodes: []string{"g1"}},
		live.Action{Op: live.StartJob, Job: "60", Nodes: []string{"g0"}},
		live.Action{Op: live.StartJob, Job: "71", Nodes: []string{"g1"}},
		live.Action{Op: live.StartJob, Job: "58"},
		live.Action{Op: live.StartJob, Job: "72"},
		live.Action{Op: live.ReleaseJob, Job: "62"}, // pinned by us, its owner wants g1
		live.Action{Op: live.ReleaseJob, Job: "65"},
		live.Action{Op: live.ReleaseJob, Job: "58"},
		live.Action{Op: live.RequeueJob, Job: "53"},
		live.Action{Op: live.RequeueJob, Job: "51"},
		live.Action{Op: live.RankJob, Job: "51", Score: -1},
		live.Action{Op: live.HoldJob, Job: "51 Priority=9"},
		live.Action{Op: live.StartJob, Job: "51", Nodes: []string{"g1\nhold 52"}},
	)
	same(t, "results", got, "ok", "ok", "ok", "the job does not wait any more", "ok", "ok", "ok", "ok",
		"it is held by its user, and stays so",
		"it is held by an administrator, and stays so", "the job does not wait any more", "the job does not wait any more",
		"ok", "ok",
		"ok", "its owner excludes node g0", "its owner requires node g3", "it is held by its user, and stays so", "ok", "ok",
		"ok", "ok", "ok",
		"ok", "not supported: want a score from 0 to 1048576",
		`the job does not wait any more: got "51 Priority=9", want a job as 123 or 123_4`,
		`not supported: got node "g1\nhold 52", want one of the cluster`)
	same(t, "written", r.wrote,
		"update JobId=51 SiteFactor=1048576",
		"update JobId=55_[5,6] SiteFactor=7",
		"update JobId=52 SiteFactor=0",
		"update JobId=61 Priority=0 AdminComment=clustergym:hold ExcNodeList=",
		"update JobId=71 Priority=0 AdminComment=clustergym:hold ExcNodeList=",
		"update JobId=60 ExcNodeList=g[0-1] AdminComment=clustergym:start;on=g[2-3];not=g0",
		"release 60",
		"update JobId=65 AdminComment=clustergym:start",
		"release 65",
		"update JobId=69 ExcNodeList=g0,g[2-3] AdminComment=clustergym:start;on=g1;not=",
		"update JobId=62 ExcNodeList= AdminComment=clustergym:start",
		"update JobId=62 AdminComment=",
		"update JobId=65 AdminComment=",
		"requeue 53")
}

// Actions on one job see what those before have done.
func TestActionsOnOneJob(t *testing.T) {
	r := recorded(t, "22.05")
	got := act(t, r, live.Action{Op: live.HoldJob, Job: "51"}, live.Action{Op: live.HoldJob, Job: "51"},
		live.Action{Op: live.StartJob, Job: "51", Nodes: []string{"g1"}}, live.Action{Op: live.ReleaseJob, Job: "51"},
		live.Action{Op: live.ReleaseJob, Job: "51"})
	same(t, "results", got, "ok", "ok", "ok", "ok", "ok")
	same(t, "written", r.wrote,
		"update JobId=51 Priority=0 AdminComment=clustergym:hold ExcNodeList=",
		"update JobId=51 ExcNodeList=g0,g[2-3] AdminComment=clustergym:start;on=g1;not=",
		"release 51",
		"update JobId=51 ExcNodeList= AdminComment=clustergym:start",
		"update JobId=51 AdminComment=")
}

// scontrol would keep quotes that a pipe needs around blanks, so such a line is a process of its own, in its place.
func TestWordsOfOthersAreKept(t *testing.T) {
	r := recorded(t, "22.05")
	got := act(t, r, live.Action{Op: live.RankJob, Job: "51", Score: 5},
		live.Action{Op: live.RankJob, Job: "52", Score: 6}, live.Action{Op: live.StartJob, Job: "68"},
		live.Action{Op: live.RankJob, Job: "54", Score: 5})
	same(t, "results", got, "ok", "ok", "ok", "ok")
	same(t, "written", r.wrote, "update JobId=51 SiteFactor=5", "update JobId=52 SiteFactor=6",
		"update¦JobId=68¦AdminComment=see ticket 5 clustergym:start", "release 68", "update JobId=54 SiteFactor=5")
}

func TestFaultsBelongToTheirActions(t *testing.T) {
	r := recorded(t, "22.05")
	r.each = func(line string) []string {
		switch {
		case strings.Contains(line, "JobId=51 "):
			return []string{"Job is no longer pending execution for job 51"}
		case strings.Contains(line, "JobId=54 "):
			return []string{"Access/permission denied for job 54"}
		case line == "release 60":
			return []string{"Requested operation is presently disabled for job 60",
				"slurm_suspend error: Requested operation is presently disabled"}
		case strings.Contains(line, "JobId=70 "):
			return []string{"Moon is full"}
		}
		return nil
	}
	actions := []live.Action{{Op: live.RankJob, Job: "51"}, {Op: live.RankJob, Job: "52"}, {Op: live.RankJob, Job: "54"},
		{Op: live.StartJob, Job: "60"}, {Op: live.RankJob, Job: "70"}, {Op: live.RankJob, Job: "71"}}
	kinds := []error{live.ErrGone, nil, live.ErrDenied, live.ErrUnsupported, nil, nil}
	for i, res := range r.cluster(Options{}).Act(t.Context(), actions) {
		switch {
		case kinds[i] != nil && !errors.Is(res.Err, kinds[i]),
			kinds[i] == nil && (res.Err != nil) != (i == 4),
			i == 4 && !strings.Contains(fmt.Sprint(res.Err), "scontrol: Moon is full"):
			t.Errorf("%s: %v", actions[i], res.Err)
		}
	}
}

// Where nobody answers, what has not been tried is not tried: each line would take ten seconds.
func TestNothingIsTriedOnceNobodyAnswers(t *testing.T) {
	actions := []live.Action{{Op: live.RankJob, Job: "51"}, {Op: live.RankJob, Job: "52"}, {Op: live.RankJob, Job: "54"},
		{Op: live.StartJob, Job: "68"}}
	r := recorded(t, "22.05")
	r.each = func(line string) []string {
		if strings.Contains(line, "JobId=52 ") {
			return []string{"Unable to contact slurm controller (connect failure) for job 52"}
		}
		return nil
	}
	results := r.cluster(Options{}).Act(t.Context(), actions)
	if results[0].Err != nil || len(r.wrote) != 2 {
		t.Errorf("%v, written %q", results, r.wrote)
	}
	for _, res := range results[1:] {
		if !errors.Is(res.Err, live.ErrUnreachable) {
			t.Errorf("%v", res.Err)
		}
	}
	r = recorded(t, "22.05")
	r.quits = 2 // after the first action
	results = r.cluster(Options{}).Act(t.Context(), actions[:3])
	if results[0].Err != nil || results[1].Err == nil || results[2].Err == nil {
		t.Errorf("scontrol dies: %v", results)
	}
	r = recorded(t, "22.05")
	r.fails["scontrol show config"] = &ExitError{"scontrol", 1,
		"slurm_load_ctl_conf error: Socket timed out on send/recv operation"}
	for _, res := range r.cluster(Options{}).Act(t.Context(), actions) {
		if !errors.Is(res.Err, live.ErrUnreachable) {
			t.Errorf("%v", res.Err)
		}
	}
	if len(r.wrote) > 0 || len(New(r, Options{}).Act(t.Context(), nil)) != 0 {
		t.Errorf("written %q", r.wrote)
	}
}

func TestRights(t *testing.T) {
	const level = "sacctmgr -n -P show user name=bob format=AdminLevel"
	for name, c := range map[string]struct {
		user, level       string
		change            string // of the configuration
		to                string
		rank, gate, fails string
	}{
		"SlurmUser": {user: "slurm"},
		"root":      {user: "root"},
		"operator":  {user: "bob", level: "Operator\n", gate: "only an administrator of Slurm may write AdminComment"},
		"private operator": {user: "bob", level: "Operator\n", change: "PrivateData             = none",
			to: "PrivateData             = jobs,usage", gate: "adminlevel=admin"},
		"administrator": {user: "bob", level: "Administrator\n"},
		"user": {user: "bob", level: "None\n",
			rank: "and bob is none (sacctmgr modify user bob set adminlevel=operator)", gate: "jobs of others wait"},
		"unknown": {user: "bob", level: "\n", rank: "bob is none", gate: "bob is none, and "},
		"private": {user: "bob", level: "None\n", change: "PrivateData             = none",
			to: "PrivateData             = jobs,usage", rank: "bob is none",
			gate: "PrivateData=jobs,usage, so bob sees no jobs of others"},
		"no accounting": {user: "bob", change: "accounting_storage/slurmdbd", to: "accounting_storage/none",
			rank: "bob is none", gate: "bob is none"},
		"basic priority": {user: "slurm", change: "priority/multifactor", to: "priority/basic",
			rank: "PriorityType=priority/basic, which knows no SiteFactor"},
		"whole nodes": {user: "slurm", change: "select/cons_tres", to: "select/linear", rank: "want select/cons_tres",
			gate: "want select/cons_tres"},
	} {
		r := recorded(t, "22.05")
		r.out["id -un"] = c.user + "\n"
		if c.level != "" {
			r.out[level] = c.level
		}
		if c.change != "" {
			r.change(t, "scontrol show config", c.change, c.to)
		}
		caps, err := r.cluster(Options{}).Can(t.Context())
		if err != nil || (caps.Rank == "") != (c.rank == "") || !strings.Contains(caps.Rank, c.rank) ||
			(caps.Gate == "") != (c.gate == "") || !strings.Contains(caps.Gate, c.gate) ||
			(caps.Requeue == "") != (c.gate == "") {
			t.Errorf("%s: %+v, %v", name, caps, err)
		}
		if len(r.wrote) > 0 {
			t.Errorf("%s: written %q", name, r.wrote)
		}
	}
}

// Who is no operator may hold jobs of its own, and marks them in the comment that their owner may write.
func TestOwnJobsWithoutRights(t *testing.T) {
	r := recorded(t, "22.05")
	r.out["id -un"] = "bob\n"
	r.out["sacctmgr -n -P show user name=bob format=AdminLevel"] = "None\n"
	got := act(t, r, live.Action{Op: live.HoldJob, Job: "72"}, live.Action{Op: live.HoldJob, Job: "61"},
		live.Action{Op: live.RankJob, Job: "72"})
	same(t, "results", got, "ok", "the cluster refuses this: the job is ann's, and bob is no administrator of Slurm",
		"the cluster refuses this: only an operator of Slurm may write SiteFactor, and bob is none")
	same(t, "written", r.wrote, "update¦JobId=72¦Priority=0¦Comment=clustergym:hold¦ExcNodeList=")
}

// An operator may rank the jobs of others, and hold none: Slurm lets administrators alone write AdminComment.
func TestOperatorsRankOnly(t *testing.T) {
	r := recorded(t, "22.05")
	r.out["id -un"] = "bob\n"
	r.out["sacctmgr -n -P show user name=bob format=AdminLevel"] = "Operator\n"
	got := act(t, r, live.Action{Op: live.RankJob, Job: "61", Score: 5}, live.Action{Op: live.HoldJob, Job: "61"})
	same(t, "results", got, "ok", "the cluster refuses this: the job is ann's, and bob is no administrator of Slurm")
	same(t, "written", r.wrote, "update¦JobId=61¦SiteFactor=5")
}

func TestWeights(t *testing.T) {
	r := recorded(t, "22.05")
	r.change(t, "scontrol show config", "PriorityWeightTRES      = (null)",
		"PriorityWeightTRES      = cpu=2000,gres/gpu=5000")
	if score, others, err := r.cluster(Options{Weight: 5000}).Weights(t.Context()); err != nil || score != 5000 ||
		others != 8000 {
		t.Errorf("%d, %d, %v", score, others, err)
	}
}
