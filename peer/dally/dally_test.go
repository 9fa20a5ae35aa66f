package dally

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"clustergym/internal/recorded"
	"clustergym/internal/rng"
)

// generated returns a small workload that keeps a cluster of 2x2 busy: gangs of many sizes, with equal jobs among
// them, so that blocks end at equal times.
func generated(seed uint64, n int) []Job {
	r := rand.New(rng.Source(seed, "dally/test"))
	sizes := []int{1, 1, 2, 2, 3, 4, 8, 12, 16, 24, 32}
	times := []float64{0.125, 0.25, 0.3}
	jobs := make([]Job, n)
	at := 0.0
	for i := range jobs {
		if r.IntN(3) > 0 {
			at += float64(r.IntN(4000))
		}
		jobs[i] = Job{
			ID: int64(1000 - i), Name: fmt.Sprint(1000 - i), Arrival: at, GPUs: sizes[r.IntN(len(sizes))],
			Model:      Models()[r.IntN(6)],
			Iterations: float64(1 + r.IntN(2_000_000)), Time: times[r.IntN(len(times))],
		}
	}
	return jobs
}

func TestSkippingQuietBlocksChangesNothing(t *testing.T) {
	for seed := range uint64(6) {
		jobs := generated(seed, 120)
		for _, policy := range []string{"dally", "tiresias"} {
			for _, variant := range Variants() {
				cfg := DefaultConfig()
				cfg.Racks, cfg.Machines, cfg.Policy, cfg.Variant = 2, 2, policy, variant
				var logs [2][]string
				var reports [2]*Report
				for k, eager := range []bool{false, true} {
					var err error
					reports[k], err = run(context.Background(), jobs, Slow(), cfg, func(e *Event) {
						logs[k] = append(logs[k], fmt.Sprint(*e))
					}, eager)
					if err != nil {
						t.Fatal(err)
					}
				}
				if !reflect.DeepEqual(reports[0], reports[1]) || !reflect.DeepEqual(logs[0], logs[1]) {
					t.Errorf("seed %d, %s %s: another run than with an event for every block", seed, policy, variant)
				}
			}
		}
	}
}

// Two jobs of two GPUs on one machine, 25,000 iterations each, blocks of 10,000 on each GPU, 0.1 s an iteration. They
// fit beside each other, a slot each: factor 1/(1+t) of Rings with 4 bytes at 8 bytes/s, 2·1/2·4/8 = 0.5 s against 0.5
// s of compute: 1/2. A block takes 0.1/0.5·10,000 = 2000 s and does 20,000 iterations: two blocks, the first ends at
// 2000 with 5000 left. The lease of 3600 s has not expired then, and 2000 + 0.1·10,000/0.5/2 = 3000 does not exceed it:
// the second block runs to 4000, beyond the lease.
func TestTwoJobsWorkedByHand(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Racks, cfg.Machines = 1, 1
	net := Rings{Bandwidth: [6]float64{8, 8, 8, 8, 8, 8}}
	jobs := []Job{
		{ID: 1, Name: "1", GPUs: 2, Model: "x", Iterations: 25000, Time: 0.1, Compute: 0.5, Bytes: 4},
		{ID: 2, Name: "2", Arrival: 100, GPUs: 2, Model: "x", Iterations: 25000, Time: 0.1, Compute: 0.5, Bytes: 4},
	}
	r, err := Run(context.Background(), jobs, net, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{
		{First: 0, End: 4000, GPUTime: 4000, CompTime: 2000, Grants: [Levels]int{0, 1}},
		{First: 100, End: 4100, GPUTime: 4000, CompTime: 2000, Grants: [Levels]int{0, 1}},
	}
	if !reflect.DeepEqual(r.Jobs, want) {
		t.Errorf("got %v\nwant %v", r.Jobs, want)
	}
	tot := r.Totals(jobs)
	if tot.Makespan != 4100 || tot.MeanJCT != 4000 || tot.CommTime != 4000 || r.Blocks != 4 {
		t.Errorf("got totals %+v and %d blocks", tot, r.Blocks)
	}
}

func TestMachinesAreVisitedInTheOrderOfTheHashMap(t *testing.T) {
	for _, c := range []struct {
		racks, machines int
		want            string
	}{
		{2, 4, "1.3 0.2 1.0 0.1 1.2 0.3 1.1 0.0"},
		{4, 4, "3.0 0.3 1.2 2.1 3.1 0.2 1.3 2.0 3.2 0.1 1.0 2.3 3.3 0.0 1.1 2.2"},
		{8, 4, "7.0 6.1 4.3 5.2 7.1 6.0 4.2 5.3 2.3 1.0 0.1 3.2 7.3 6.2 4.0 5.1 2.1 1.2 0.3 3.0 2.0 1.3 0.2 3.1 7.2 6.3 4.1 5.0 2.2 1.1 0.0 3.3"},
	} {
		s := search{c: newCluster(c.racks, c.machines)}
		var got []string
		for _, m := range s.machineOrder().keys {
			got = append(got, fmt.Sprintf("%d.%d", int(m)/c.machines, int(m)%c.machines))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%dx%d: %v", c.racks, c.machines, got)
		}
	}
	s := search{c: newCluster(2, 4)}
	var got []string
	for _, k := range s.slotOrder().keys {
		got = append(got, fmt.Sprintf("%d.%d.%d", k/8, k/2%4, k%2))
	}
	if strings.Join(got, " ") !=
		"1.3.1 1.2.0 0.2.1 0.3.0 1.3.0 1.2.1 0.2.0 0.3.1 0.0.1 0.1.0 1.0.0 1.1.1 0.0.0 0.1.1 1.0.1 1.1.0" {
		t.Errorf("slots of 2x4: %v", got)
	}
}

func TestTheShuffleIsJavas(t *testing.T) {
	list := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	r := newJavaRandom(0)
	r.shuffle(list)
	if !reflect.DeepEqual(list, []int32{4, 8, 9, 6, 3, 5, 2, 1, 7, 0}) {
		t.Errorf("got %v", list)
	}
}

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		n, racks, machines, slots int
		want                      string
	}{
		{4, 1, 1, 1, "4|-1|-1|-1|-1|-1"},
		{8, 1, 1, 2, "4|-1|-1|2|-1|-1"},
		{2, 1, 1, 2, "-1|-1|-1|2|-1|-1"},
		{3, 1, 1, 2, "-1|-1|-1|3|-1|-1"},
		{8, 1, 2, 2, "2|-1|-1|2|2|-1"},
		{16, 1, 3, 4, "-1|-1|-1|-1|16|-1"},
		{16, 2, 3, 5, "-1|-1|-1|-1|8|2"},
		{4, 3, 3, 3, "-1|-1|-1|-1|-1|4"},
		{2, 2, 2, 2, "-1|-1|-1|-1|1|2"},
	} {
		s := shapeOf(c.n, c.racks, c.machines, c.slots)
		if s.String() != c.want {
			t.Errorf("%d GPUs on %d racks, %d machines, %d slots: %v, want %s", c.n, c.racks, c.machines, c.slots, s, c.want)
		}
		if back, err := ParseShape(c.want); err != nil || back != s {
			t.Errorf("%s reads as %v, %v", c.want, back, err)
		}
	}
}

func TestTheSlowNetworkIsTheRecordedTable(t *testing.T) {
	n := 0
	for _, row := range recorded.Rows(t, runs+"factors.csv") {
		if row["net"] != "slow" {
			continue
		}
		s, err := ParseShape(row["shape"])
		if err != nil {
			t.Fatal(err)
		}
		got, err := Slow().Factor(&Job{Model: row["model"]}, s)
		if want := recorded.Number(t, row["factor"]); err != nil || got != want {
			if n++; n < 6 {
				t.Errorf("%s %s: %v, recorded %v (%v)", row["model"], row["shape"], got, want, err)
			}
		}
	}
	if n > 0 {
		t.Errorf("%d factors differ", n)
	}
}

func TestGPUsAreLeasedToOneJobAtATime(t *testing.T) {
	for _, cfg := range []Config{
		{Policy: "dally", Variant: "waiting-only"}, {Policy: "dally", Variant: "published"},
		{Policy: "tiresias", Variant: "waiting-only"},
		{Policy: "tiresias", Variant: "published"}, {Policy: "gandiva", Variant: "published"},
	} {
		d := DefaultConfig()
		d.Racks, d.Machines, d.Policy, d.Variant = 2, 2, cfg.Policy, cfg.Variant
		jobs := generated(9, 80)
		ended, started := 0, map[int]bool{}
		held := map[int32]int{}
		_, err := Run(context.Background(), jobs, Slow(), d, func(e *Event) {
			switch e.Kind {
			case Start, Second:
				if len(e.GPUs) != jobs[e.Job].GPUs {
					t.Fatalf("%s: %d GPUs for a job of %d", d.Policy, len(e.GPUs), jobs[e.Job].GPUs)
				}
				for _, g := range e.GPUs {
					if e.Kind == Start && d.Variant == "waiting-only" {
						if o, ok := held[g]; ok {
							t.Fatalf("GPU %d of job %d is given to %d", g, o, e.Job)
						}
						held[g] = e.Job
					}
				}
				started[e.Job] = true
			case Preempt, Finish:
				for _, g := range e.GPUs {
					delete(held, g)
				}
				if e.Kind == Finish {
					ended++
				}
			}
		})
		if err != nil || ended != len(jobs) || len(started) != len(jobs) {
			t.Errorf("%s %s: %d of %d ended (%v)", d.Policy, d.Variant, ended, len(jobs), err)
		}
	}
}

func TestWhatIsWrongWithFilesIsSaidInOneSentence(t *testing.T) {
	const header = "job,arrival,gpus,model,iterations,time_per_iteration\n"
	for _, c := range []struct{ text, want string }{
		{"", `w.csv:1: got "", want a header with job, arrival, gpus, model, iterations, time_per_iteration`},
		{"job,arrival\n", `w.csv:1: got "job,arrival", want a header with also gpus, model, iterations, time_per_iteration`},
		{header, "w.csv: no jobs"},
		{header + "7,-1,2,VGG,10,0.5\n", `w.csv:2: arrival: got "-1", want a number of 0 or more`},
		{header + "7,1,two,VGG,10,0.5\n", `w.csv:2: gpus: got "two", want a whole number from 1 to 1073741824`},
		{header + "7,1,2,VGG,10,0\n", `w.csv:2: time_per_iteration: got "0", want a number above 0`},
		{header + "7,1,2,,10,1\n", `w.csv:2: model: got "", want a name`},
		{header + "7,1,2\n", `w.csv:2: got "3 fields", want 6, as in the header`},
	} {
		if _, err := ReadJobs(strings.NewReader(c.text), "w.csv"); err == nil || err.Error() != c.want {
			t.Errorf("%q: got %v\nwant %s", c.text, err, c.want)
		}
	}
	const factors = "net,model,shape,factor\nslow,VGG,2|-1|-1|-1|-1|-1,0.5\nfast,VGG,2|-1|-1|-1|-1|-1,0.9\n"
	if _, _, err := ReadFactors(strings.NewReader(factors), "f.csv", ""); err == nil ||
		err.Error() != "f.csv has networks slow, fast, want the name of one" {
		t.Error(err)
	}
	bad := strings.Replace(factors, "0.5", "1.5", 1)
	if _, _, err := ReadFactors(strings.NewReader(bad), "f.csv", "slow"); err == nil ||
		err.Error() != `f.csv:2: factor: got "1.5", want a share above 0 and up to 1` {
		t.Error(err)
	}
	table, _, err := ReadFactors(strings.NewReader(factors), "f.csv", "slow")
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	jobs := []Job{{ID: 1, Name: "1", GPUs: 4, Model: "VGG", Iterations: 1e6, Time: 1}}
	_, err = Run(context.Background(), jobs, table, cfg, nil)
	if err == nil || !strings.Contains(err.Error(), "has none of network slow, model VGG and shape 4|-1|-1|-1|-1|-1") {
		t.Error(err)
	}
	jobs[0].GPUs = 1000
	_, err = Run(context.Background(), jobs, table, cfg, nil)
	if err == nil || err.Error() != "job 1: got gpus 1000, want 1 to the 128 of 4 racks of 4 machines of 8" {
		t.Error(err)
	}
}

func BenchmarkRecordedBatch(b *testing.B) {
	jobs, net := workload(b, "batch500"), network(b, "slow")
	for _, policy := range []string{"dally", "tiresias"} {
		b.Run(policy, func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Policy = policy
			blocks := int64(0)
			for b.Loop() {
				r, err := Run(context.Background(), jobs, net, cfg, nil)
				if err != nil {
					b.Fatal(err)
				}
				blocks += r.Blocks
			}
			b.ReportMetric(float64(blocks)/b.Elapsed().Seconds(), "blocks/s")
			b.ReportMetric(float64(len(jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
