package steer_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env/jobselect"
	"clustergym/env/rollout"
	"clustergym/lab/config"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/traces"
)

// rule returns what opens a policy by its name.
func rule(name, estimates string) func(l mirror.Layout, s *live.Snapshot) (*steer.Policy, error) {
	cfg := config.For(jobselect.V1)
	if err := cfg.Set("env.estimates=" + estimates); err != nil {
		panic(err)
	}
	return func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) {
		return steer.Open(&steer.Choice{Policy: name, Config: cfg, Budget: rollout.Budget{Rollouts: 16}}, l)
	}
}

// moved returns a loop over c whose clock is that of c.
func moved(c *livetest.Cluster, mode, policy string, cycles int) steer.Config {
	cfg := steer.DefaultConfig()
	cfg.Cluster, cfg.Mode, cfg.Cycles, cfg.Now = c, mode, cycles, c.Now
	cfg.Open = rule(policy, "trace")
	cfg.Mirror.Limit = time.Hour
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		c.Advance(d)
		return ctx.Err()
	}
	return cfg
}

// queue submits n jobs to c whose limits are a little more than their run times.
func queue(c *livetest.Cluster, n int) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range n {
		work := time.Duration(60+r.IntN(60)*r.IntN(60)) * time.Second
		c.Submit(traces.Job{ID: fmt.Sprintf("%03d", i), User: fmt.Sprint("u", i%5),
			Submit: time.Duration(r.IntN(600)) * time.Second, Work: work, Estimate: work * 5 / 4, GPUs: 1 << r.IntN(4),
			GPUMilli: 1000})
	}
}

// meanWait returns the mean wait of all jobs, which must have ended.
func meanWait(t *testing.T, c *livetest.Cluster) time.Duration {
	t.Helper()
	var sum time.Duration
	all := c.History()
	for i := range all {
		if all[i].State != live.Ended {
			t.Fatalf("job %s is %v: it is stranded", all[i].ID, all[i].State)
		}
		sum += all[i].Start.Sub(all[i].Submit)
	}
	return sum / time.Duration(len(all))
}

func readLog(t *testing.T, file string) (lines []steer.Line) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var l steer.Line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// run runs a loop over a queue of 60 jobs until all have ended, and returns their mean wait.
func run(t *testing.T, mode, policy string) (time.Duration, *livetest.Cluster, []steer.Line) {
	t.Helper()
	c := livetest.New(livetest.Machines(2, 8)...)
	queue(c, 60)
	cfg := moved(c, mode, policy, 2000)
	file := filepath.Join(t.TempDir(), "log")
	var err error
	if cfg.Log, err = steer.OpenLog(file, 1<<30, 1); err != nil {
		t.Fatal(err)
	}
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		cfg.Log.Flush() // a moved clock is faster than a disk
		c.Advance(d)
		return ctx.Err()
	}
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Log.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(24 * time.Hour)
	return meanWait(t, c), c, readLog(t, file)
}

// Shadow changes nothing; rank and gate bring the mean wait of a queue below that of first come, first served.
func TestModes(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	queue(c, 60)
	c.Advance(48 * time.Hour)
	fifo := meanWait(t, c)
	shadow, c, lines := run(t, steer.Shadow, "sjf+skip")
	if shadow != fifo || len(c.Log()) > 0 {
		t.Errorf("with a shadow jobs wait for %v, without for %v; it has asked for %v", shadow, fifo, c.Log())
	}
	told := 0
	for i := range lines {
		told += len(lines[i].Started)
	}
	if told != 60 {
		t.Errorf("the log tells of %d starts", told)
	}
	for _, x := range []struct{ mode, policy string }{
		{steer.Rank, "sjf+skip"}, {steer.Rank, "sjf@slots"}, {steer.Gate, "sjf+skip"}, {steer.Gate, "sjf@slots"},
		{steer.Gate, "rollout:sjf+skip"},
	} {
		w, c, _ := run(t, x.mode, x.policy)
		t.Logf("%s %s: %v, first come: %v, %d actions", x.mode, x.policy, w, fifo, len(c.Log()))
		if w >= fifo {
			t.Errorf("--mode %s --policy %s: jobs wait for %v, and for %v first come, first served", x.mode, x.policy, w, fifo)
		}
	}
}

// Gate starts what the policy has chosen where it has chosen. Jobs that the cluster starts before anybody has seen them
// are its own.
func TestGateStartsWhereItChooses(t *testing.T) {
	_, c, lines := run(t, steer.Gate, "sjf+skip")
	where := map[string]string{}
	for _, a := range c.Log() {
		if id, nodes, ok := strings.Cut(strings.TrimPrefix(a, "start "), " on "); ok && strings.HasPrefix(a, "start ") {
			where[id] = nodes
		}
	}
	n := 0
	for i := range lines {
		for _, j := range lines[i].Started {
			switch want, chosen := where[j.ID]; {
			case chosen && want != strings.Join(j.Nodes, ","):
				t.Errorf("job %s runs on %v, and was to on %s", j.ID, j.Nodes, want)
			case chosen:
				n++
			}
		}
	}
	if n < 40 || n != len(where) {
		t.Errorf("%d of 60 jobs have started where they were to, and %d were started", n, len(where))
	}
}

// errKilled ends a loop as kill -9 does: whatever it had to do afterwards is not done.
var errKilled = errors.New("killed")

// mortal dies after so many calls and actions.
type mortal struct {
	*livetest.Cluster
	lives int
}

func (m *mortal) Observe(ctx context.Context) (*live.Snapshot, error) {
	if m.lives--; m.lives < 0 {
		return nil, errKilled
	}
	return m.Cluster.Observe(ctx)
}

func (m *mortal) Act(ctx context.Context, actions []live.Action) []live.Result {
	var results []live.Result
	for i := range actions {
		if m.lives--; m.lives < 0 {
			results = append(results, live.Result{Err: fmt.Errorf("%w: %w", live.ErrUnreachable, errKilled)})
			continue
		}
		results = append(results, m.Cluster.Act(ctx, actions[i:i+1])...)
	}
	return results
}

// A program that is killed at any call or action strands no job: the guard releases all when the lease has run out.
func TestKilledAnywhere(t *testing.T) {
	for lives := 1; lives < 150; lives += 1 + lives/10 {
		c := livetest.New(livetest.Machines(2, 8)...)
		queue(c, 30)
		m := &mortal{c, lives}
		cfg := moved(c, steer.Gate, "sjf+skip", 0)
		cfg.Cluster = m
		ctx, kill := context.WithCancel(t.Context())
		cfg.Wait = func(ctx context.Context, d time.Duration) error {
			if m.lives < 0 {
				kill()
				return ctx.Err()
			}
			c.Advance(d)
			return ctx.Err()
		}
		file := filepath.Join(t.TempDir(), "lease")
		cfg.Token, cfg.Lease = "a", &steer.Lease{File: file, Term: time.Minute, Now: c.Now}
		if err := steer.Run(ctx, cfg); err == nil {
			t.Fatal("a program without a cluster could not take back what it had written, and does not say so")
		}
		kill()
		c.Unreachable(0, lives%7)
		guard := &steer.Lease{File: file, Term: time.Minute, Now: c.Now}
		if err := steer.Guard(t.Context(), guard, c, func(ctx context.Context, d time.Duration) error {
			c.Advance(d)
			return ctx.Err()
		}); err != nil {
			t.Fatal(err)
		}
		c.Advance(48 * time.Hour)
		meanWait(t, c)
		if err := cfg.Lease.Renew(); !errors.Is(err, steer.ErrLease) {
			t.Fatalf("after the guard has released: %v", err)
		}
	}
}

// A cluster that is away is tried again; one that refuses ends the loop, with nothing held back.
func TestTroubles(t *testing.T) {
	start := func() (*livetest.Cluster, steer.Config, *[]string) {
		c := livetest.New(livetest.Machines(2, 8)...)
		queue(c, 20)
		c.Advance(time.Minute)
		cfg := moved(c, steer.Rank, "sjf+skip", 40)
		notes := new([]string)
		cfg.Note = func(text string) { *notes = append(*notes, text) }
		return c, cfg, notes
	}
	c, cfg, notes := start()
	c.Unreachable(5, 7)
	if err := steer.Run(t.Context(), cfg); err != nil || len(*notes) != 2 ||
		!strings.Contains((*notes)[0], "cannot be reached") {
		t.Errorf("away: %v, %q", err, *notes)
	}
	// it stops answering in the middle of the first cycle, for example after a hold
	for _, mode := range []string{steer.Rank, steer.Gate} {
		for first := 2; first < 40; first++ {
			c, cfg, notes = start()
			c.Advance(10 * time.Minute)
			c.Unreachable(first, 7)
			cfg.Mode = mode
			if err := steer.Run(t.Context(), cfg); err != nil ||
				!slices.ContainsFunc(*notes, func(n string) bool { return strings.Contains(n, "cannot be reached") }) {
				t.Errorf("%s, away after %d calls: %v, %q", mode, first, err, *notes)
			}
		}
	}
	for _, mode := range steer.Modes() { // nobody has ever answered
		c, cfg, _ = start()
		c.Unreachable(0, 1000)
		cfg.Mode = mode
		if err := steer.Run(t.Context(), cfg); !errors.Is(err, live.ErrUnreachable) {
			t.Errorf("%s, not there: %v", mode, err)
		}
	}
	c, cfg, _ = start()
	c.Deny(live.RankJob)
	if err := steer.Run(t.Context(), cfg); !errors.Is(err, live.ErrUnsupported) ||
		!strings.Contains(err.Error(), "this user may not rank jobs") {
		t.Errorf("denied: %v", err)
	}
	c, cfg, _ = start()
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		c.Advance(d)
		c.Deny(live.RankJob)
		return ctx.Err()
	}
	if err := steer.Run(t.Context(), cfg); !errors.Is(err, live.ErrDenied) {
		t.Errorf("denied later: %v", err)
	}
	c, cfg, notes = start() // as from a server that has just started
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		if c.Advance(d); c.Now().Sub(livetest.Epoch) < 2*time.Minute {
			c.Deny(live.RankJob)
		} else {
			c.Deny()
		}
		return ctx.Err()
	}
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Errorf("denied for a moment: %v, %q", err, *notes)
	}
	c, cfg, _ = start()
	cfg.Every, cfg.Cycles = 2*time.Minute, 5
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		if c.Advance(d); c.Now().Sub(livetest.Epoch) < 4*time.Minute {
			c.Stale(100)
		}
		return ctx.Err()
	}
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Errorf("stale: %v", err)
	}
	first := len(c.Log())
	for _, a := range c.Log() {
		if !strings.HasPrefix(a, "rank ") {
			t.Error(a)
		}
	}
	fresh, cfg, _ := start()
	cfg.Every, cfg.Cycles = 2*time.Minute, 5
	if err := steer.Run(t.Context(), cfg); err != nil || len(fresh.Log()) <= first {
		t.Errorf("on old observations %d actions were asked for, on new ones %d (%v)", first, len(fresh.Log()), err)
	}
	c, cfg, _ = start()
	cfg.Mode = steer.Gate
	down := false
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		if c.Advance(d); !down && c.Now().Sub(livetest.Epoch) > 3*time.Minute {
			down = true
			c.SetDown("g0", "drained")
		}
		return ctx.Err()
	}
	cfg.Cycles = 2000
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Errorf("a node is drained: %v", err)
	}
	c.Advance(48 * time.Hour)
	meanWait(t, c)
}

// A dry run says what it would write, and asks for nothing. A limit of writes is kept.
func TestDryRunAndLimits(t *testing.T) {
	c := livetest.New(livetest.Machines(1, 8)...)
	queue(c, 40)
	c.Advance(10 * time.Minute)
	cfg := moved(c, steer.Rank, "sjf+skip", 1)
	cfg.DryRun = true
	would := 0
	cfg.Note = func(text string) {
		if strings.HasPrefix(text, "would rank ") {
			would++
		}
	}
	if err := steer.Run(t.Context(), cfg); err != nil || would < 10 || len(c.Log()) > 0 {
		t.Error(err, would, c.Log())
	}
	cfg.DryRun, cfg.PerCycle, cfg.PerMinute = false, 4, 6
	cfg.Cycles = 2
	if err := steer.Run(t.Context(), cfg); err != nil || len(c.Log()) != 6 {
		t.Error(err, c.Log())
	}
	cfg.Clear, cfg.Cycles = true, 1
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	s, err := c.Observe(t.Context())
	if err != nil || slices.ContainsFunc(s.Jobs, func(j live.Job) bool { return j.Rank != 0 }) {
		t.Error("ranks stay although they are to be cleared", err)
	}
}

// Ranks are written where the order has changed, and follow it.
func TestRerank(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var order []steer.Ranked
	writes, moves := 0, 0
	for k := range 3000 {
		switch {
		case len(order) == 0 || r.IntN(2) == 0:
			order = slices.Insert(order, r.IntN(len(order)+1), steer.Ranked{ID: fmt.Sprint(k)})
		case r.IntN(2) == 0:
			i := r.IntN(len(order))
			order = slices.Delete(order, i, i+1)
		default:
			i, j := r.IntN(len(order)), r.IntN(len(order))
			order[i], order[j] = order[j], order[i]
		}
		moves++
		for _, a := range steer.Rerank(order) {
			i := slices.IndexFunc(order, func(x steer.Ranked) bool { return x.ID == a.Job })
			order[i].Score = a.Score
			writes++
		}
		for i := range order {
			if s := order[i].Score; s < 1 || s > live.MaxScore || i > 0 && s >= order[i-1].Score {
				t.Fatalf("after %d moves job %d of %d has %d", k, i, len(order), s)
			}
		}
	}
	if writes > 3*moves {
		t.Errorf("%d writes for %d moves", writes, moves)
	}
}

// Figures are those of the loop.
func TestMetrics(t *testing.T) {
	c := livetest.New(livetest.Machines(1, 8)...)
	queue(c, 40)
	c.Advance(10 * time.Minute)
	c.Unreachable(2, 1)
	cfg := moved(c, steer.Rank, "sjf+skip", 3)
	cfg.Metrics = new(steer.Metrics)
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	cfg.Metrics.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"clustergym_steer_cycles_total 3\n", "clustergym_steer_errors_total 1\n",
		"clustergym_steer_lost_log_lines 0\n"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q is not in\n%s", want, w.Body)
		}
	}
}

// A lease that another program renews is not taken, and one that it has taken is not renewed.
func TestLease(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	file := filepath.Join(t.TempDir(), "lease")
	a := &steer.Lease{File: file, Term: time.Minute, Now: clock}
	b := &steer.Lease{File: file, Term: time.Minute, Now: clock}
	if err := errors.Join(a.Take("a"), a.Renew()); err != nil {
		t.Fatal(err)
	}
	if err := b.Take("b"); !errors.Is(err, steer.ErrLease) {
		t.Error(err)
	}
	now = now.Add(2 * time.Minute)
	if err := a.Renew(); !errors.Is(err, steer.ErrLease) {
		t.Error("a lease that has run out is renewed", err)
	}
	if err := errors.Join(b.Take("b"), b.Renew()); err != nil {
		t.Error(err)
	}
	if err := a.Renew(); !errors.Is(err, steer.ErrLease) {
		t.Error("the lease of another is renewed", err)
	}
	if err := errors.Join(b.End(), a.Take("a")); err != nil {
		t.Error("a lease that is over cannot be taken", err)
	}
}

// A log is cut into files, and every line is in one.
func TestLogRotates(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	l, err := steer.OpenLog(file, 2000, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := l.Write(&steer.Line{Waiting: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var lines []steer.Line
	for _, f := range []string{file + ".3", file + ".2", file + ".1", file} {
		if info, err := os.Stat(f); err == nil && info.Size() > 2000 {
			t.Errorf("%s has %d bytes", f, info.Size())
		} else if err == nil {
			lines = append(lines, readLog(t, f)...)
		}
	}
	if len(lines) == 0 || lines[len(lines)-1].Waiting != 29 {
		t.Error(len(lines))
	}
}

// BenchmarkCycle is one cycle over 10,000 waiting jobs on 512 GPUs. The slots of the rules that act are those of
// JobSelect-v1.
func BenchmarkCycle(b *testing.B) {
	c := livetest.New(livetest.Machines(64, 8)...)
	for i := range 10_000 {
		work := time.Duration(60+i*7919%3600) * time.Second
		c.Submit(traces.Job{ID: fmt.Sprintf("%05d", i), User: fmt.Sprint("u", i%50), Estimate: work, Work: work,
			GPUs: 1 << (i % 4), GPUMilli: 1000})
	}
	c.Advance(0)
	for _, x := range []struct{ mode, policy string }{
		{steer.Shadow, "sjf+skip"}, {steer.Rank, "sjf+skip"}, {steer.Gate, "sjf+skip"}, {steer.Rank, "sjf@slots"},
		{steer.Gate, "sjf@slots"},
		{steer.Rank, "rollout:sjf+skip"}, {steer.Gate, "rollout:sjf+skip"},
	} {
		b.Run(x.mode+"/"+x.policy, func(b *testing.B) {
			cfg := moved(c, x.mode, x.policy, b.N)
			cfg.PerMinute = 0
			cfg.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() } // the queue stays as it is
			b.ReportAllocs()
			if err := steer.Run(context.Background(), cfg); err != nil {
				b.Fatal(err)
			}
		})
	}
}
