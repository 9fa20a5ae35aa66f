package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
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
	"clustergym/ops/incumbent"
	"clustergym/ops/steer"
	"clustergym/ops/steer/mirror"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// choice returns a policy by its name.
func choice(name, estimates string) *steer.Choice {
	cfg := config.For(jobselect.V1)
	if err := cfg.Set("env.estimates=" + estimates); err != nil {
		panic(err)
	}
	return &steer.Choice{Policy: name, Config: cfg, Budget: rollout.Budget{Rollouts: 8}}
}

// fill submits n jobs to c, of which about nine tenths of its 16 GPUs are busy. Their limits are a little more than
// their run times; 0 = they have none. ranked gives them priorities that nobody else knows.
func fill(c *livetest.Cluster, n int, limit float64, ranked bool) {
	r := rand.New(rand.NewPCG(11, 11))
	at := time.Duration(0)
	for i := range n {
		work := time.Duration(120+r.IntN(50)*r.IntN(50)) * time.Second
		at += time.Duration(r.ExpFloat64()*185) * time.Second
		j := traces.Job{
			ID: fmt.Sprintf("%04d",
				i), User: fmt.Sprint("u",
				i%5), Submit: at, Work: work, Estimate: time.Duration(limit * float64(work)).Round(time.Second),
			GPUs: 1 << r.IntN(4), GPUMilli: 1000,
		}
		if ranked {
			j.Priority = r.IntN(1000)
		}
		c.Submit(j)
	}
}

// record lets a shadow look at c for so many minutes, and returns its log.
func record(t testing.TB, c *livetest.Cluster, policy, estimates string, minutes int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "steer.jsonl")
	recordTo(t, c, file, policy, estimates, minutes)
	return file
}

func recordTo(t testing.TB, c *livetest.Cluster, file, policy, estimates string, minutes int,
	each ...func(minute int)) {
	t.Helper()
	minute := 0
	cfg := steer.DefaultConfig()
	cfg.Cluster, cfg.Cycles, cfg.Now, cfg.Every = c, minutes, c.Now, time.Minute
	cfg.Begun = steer.Begun{Policy: policy, Estimates: estimates}
	cfg.Open = func(l mirror.Layout, _ *live.Snapshot) (*steer.Policy, error) {
		return steer.Open(choice(policy, estimates), l)
	}
	cfg.Mirror.Limit = 24 * time.Hour
	var err error
	if cfg.Log, err = steer.OpenLog(file, 40_000, 99); err != nil {
		t.Fatal(err)
	}
	cfg.Wait = func(ctx context.Context, d time.Duration) error {
		cfg.Log.Flush()
		c.Advance(d)
		minute++
		for _, f := range each {
			f(minute)
		}
		return ctx.Err()
	}
	if err := steer.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := cfg.Log.Close(); err != nil {
		t.Fatal(err)
	}
}

func build(t testing.TB, policy, estimates string, logs ...string) *Report {
	t.Helper()
	l, err := Read(t.Context(), logs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Build(t.Context(), l,
		Options{Choice: choice(policy, estimates), Estimates: sim.MustEstimates(estimates), Limit: 24 * time.Hour,
			Asks: 5000})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A cluster that starts jobs in order of their arrival, and back-fills by their incumbent.ByLimits, is found out, and its model
// waits as it did.
func TestFindsBackfilling(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 300, 1.25, false)
	c.Advance(20 * time.Minute) // jobs run and wait when steer comes
	r := build(t, "sjf+skip", "trace", record(t, c, "sjf+skip", "trace", 1200))
	t.Log("\n" + text(t, r))
	cal := &r.Calibration
	if r.Incumbent != incumbent.Timely || cal.Percent == nil || math.Abs(*cal.Percent) > 0.5 || cal.Near < 0.99 ||
		*cal.Corr < 0.999 {
		t.Errorf("%s: %+v", r.Incumbent, cal)
	}
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil || !strings.Contains(b.String(), "Cumulative waits") {
		t.Error(err)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// Without limits nothing is back-filled, so first come, first served is what the cluster does: as a policy it agrees at
// every start, and the replay is what happened.
func TestAPolicyThatIsTheIncumbent(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 250, 0, false)
	c.Advance(20 * time.Minute)
	file := record(t, c, "fifo+strict", "trace", 900)
	r := build(t, "fifo+strict", "trace", file)
	t.Log("\n" + text(t, r))
	a := r.Agreement
	if a.Again == nil || a.Again.Of < 150 || a.Again.N != a.Again.Of {
		t.Errorf("asked again: %+v", a.Again)
	}
	if a.Looked.Of != a.Starts-a.Unasked || a.Looked.N > a.Again.N {
		t.Errorf("%+v", a)
	}
	if p := r.Calibration.Percent; r.Incumbent != "fifo+strict" || p == nil || math.Abs(*p) > 0.5 ||
		r.Calibration.Near < 0.99 {
		t.Errorf("%s: %+v", r.Incumbent, r.Calibration)
	}
	i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Role == "policy" })
	if math.Abs(r.Rows[i].Mean-r.Rows[1].Mean) > 1e-6 {
		t.Errorf("the policy is the model, and waits %v s, the model %v s", r.Rows[i].Mean, r.Rows[1].Mean)
	}
}

// A cluster that goes by priorities that the log does not tell is none of the models, and the report says so.
func TestUnknownIncumbent(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 300, 1.25, true)
	c.Advance(20 * time.Minute)
	r := build(t, "sjf+skip", "trace", record(t, c, "sjf+skip", "trace", 1200))
	t.Log("\n" + text(t, r))
	if cal := &r.Calibration; cal.Near > 0.8 || *cal.Corr > 0.8 ||
		!strings.Contains(r.Belief, "Waits of single jobs are told badly") {
		t.Errorf("%+v: %s", cal, r.Belief)
	}
}

// A policy that steer asks in its environment plays as the simulator itself plays it.
func TestSteeredIsPlain(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 120, 1.25, false)
	c.Advance(20 * time.Minute)
	l, err := Read(t.Context(), []string{record(t, c, "sjf+skip", "history", 500)})
	if err != nil {
		t.Fatal(err)
	}
	for _, estimates := range []string{"trace", "history"} {
		history := []traces.Job{{ID: "h", User: "u1", GPUs: 1, Work: 40 * time.Minute},
			{ID: "i", User: "u2", GPUs: 1, Submit: time.Minute, Work: time.Minute}}
		r, err := newReplay(l, 24*time.Hour, history)
		if err != nil {
			t.Fatal(err)
		}
		est, err := sim.ParseEstimates(estimates)
		if err != nil {
			t.Fatal(err)
		}
		ch := choice("sjf+skip", estimates)
		ch.History = r.Archive
		p, err := steer.Open(ch, r.layout)
		if err != nil {
			t.Fatal(err)
		}
		rival, err := ch.Config.Rival("sjf+skip")
		if err != nil {
			t.Fatal(err)
		}
		sch, err := incumbent.Rule("sjf+skip", rival.Sched.Placement, sim.MustEstimates(estimates))
		if err != nil {
			t.Fatal(err)
		}
		a, err := r.Play(t.Context(), sch, est)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Play(t.Context(), &steered{ctx: t.Context(), r: r, p: p}, est)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a.Starts, b.Starts) || a.Unstarted > 0 {
			t.Errorf("%s: the schedules differ", estimates)
		}
		for _, f := range r.Seated {
			if a.Starts[f.Job] != f.Start {
				t.Errorf("job %s ran since %v and starts at %v", r.Jobs[f.Job].ID, f.Start, a.Starts[f.Job])
			}
		}
	}
}

// Cut lines, rotated files, and steer that ended and began again: the jobs are those of the cluster.
func TestReadsWhatIsLeft(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 100, 1.25, false)
	file := filepath.Join(t.TempDir(), "steer.jsonl")
	recordTo(t, c, file, "sjf+skip", "trace", 200)
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-01-05T11:2` + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	c.Advance(15 * time.Minute) // nobody looks
	recordTo(t, c, file, "sjf+skip", "trace", 200)
	if _, err := os.Stat(file + ".1"); err != nil {
		t.Fatal("the log has not become several files")
	}
	l, err := Read(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	if l.Runs != 2 || l.Cut != 1 || l.Looks != 400 {
		t.Errorf("%d runs, %d lines cut, %d looks", l.Runs, l.Cut, l.Looks)
	}
	was := map[string]live.Job{}
	for _, j := range c.History() {
		was[j.ID] = j
	}
	unseen := 0
	for _, j := range l.Jobs {
		w := was[j.ID]
		if !j.Start.IsZero() && !j.Start.Equal(w.Start) || !j.Submit.Equal(w.Submit) {
			t.Errorf("job %s: submit %v, start %v; in the cluster %v, %v", j.ID, j.Submit, j.Start, w.Submit, w.Start)
		}
		if !j.End.IsZero() && !j.End.Equal(w.End) {
			unseen++
		}
	}
	if unseen != l.Unseen || unseen > 12 {
		t.Errorf("%d ends are not those of the cluster, %d are said to be unseen", unseen, l.Unseen)
	}
	if r := build(t, "sjf+skip", "history", file); r.Calibration.N < 20 ||
		!strings.Contains(text(t, r), "nobody told when") {
		t.Errorf("%+v", r.Calibration)
	}
}

// A blocked job begins to wait when it is blocked no more, and a node that was down is told.
func TestBlockedAndDown(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	for _, id := range []string{"a", "b", "c", "d"} {
		c.Submit(traces.Job{ID: id, Work: 30 * time.Minute, GPUs: 8, GPUMilli: 1000})
	}
	c.Submit(traces.Job{ID: "e", Submit: 90 * time.Minute, Work: time.Minute, GPUs: 16, GPUMilli: 1000})
	c.Advance(0)
	c.Block("d", "Dependency")
	file := filepath.Join(t.TempDir(), "log")
	recordTo(t, c, file, "fifo+strict", "trace", 150, func(minute int) {
		switch minute {
		case 10:
			c.Block("d", "")
		case 70:
			c.SetDown("g1", "drained")
		case 85:
			c.SetDown("g1", "")
		}
	})
	l, err := Read(t.Context(), []string{file})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(l.Jobs, func(j *Job) bool { return j.ID == "d" })
	if d := l.Jobs[i]; d.blocked || d.Submit.Sub(livetest.Epoch) != 10*time.Minute ||
		d.Start.Sub(livetest.Epoch) != 30*time.Minute {
		t.Errorf("%+v", d)
	}
	if want := 15.0 / 149 / 2; math.Abs(l.Down-want) > 0.01 || l.Changed != 2 {
		t.Errorf("nodes were down for %v of the time, want %v; changed %d times", l.Down, want, l.Changed)
	}
	if l.Begun == nil || l.Begun.Policy != "fifo+strict" || l.Begun.Every != 60 {
		t.Errorf("%+v", l.Begun)
	}
}

// A log of a few minutes has figures and no intervals, and says that no gain is to be believed; all that gymctl twin
// can play is proposed.
func TestTooLittleForIntervals(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	for i := range 14 {
		c.Submit(traces.Job{ID: fmt.Sprint(i), Submit: time.Duration(i) * 30 * time.Second, Work: 100 * time.Second,
			Estimate: time.Hour, GPUs: 8, GPUMilli: 1000})
	}
	r := build(t, "fifo+skip", "trace", record(t, c, "fifo+skip", "trace", 9))
	a, cal := r.Agreement, &r.Calibration
	if cal.Percent == nil || cal.CI95 != nil || cal.Blocks >= leastBlocks || cal.First+cal.N > 14 || cal.N < 2 {
		t.Errorf("%+v", cal)
	}
	if a.Looked.CI95 != nil && a.Blocks < leastBlocks {
		t.Errorf("%+v", a)
	}
	for _, x := range r.Rows {
		if x.CI95 != nil {
			t.Errorf("%+v", x)
		}
	}
	if !strings.Contains(r.Belief, "no gain of the policy is to be believed yet") ||
		strings.Contains(r.Belief, "The gain of") || r.Twin == "" || r.Twin == incumbent.Timely {
		t.Errorf("%q, %q", r.Belief, r.Twin)
	}
	if out := text(t, r); !strings.Contains(out, "--scheduler "+r.Twin) {
		t.Error(out)
	}
	var b bytes.Buffer
	if err := r.HTML(&b); err != nil {
		t.Error(err)
	}
}

// Each policy that steer takes can be asked and replayed.
func TestPolicies(t *testing.T) {
	c := livetest.New(livetest.Machines(2, 8)...)
	fill(c, 60, 1.25, false)
	file := record(t, c, "sjf+skip", "history", 240)
	for _, policy := range []string{"sjf@slots", "rollout:sjf+skip"} {
		r := build(t, policy, "history", file)
		i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Role == "policy" })
		if i < 0 || r.Rows[i].Name != policy || r.Rows[i].Mean <= 0 || r.Rows[i].Unstarted > 0 || r.Agreement.Again == nil {
			t.Errorf("%s: %+v", policy, r.Rows)
		}
	}
}

// What is no log of which something can be said is refused in one sentence.
func TestBadLogs(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	at := func(minute int, cluster, more string) string {
		return fmt.Sprintf(
			`{"at":"2026-01-05T08:%02d:00Z","observed":"2026-01-05T08:%02d:00Z","cluster":%q,"policy":"sjf","mode":"shadow","digest":"x","nodes":[{"name":"g0","gpus":8}]%s}`+"\n",
			minute, minute, cluster, more)
	}
	job := `{"id":"a","gpus":1,"submit":"2026-01-05T08:00:00Z"`
	started := `,"started":[` + job + `,"start":"2026-01-05T08:01:00Z","nodes":["g0"]}]`
	for _, x := range []struct{ text, want string }{
		{"", "is empty"},
		{"job_id,submit_time\n1,2\n", "is no log of gymctl steer"},
		{`{"t_s":1,"event":"start"}` + "\n", "is no log of gymctl steer"},
		{at(0, "a", ""), "no job that has started"},
		{at(0, "a", "") + at(2, "a", started), "no job that has ended"},
		{at(0, "a", "") + at(2, "b", started), `cluster "b"`},
	} {
		_, err := Read(t.Context(), []string{put("log", x.text)})
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q", x.text, err, x.want)
		}
	}
	if _, err := Read(t.Context(), []string{filepath.Join(dir, "none")}); err == nil ||
		!strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
	a, b := put("first", at(0, "a", "")), put("second", at(1, "b", ""))
	if _, err := Read(t.Context(), []string{b, a}); err == nil || !strings.Contains(err.Error(), "one cluster") {
		t.Error(err)
	}
	if _, err := Read(t.Context(), []string{a, a}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	over := put("over", at(0, "a", "")+at(9, "a", ""))
	if _, err := Read(t.Context(), []string{over, put("within", at(5, "a", ""))}); err == nil ||
		!strings.Contains(err.Error(), "begins at") {
		t.Error(err)
	}
}

func TestNatural(t *testing.T) {
	list := []string{"10", "9", "9_10", "9_2", "a1", "a", "job-12", "job-3", ""}
	slices.SortFunc(list, natural)
	if got, want := strings.Join(list, " "), " 9 9_2 9_10 10 a a1 job-3 job-12"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// One block of time says nothing of how the error varies: no gain is believed, and no interval is shown.
func TestOneBlockOfTimeHasNoInterval(t *testing.T) {
	off, gain := -15.0, -86.0
	r := Report{Calibration: Calibration{N: 9, Real: 20, Model: 17, Percent: &off, Blocks: 1},
		Rows: []Row{{Name: "sjf+skip", Role: "policy", Percent: &gain}}}
	if says := r.believe(); !strings.Contains(says,
		"waits 15 % less than the cluster did, on 9 jobs in 1 block of time.") ||
		!strings.Contains(says, "no gain of the policy is to be believed yet: let steer look for longer") ||
		strings.Contains(says, "86") {
		t.Error(says)
	}
	share := 0.5
	if s := (&Share{N: 5, Of: 10, Share: &share}).cells("x"); s[len(s)-1] != "-" {
		t.Errorf("%q", s)
	}
}
