package rltune

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/recorded"
)

// runs is the folder of the results of the authors' program.
const runs = "groundtruth/rltune/"

func whole(t testing.TB, text string) int { t.Helper(); return int(recorded.Whole(t, text)) }

// partsOf reads "1:2 3:8".
func partsOf(t testing.TB, text string) (all []Part) {
	t.Helper()
	for _, p := range strings.Fields(text) {
		n, k, _ := strings.Cut(p, ":")
		all = append(all, Part{int32(whole(t, n)), int32(whole(t, k))})
	}
	return all
}

func written(parts []Part, first int) string {
	var all []string
	for _, p := range parts {
		all = append(all, fmt.Sprintf("%d:%d", int(p.Node)+first, p.GPUs))
	}
	return strings.Join(all, " ")
}

// In all recorded states: how many ways of each tier, the one that base policies take, and the best of each tier and
// order with what it changes.
func TestTheRecordedWays(t *testing.T) {
	all := recorded.Rows(t, runs+"placement_cases.csv")
	var f Finder
	for _, r := range all {
		each := whole(t, r["gpus_per_node"])
		state := partsOf(t, r["free"])
		nodes := 0
		for _, s := range state {
			nodes = max(nodes, int(s.Node))
		}
		p := NewPool(Block{Nodes: nodes, Each: each})
		free := make([]int32, nodes)
		for _, s := range state {
			free[s.Node-1] = s.GPUs
		}
		gpus := whole(t, r["request"])
		one, two := f.count(p, free, gpus, 0, true)
		if fmt.Sprint(one, two) != r["tier1_count"]+" "+r["tier2_count"] {
			t.Errorf("case %s: %d and %d ways, want %s and %s", r["case"], one, two, r["tier1_count"], r["tier2_count"])
		}
		first, ok := f.First(p, free, gpus, nil)
		if written(first, 1) != r["greedy"] || ok != f.Fits(p, free, gpus) || ok != (r["greedy"] != "") {
			t.Errorf("case %s: first way %s, want %s", r["case"], written(first, 1), r["greedy"])
		}
		f.Best(p, free, gpus, true, nil)
		for i, name := range []string{"tier1_defrag", "tier1_balance", "tier2_defrag", "tier2_balance"} {
			w := &f.best[i]
			got := ""
			if w.ok {
				got = written(w.parts, 1)
			}
			if got != r[name] {
				t.Errorf("case %s: %s %s, want %s", r["case"], name, got, r[name])
			}
		}
		if w := &f.best[0]; w.ok {
			scale := float64(f.nodes * f.nodes * int64(each*each))
			if got := fmt.Sprint(w.partial, w.waste); got != r["defrag_delta_partial"]+" "+r["defrag_delta_waste"] {
				t.Errorf("case %s: changes %s, want %s %s", r["case"], got, r["defrag_delta_partial"], r["defrag_delta_waste"])
			}
			for i, name := range []string{"defrag_delta_variance", "balance_delta_variance"} {
				if got, want := float64(f.best[i].variance)/scale, recorded.Number(t, r[name]); got-want > 1e-9 || want-got > 1e-9 {
					t.Errorf("case %s: %s %v, want %v", r["case"], name, got, want)
				}
			}
		}
	}
	if len(all) != 236 {
		t.Errorf("%d cases, want 236", len(all))
	}
}

// jobs reads a file of jobs. A run time of -1 stands for 10 seconds, as in the program.
func jobs(t testing.TB, name string) (all []Job) {
	t.Helper()
	for _, r := range recorded.Rows(t, runs+"jobs_"+name+".csv") {
		j := Job{ID: r["job_id"], Submit: recorded.Whole(t, r["submit"]), Run: recorded.Whole(t, r["duration"]),
			GPUs: whole(t, r["gpus"]), Pool: whole(t, r["pool"]), Wait: recorded.Whole(t, r["wait_column"])}
		if j.Run == -1 {
			j.Run = 10
		}
		j.Known = j.Run
		all = append(all, j)
	}
	return all
}

// started is a job's start, end and nodes.
type started struct {
	id         string
	start, end int64
	nodes      string
}

// log makes m write down the jobs that start.
func log(m *Machine) *[]started {
	var got []started
	m.OnStart = func(job int, at int64, parts []Part) {
		j := &m.jobs[job]
		got = append(got, started{j.ID, at, at + j.Run, written(parts, m.cluster.Pools[j.Pool].First)})
	}
	return &got
}

// window returns a copy of the jobs of a row of the recorded runs. If c has one pool, they are all in it, whatever
// their column says.
func window(t testing.TB, c *Cluster, all []Job, r map[string]string, length int) []Job {
	t.Helper()
	from := whole(t, r["start_index"])
	of := slices.Clone(all[from:min(from+length, len(all))])
	if len(c.Pools) == 1 {
		for i := range of {
			of[i].Pool = 0
		}
	}
	return of
}

// same compares a figure with one of nine digits.
func same(got float64, want string) bool {
	return fmt.Sprintf("%.9g", got) == want
}

// Every run of every base policy that runs: all starts, ends, nodes and their order, and the means.
func TestTheRecordedRuns(t *testing.T) {
	schedules := map[string][]started{}
	for _, r := range recorded.Rows(t, runs+"schedules.csv.gz") {
		key := r["cluster"] + " " + r["jobs"] + " " + r["start_index"] + " " + r["policy"] + " " + r["backfill"]
		schedules[key] = append(schedules[key],
			started{r["job_id"], recorded.Whole(t, r["start"]), recorded.Whole(t, r["end"]), r["nodes"]})
	}
	files := map[string][]Job{}
	played, crashed, failed := 0, 0, 0
	for _, r := range recorded.Rows(t, runs+"windows.csv") {
		key := r["cluster"] + " " + r["jobs"] + " " + r["start_index"] + " " + r["policy"] + " " + r["backfill"]
		rule, err := NewRule(r["policy"])
		if err != nil {
			crashed++
			if !strings.Contains(r["error"], "AttributeError") {
				t.Errorf("%s: no such rule, but the program has no AttributeError: %s", key, r["error"])
			}
			continue
		}
		if files[r["jobs"]] == nil {
			files[r["jobs"]] = jobs(t, r["jobs"])
		}
		c, err := NewCluster(r["cluster"])
		if err != nil {
			t.Fatal(err)
		}
		of := window(t, c, files[r["jobs"]], r, whole(t, r["length"]))
		m := NewMachine(c, r["backfill"] == "1")
		got := log(m)
		stopped := func() (stopped bool) {
			defer func() { stopped = recover() != nil }()
			m.Reset(of)
			Play(m, rule, nil)
			return false
		}()
		if asserts := strings.Contains(r["error"], "AssertionError"); asserts || stopped {
			failed++
			if !asserts || !stopped {
				t.Errorf("%s: stopped %v, want %s", key, stopped, r["error"])
			}
			continue
		}
		played++
		want := schedules[key]
		if len(*got) != len(want) || len(want) == 0 {
			t.Errorf("%s: %d jobs start, want %d", key, len(*got), len(want))
			continue
		}
		for i := range want {
			if (*got)[i] != want[i] {
				t.Errorf("%s: start %d is %v, want %v", key, i, (*got)[i], want[i])
				break
			}
		}
		if r["error"] != "" {
			continue // it has no means
		}
		s := m.Score()
		for name, metric := range map[string]string{"bsld10": "bsld", "wait": "wait", "turnaround": "jct",
			"neg_util": "utilisation", "slowdown": "slowdown"} {
			if v := s.Of(metric, c.GPUs()); !same(v, r[name]) {
				t.Errorf("%s: %s %.9g, want %s", key, name, v, r[name])
			}
		}
		if fmt.Sprint(s.Jobs, s.End) != r["scheduled"]+" "+r["last_end_minus_first_submit"] {
			t.Errorf("%s: %d jobs to %d, want %s to %s", key, s.Jobs, s.End, r["scheduled"], r["last_end_minus_first_submit"])
		}
	}
	if played != 210 || failed != 14 || crashed != 90 {
		t.Errorf("%d runs are played, %d raise an error there and here, %d have a policy that crashes; want 210, 14 and 90",
			played, failed, crashed)
	}
}

// The agent's path without back-filling or the integer programme, with base fcfs: who starts when and where by three
// rules over slots, their means and rewards, and the recorded rows.
func TestTheRecordedSlotRules(t *testing.T) {
	schedules := map[string][]started{}
	for _, r := range recorded.Rows(t, runs+"slot_rules_schedules.csv.gz") {
		key := r["cluster"] + " " + r["jobs"] + " " + r["start_index"] + " " + r["rule"]
		schedules[key] = append(schedules[key],
			started{r["job_id"], recorded.Whole(t, r["start"]), recorded.Whole(t, r["end"]), r["nodes"]})
	}
	shown := map[string][]map[string]string{}
	for _, r := range recorded.Rows(t, runs+"observations.csv") {
		key := r["cluster"] + " " + r["jobs"] + " " + r["start_index"] + " " + r["decision"]
		shown[key] = append(shown[key], r)
	}
	looked, played := 0, 0
	for _, r := range recorded.Rows(t, runs+"slot_rules.csv") {
		played++
		key := r["cluster"] + " " + r["jobs"] + " " + r["start_index"] + " " + r["rule"]
		c, err := NewCluster(r["cluster"])
		if err != nil {
			t.Fatal(err)
		}
		of := window(t, c, jobs(t, r["jobs"]), r, 256)
		fcfs, err := NewRule("fcfs")
		if err != nil {
			t.Fatal(err)
		}
		m := NewMachine(c, false)
		m.Reset(of)
		Play(m, fcfs, nil)
		base := m.Score()
		got := log(m)
		m.Reset(of)
		var o Observer
		k := 0
		for ; !m.Done(); k++ {
			fcfs.Sort(m)
			all, visible := o.Look(m)
			if r["rule"] == "mod7" {
				for _, want := range shown[strings.Join([]string{r["cluster"], r["jobs"], r["start_index"], fmt.Sprint(k)}, " ")] {
					looked++
					slot := whole(t, want["slot"])
					if g := fmt.Sprintf("%d %d %s", m.Now(), visible, m.Job(slot).ID); g !=
						want["now"]+" "+want["visible"]+" "+want["job_id"] {
						t.Errorf("%s, decision %d, slot %d: %s, want %s of %s at %s", key, k, slot, g, want["job_id"], want["visible"],
							want["now"])
					}
					for f := range Features {
						name := fmt.Sprintf("f%d", f+1)
						if v := all[slot*Features+f]; fmt.Sprintf("%.12g", v) != want[name] {
							t.Errorf("%s, decision %d, slot %d of %d: %s is %.12g, want %s", key, k, slot, visible, name, v, want[name])
						}
					}
				}
			}
			slot := 0
			switch r["rule"] {
			case "last":
				slot = visible - 1
			case "mod7":
				slot = 7 * k % visible
			}
			m.Commit(slot, nil)
		}
		agent := m.Score()
		if fmt.Sprint(k, agent.Jobs) != r["decisions"]+" "+r["scheduled"] {
			t.Errorf("%s: %d decisions, %d jobs, want %s and %s", key, k, agent.Jobs, r["decisions"], r["scheduled"])
		}
		a, b := base.Of("bsld", c.GPUs()), agent.Of("bsld", c.GPUs())
		if !same(a, r["bsld10_fcfs"]) || !same(b, r["bsld10_rule"]) || !same(Reward(a, b), r["reward"]) {
			t.Errorf("%s: %.9g, %.9g, reward %.9g, want %s, %s, %s", key, a, b, Reward(a, b), r["bsld10_fcfs"], r["bsld10_rule"],
				r["reward"])
		}
		if r["rule"] == "slot0" {
			continue // its schedule is that of fcfs
		}
		want := schedules[key]
		if len(*got) != len(want) {
			t.Fatalf("%s: %d starts, want %d", key, len(*got), len(want))
		}
		for i := range want {
			if (*got)[i] != want[i] {
				t.Errorf("%s: start %d is %v, want %v", key, i, (*got)[i], want[i])
				break
			}
		}
	}
	if looked != 558 || played != 18 {
		t.Errorf("%d recorded rows in %d runs, want 558 in 18", looked, played)
	}
}

// Every recorded decision of the integer programme: all objectives, and the way that is chosen.
func TestTheRecordedProgrammes(t *testing.T) {
	all := recorded.Rows(t, runs+"milp_cases.csv")
	var o Programme
	for i, r := range all {
		state := partsOf(t, r["pool_free"])
		nodes := 0
		for _, s := range state {
			nodes = max(nodes, int(s.Node)+1)
		}
		free := make([]int32, nodes)
		for _, s := range state {
			free[s.Node] = s.GPUs
		}
		var ways [][]Part
		var values []string
		next := whole(t, r["next_request"])
		for _, w := range strings.Split(r["ways"], "|") {
			ways = append(ways, partsOf(t, w))
		}
		for _, w := range ways {
			values = append(values, fmt.Sprintf("%.6g", o.Objective(free, nil, w, next)))
		}
		if got := strings.Join(values, "|"); got != r["objectives"] {
			t.Errorf("row %d: objectives %s, want %s", i, got, r["objectives"])
		}
		if got := o.Choose(free, ways, next, true); fmt.Sprint(got) != r["chosen"] {
			t.Errorf("row %d: way %d, want %s", i, got, r["chosen"])
		}
	}
	if len(all) != 228 {
		t.Errorf("%d decisions, want 228", len(all))
	}
}
