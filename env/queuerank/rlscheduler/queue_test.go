package rlscheduler_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/env/queuerank/rlscheduler"
	"clustergym/internal/recorded"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
	"clustergym/traces/swf"
)

// agentRows reads what the published agent did.
func agentRows(t *testing.T, name string) []map[string]string {
	return recorded.Rows(t, "groundtruth/rlscheduler_agent/"+name)
}

// lublin256 is the workload of the published agent.
func lublin256(t *testing.T) []traces.Job {
	t.Helper()
	f, err := traces.OpenFile(recorded.Path(t, "traces/swf/lublin_256.swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	r, err := swf.NewReader(f, "lublin_256", swf.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := traces.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	kept, _, _ := traces.Filter(jobs, 0)
	return kept
}

// random are jobs of users, some of one second.
func random(r *rand.Rand, n int) []traces.Job {
	var jobs []traces.Job
	at := time.Duration(0)
	for range n {
		at += time.Duration(1+r.IntN(120)) * time.Second
		j := job(at, time.Duration(1+r.IntN(900))*time.Second, 1+r.IntN(16))
		j.User, j.MemBytes = fmt.Sprint(r.IntN(20)), int64(r.IntN(5))<<30
		jobs = append(jobs, j)
	}
	return jobs
}

// Every decision of RLScheduler's published agent on its ten windows, without and with back-filling: the job in the
// slot that it chose, how many wait, the clock, every visible row to the last bit, and the bounded slowdown.
func TestThePublishedDecisions(t *testing.T) {
	decisions := map[string][]map[string]string{}
	for _, r := range agentRows(t, "decisions.csv.gz") {
		key := r["backfill"] + " " + r["start_index"]
		decisions[key] = append(decisions[key], r)
	}
	jobs := lublin256(t)
	played := 0
	for _, want := range agentRows(t, "hashes.csv") {
		if want["workload"] != "lublin_256.swf" {
			continue
		}
		played++
		key := want["backfill"] + " " + want["start_index"]
		t.Run(key, func(t *testing.T) {
			from, err := strconv.Atoi(want["start_index"])
			if err != nil {
				t.Fatal(err)
			}
			cfg := rlscheduler.DefaultConfig()
			cfg.Window, cfg.Reward, cfg.Estimates = 1024, "minus", sim.MustEstimates("exact")
			if want["backfill"] == "1" {
				cfg.Backfill = "easy"
			}
			e, err := rlscheduler.New(rlscheduler.ID, cfg, cluster.Spec{Pool: 256}, windows(jobs[from:from+1024]), jobs,
				traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			ts := env.NewTimeStep(e.Spec())
			if err := e.Reset(ctx, env.Episode{Seed: 1}, ts); err != nil {
				t.Fatal(err)
			}
			seen := sha256.New()
			for i, d := range decisions[key] {
				slots := e.Slots()
				for _, x := range ts.Obs[:8*len(slots)] {
					var b [4]byte
					binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
					seen.Write(b[:])
				}
				slot, err := strconv.Atoi(d["slot"])
				if err != nil || slot >= len(slots) {
					t.Fatalf("step %d: slot %s of %d", i, d["slot"], len(slots))
				}
				now := (e.View().Now() + jobs[from].Submit) / time.Second // an episode's clock begins at 0
				if id := e.View().Trace(slots[slot]).ID; id != d["job_id"] || fmt.Sprint(int64(now)) != d["now"] ||
					fmt.Sprint(e.Waiting()) != d["waiting"] {
					t.Fatalf("step %d: job %s at %d with %d waiting, want %s at %s with %s", i, id, now, e.Waiting(), d["job_id"],
						d["now"], d["waiting"])
				}
				if err := e.Step(ctx, env.Action{Disc: []int32{int32(slot)}}, ts); err != nil {
					t.Fatal(err)
				}
			}
			if got := fmt.Sprintf("%.6f", -ts.Reward); ts.Kind != env.Terminated || got != want["bsld"] {
				t.Errorf("bounded slowdown %s, want %s at the end", got, want["bsld"])
			}
			if got := hex.EncodeToString(seen.Sum(nil)); got != want["observations_sha256"] {
				t.Errorf("the visible rows hash to %s, want %s", got, want["observations_sha256"])
			}
		})
	}
	if played != 20 {
		t.Errorf("%d windows, want 20", played)
	}
}

// If more jobs wait than are visible, the shortest and the smallest alternate, and the oldest is not among them for its
// age. The list is then in the order of sizes, which the next sort by submit keeps for jobs of one second.
func TestWhatThePeerSeesOfALongQueue(t *testing.T) {
	cfg := rlscheduler.DefaultConfig()
	cfg.Visible, cfg.Reward = 4, "minus"
	s := time.Second
	e, ts := open(t, cfg, cluster.Spec{Pool: 8},
		job(0, 1000*s, 8),  // holds the machine
		job(s, 50*s, 8),    // is held while the others arrive
		job(2*s, 90*s, 7),  // the oldest that waits: not seen
		job(3*s, 80*s, 1),  // the smallest
		job(4*s, 10*s, 6),  // the shortest
		job(4*s, 20*s, 5),  // the second shortest
		job(4*s, 300*s, 2), // the second smallest
	)
	step := func(slot int32) {
		t.Helper()
		if err := e.Step(ctx, env.Action{Disc: []int32{slot}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() string {
		var all []string
		for _, j := range e.Slots() {
			all = append(all, fmt.Sprint(e.View().Pos(j)))
		}
		return strings.Join(all, " ")
	}
	step(0)
	step(0)
	if got := seen(); got != "4 3 5 6" {
		t.Errorf("jobs %s are seen, want 4 3 5 6", got)
	}
	step(1) // the smallest goes: the rest is visible in order of submit, and in one second by size
	if got := seen(); got != "2 6 5 4" {
		t.Errorf("jobs %s are seen, want 2 6 5 4", got)
	}
}

// The agent is asked after each arrival, even if more come in the same second.
func TestThePeerAsksAfterEveryArrival(t *testing.T) {
	cfg := rlscheduler.DefaultConfig()
	cfg.Reward = "minus"
	e, _ := open(t, cfg, cluster.Spec{Pool: 8}, job(0, time.Second, 1), job(0, time.Second, 1))
	if len(e.Slots()) != 1 {
		t.Errorf("%d jobs are visible, want the first of two", len(e.Slots()))
	}
}

func TestContractOfThePeer(t *testing.T) {
	jobs := random(rand.New(rand.NewPCG(8, 8)), 600)
	for i := range jobs { // some of one second
		jobs[i].Submit = jobs[i].Submit / (5 * time.Minute) * (5 * time.Minute)
	}
	for _, backfill := range []string{"none", "easy"} {
		cfg := rlscheduler.DefaultConfig()
		cfg.Window, cfg.Backfill, cfg.Visible = 40, backfill, 6
		w, err := traces.NewWindows(jobs, cfg.Window, 0)
		if err != nil {
			t.Fatal(err)
		}
		options := []envtest.Option{envtest.Cap(200)}
		if !checked {
			options = append(options, envtest.NoAllocs())
		}
		envtest.Run(t, func() env.Env {
			e, err := rlscheduler.New(rlscheduler.ID, cfg, cluster.Spec{Pool: 16}, w, w.Jobs(traces.Training), traces.Training)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}, options...)
	}
}
