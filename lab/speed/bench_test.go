package speed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/raced"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// ticking is a clock that advances by 20 ms with every reading, so that a quick round ends after one run of the work:
// two readings to decide whether to continue, and a third for the time.
func ticking() func() time.Time {
	at := time.Unix(0, 0)
	return func() time.Time { at = at.Add(20 * time.Millisecond); return at }
}

func quickBench(groups ...string) Config {
	return Config{Groups: groups, Quick: true, Trace: workload.DefaultTraceConfig()}
}

func TestBenchMeasuresWhatItSays(t *testing.T) {
	if testing.Short() || raced.On {
		t.Skip("trains four networks")
	}
	cfg, dir := quickBench(), t.TempDir()
	cfg.Long = true
	var told []string
	r, err := Run(t.Context(), cfg, Hooks{
		Now: ticking(), Row: func(what string) { told = append(told, what) }, Dir: func() (string, error) { return dir, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	marks := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if !slices.Contains(groups, row.Group) {
			groups = append(groups, row.Group)
		}
		if !slices.Contains(told, row.name()) {
			t.Errorf("nobody was told of %q", row.name())
		}
		if row.Unit == "" || row.Runs != 1 || math.Abs(row.WallS-.04) > 1e-9 && math.Abs(row.WallS-.02) > 1e-9 ||
			row.Loop <= 0 || row.Walk <= 0 || row.Allocs < 0 {
			t.Errorf("%+v", *row)
		}
		// The simulator's unit of work is a job, and each job was simulated once.
		if row.Group == "simulator" && math.Abs(row.Rate*row.WallS-float64(row.Jobs)) > 1e-6*float64(row.Jobs) {
			t.Errorf("%s: %v units in a run of %d jobs", row.name(), row.Rate*row.WallS, row.Jobs)
		}
		if row.Mark > 0 {
			marks++
		}
	}
	// the bridge needs a Python, ranks a program
	if !slices.Equal(append(groups, "bridge", "ranks"), Groups()) || marks < 8 {
		t.Errorf("groups %v, %d marks", groups, marks)
	}
	if long := r.Rows[0]; long.Jobs != 20_000 || runtime.GOOS == "linux" && long.PeakMiB < 5 {
		t.Errorf("%+v", long)
	}
	if _, err := os.Stat(filepath.Join(dir, "long.swf.zst")); err != nil {
		t.Error(err)
	}
	if len(r.Calibration) != 2 || r.Calibration[0].Rate <= r.Calibration[1].Rate {
		t.Errorf("calibration %+v", r.Calibration)
	}
	for _, q := range r.Queues {
		if len(q.JobS) != len(q.Waiting) || slices.Min(q.JobS) <= 0 {
			t.Errorf("%+v", q)
		}
	}
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "\n"); n < len(r.Rows)+len(r.Queues)+8 {
		t.Errorf("%d lines for %d rows:\n%s", n, len(r.Rows), table.String())
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"machine":`, `"calibration":`, `"rate":`, `"unit":"jobs/s"`, `"allocs_per_unit":`,
		`"loop_steps":`, `"cpu_share":`, `"queues":`, `"job_s":`} {
		if !bytes.Contains(b, []byte(key)) {
			t.Errorf("%s is missing in %s", key, b)
		}
	}
}

func TestBenchPlaysAUsersTrace(t *testing.T) {
	cfg := quickBench()
	cfg.Trace.File = file(t, "small.csv", small+"big,3000,10,9\n")
	cfg.Cluster, cfg.Policies = "pool:2", []string{"fifo", "sjf+skip", "fifo+commit+easy"}
	r, err := Run(t.Context(), cfg, Hooks{Now: ticking()})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, row.Policy)
		if row.Jobs != 3 || row.Cluster != "pool:2" || math.Abs(row.Rate-75) > 1e-9 { // in 40 ms by the clock
			t.Errorf("%+v, want the three jobs that fit", row)
		}
	}
	if want := []string{"fifo+strict", "sjf+skip", "fifo+commit+easy"}; !slices.Equal(got, want) {
		t.Errorf("policies %v, want %v", got, want)
	}
	if len(r.Queues) != 0 {
		t.Errorf("%d queues beside a trace", len(r.Queues))
	}
	cfg.Cluster = "pool:1"
	cfg.Trace.File = file(t, "big.csv", "job_id,submit_time,duration,num_gpu\nbig,0,10,9\n")
	if _, err := Run(t.Context(), cfg, Hooks{Now: ticking()}); err == nil ||
		!strings.Contains(err.Error(), "1 of 1 job can never fit") {
		t.Errorf("got %v", err)
	}
}

func TestBenchFaultsAtOnce(t *testing.T) {
	cfg := quickBench("envs", "gpus")
	cfg.Long, cfg.Cluster, cfg.Policies, cfg.Trace.Format = true, "pool:2", []string{"sfj"}, "xls"
	_, err := Run(t.Context(), cfg, Hooks{Now: ticking()})
	if _, ok := errors.AsType[*fault.Mistake](err); !ok {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{`groups: got "gpus"`, "long: got true", `cluster: got "pool:2"`, "policies",
		"trace.format"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in\n%v", want, err)
		}
	}
	cfg = quickBench("simulator")
	cfg.Trace.File = file(t, "x.csv", small)
	if _, err := Run(t.Context(), cfg, Hooks{Now: ticking()}); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("a trace without a cluster: %v", err)
	}
}

func TestBenchStopsWhenTheContextDoes(t *testing.T) {
	for _, at := range []string{"sjf+strict", "1000 jobs waiting", "making up"} {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := quickBench("simulator")
		cfg.Long = at == "making up"
		rows, last := 0, ""
		_, err := Run(ctx, cfg, Hooks{Now: ticking(), Dir: func() (string, error) { return t.TempDir(), nil }, Row: func(what string) {
			rows++
			if last = what; strings.Contains(what, at) {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || !strings.Contains(last, at) {
			t.Errorf("cancelled at %q, went on to %q: %v", at, last, err)
		}
	}
}

func TestTheWalkPassesEveryPlace(t *testing.T) {
	for _, n := range []int{2, 1 << 10, 1 << 18} {
		walk := make([]uint32, n)
		fillWalk(walk)
		at, steps := walk[0], 1
		for at != 0 {
			at = walk[at]
			steps++
		}
		if steps != n {
			t.Errorf("back after %d of %d places", steps, n)
		}
	}
}

func TestGeneratedWorkloadsHaveTheLoadTheyAreCalledBy(t *testing.T) {
	for name, w := range map[string]struct {
		make func(n int) ([]traces.Job, error)
		gpus int
		load float64
	}{
		"hpc": {jobsOf("hpc", 8192, 0.85), 8192, 0.85}, "philly": {jobsOf("philly", 512, 0.8), 512, 0.8},
	} {
		jobs, err := w.make(3000)
		if err != nil {
			t.Fatal(err)
		}
		area := 0.0
		for i := range jobs {
			area += jobs[i].Work.Seconds() * float64(jobs[i].GPUs)
			if i > 0 && jobs[i].Submit < jobs[i-1].Submit || jobs[i].GPUs > w.gpus {
				t.Fatalf("%s: job %d %+v", name, i, jobs[i])
			}
		}
		if got := area / jobs[len(jobs)-1].Submit.Seconds() / float64(w.gpus); math.Abs(got-w.load) > .01*w.load {
			t.Errorf("%s: load %.3f, want %v", name, got, w.load)
		}
	}
}

// The shares are those of Table 1 of the paper on FGD.
func TestPodsAreMixedLikeOpenbs(t *testing.T) {
	spec, err := workload.ClusterSpec("openb-1523")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	pods := openbPods(c, 1.3)
	share, asked := map[int]float64{}, 0
	for i := range pods {
		n := pods[i].GPUs * 10
		if pods[i].Milli > 0 && pods[i].Milli < 1000 {
			n = 5 // a share of a GPU
		}
		share[n] += 1 / float64(len(pods))
		asked += pods[i].GPUs * pods[i].Milli
	}
	for n, want := range map[int]float64{0: .133, 5: .378, 10: .480, 20: .002, 40: .002, 80: .005} {
		if math.Abs(share[n]-want) > .015 {
			t.Errorf("share of %v GPUs is %.3f, want %.3f", float64(n)/10, share[n], want)
		}
	}
	if all := 1300 * c.GPUs(); asked > all || asked < all-8000 {
		t.Errorf("%d thousandths asked for, want up to %d", asked, all)
	}
}

// The queue has the length for which its cost is reported.
func TestQueuesHaveTheirLength(t *testing.T) {
	b := &bench{cfg: &Config{Quick: true}, hooks: Hooks{Now: ticking()}, report: &Report{}}
	for _, on := range []string{"pool:512", "64x8"} {
		for _, policy := range []string{"fifo+strict", "sjf+skip"} {
			q, err := b.newQueue(on, policy, 3000)
			if err != nil {
				t.Fatal(err)
			}
			v := q.sim.View()
			for ended := 1000; ended < 12_000; ended += 500 {
				if err := q.until(t.Context(), ended); err != nil {
					t.Fatal(err)
				}
				if n := len(v.Waiting()); ended > 4000 && math.Abs(float64(n)-3000) > 450 {
					t.Errorf("%s on %s: %d wait after %d have ended, want about 3000", policy, on, n, ended)
				}
			}
		}
	}
}
