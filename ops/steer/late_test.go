package steer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/traces"
)

// one returns a job for a test.
func one(id, vc string, gpus int, work time.Duration) traces.Job {
	return traces.Job{ID: id, User: "u", VC: vc, Work: work, Estimate: work, GPUs: gpus, GPUMilli: 1000}
}

// asked returns what the cluster was asked for of a job.
func asked(c *livetest.Cluster, id string) (list []string) {
	for _, a := range c.Log() {
		if words := strings.Fields(a); len(words) > 1 && words[1] == id {
			list = append(list, a)
		}
	}
	return list
}

// A cluster may start nothing on a node and not say so. A start that it has not carried out within --grace names no
// nodes the next time.
func TestAStartThatIsNotCarriedOut(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	c.Submit(one("wide", "", 16, time.Minute))
	c.Submit(one("a", "", 4, time.Hour))
	c.Jam("g0", false)
	c.Advance(time.Second)
	c.Jam("g0", true)
	cfg := moved(c, steer.Gate, "sjf+skip", 1+7+14) // a minute, and two
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if want := []string{"hold a", "start a on g0", "hold a", "start a"}; !slices.Equal(asked(c, "a"), want) {
		t.Errorf("the cluster was asked for %q, want %q", asked(c, "a"), want)
	}
	for _, j := range c.History() {
		if j.ID == "a" && (j.State != live.Running || j.Places[0].Node != "g1") {
			t.Errorf("the job is %+v, and was to run on g1", j)
		}
	}
}

// A job that the cluster starts nowhere is left to it, for longer and longer, and keeps no GPUs free meanwhile.
func TestAJobThatTheClusterStartsNowhere(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	c.Submit(one("wide", "", 16, time.Minute))
	c.Submit(one("a", "", 8, time.Hour))
	c.Advance(time.Second)
	c.Jam("g0", true)
	c.Jam("g1", true)
	cfg := moved(c, steer.Gate, "sjf+skip", 6*60)
	if err := steer.Run(t.Context(), cfg); err != nil { // which releases it at the end
		t.Fatal(err)
	}
	// After a minute it is started; then it is left alone for 1, 2, 4, 8, 16 minutes, and has two to start after each.
	if n := len(asked(c, "a")); n < 11 || n > 17 {
		t.Errorf("within an hour the cluster was asked for %q", asked(c, "a"))
	}
	c.Jam("g1", false)
	for _, j := range c.History() {
		if j.ID == "a" && (j.State != live.Running || j.Ours) {
			t.Errorf("the job is %+v, and was to run", j)
		}
	}
}

// Policies see one cluster. What one starts outside a job's partition is let go for the cluster to place, and keeps no
// GPUs of another partition from being used.
func TestPartitionsWithNodesOfTheirOwn(t *testing.T) {
	nodes := livetest.Machines(2, 8)
	nodes[0].VCs, nodes[1].VCs = []string{"left", "all"}, []string{"right", "all"}
	for mode, says := range map[string]string{steer.Shadow: "may be on nodes",
		steer.Rank: "ranks order the jobs of each partition", steer.Gate: "the cluster chooses the nodes"} {
		c := livetest.New(nodes...)
		c.Submit(one("wide", "all", 16, time.Minute))
		c.Submit(one("l1", "left", 8, 2*time.Hour)) // the last of the policy, and the first of the cluster
		c.Submit(one("r1", "right", 8, time.Hour))
		c.Submit(one("r2", "right", 8, time.Hour))
		c.Submit(one("r3", "right", 8, time.Hour))
		c.Advance(time.Second)
		cfg := moved(c, mode, "sjf+skip", 13)
		var notes []string
		cfg.Note = func(text string) { notes = append(notes, text) }
		if err := steer.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		want := "not every partition has all 2 nodes with GPUs (left has 1, right has 1), and policies see one cluster: "
		if len(notes) != 1 || !strings.HasPrefix(notes[0], want) || !strings.Contains(notes[0], says) {
			t.Errorf("%s: it was said %q, want once %q, %q", mode, notes, want, says)
		}
		for _, j := range c.History() {
			waited := j.Start.Sub(j.Submit)
			if mode == steer.Gate && (j.ID == "l1" || j.ID == "r1") && (j.State != live.Running || waited > 2*time.Minute) {
				t.Errorf("%s is %v and has waited for %v, where its partition was free after a minute: %q", j.ID, j.State, waited,
					c.Log())
			}
		}
	}
}
