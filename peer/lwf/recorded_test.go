package lwf

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"clustergym/internal/recorded"
)

// runs is the folder of the per-job results of the authors' program.
const runs = "groundtruth/lwf/"

// clusters are the nodes and GPUs of the recorded job sets.
var clusters = map[string][2]int{
	"a2_alone": {16, 4}, "b2_small_large": {3, 2}, "d5_chain": {8, 2}, "f20_queue": {1, 2}, "h20_mixed": {4, 4},
	"j60_dense": {8, 4},
	"ms160_s1":  {16, 4}, "ms160_s3": {16, 4},
}

func workload(t testing.TB, set string) []Job {
	t.Helper()
	jobs, err := ReadJobs(recorded.Open(t, runs+set+".csv"), set+".csv")
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// machine returns a machine for a recorded run.
func machine(t testing.TB, set, algorithm, variant string) *Machine {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Nodes, cfg.GPUs, cfg.Question = clusters[set][0], clusters[set][1], variant
	if err := cfg.SetAlgorithm(algorithm); err != nil {
		t.Fatal(err)
	}
	m, err := NewMachine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gpus formats the GPUs of a job as the recorded results do.
func gpus(list []int32, perNode int) string {
	var words []string
	for _, g := range list {
		words = append(words, fmt.Sprintf("%d.%d", int(g)/perNode, int(g)%perNode))
	}
	return strings.Join(words, " ")
}

// Every job of every recorded run is placed, begins and ends in the same millisecond, on the same GPUs.
func TestEveryRecordedJob(t *testing.T) {
	sums := map[string][]map[string]string{}
	for _, sum := range recorded.Rows(t, runs+"summary.csv") {
		sums[sum["case"]] = append(sums[sum["case"]], sum)
	}
	for set, size := range clusters {
		t.Run(set, func(t *testing.T) {
			jobs := workload(t, set)
			at := map[string]int{}
			for i := range jobs {
				at[jobs[i].Name] = i
			}
			results := map[string][]map[string]string{}
			for _, row := range recorded.Rows(t, runs+set+"_expected.csv.gz") {
				key := row["algo"] + " " + row["variant"]
				results[key] = append(results[key], row)
			}
			for _, sum := range sums[set] {
				key := sum["algo"] + " " + sum["variant"]
				want := results[key]
				if len(want) != len(jobs) {
					t.Fatalf("%s: %d recorded jobs, want %d", key, len(want), len(jobs))
				}
				m := machine(t, set, sum["algo"], sum["variant"])
				given := map[int][]int32{}
				for _, row := range want {
					var list []int32
					for _, word := range strings.Fields(row["gpus_in_worker_order"]) {
						node, gpu, _ := strings.Cut(word, ".")
						list = append(list, int32(recorded.Whole(t, node))*int32(size[1])+int32(recorded.Whole(t, gpu)))
					}
					given[at[row["job"]]] = list
				}
				if m.cfg.Place == "random" {
					m.Give(func(job int) []int32 { return given[job] })
				}
				got, err := m.Run(t.Context(), jobs, nil)
				if err != nil {
					t.Fatal(err)
				}
				wrong := 0
				for _, row := range want {
					r := got.Jobs[at[row["job"]]]
					now := fmt.Sprintf("placed %d, first task %d, finish %d, nodes %d, GPUs %s", r.Placed, r.First, r.Finish, r.Nodes,
						gpus(r.GPUs, size[1]))
					was := fmt.Sprintf("placed %s, first task %s, finish %s, nodes %s, GPUs %s", row["placed_ms"],
						row["first_task_ms"], row["finish_ms"], row["nodes"], row["gpus_in_worker_order"])
					if now != was {
						if wrong++; wrong <= 3 {
							t.Errorf("%s, job %s: %s\nrecorded %s", key, row["job"], now, was)
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%s: %d of %d jobs differ", key, wrong, len(jobs))
				}
				if v := fmt.Sprintf("%.6f", got.MeanJCT(jobs)); v != sum["mean_jct_ms"] {
					t.Errorf("%s: mean JCT %s, recorded %s", key, v, sum["mean_jct_ms"])
				}
				if got.Steps != recorded.Whole(t, sum["peer_total_ms"]) || got.Busy != recorded.Whole(t, sum["gpu_busy_ms"]) {
					t.Errorf("%s: %d steps and %d ms of computing, recorded %s and %s", key, got.Steps, got.Busy, sum["peer_total_ms"],
						sum["gpu_busy_ms"])
				}
				if got.Questions != recorded.Whole(t, sum["adadual_queries"]) {
					t.Errorf("%s: %d questions, recorded %s", key, got.Questions, sum["adadual_queries"])
				}
				if v := recorded.Number(t, sum["phantom_mb"]); math.Abs(v-got.Moved) > 2e-3 {
					t.Errorf("%s: questions moved %.3f MB, recorded %.3f", key, got.Moved, v)
				}
			}
			if len(sums[set]) != len(results) {
				t.Errorf("%d runs, recorded %d", len(sums[set]), len(results))
			}
		})
	}
	played, compared := 0, int64(0)
	for set := range clusters {
		for _, sum := range sums[set] {
			played++
			compared += recorded.Whole(t, sum["jobs"])
		}
	}
	if played != 235 || compared != 8215 {
		t.Errorf("%d runs of %d jobs, want 235 of 8215", played, compared)
	}
}

// The course of small runs: every task, and the begin and end of every transfer, in the recorded order.
func TestEveryRecordedEvent(t *testing.T) {
	files, err := filepath.Glob(recorded.Path(t, runs+"events/*.csv.gz"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d recorded courses, want 7: %v, %v", len(files), files, err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			parts := strings.Split(name, ".")
			m := machine(t, parts[0], parts[1], parts[2])
			var got []string
			_, err := m.Run(t.Context(), workload(t, parts[0]), func(e *Event) {
				switch e.Kind {
				case Forward, Backward:
					got = append(got, fmt.Sprintf("%d,%d,%s,%d,%d,%d,%d", e.At, e.Job, e.Kind, e.Iteration, e.Worker, e.Node, e.GPU))
				case SendStart, SendEnd:
					got = append(got, fmt.Sprintf("%d,%d,%s,%d,,,", e.At, e.Job, e.Kind, e.Iteration))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(recorded.Open(t, runs+"events/"+name))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Fields(string(text))[1:]
			if len(got) != len(want) {
				t.Errorf("%d events, recorded %d", len(got), len(want))
			}
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("event %d is %s, recorded %s", i, got[i], want[i])
				}
			}
		})
	}
}
