package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clustergym/internal/lock"
	"clustergym/live"
	"clustergym/live/livetest"
	"clustergym/traces"
)

var epoch = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

func machines(n, gpus int) []live.Node {
	return Named(slices.Repeat([]live.Node{{GPUs: gpus}}, n))
}

// wall is a clock that tests move.
type wall struct {
	mu sync.Mutex
	at time.Time
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *wall) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// stage is a demo to which a test adds jobs that no history has: each process is given the same ones.
type stage struct {
	cfg  Config
	jobs []traces.Job
	all  []*Cluster
}

func (s *stage) open(t *testing.T) *Cluster {
	t.Helper()
	c, err := New(s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.all = append(s.all, c)
	return c
}

func journal(t *testing.T, dir, file string, s Settings) *Journal {
	t.Helper()
	j, err := OpenJournal(t.Context(), dir, file, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// The demo meets all claims about adapters; another process finds in the journal what was done.
func TestTheDemoIsACluster(t *testing.T) {
	livetest.Suite(t, func(t *testing.T) *livetest.Bench {
		dir, file := t.TempDir(), filepath.Join(t.TempDir(), "history")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w := &wall{at: time.Unix(1e9, 0)}
		const far = 1000 * time.Hour
		s := &stage{cfg: Config{Nodes: machines(4, 8), Speed: 60, Backfill: BackfillEasy, Epoch: epoch, Now: w.now,
			Jobs: []traces.Job{{ID: "first", GPUs: 1, Work: 1, Started: true},
				{ID: "last", GPUs: 1, Work: 1, Submit: far, Started: true}},
			Journal: journal(t, dir, file, Unset())}}
		c := s.open(t)
		observe := func() *live.Snapshot {
			snap, err := c.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return snap
		}
		observe()
		w.pass(time.Second)
		observe()
		return &livetest.Bench{
			Cluster: c,
			Another: func(t *testing.T) live.Cluster {
				if !lock.Supported {
					return c
				}
				next := s.cfg
				next.Journal = journal(t, dir, file, Unset())
				next.Jobs = slices.Insert(slices.Clone(next.Jobs), 1, s.jobs...)
				o, err := New(next)
				if err != nil {
					t.Fatal(err)
				}
				c = o
				return o
			},
			Submit: func(_ *testing.T, name string, gpus int) string {
				c.machine.advance(c.clock())
				j := traces.Job{ID: name, GPUs: gpus, Submit: c.machine.now, Work: far}
				s.jobs = append(s.jobs, j)
				c.machine.wait(newJob(&j))
				c.machine.schedule()
				return name
			},
			Finish: func(_ *testing.T, id string) {
				m := c.machine
				m.advance(c.clock())
				j := m.jobs[id]
				m.running = slices.DeleteFunc(m.running, func(r *job) bool { return r == j })
				j.end, m.running = m.now, slices.Insert(m.running, 0, j)
				m.due()
			},
			Settle: func(t *testing.T, what string, ok func(*live.Snapshot) bool) *live.Snapshot {
				for range 10 {
					if snap := observe(); ok(snap) {
						return snap
					}
					w.pass(time.Second)
				}
				t.Fatalf("waited in vain: %s", what)
				return nil
			},
		}
	})
}

// history is a made-up past: jobs of 1 to 16 GPUs on 4 nodes of 8.
func history(n int) []traces.Job {
	jobs := make([]traces.Job, n)
	for i := range jobs {
		gpus := []int{1, 2, 8, 4, 1, 16, 1}[i%7]
		work := time.Duration(1+i*i%90) * time.Minute
		jobs[i] = traces.Job{ID: fmt.Sprint(i), User: fmt.Sprint("u", i%5), GPUs: gpus, Work: work, Estimate: 2 * work,
			Submit: time.Duration(i) * 4 * time.Minute}
	}
	return jobs
}

// recorded is the same past with the starts that the demo itself gives them.
func recorded(t *testing.T, n int) []traces.Job {
	t.Helper()
	jobs := history(n)
	p, err := newPast(jobs, machines(4, 8), BackfillEasy, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, _, _ := p.machine()
	all := map[string]*job{}
	for _, j := range append(slices.Clone(m.future), append(m.running, m.queue...)...) {
		all[j.ID] = j
	}
	m.advance(10000 * time.Hour)
	for i := range jobs {
		jobs[i].Start(all[jobs[i].ID].start)
	}
	return jobs
}

func cfg(jobs []traces.Job, w *wall) Config {
	return Config{Jobs: jobs, Nodes: machines(4, 8), Speed: 60, Begin: 0.5, Backfill: BackfillEasy, Epoch: epoch, Now: w.now}
}

func demo(t *testing.T, c Config) *Cluster {
	t.Helper()
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func observed(t *testing.T, c *Cluster) *live.Snapshot {
	t.Helper()
	s, err := c.Observe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A history with starts that the same scheduler gave begins with the jobs that the scheduler without starts has then,
// and goes on alike.
func TestTheDemoBeginsAsTheHistoryWas(t *testing.T) {
	w := &wall{at: time.Unix(1e9, 0)}
	jobs := recorded(t, 200)
	told, played := demo(t, cfg(jobs, w)), demo(t, cfg(history(200), w))
	waited := 0
	for range 300 {
		a, b := observed(t, told), observed(t, played)
		if len(a.Jobs) != len(b.Jobs) || a.At != b.At {
			t.Fatalf("%v: %d jobs, and %d at %v", a.At, len(a.Jobs), len(b.Jobs), b.At)
		}
		for i := range a.Jobs {
			x, y := &a.Jobs[i], &b.Jobs[i]
			if x.ID != y.ID || x.State != y.State || x.Start != y.Start || x.Submit != y.Submit {
				t.Fatalf("%v: %+v and %+v", a.At, x, y)
			}
			if x.State == live.Waiting {
				waited++
			}
		}
		w.pass(time.Second)
	}
	if waited == 0 {
		t.Error("no job ever waited")
	}
	past := told.Past()
	if len(past) < 50 || len(past) > 100 || len(past) != len(played.Past()) {
		t.Errorf("%d jobs had ended, and %d", len(past), len(played.Past()))
	}
}

// The clock begins with the first look, and each look sees the submits of the history.
func TestTheClockRunsSixtyTimesAsFast(t *testing.T) {
	w := &wall{at: time.Unix(1e9, 0)}
	jobs := history(100)
	c := demo(t, cfg(jobs, w))
	w.pass(time.Hour)
	first := observed(t, c)
	begin := epoch.Add(jobs[50].Submit)
	if first.At != begin || !c.Now().Equal(begin) {
		t.Errorf("the first look is at %v, the clock shows %v, and the demo begins at %v", first.At, c.Now(), begin)
	}
	w.pass(8 * time.Second)
	if s := observed(t, c); s.At != begin.Add(8*time.Minute) || s.Job("52") == nil || s.Job("53") != nil {
		t.Errorf("eight seconds later it is %v, with %d jobs", s.At, len(s.Jobs))
	}
	w.pass(-time.Hour) // the clock of the machine is set
	if s := observed(t, c); s.At.Before(begin.Add(8 * time.Minute)) {
		t.Errorf("the clock went back to %v", s.At)
	}
	w.pass(time.Hour + 49*4*time.Second)
	if _, err := c.Observe(t.Context()); !errors.Is(err, live.ErrOver) {
		t.Errorf("at the end: %v", err)
	}
	if now := c.Now(); now != epoch.Add(jobs[99].Submit) {
		t.Errorf("the clock ends at %v", now)
	}
}

// A demo does not depend on how often processes look at it.
func TestLooksChangeNothing(t *testing.T) {
	w := &wall{at: time.Unix(1e9, 0)}
	often, once := demo(t, cfg(history(300), w)), demo(t, cfg(history(300), w))
	observed(t, often)
	observed(t, once)
	for range 500 {
		w.pass(time.Second)
		observed(t, often)
	}
	a, b := observed(t, often), observed(t, once)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%v\n%v", a, b)
	}
}

// Two processes see one demo: the clock of the first, and what either has done. The next begins another one.
func TestProcessesShareADemo(t *testing.T) {
	if !lock.Supported {
		t.Skip("this system has no locks")
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, []byte("jobs"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &wall{at: time.Unix(1e9, 0)}
	open := func(s Settings) (*Cluster, error) {
		j, err := OpenJournal(t.Context(), dir, file, s)
		if err != nil {
			return nil, err
		}
		x := cfg(history(300), w)
		x.Journal, x.Speed = j, j.Speed
		return demo(t, x), nil
	}
	must := func(s Settings) *Cluster {
		t.Helper()
		c, err := open(s)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	fast := Unset()
	fast.Speed = 120
	a := must(fast)
	start := observed(t, a).At
	w.pass(30 * time.Second)
	b := must(Unset())
	if s := observed(t, b); s.At != start.Add(time.Hour) {
		t.Errorf("the second process is at %v, and the first began at %v", s.At, start)
	}
	s := observed(t, a)
	i := slices.IndexFunc(s.Jobs, func(j live.Job) bool { return j.State == live.Waiting })
	id := s.Jobs[i].ID
	if r := b.Act(t.Context(), []live.Action{{Op: live.HoldJob, Job: id}}); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	if !observed(t, a).Job(id).Ours {
		t.Error("the first process does not see what the second has held")
	}
	w.pass(time.Minute)
	c := must(Unset())
	if x, y, z := observed(t, a), observed(t, b), observed(t, c); fmt.Sprint(x) != fmt.Sprint(y) ||
		fmt.Sprint(y) != fmt.Sprint(z) || !z.Job(id).Ours {
		t.Errorf("%v\n%v\n%v", x, y, z)
	}
	other := Unset()
	other.Speed = 60
	if _, err := open(other); err == nil || !strings.Contains(err.Error(), "got 60, and the demo of") {
		t.Errorf("another speed: %v", err)
	}
	if err := os.WriteFile(file, []byte("other jobs"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(Unset()); err == nil || !strings.Contains(err.Error(), "has changed since process") {
		t.Errorf("another history: %v", err)
	}
	for _, x := range []*Cluster{a, b, c} {
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	d := must(other)
	if s := observed(t, d); s.At != start || s.Job(id) != nil && s.Job(id).Ours {
		t.Errorf("a new demo begins at %v with %+v", s.At, s.Job(id))
	}
	_ = d.Close()
}

// What another process did before this one looked is done at its time.
func TestWhatComesTooLateIsDoneInTime(t *testing.T) {
	w := &wall{at: time.Unix(1e9, 0)}
	a, b := demo(t, cfg(history(300), w)), demo(t, cfg(history(300), w))
	s := observed(t, a)
	observed(t, b)
	i := slices.IndexFunc(s.Jobs, func(j live.Job) bool { return j.State == live.Waiting })
	w.pass(time.Second)
	e := entry{At: a.clock(), Actions: []live.Action{{Op: live.HoldJob, Job: s.Jobs[i].ID}}}
	w.pass(time.Minute)
	observed(t, b)
	a.follow(&e)
	b.follow(&e)
	w.pass(time.Minute)
	if x, y := observed(t, a), observed(t, b); fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("%v\n%v", x, y)
	}
}

func TestHalfALineOfTheJournalSaysNothing(t *testing.T) {
	if !lock.Supported {
		t.Skip("this system has no locks")
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a, b := journal(t, dir, file, Unset()), journal(t, dir, file, Unset())
	if _, err := a.file.WriteAt([]byte(`{"at":1,"actions":[{"Op":0,"Job":"a"`), a.done); err != nil {
		t.Fatal(err)
	}
	if list, err := b.read(); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if err := b.add(&entry{At: 2}); err != nil {
		t.Fatal(err)
	}
	if err := b.add(&entry{At: 3}); err != nil {
		t.Fatal(err)
	}
	if list, err := a.read(); err != nil || len(list) != 2 || list[1].At != 3 {
		t.Errorf("%v, %v", list, err)
	}
}

// One node of 8. a takes 4 for an hour, b asks for 8 and waits for it, c (4 GPUs, 30 min) is back-filled, d (4 GPUs, 2
// h) is not.
func TestBackfills(t *testing.T) {
	jobs := []traces.Job{
		{ID: "a", GPUs: 4, Work: time.Hour, Estimate: time.Hour},
		{ID: "b", GPUs: 8, Work: time.Hour, Estimate: time.Hour},
		{ID: "d", GPUs: 4, Work: 2 * time.Hour, Estimate: 2 * time.Hour},
		{ID: "c", GPUs: 4, Work: 30 * time.Minute, Estimate: 30 * time.Minute},
		{ID: "end", GPUs: 1, Work: 1, Submit: 9 * time.Hour},
	}
	for fill, want := range map[string]string{
		BackfillEasy: "a 0s b 1h0m0s c 0s d 2h0m0s", BackfillNone: "a 0s b 1h0m0s c 2h0m0s d 2h0m0s",
		BackfillAny: "a 0s b 2h0m0s c 1h0m0s d 0s",
	} {
		p, err := newPast(jobs, machines(1, 8), fill, 0)
		if err != nil {
			t.Fatal(err)
		}
		m, _, _ := p.machine()
		all := map[string]*job{}
		for id, j := range m.jobs {
			all[id] = j
		}
		m.advance(8 * time.Hour)
		var got []string
		for _, id := range []string{"a", "b", "c", "d"} {
			got = append(got, id, all[id].start.String())
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %s, want %s", fill, got, want)
		}
	}
}

// A job behind the first in line may run beyond its start on GPUs that it leaves.
func TestALongJobIsBackfilledBesideTheFirstInLine(t *testing.T) {
	jobs := []traces.Job{
		{ID: "a", GPUs: 8, Work: time.Hour, Estimate: time.Hour},
		{ID: "b", GPUs: 6, Work: time.Hour, Estimate: time.Hour},
		{ID: "c", GPUs: 12, Work: time.Hour, Estimate: time.Hour}, // at 1h, all of one node and 4 of another
		{ID: "d", GPUs: 2, Work: 9 * time.Hour, Estimate: 9 * time.Hour},
		{ID: "e", GPUs: 3, Work: 9 * time.Hour, Estimate: 9 * time.Hour},
		{ID: "end", GPUs: 1, Work: 1, Submit: 9 * time.Hour},
	}
	p, err := newPast(jobs, machines(2, 8), BackfillEasy, 0)
	if err != nil {
		t.Fatal(err)
	}
	m, _, _ := p.machine()
	m.advance(time.Minute)
	if m.jobs["d"].State != live.Running || m.jobs["c"].State != live.Waiting || m.jobs["e"].State != live.Waiting {
		t.Errorf("d is %v, c %v, e %v", m.jobs["d"].State, m.jobs["c"].State, m.jobs["e"].State)
	}
	m.advance(time.Hour)
	if j := m.jobs["c"]; j.State != live.Running || j.start != time.Hour {
		t.Errorf("c is %v since %v", j.State, j.start)
	}
}

func TestWhatHasNoPlaceIsLeftOutAndCounted(t *testing.T) {
	jobs := []traces.Job{
		{ID: "a", GPUs: 1, Work: time.Hour}, {ID: "a", GPUs: 1, Work: time.Hour, GPUTypes: []string{"A100"}},
		{ID: "c", Work: time.Hour}, {ID: "d", GPUs: 1},
		{ID: "e", GPUs: 64, Work: time.Hour}, {ID: "f", GPUs: 1, Work: time.Hour, GPUTypes: []string{"v100"}},
		{GPUs: 1, Work: time.Hour, Submit: time.Minute},
	}
	nodes := machines(2, 8)
	nodes[0].GPUType, nodes[1].GPUType = "a100", "a100"
	p, err := newPast(jobs, nodes, BackfillEasy, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.leftOut != (LeftOut{NoGPUs: 1, NoRunTime: 1, Unfit: 2, UnfitHours: 65, Hours: 68}) {
		t.Errorf("%+v", p.leftOut)
	}
	if len(p.jobs) != 3 || p.jobs[1].ID != "a~2" || p.jobs[1].GPUTypes[0] != "a100" || p.jobs[2].ID == "" {
		t.Errorf("%+v", p.jobs)
	}
	p, err = newPast(jobs, machines(8, 8), BackfillEasy, 0)
	if err != nil || p.leftOut.Unfit != 0 || p.jobs[1].GPUTypes != nil {
		t.Errorf("nodes without a type take any: %v, %+v", err, p)
	}
	for want, x := range map[string][]traces.Job{
		"no job has a run time":                 jobs[3:4],
		"no job has GPUs":                       jobs[2:3],
		"none of the 1 jobs fits":               jobs[4:5],
		"submitted after the demo's beginning":  jobs[:1],
		"no job has GPUs; want a file of jobs ": nil,
	} {
		if _, err := newPast(x, nodes, BackfillEasy, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestGuess(t *testing.T) {
	nodes, why := Guess(recorded(t, 200))
	if len(nodes) != 4 || nodes[0].GPUs != 8 || nodes[3].Name != "n4" || !strings.HasPrefix(why, "4x8 is guessed: at most 3") {
		t.Errorf("%v, %s", nodes, why)
	}
	if nodes, why = Guess(history(200)); len(nodes) < 2 || len(nodes) > 12 || !strings.Contains(why, "85 %") {
		t.Errorf("%v, %s", nodes, why)
	}
	typed := recorded(t, 200)
	for i := range typed {
		if typed[i].GPUs == 1 {
			typed[i].GPUTypes = []string{[]string{"V100", "v100"}[i%2]}
		}
	}
	if nodes, why = Guess(typed); nodes[0].GPUType != "v100" || nodes[len(nodes)-1].GPUType != "v100" {
		t.Errorf("%v, %s", nodes, why)
	}
	if nodes, why = Guess([]traces.Job{{GPUs: 3, Work: time.Hour, Started: true}}); len(nodes) != 1 || nodes[0].GPUs != 4 {
		t.Errorf("%v, %s", nodes, why)
	}
}

// At 60 times the speed, a wait by the clock of the demo takes a sixtieth of the time.
func TestSleep(t *testing.T) {
	c := demo(t, cfg(history(100), &wall{}))
	begun := time.Now()
	if err := c.Sleep(t.Context(), 600*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begun); d < 10*time.Millisecond || d > 500*time.Millisecond {
		t.Errorf("%v", d)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Sleep(ctx, time.Hour); err == nil {
		t.Error("no error")
	}
}

// Several goroutines of one process may look and act.
func TestTheDemoIsSafeForConcurrentUse(t *testing.T) {
	w := &wall{at: time.Unix(1e9, 0)}
	c := demo(t, cfg(history(300), w))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 50 {
				s, err := c.Observe(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				w.pass(100 * time.Millisecond)
				c.Act(t.Context(), []live.Action{{Op: live.RankJob, Job: s.Jobs[i%len(s.Jobs)].ID, Score: int64(i)}})
				_ = c.Now()
			}
		})
	}
	all.Wait()
}
