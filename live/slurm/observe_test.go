package slurm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/live"
	"clustergym/traces"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// show prints a snapshot, a line for each thing.
func printed(s *live.Snapshot) string {
	var b strings.Builder
	for _, n := range s.Nodes {
		fmt.Fprintf(&b, "node %s: %d %q, %d, %d MiB, %v %q, rack %q, %v\n", n.Name, n.GPUs, n.GPUType, n.CPUMilli,
			n.MemBytes>>20, n.Down, n.Why, n.Rack, n.VCs)
	}
	clock := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return t.Format("15:04:05")
	}
	for _, jobs := range [][]live.Job{s.Jobs, s.Ended} {
		for _, j := range jobs {
			fmt.Fprintf(&b,
				"%s %s %q: %s of %s in %s, %d %v, %d, %d MiB, limit %v; submit %s, start %s, end %s; places %v; blocked %q, ours %v, freed %v, nodes %v, excluded %v, rank %d, restarts %d, %v\n",
				j.State, j.ID, j.Name, j.User, j.Group, j.VC, j.GPUs, j.GPUTypes, j.CPUMilli, j.MemBytes>>20, j.Estimate,
				clock(j.Submit), clock(j.Start), clock(j.End),
				j.Places, j.Blocked, j.Ours, j.Freed, j.Nodes, j.Excluded, j.Rank, j.Restarts, j.Status)
		}
	}
	return b.String()
}

// The outputs of all releases tell of one queue. testdata/README.md says which were recorded.
func TestEveryReleaseGivesTheSameSnapshot(t *testing.T) {
	golden := filepath.Join("testdata", "snapshot.txt")
	for _, release := range []string{"22.05", "22.05 as text", "22.05 without JSON", "23.02", "23.11", "24.11"} {
		number, how, _ := strings.Cut(release, " ")
		r := recorded(t, number)
		switch how {
		case "without JSON":
			r.fails["squeue --json"] = &ExitError{"squeue", 1, "squeue: unrecognized option '--json'"}
			r.fails["sinfo -a --json"] = &ExitError{"sinfo", 1, "sinfo: fatal: cannot find serializer/json plugin"}
		case "":
			delete(r.out, "scontrol -d show job")
			delete(r.out, "scontrol -a show node")
		}
		s, err := r.cluster(Options{Text: how == "as text"}).Observe(t.Context())
		if err != nil {
			t.Errorf("%s: %v", release, err)
			continue
		}
		if !strings.HasPrefix(s.Version, number) || s.Cluster != "private" || !s.At.Equal(recordedAt) {
			t.Errorf("%s: %s of %s at %v", release, s.Version, s.Cluster, s.At)
		}
		got := printed(s)
		if *update && release == "22.05" {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil { //nolint:gosec // of these tests
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden) //nolint:gosec // of these tests
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("%s: got\n%s\nwant\n%s", release, a[i], b[i])
				}
			}
			if len(a) != len(b) {
				t.Errorf("%s: %d lines, want %d", release, len(a), len(b))
			}
		}
	}
}

func TestObserveSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *replay)
		kind   error
		want   string
	}{
		"no controller": {func(r *replay) {
			r.fails["scontrol show config"] = &ExitError{"scontrol", 1,
				"slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)"}
		}, live.ErrUnreachable, "Unable to contact slurm controller"},
		"a controller that dies": {func(r *replay) {
			text, err := os.ReadFile(filepath.Join("testdata", "22.05", "down.json"))
			if err != nil {
				t.Fatal(err)
			}
			r.out["squeue --json"] = string(text)
		}, live.ErrUnreachable, "squeue --json: Failed while looking for jobs"},
		"whole nodes": {func(r *replay) { r.change(t, "scontrol show config", "select/cons_tres", "select/linear") },
			live.ErrUnsupported, "SelectType=select/linear"},
		"a crash": {func(r *replay) {
			r.fails["scontrol show config"] = &ExitError{"scontrol", 1,
				"scontrol: error: slurm_msg_sendto: address:port=127.0.0.1:20158 msg_type=2001: Unexpected missing socket error; slurm_load_ctl_conf error: Unexpected missing socket error"}
		}, live.ErrUnreachable, "missing socket"},
		"another program": {func(r *replay) { r.out["scontrol show config"] = "hello\n" }, live.ErrUnsupported,
			"no ClusterName"},
		"no Slurm": {func(r *replay) { clear(r.out) }, nil, "scontrol show config"},
		"a newer JSON": {func(r *replay) { r.change(t, "squeue --json", `"jobs"`, `"jobs_v2"`) }, live.ErrUnsupported,
			"it has no jobs"},
		"a cut document": {func(r *replay) { r.out["squeue --json"] = r.out["squeue --json"][:5000] }, live.ErrUnsupported,
			"no JSON of Slurm"},
		"another document": {func(r *replay) { r.out["squeue --json"] = `{"jobs": []}` }, live.ErrUnsupported,
			"no document of Slurm"},
		"jobs without IDs": {func(r *replay) { r.change(t, "squeue --json", `"job_id"`, `"id_of_job"`) }, live.ErrUnsupported,
			"without job_id"},
		"a number": {func(r *replay) { r.change(t, "squeue --json", `"node_count": 2`, `"node_count": "many"`) },
			live.ErrUnsupported, "want a number"},
		"an unknown node": {func(r *replay) { r.change(t, "sinfo -a --json", `"name": "g0"`, `"name": "g9"`) },
			live.ErrUnsupported, `node "g0", which is not among the nodes`},
		"no rights": {func(r *replay) {
			r.fails["squeue --json"] = &ExitError{"squeue", 1, "slurm_load_jobs error: Access/permission denied"}
		}, live.ErrDenied, "permission denied"},
	} {
		r := recorded(t, "22.05")
		c.change(r)
		s, err := r.cluster(Options{}).Observe(t.Context())
		if s != nil || err == nil || c.kind != nil && !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := recorded(t, "22.05")
	if _, err := r.cluster(Options{MaxJobs: 5}).Observe(t.Context()); !errors.Is(err, live.ErrUnsupported) ||
		!strings.Contains(err.Error(), "more than 5 jobs") {
		t.Errorf("too many jobs: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := New(Exec{}, Options{}).Observe(ctx); err == nil {
		t.Error("a context that has ended is not seen")
	}
}

// A machine with two types of GPUs is two nodes, and a job on both has two places there.
func TestSeveralTypesOnANode(t *testing.T) {
	r := recorded(t, "22.05")
	r.change(t, "sinfo -a --json", `"gres": "gpu:v100:8"`, `"gres": "gpu:v100:6(S:0),gpu:h100:2(S:1)"`)
	r.change(t, "squeue --json", `"gpu:v100:2(IDX:0-1)"`, `"gpu:v100:1(IDX:0),gpu:h100:1(IDX:6)"`)
	s, err := r.cluster(Options{}).Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range s.Nodes {
		if strings.HasPrefix(n.Name, "g3") {
			nodes = append(nodes, fmt.Sprint(n.Name, " ", n.GPUType, " ", n.GPUs, " ", n.CPUMilli))
		}
	}
	if want := []string{"g3 v100 6 48000", "g3+h100 h100 2 16000"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes %v, want %v", nodes, want)
	}
	want := []live.Place{{Node: "g3", GPUs: 1, Index: []int{0}}, {Node: "g3+h100", GPUs: 1, Index: []int{6}}}
	if j := s.Job("53"); j == nil || !reflect.DeepEqual(j.Places, want) {
		t.Errorf("%+v, want places %v", j, want)
	}
}

// A comment that any user may write does not make a job ours, for that would let users have held jobs released.
func TestMarksOfUsersAreNotBelieved(t *testing.T) {
	forged := record{user: "bob", comment: "clustergym:hold", priority: 0}
	if m := forged.mark(""); m.kind != "" {
		t.Errorf("an operator believes %+v", m)
	}
	if m := forged.mark("ann"); m.kind != "" {
		t.Errorf("ann believes %+v", m)
	}
	if m := forged.mark("bob"); m.kind != markHold || m.admin {
		t.Errorf("bob finds %+v", m)
	}
}

func TestMarksLeaveOthersWordsAlone(t *testing.T) {
	for text, want := range map[string]mark{
		"":                                    {},
		"clustergym:hold":                     {kind: "hold", admin: true},
		"clustergym:start;on=g1;not=":         {kind: "start", pinned: true, on: "g1", admin: true},
		"clustergym:start;on=g[1-2],h;not=g3": {kind: "start", pinned: true, on: "g[1-2],h", excluded: "g3", admin: true},
		"see ticket 5 clustergym:hold":        {kind: "hold", rest: "see ticket 5", admin: true},
		"a clustergym:hold b":                 {kind: "hold", rest: "a b", admin: true},
		"notclustergym:hold":                  {},
		"clustergym:holds":                    {},
		"clustergym:":                         {},
		"clustergym:hold;on=g1;not= and then by hand": {kind: "hold", pinned: true, on: "g1", rest: "and then by hand",
			admin: true},
	} {
		r := record{admin: text}
		got := r.mark("")
		if got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
		again := record{admin: got.text()}
		if got.kind != "" && again.mark("") != got {
			t.Errorf("%q: written as %q, which reads %+v", text, got.text(), again.mark(""))
		}
	}
}

// A job that has ended and whose epilog has not is no running job, by JSON and as text. Slurm starts nothing on its
// nodes meanwhile, so after a minute they count as down.
func TestANodeThatAJobDoesNotLeave(t *testing.T) {
	for _, since := range []time.Duration{5 * time.Second, 2 * time.Minute} {
		end := recordedAt.Add(-since).Unix()
		var texts []string
		for _, text := range []bool{false, true} {
			r := recorded(t, "22.05")
			r.change(t, "squeue --json", `"gres_detail": ["gpu:v100:2(IDX:0-1)"]`, `"gres_detail": []`)
			r.changeBetween(t, "squeue --json", `"job_id": 53,`, "\n", `"job_state": "RUNNING"`, `"job_state": "COMPLETING"`)
			// the last one counts
			r.changeBetween(t, "squeue --json", `"job_id": 53,`, "\n", `"start_time": 1795682463`,
				fmt.Sprintf(`"start_time": 1795682463, "end_time": %d`, end))
			r.changeBetween(t, "scontrol -d show job", "JobId=53 ", "\n\n", "JobState=RUNNING", "JobState=COMPLETING")
			r.changeBetween(t, "scontrol -d show job", "JobId=53 ", "\n\n", "EndTime=1795686063", fmt.Sprintf("EndTime=%d", end))
			r.changeBetween(t, "scontrol -d show job", "JobId=53 ", "\n\n", "GRES=gpu:v100:2(IDX:0-1)", "GRES=")
			s, err := r.cluster(Options{Text: text}).Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, printed(s))
			i := slices.IndexFunc(s.Ended, func(j live.Job) bool { return j.ID == "53" })
			if s.Job("53") != nil || i < 0 || s.Ended[i].GPUs != 2 || s.Ended[i].End.Unix() != end ||
				s.Ended[i].Status != traces.StatusUnknown {
				t.Errorf("text %v, %v: the job is %+v, and among those that have ended number %d", text, since, s.Job("53"), i)
			}
			for _, n := range s.Nodes {
				if long := since > longCompleting; n.Name == "g3" &&
					(n.Down != long || strings.HasPrefix(n.Why, "completing: job 53 has ended") != long) {
					t.Errorf("text %v, %v: node g3 is %+v", text, since, n)
				}
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("JSON\n%s\ntext\n%s", texts[0], texts[1])
		}
	}
}

// A node that shows fewer GPUs than jobs hold there is down, and has those.
func TestANodeThatShowsFewerGPUs(t *testing.T) {
	for gres, want := range map[string]live.Node{
		`"gres": "gpu:a100:4"`: {GPUs: 8, GPUType: "a100", Why: "it shows 4 GPUs, and jobs hold 8"},
		`"gres": ""`:           {GPUs: 8, Why: "it shows 0 GPUs, and jobs hold 8"},
	} {
		r := recorded(t, "22.05")
		r.change(t, "sinfo -a --json", `"gres": "gpu:a100:8"`, gres)
		s, err := r.cluster(Options{}).Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := s.Nodes[0]; n.GPUs != want.GPUs || n.GPUType != want.GPUType || !n.Down || !n.Short || n.Why != want.Why {
			t.Errorf("%s: %+v", gres, n)
		}
	}
}

// Slurm may count GPUs as taken that no job holds, and starts nothing on them. A node on which it does so twice is
// down, but not one that a job has just left.
func TestGPUsThatSlurmHasLost(t *testing.T) {
	for name, x := range map[string]struct {
		left bool
		want string
	}{"lost": {false, "Slurm counts 4 GPUs as taken, and jobs hold 2; scontrol reconfigure has it count anew"},
		"a job has just left": {true, ""}} {
		r := recorded(t, "22.05")
		r.changeBetween(t, "squeue --json", `"job_id": 53,`, "\n", `"job_state": "RUNNING"`, `"job_state": "COMPLETED"`)
		end := recordedAt.Add(-2 * time.Minute)
		if x.left {
			end = recordedAt.Add(-time.Second)
		}
		r.changeBetween(t, "squeue --json", `"job_id": 53,`, "\n", `"start_time": 1795682463`,
			fmt.Sprintf(`"start_time": 1795682463, "end_time": %d`, end.Unix()))
		for _, id := range []string{"63", "64"} { // tasks that ended on g3 half a minute ago
			r.changeBetween(t, "squeue --json", `"job_id": `+id+",", "\n", `"start_time": 1795682463`,
				`"start_time": 1795682463, "end_time": 1795682464`)
		}
		c := r.cluster(Options{})
		for look := range 2 {
			s, err := c.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range s.Nodes {
				if n.Name != "g3" && n.Name != "g2" && n.Down ||
					n.Name == "g3" && (n.Down != (look == 1 && x.want != "") || look == 1 && n.Why != x.want) {
					t.Errorf("%s, look %d: %+v", name, look, n)
				}
			}
		}
	}
}
