package rlscheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/recorded"
	"clustergym/traces"
	"clustergym/traces/swf"
)

// log reads a log of 256 processors.
func log(t testing.TB, name string) []Job {
	t.Helper()
	r, err := swf.NewReader(recorded.Open(t, "traces/swf/"+name+".gz"), name, swf.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := traces.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	jobs := Jobs(all, 256)
	if len(jobs) != 10000 {
		t.Fatalf("%d jobs, want 10000", len(jobs))
	}
	return jobs
}

func longest(jobs []Job) (most int64) {
	for i := range jobs {
		most = max(most, jobs[i].Run)
	}
	return most
}

// Every decision of the published agent on the ten windows, without and with back-filling: the job, how many wait and
// the clock agree at every step, the starts and all visible rows to the last bit, and the bounded slowdown.
func TestThePublishedDecisions(t *testing.T) {
	const set = "groundtruth/rlscheduler_agent/"
	decisions := map[string][]map[string]string{}
	for _, r := range recorded.Rows(t, set+"decisions.csv.gz") {
		key := r["backfill"] + " " + r["start_index"]
		decisions[key] = append(decisions[key], r)
	}
	jobs := log(t, "lublin_256.swf")
	published := map[string]map[string]string{}
	for _, r := range recorded.Rows(t, set+"published_windows.csv") {
		published[r["workload"]+" "+r["backfill"]+" "+r["start_index"]] = r
	}
	shown := map[string][]map[string]string{}
	for _, r := range recorded.Rows(t, set+"observations.csv.gz") {
		key := r["backfill"] + " " + r["start_index"] + " " + r["step"]
		shown[key] = append(shown[key], r)
	}
	played, whole128 := 0, 0
	for _, want := range recorded.Rows(t, set+"hashes.csv") {
		if want["workload"] != "lublin_256.swf" {
			continue
		}
		played++
		key := want["backfill"] + " " + want["start_index"]
		t.Run(key, func(t *testing.T) {
			from := recorded.Whole(t, want["start_index"])
			window := jobs[from : from+1024]
			m := NewMachine(256, want["backfill"] == "1")
			starts := make([]int64, len(window))
			m.OnStart = func(job int, at int64) { starts[job] = at }
			m.Reset(window)
			o := Observer{Longest: longest(jobs)}
			ids, seen := sha256.New(), sha256.New()
			row := make([]float32, Features)
			steps := decisions[key]
			for i, d := range steps {
				if m.Done() {
					t.Fatalf("all jobs have started before step %d", i)
				}
				if got, want := m.Now(), recorded.Whole(t, d["now"]); got != want {
					t.Fatalf("step %d: the clock is %d, want %d", i, got, want)
				}
				if got, want := m.Waiting(), int(recorded.Whole(t, d["waiting"])); got != want {
					t.Fatalf("step %d: %d jobs wait, want %d", i, got, want)
				}
				slots := o.Look(m)
				for k, place := range slots {
					j := m.Job(place)
					o.Row(m, j, row)
					for _, x := range row {
						var b [4]byte
						binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
						seen.Write(b[:])
					}
					if all, ok := shown[key+" "+d["step"]]; ok {
						r := all[k]
						if r["job_id"] != j.ID || int(recorded.Whole(t, r["slot"])) != k || len(all) != len(slots) {
							t.Fatalf("step %d, slot %d of %d: job %s, want %s of %d", i, k, len(slots), j.ID, r["job_id"], len(all))
						}
						for f, name := range []string{"wait", "request", "procs", "memory", "user", "group", "executable", "can_start"} {
							if v := float32(recorded.Number(t, r[name])); v != row[f] {
								t.Fatalf("step %d, slot %d: %s is %v, want %v", i, k, name, row[f], v)
							}
						}
						whole128++
					}
				}
				place := slots[recorded.Whole(t, d["slot"])]
				j := m.Job(place)
				if j.ID != d["job_id"] {
					t.Fatalf("step %d: job %s, want %s", i, j.ID, d["job_id"])
				}
				fmt.Fprintf(ids, "%s\n", j.ID)
				m.Commit(place)
			}
			if !m.Done() || m.Started() != 1024 || len(steps) != int(recorded.Whole(t, want["decisions"])) {
				t.Fatalf("%d jobs have started after %d decisions, want 1024 after %s", m.Started(), len(steps), want["decisions"])
			}
			for _, text := range []string{want["bsld"], published["lublin_256.swf "+key]["rl"]} {
				if math.Abs(m.Mean()-recorded.Number(t, text)) > 5.1e-7 {
					t.Errorf("bounded slowdown %.6f, want %s", m.Mean(), text)
				}
			}
			all := sha256.New()
			for i, at := range starts {
				fmt.Fprintf(all, "%s,%d\n", window[i].ID, at)
			}
			for name, h := range map[string][]byte{"job_ids_sha256": ids.Sum(nil), "starts_sha256": all.Sum(nil),
				"observations_sha256": seen.Sum(nil)} {
				if got := hex.EncodeToString(h); got != want[name] {
					t.Errorf("%s is %s, want %s", name, got, want[name])
				}
			}
		})
	}
	if played != 20 || whole128 == 0 {
		t.Errorf("%d windows and %d rows of whole observations, want 20 windows", played, whole128)
	}
}

// Every rule of the published tables and those beside them, window by window, on both logs.
func TestThePublishedRules(t *testing.T) {
	raced.Alone(t)
	logs := map[string][]Job{"lublin_256.swf": log(t, "lublin_256.swf"), "lublin_256_new2": log(t, "lublin_256_new2.swf")}
	sums := map[string]float64{}
	played := 0
	for _, file := range []string{"published_windows.csv", "lublin_256_more_rules.csv"} {
		for _, r := range recorded.Rows(t, "groundtruth/rlscheduler_agent/"+file) {
			jobs := logs[r["workload"]]
			from := recorded.Whole(t, r["start_index"])
			m := NewMachine(256, r["backfill"] == "1")
			for _, name := range Rules() {
				text, ok := r[name]
				if !ok {
					continue
				}
				rule, err := NewRule(name)
				if err != nil {
					t.Fatal(err)
				}
				m.Reset(jobs[from : from+1024])
				got := Play(m, rule)
				played++
				sums[r["workload"]+" "+r["backfill"]+" "+name] += got / 10
				if math.Abs(got-recorded.Number(t, text)) > 5.1e-7 {
					t.Errorf("%s, window at %d, back-filling %s: %s has %.6f, want %s", r["workload"], from, r["backfill"], name, got,
						text)
				}
			}
		}
	}
	if want := 40*5 + 20*7; played != want {
		t.Errorf("%d figures, want %d", played, want)
	}
	for key, want := range map[string]string{
		"lublin_256.swf 0 fcfs": "7273.77", "lublin_256.swf 0 sjf": "277.35", "lublin_256.swf 0 f1": "258.37",
		"lublin_256.swf 0 wfp3-rlscheduler": "19753.53",
		"lublin_256.swf 0 smallest-area":    "292.88", "lublin_256.swf 1 smallest-area": "54.00",
		"lublin_256.swf 1 f4":    "53.64",
		"lublin_256_new2 0 fcfs": "7842.47", "lublin_256_new2 0 f1": "698.34", "lublin_256_new2 1 sjf": "91.99",
		"lublin_256_new2 1 unicep-rlscheduler": "379.59",
	} {
		if got := fmt.Sprintf("%.2f", sums[key]); got != want {
			t.Errorf("%s: mean %s of ten windows, published is %s", key, got, want)
		}
	}
}
