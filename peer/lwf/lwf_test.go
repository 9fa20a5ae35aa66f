package lwf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

// two are the jobs that share one node's link but no GPU: workers 0.0 0.1 1.0 and 1.1 2.0 2.1 on three nodes of two
// GPUs.
func two() []Job {
	return []Job{
		{Name: "large", Workers: 3, Model: "vgg16", Iterations: 4, Size: 526.4, Forward: 36, Backward: 54, Memory: 4527},
		{Name: "small", Arrival: 1, Workers: 3, Model: "resnet50", Iterations: 12, Size: 99.2, Forward: 25, Backward: 37,
			Memory: 3213},
	}
}

func play(t testing.TB, nodes, gpus int, algorithm, question string, jobs []Job, hook func(*Event)) *Report {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Nodes, cfg.GPUs, cfg.Question = nodes, gpus, question
	if err := cfg.SetAlgorithm(algorithm); err != nil {
		t.Fatal(err)
	}
	m, err := NewMachine(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), jobs, hook)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The transfers of two by hand. The small one is ready at 63 and takes 99.2 · 0.856 = 84.9 ms alone, the large one at
// 90 and takes 526.4 · 0.856 = 450.6 ms. An iteration computes 62 and 90 ms.
func TestTwoTransfersByHand(t *testing.T) {
	for _, c := range []struct {
		algorithm, question string
		want                string // begins (<) and ends (>) of transfers of the small (s) and the large (l) job
	}{
		// Nobody begins beside another: the large one at 148, when the small one has gone.
		{"ssf-lwf32-srsf-0-false", "pure", "s<63 s>148 l<148 l>599 s<599 s>684 l<689 l>1140"},
		// At 90 the small one has 99.2 − 27/0.856 = 67.66 MB left; two beside each other need 1.947 ms/MB: 131.7 ms.
		{"ssf-lwf32-srsf-1-false", "pure", "s<63 l<90 s>222"},
		// At 90: 67.66/526.4 = 0.13 is below 2.549, so the large one waits. At 210 the large one has 453.97 MB left, 4.58
		// times the 99.2 MB of the small one, which begins beside it and needs 99.2 · 1.947 = 193.1 ms.
		{"ssf-lwf32-srsf-1-true", "pure", "s<63 s>148 l<148 s<210 s>404 s<466 s>660"},
		// As published, the question of the large job doubles the speed of the small transfer: 67.66 MB at 2 MB in 0.856 ms.
		{"ssf-lwf32-srsf-1-true", "orig", "s<63 s>119 l<119"},
	} {
		var got []string
		play(t, 3, 2, c.algorithm, c.question, two(), func(e *Event) {
			switch e.Kind {
			case SendStart:
				got = append(got, fmt.Sprintf("%c<%d", "ls"[e.Job], e.At))
			case SendEnd:
				got = append(got, fmt.Sprintf("%c>%d", "ls"[e.Job], e.At))
			}
		})
		want := strings.Fields(c.want)
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s %s: %v, want %v …", c.algorithm, c.question, got[:min(len(want)+2, len(got))], want)
		}
	}
}

// A job alone computes its iterations, and on several nodes sends after each of them, in the next whole millisecond. It
// makes no difference whether it is on 2 or on 16 nodes.
func TestAJobAlone(t *testing.T) {
	for _, m := range Models() {
		for workers, send := range map[int]int64{1: 0, 4: 0, 5: 1, 8: 1, 64: 1} {
			j := m
			j.Workers, j.Iterations, j.Arrival = workers, 7, 100
			want := 100 + 7*(j.Forward+j.Backward+send*int64(math.Ceil(j.Size*0.856)))
			if r := play(t, 16, 4, "ssf-lwf1-srsf-1-true", "pure", []Job{j}, nil); r.Jobs[0].Finish != want ||
				r.Jobs[0].Placed != 100 || r.Jobs[0].First != 100 {
				t.Errorf("%s, %d workers: %+v, want the finish at %d", j.Model, workers, r.Jobs[0], want)
			}
		}
	}
}

// Twenty equal jobs of one worker on two GPUs with room for seven each: every other one of the queue is placed at once,
// and as many of every other one that is left as have room in the next millisecond.
func TestEveryOtherJobOfTheQueueIsPlaced(t *testing.T) {
	var jobs []Job
	for i := range 20 {
		j := Models()[0]
		j.Name, j.Iterations = fmt.Sprint(i), 2
		jobs = append(jobs, j)
	}
	r := play(t, 1, 2, "ssf-bp-srsf-0-false", "pure", jobs, nil)
	var got []int64
	for i := range jobs {
		got = append(got, r.Jobs[i].Placed)
	}
	for i, at := range got {
		switch {
		case i%2 == 0 && at != 0, i%4 == 1 && i < 16 && at != 1, i%2 == 1 && (i%4 == 3 || i >= 16) && at <= 1:
			t.Errorf("placed at %v, want every other one at 0, 1, 5, 9 and 13 at 1, the others later", got)
			return
		}
	}
}

// Two transfers of R and M on one link, M being ready when R is left of the other: their sum of ends is least if they
// overlap exactly when R/M exceeds the threshold, and no delay between at once and afterwards is better than both.
func TestTheThresholdIsThatOfTwoTransfers(t *testing.T) {
	// sum returns the sum of the ends if M begins after a delay, during which the other sends alone.
	sum := func(left, m, delay float64) float64 {
		left -= delay / perMB
		both := 2*perMB + penalty
		shared := min(left, m)
		end := delay + both*shared
		if m <= left {
			return end + (end + perMB*(left-m))
		}
		return end + (end + perMB*(m-left))
	}
	seed := testseed.Or(1)
	r := rng.Stream(seed, "test/lwf")
	for range 2000 {
		m := 1 + 600*r.Float64()
		left := m * (0.1 + 5*r.Float64())
		now, after := sum(left, m, 0), left*perMB+(left+m)*perMB
		if math.Abs(left/m-worth) > 1e-6 && (now < after) != (left/m > worth) {
			t.Fatalf("seed %d: %v MB left, %v MB new: %v ms at once, %v afterwards, threshold %v", seed, left, m, now, after,
				worth)
		}
		for k := 1; k < 20; k++ {
			if mid := sum(left, m, left*perMB*float64(k)/20); mid < min(now, after)-1e-6 {
				t.Fatalf("seed %d: %v MB left, %v MB new: %v ms after %d/20 of the wait, %v at once, %v afterwards", seed, left, m,
					mid, k, now, after)
			}
		}
	}
}

// dense returns a small workload that keeps links, GPUs and memory busy.
func dense(seed uint64, n int) []Job {
	r := rng.Stream(seed, "test/lwf/dense")
	var jobs []Job
	for i := range n {
		j := Models()[r.IntN(4)]
		j.Name, j.Workers = fmt.Sprint(i), 1+r.IntN(8)
		j.Arrival, j.Iterations = int64(r.IntN(40*n)), 1+int64(r.IntN(6))
		if r.IntN(4) == 0 {
			j.Memory = 9000
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// rules are those that the recorded runs have.
func rules() (all []string) {
	for _, place := range []string{"bp", "lwf1", "lwf4", "lwf32", "random"} {
		for _, share := range []string{"0-false", "1-false", "2-false", "1-true"} {
			all = append(all, "ssf-"+place+"-srsf-"+share)
		}
	}
	return append(all, "sf-lwf1-sf-1-true", "stf-lwf2-srtf-1-true", "blf-lwf1-srsf-1-false")
}

// A clock that goes from event to event gives the run, event by event, of one that steps by a millisecond, and a
// machine that is used again the run of a new one.
func TestTheClockMayLeapFromEventToEvent(t *testing.T) {
	seed := testseed.Or(1)
	for k, rule := range rules() {
		jobs := dense(seed+uint64(k), 24)
		for _, question := range Questions() {
			cfg := DefaultConfig()
			cfg.Nodes, cfg.GPUs, cfg.Question, cfg.Seed = 4, 2, question, seed
			if err := cfg.SetAlgorithm(rule); err != nil {
				t.Fatal(err)
			}
			m, err := NewMachine(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var logs [2][]string
			var reports [2]*Report
			for n, stepwise := range []bool{false, true} {
				m.stepwise = stepwise
				if reports[n], err = m.Run(t.Context(), jobs, func(e *Event) { logs[n] = append(logs[n], fmt.Sprint(*e)) }); err !=
					nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(logs[0], logs[1]) || math.Abs(reports[0].Moved-reports[1].Moved) > 1e-6 {
				t.Errorf("seed %d: %s %s: another run than with steps of a millisecond", seed, rule, question)
			}
		}
	}
}

// Whatever the rules, a GPU runs one task at a time, memory is not exceeded, workers are on different GPUs, every job
// does all of its tasks and transfers, and no link carries more transfers than the rule allows.
func TestWhatEveryRuleKeeps(t *testing.T) {
	const nodes, perNode = 4, 2
	seed := testseed.Or(1)
	for k, rule := range rules() {
		jobs := dense(seed+100+uint64(k), 30)
		cfg := DefaultConfig()
		cfg.Nodes, cfg.GPUs = nodes, perNode
		if err := cfg.SetAlgorithm(rule); err != nil {
			t.Fatal(err)
		}
		busy := make([]int64, nodes*perNode) // until when
		tasks, transfers := make([]int64, len(jobs)), make([]int64, len(jobs))
		links := make([]int, nodes)
		on := make([]map[int]bool, len(jobs))
		begun := map[int][]Event{}
		report := play(t, nodes, perNode, rule, "pure", jobs, func(e *Event) { begun[e.Job] = append(begun[e.Job], *e) })
		var all []Event
		for _, list := range begun {
			all = append(all, list...)
		}
		slices.SortStableFunc(all, func(a, b Event) int {
			ends := func(e Event) int {
				if e.Kind == SendEnd {
					return 0
				}
				return 1
			}
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(ends(a), ends(b)))
		})
		for i := range jobs {
			on[i] = map[int]bool{}
			gpus := map[int32]bool{}
			for _, g := range report.Jobs[i].GPUs {
				on[i][int(g)/perNode] = true
				gpus[g] = true
			}
			if len(gpus) != jobs[i].Workers || len(on[i]) != report.Jobs[i].Nodes {
				t.Fatalf("seed %d: %s: job %d of %d workers is on GPUs %v", seed, rule, i, jobs[i].Workers, report.Jobs[i].GPUs)
			}
		}
		for _, e := range all {
			switch e.Kind {
			case Forward, Backward:
				g := e.Node*perNode + e.GPU
				if busy[g] > e.At || int(report.Jobs[e.Job].GPUs[e.Worker]) != g {
					t.Fatalf("seed %d: %s: %+v, but GPU %d is busy until %d", seed, rule, e, g, busy[g])
				}
				if busy[g] = e.At + jobs[e.Job].Forward; e.Kind == Backward {
					busy[g] = e.At + jobs[e.Job].Backward
				}
				tasks[e.Job]++
			case SendStart, SendEnd:
				d := 1
				if e.Kind == SendEnd {
					d = -1
					transfers[e.Job]++
				}
				for n := range on[e.Job] {
					if links[n] += d; links[n] > cfg.Threshold+1 {
						t.Fatalf("seed %d: %s: %d transfers on node %d at %d", seed, rule, links[n], n, e.At)
					}
				}
			}
		}
		for i := range jobs {
			want := int64(0)
			if report.Jobs[i].Nodes > 1 {
				want = jobs[i].Iterations
			}
			if tasks[i] != 2*jobs[i].Iterations*int64(jobs[i].Workers) || transfers[i] != want {
				t.Errorf("seed %d: %s: job %d of %d iterations ran %d tasks and %d transfers", seed, rule, i, jobs[i].Iterations,
					tasks[i], transfers[i])
			}
			for g := range nodes * perNode {
				held := int64(0) // at the moment when i is placed
				for k := range jobs {
					r := &report.Jobs[k]
					if r.Placed <= report.Jobs[i].Placed && r.Finish > report.Jobs[i].Placed && slices.Contains(r.GPUs, int32(g)) {
						held += jobs[k].Memory
					}
				}
				if held > cfg.Memory {
					t.Errorf("seed %d: %s: %d MB on GPU %d at %d", seed, rule, held, g, report.Jobs[i].Placed)
				}
			}
		}
	}
}

func TestGeneratedWorkloads(t *testing.T) {
	a, b := Generate(Program, 1), Generate(Program, 1)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, Generate(Program, 2)) {
		t.Error("a seed is a workload, and another seed another one")
	}
	sizes := map[int]int{}
	for i := range a {
		sizes[a[i].Workers]++
		if a[i].Arrival < 0 || a[i].Arrival >= 12000 || a[i].Iterations < 10 || a[i].Iterations > 60 {
			t.Errorf("%+v", a[i])
		}
	}
	if want := map[int]int{1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("workers %v, want %v", sizes, want)
	}
}

func TestBadJobsAndConfigurationsAreNamed(t *testing.T) {
	bad := func(change func(*Job)) Job {
		j := Models()[0]
		j.Name = "seven"
		change(&j)
		return j
	}
	m, err := NewMachine(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for want, j := range map[string]Job{
		"got 65 workers, want 1 to the 64 GPUs":         bad(func(j *Job) { j.Workers = 65 }),
		"got 32769 MB of memory":                        bad(func(j *Job) { j.Memory = 32769 }),
		"got 0 iterations":                              bad(func(j *Job) { j.Iterations = 0 }),
		"got forward 0 and backward 54, want 1 to 2^20": bad(func(j *Job) { j.Forward = 0 }),
		"got a size of NaN":                             bad(func(j *Job) { j.Size = math.NaN() }),
		"got arrival -1":                                bad(func(j *Job) { j.Arrival = -1 }),
		"got 64 workers that compute for 2251799813685248 ms each, want 2^50 ms together": bad(
			func(j *Job) { j.Iterations, j.Workers, j.Forward, j.Backward = 1<<30, 64, 1<<20, 1<<20 }),
	} {
		if _, err := m.Run(t.Context(), []Job{j}, nil); err == nil || !strings.Contains(err.Error(), "job seven: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, want := range map[string]string{
		"ssf-lwf1-srsf-1":        "want ORDER-PLACE-TASKS-THRESHOLD-ADAPTIVE",
		"sff-lwf1-srsf-1-true":   "order: got \"sff\"",
		"ssf-lwf0-srsf-1-true":   "place: got \"lwf0\"",
		"ssf-lwf01-srsf-1-true":  "place: got \"lwf01\"",
		"ssf-lwf1-srsf-x-true":   `got "x", want a number`,
		"ssf-lwf1-srsf-1-yes":    `got "yes", want true or false`,
		"ssf-lwf1-srssf-1-false": "tasks: got \"srssf\"",
	} {
		cfg := DefaultConfig()
		if err := cfg.SetAlgorithm(name); err == nil || !strings.Contains(err.Error(), want) || cfg != DefaultConfig() {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	cfg := DefaultConfig()
	cfg.Threshold, cfg.Question, cfg.Nodes = 2, "pur", 0
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "adaptive") ||
		!strings.Contains(err.Error(), "question") || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("%v", err)
	}
	if err := cfg.SetAlgorithm("ssf-lwf1-srsf-2-true"); err == nil || cfg.Adaptive == false && cfg.Threshold == 3 {
		t.Errorf("the other faults stay: %v", err)
	}
	cfg = DefaultConfig()
	if err := cfg.SetAlgorithm("ssf-lwf1-srsf-2-true"); err != nil || cfg.Threshold != 2 || cfg.Adaptive {
		t.Errorf("with threshold 2 the program is not adaptive: %+v, %v", cfg, err)
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	const header = "job,arrival_ms,workers,model,iters,size_mb,fw_ms,bw_ms,mem_mb\n"
	for text, want := range map[string]string{
		"":                               `w.csv:1: got "", want a header with job, arrival_ms`,
		"job,arrival_ms\n":               `w.csv:1: got "job,arrival_ms", want a header with also workers`,
		header:                           "w.csv: no jobs",
		header + "1,0,1,a,1,1,1,1\n":     `w.csv:2: got "8 fields", want 9, as in the header`,
		header + "1,0,0,a,1,1,1,1,1\n":   `w.csv:2: workers: got "0", want a whole number from 1`,
		header + "1,0,1,a,1,NaN,1,1,1\n": `w.csv:2: size_mb: got "NaN", want a number from 0`,
		header + "1,0.5,1,a,1,1,1,1,1\n": `w.csv:2: arrival_ms: got "0.5"`,
		header + ",0,1,a,1,1,1,1,1\n":    `w.csv:2: job: got "", want a name`,
		header +
			"1,0,1048576,a,1073741824,1,1,1,1\n": `w.csv:2: iters: got "1073741824", want fewer: with the row's workers and times they compute for 2147483648 ms on each GPU`,
	} {
		if _, err := ReadJobs(strings.NewReader(text), "w.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	jobs,
		err := ReadJobs(
		strings.NewReader("\ufeffmodel,job,arrival_ms,workers,iters,size_mb,fw_ms,bw_ms,mem_mb,x\na,7,3,2,9,1.5,4,5,6,y\n"),
		"w.csv")
	if want := []Job{{Name: "7", Arrival: 3, Workers: 2, Model: "a", Iterations: 9, Size: 1.5, Forward: 4, Backward: 5,
		Memory: 6}}; err != nil || !reflect.DeepEqual(jobs, want) {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func FuzzReadJobs(f *testing.F) {
	f.Add("job,arrival_ms,workers,model,iters,size_mb,fw_ms,bw_ms,mem_mb\n1,0,1,a,1,1,1,1,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := ReadJobs(strings.NewReader(text), "w.csv")
		if err != nil {
			return
		}
		cfg := DefaultConfig()
		cfg.Nodes, cfg.GPUs, cfg.Memory = 1<<14, 64, 1<<40
		for i := range jobs {
			if err := jobs[i].check(&cfg); err != nil {
				t.Errorf("a job that was read is none: %v", err)
			}
		}
	})
}

func TestACancelledRunEnds(t *testing.T) {
	m, err := NewMachine(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Run(ctx, two(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A machine that is used again allocates its report alone.
func TestAMachineThatIsUsedAgainAllocatesItsReport(t *testing.T) {
	if raced.On {
		t.Skip("the race detector allocates")
	}
	m, err := NewMachine(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	jobs := Generate(Program, 1)[60:120]
	if n := testing.AllocsPerRun(3, func() {
		if _, err := m.Run(t.Context(), jobs, nil); err != nil {
			t.Error(err)
		}
	}); n > 8 {
		t.Errorf("%v allocations for 60 jobs, want 8 or fewer: the report, its slices and a generator", n)
	}
}

func Benchmark160Jobs(b *testing.B) {
	jobs := Generate(Program, 1)
	for _, c := range [][2]string{{"ssf-lwf1-srsf-0-false", "pure"}, {"ssf-lwf1-srsf-1-true", "pure"},
		{"ssf-lwf1-srsf-1-true", "orig"}} {
		b.Run(c[0]+"/"+c[1], func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Question = c[1]
			if err := cfg.SetAlgorithm(c[0]); err != nil {
				b.Fatal(err)
			}
			m, err := NewMachine(cfg)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Run(b.Context(), jobs, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(jobs))*float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}
