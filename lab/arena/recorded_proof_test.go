package arena

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/env/sched"
	"clustergym/lab/stream"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// accounted is a job of a recorded cluster. Times are in whole seconds.
type accounted struct {
	submit, start, work, limit, gpus int
	user                             string
}

// incumbent is a scheduler of a cluster, written for this proof alone and apart from the simulator: EASY back-filling
// with the users' limits on a counter of GPUs, in which the jobs of a favoured account go before all others.
type incumbent struct {
	gpus    int
	account string // the favoured one, "" = none

	free    int
	running []*accounted
	queue   []*accounted
}

// play starts every job, in order of submit.
func (c *incumbent) play(jobs []*accounted) {
	c.free = c.gpus
	for now, next := 0, 0; next < len(jobs) || len(c.running) > 0; {
		now = math.MaxInt
		if next < len(jobs) {
			now = jobs[next].submit
		}
		for _, j := range c.running {
			now = min(now, j.start+j.work)
		}
		c.running = slices.DeleteFunc(c.running, func(j *accounted) bool {
			if j.start+j.work > now {
				return false
			}
			c.free += j.gpus
			return true
		})
		for ; next < len(jobs) && jobs[next].submit <= now; next++ {
			c.queue = append(c.queue, jobs[next])
		}
		slices.SortStableFunc(c.queue, func(a, b *accounted) int {
			switch fa, fb := a.user == c.account, b.user == c.account; {
			case fa && !fb:
				return -1
			case fb && !fa:
				return 1
			}
			return cmp.Compare(a.submit, b.submit)
		})
		c.pass(now)
	}
}

func (c *incumbent) start(j *accounted, now int) {
	j.start = now
	c.free -= j.gpus
	c.running = append(c.running, j)
}

// pass starts the first jobs of the queue, and those behind them that delay the first that waits by no second.
func (c *incumbent) pass(now int) {
	for len(c.queue) > 0 && c.queue[0].gpus <= c.free {
		c.start(c.queue[0], now)
		c.queue = c.queue[1:]
	}
	if len(c.queue) == 0 {
		return
	}
	first := c.queue[0]
	ends := slices.Clone(c.running)
	slices.SortFunc(ends, func(a, b *accounted) int { return cmp.Compare(a.start+a.limit, b.start+b.limit) })
	shadow, spare := 0, c.free
	for _, j := range ends {
		if spare >= first.gpus && j.start+j.limit > shadow {
			break
		}
		shadow, spare = j.start+j.limit, spare+j.gpus
	}
	spare -= first.gpus
	kept := c.queue[:1]
	for _, j := range c.queue[1:] {
		inTime := now+j.limit <= shadow
		if j.gpus > c.free || !inTime && j.gpus > spare {
			kept = append(kept, j)
			continue
		}
		if !inTime {
			spare -= j.gpus
		}
		c.start(j, now)
	}
	c.queue = kept
}

// accounting generates jobs with limits, plays them by the incumbent and writes what accounting shows of them.
func accounting(t *testing.T, file string, n int, rate float64, seed uint64, account string) []*accounted {
	t.Helper()
	cfg := synth.DefaultConfig()
	cfg.Profile, cfg.Jobs, cfg.Rate = "hpc", n, rate
	all, err := synth.Generate(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
	jobs := make([]*accounted, len(all))
	for i := range all {
		j := &all[i]
		jobs[i] = &accounted{submit: int(j.Submit.Seconds()), work: max(1, seconds(j.Work)), gpus: j.GPUs, user: j.User}
		jobs[i].limit = max(jobs[i].work, seconds(j.Estimate))
	}
	(&incumbent{gpus: 128, account: account}).play(jobs)
	var b strings.Builder
	b.WriteString("job_id,submit_time,start_time,end_time,num_gpu,user,estimate\n")
	for i, j := range jobs {
		fmt.Fprintf(&b, "%d,%d,%d,%d,%d,%s,%d\n", i, j.submit, j.start, j.start+j.work, j.gpus, j.user, j.limit)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return jobs
}

// The incumbent's model, evaluated on the accounting of a cluster, has the waits that were recorded: of all counted
// jobs and by size. Where an account goes before all others, which no policy can say, it has other ones, and the full
// form prints by how much.
func TestTheModelOfTheIncumbentHasTheRecordedWaits(t *testing.T) {
	unraced(t)
	const seed = 1
	n := either(12_000, 60_000)
	t.Logf("seed %d, %d jobs", seed, n)
	for _, account := range []string{"", "3"} {
		if account != "" && !full() {
			continue
		}
		file := filepath.Join(t.TempDir(), "accounting.csv")
		jobs := accounting(t, file, n, 1, seed, account)
		cfg := proving(t, "fifo+strict+easy", "trace.file="+file+" cluster=pool:128 env.max_gpus=128 env.estimates=trace "+
			"env.load=0")
		w, err := NewScenario(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.testing(t.Context(), cfg, &EvalOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		seen, err := r.worker()
		if err != nil {
			t.Fatal(err)
		}
		play, err := r.policies[0].player(seen.env)
		if err != nil {
			t.Fatal(err)
		}
		ep := r.episode(0)
		if _, err := play(t.Context(), ep, ep.Seed, seen.stream); err != nil {
			t.Fatal(err)
		}
		win := seen.env.(interface{ Window() *sched.Window }).Window()
		compareWaits(t, account, jobs, seen.stream.Jobs(), win.Traced[win.Warm:])
	}
}

// sizes are the classes of sizes, by their largest.
var sizes = []int{1, 8, 32, 128}

// compareWaits compares the waits of counted jobs with the recorded ones.
func compareWaits(t *testing.T, account string, jobs []*accounted, counted []stream.Job, traced []traces.Job) {
	t.Helper()
	var got, want, count [5]float64
	for k := range counted {
		id, err := strconv.Atoi(traced[k].ID)
		if err != nil {
			t.Fatal(err)
		}
		j := jobs[id]
		size, _ := slices.BinarySearch(sizes, j.gpus)
		for _, i := range []int{size, len(sizes)} {
			got[i] += counted[k].Wait
			want[i] += float64(j.start - j.submit)
			count[i]++
		}
	}
	for i := range got {
		what := "all"
		if i < len(sizes) {
			what = fmt.Sprintf("up to %d", sizes[i])
		}
		got, want := got[i]/count[i], want[i]/count[i]
		t.Logf("| %q | %s | %.0f | %s | %s | %+.1f %% |", account, what, count[i], hours(want), hours(got), 100*(got/want-1))
		// The two programs may break ties between ends at the same second in other ways.
		if account == "" && !(math.Abs(got-want) <= .01*want) {
			t.Errorf("sizes %s: the model's jobs wait %s, recorded %s", what, hours(got), hours(want))
		}
	}
}

// An evaluation on the accounting of a cluster says what was recorded and finds the model of the cluster's scheduler, at
// the load of the recording also where its policies play at another. Without starts it says nothing.
func TestEvaluationsSayWhatWasRecorded(t *testing.T) {
	unraced(t)
	dir := t.TempDir()
	file, plain := filepath.Join(dir, "accounting.csv"), filepath.Join(dir, "plain.csv")
	jobs := accounting(t, file, 3000, 1, 1, "")
	var b strings.Builder
	b.WriteString("submit_time,duration,num_gpu\n")
	for _, j := range jobs {
		fmt.Fprintf(&b, "%d,%d,%d\n", j.submit, j.work, j.gpus)
	}
	if err := os.WriteFile(plain, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, load string }{{file, "0"}, {file, "0.3"}, {plain, "0"}} {
		cfg := proving(t, "fifo+skip,sjf+skip", "trace.file="+c.file+" cluster=pool:128 env.max_gpus=128 env.load="+c.load)
		w, err := NewScenario(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.evaluateStreams(t.Context(), cfg, &EvalOptions{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if c.file == plain {
			if r.Recorded != nil {
				t.Errorf("without starts: %+v", r.Recorded)
			}
			continue
		}
		counted := jobs[2400:][:r.Streams.Counted]
		want := 0.0
		for _, j := range counted {
			want += float64(j.start-j.submit) / float64(len(counted))
		}
		got := r.Recorded
		if got == nil || got.Jobs != len(counted) || math.Abs(float64(got.Wait)-want) > 1e-6*want ||
			got.Model != "fifo+strict+easy" || len(got.Models) != 4 {
			t.Fatalf("load %s: recorded %+v, want a wait of %.0f s", c.load, got, want)
		}
		if m := got.Models[1]; math.Abs(float64(m.Wait)-want) > .02*want || math.Abs(float64(m.Use-got.Use)) > .02 {
			t.Errorf("load %s: %s waits %.0f s with use %.3f; recorded %.0f s, %.3f", c.load, m.Name, m.Wait, m.Use, want, got.Use)
		}
		above := r.Sheets()[0].Above
		if !strings.Contains(strings.ReplaceAll(above, "\n", " "), "the same jobs under fifo+strict+easy, the closest of 4 models") ||
			strings.Contains(above, "is not the recorded cluster") {
			t.Errorf("load %s: above the table stands\n%s", c.load, above)
		}
	}
}
