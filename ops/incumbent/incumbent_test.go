package incumbent

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/internal/raced"
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/fairshare"
	"clustergym/traces"
	"clustergym/traces/synth"
)

// gpus is how many the cluster of the tests has.
const gpus = 64

// demand generates n jobs for eight tenths of a cluster, with limits and accounts.
func demand(t testing.TB, n int, seed uint64) []traces.Job {
	t.Helper()
	cfg := synth.DefaultConfig()
	cfg.Profile, cfg.Jobs = "hpc", n
	all, err := synth.Generate(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	work := 0.0
	for i := range all {
		j := &all[i]
		j.GPUs = min(j.GPUs, gpus/4)
		j.Work = j.Work.Round(time.Second)
		j.Estimate = max(j.Estimate, j.Work).Round(time.Second)
		j.Group = [...]string{"chem", "bio", "phys", "ml"}[len(j.User)%2+2*(i%2)]
		j.VC = "main"
		if i%4 == 0 {
			j.VC = "own"
			j.GPUs = min(j.GPUs, 8)
		}
		work += j.GPUHours()
	}
	f := work / .7 / gpus / all[n-1].Submit.Hours()
	for i := range all {
		all[i].Submit = time.Duration(f * float64(all[i].Submit)).Round(time.Second)
	}
	return all
}

// ran lets a model start the jobs, and returns them with their starts.
func ran(t testing.TB, spec cluster.Spec, jobs []traces.Job, m Model) []traces.Job {
	t.Helper()
	p := &Past{Spec: spec, Jobs: jobs}
	s, err := p.PlayModel(t.Context(), &m, "consolidate-best")
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(jobs)
	for i := range out {
		out[i].Start(s.Starts[i])
	}
	return out
}

func past(t testing.TB, spec cluster.Spec, jobs []traces.Job) (*Past, *Left) {
	t.Helper()
	p, left, err := New(spec, jobs, Reading{Placement: "consolidate-best"})
	if err != nil {
		t.Fatal(err)
	}
	return p, left
}

var nodes = cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: gpus / 8, GPUs: 8}}}}}

// A ranking without favoured accounts is first come, first served with easy back-filling.
func TestARankingOfOneClassIsEasy(t *testing.T) {
	jobs := demand(t, 2000, 1)
	p := &Past{Spec: cluster.Spec{Pool: gpus}, Jobs: jobs}
	a, err := p.PlayModel(t.Context(), &Model{Name: "own", own: &Ranking{Owner: Account}}, "first-fit")
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.PlayModel(t.Context(), &Model{Name: "fifo+strict+easy"}, "first-fit")
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Starts {
		if a.Starts[i] != b.Starts[i] {
			t.Fatalf("job %d starts at %v and at %v", i, a.Starts[i], b.Starts[i])
		}
	}
}

// The model that ran is found, and waits as was recorded; where none of the models ran, one like it is.
func TestFitFindsTheSchedulerThatRan(t *testing.T) {
	if raced.On {
		t.Skip("shorter plays on several workers are watched elsewhere")
	}
	for _, x := range []struct {
		ran   Model
		found []string
		exact bool
	}{
		{Model{Name: "fifo+strict+easy"}, []string{"fifo+strict+easy"}, true},
		{Model{Name: "fifo+strict+conservative"}, []string{"fifo+strict+conservative"}, true},
		{Model{Name: "fifo+skip"}, []string{"fifo+skip"}, true},
		{Model{Name: "first", own: &Ranking{First: []string{"bio"}, Owner: Account}},
			[]string{"first-account+easy"}, true},
		{Model{Name: fairName, fair: &fairshare.Priority{HalfLife: 5 * day, Age: 1.5, Size: .2, Fair: 1, MaxAge: 7 * day}},
			[]string{fairName}, false},
		{Model{Name: "fifo+strict", Apart: true, vcs: []cluster.VCSpec{{Name: "main", Nodes: 6}, {Name: "own", Nodes: 2}}},
			[]string{"fifo+strict"}, true},
		{Model{Name: "fifo+strict+easy", Placement: "best-fit"}, []string{"fifo+strict+easy"}, false},
	} {
		t.Run(x.ran.Name, func(t *testing.T) {
			n := 1200
			if !x.exact {
				n = 2500 // the second half of fewer is a few crowds
			}
			jobs := ran(t, nodes, demand(t, n, 2), x.ran)
			p, _ := past(t, nodes, jobs)
			one, err := Fit(t.Context(), p, "consolidate-best", 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			best := &one[0]
			h := p.Halves()
			was := Mean(p.Waits(p.Recorded()), h.Second)
			t.Logf("%s (%s, %s): error %.0f s, mean %.0f s, recorded %.0f s", best.Name, best.Placement, best.Text, best.Error,
				best.SecondMean, was)
			if !slices.ContainsFunc(x.found, func(name string) bool { return strings.HasPrefix(best.Name, name) }) {
				t.Errorf("found %s", best.Name)
			}
			if off := math.Abs(best.SecondMean/was - 1); off > .1 || x.exact && best.Error > 1 {
				t.Errorf("the mean wait is off by %.1f %%, single waits by %.0f s", 100*off, best.Error)
			}
			if x.exact {
				return // one is enough
			}
			four, err := Fit(t.Context(), p, "consolidate-best", 4, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range one {
				if one[i].Name != four[i].Name || one[i].Error != four[i].Error {
					t.Errorf("number %d is %s with one worker and %s with four", i, one[i].Name, four[i].Name)
				}
			}
		})
	}
}

// A record that begins in the middle has the jobs that ran then where they were, and is played on as it was.
func TestARecordFromTheMiddle(t *testing.T) {
	jobs := ran(t, cluster.Spec{Pool: gpus}, demand(t, 1500, 3), Model{Name: "fifo+strict+easy"})
	from := jobs[500].Submit
	jobs = slices.DeleteFunc(jobs, func(j traces.Job) bool { return j.Submit+j.Waited+j.Work < from })
	for i := len(jobs) - 1; i >= 0; i-- {
		jobs[i].Submit -= jobs[0].Submit
	}
	// the last jobs had not ended
	end := jobs[len(jobs)-1].Submit
	for i := range jobs {
		switch start := jobs[i].Submit + jobs[i].Waited; {
		case start > end:
			jobs[i].Started, jobs[i].Waited, jobs[i].Open, jobs[i].Work = false, 0, traces.StillWaiting, 0
		case start+jobs[i].Work > end:
			jobs[i].Open, jobs[i].Work = traces.StillRunning, end-start
		}
	}
	p, left := past(t, cluster.Spec{Pool: gpus}, jobs)
	if left.Running == 0 || left.Before == 0 || p.End != end {
		t.Errorf("%+v, end %v, want %v", left, p.End, end)
	}
	s, err := p.PlayModel(t.Context(), &Model{Name: "fifo+strict+easy"}, "consolidate-best")
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, was := range p.Starts {
		if was >= 0 && was < end && s.Starts[i] != was {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d jobs do not start as they did", wrong, len(p.Jobs))
	}
}

// Jobs that fit nowhere and jobs without GPUs are counted, and limits that stand for missing ones.
func TestWhatIsLeftOut(t *testing.T) {
	jobs := ran(t, nodes, demand(t, 200, 1), Model{Name: "fifo+skip"})
	jobs[3].GPUs, jobs[4].GPUs, jobs[5].Estimate = 0, 10*gpus, 0
	p, left, err := New(nodes, jobs, Reading{Limit: 5 * time.Hour, Placement: "consolidate-best"})
	if err != nil {
		t.Fatal(err)
	}
	if left.CPUOnly != 1 || left.Never != 1 || left.Given != 1 || left.First != jobs[5].ID || len(left.Why) != 1 ||
		left.Share() <= 0 || len(p.Jobs) != 198 {
		t.Errorf("%+v, %d jobs", left, len(p.Jobs))
	}
	i := slices.IndexFunc(p.Jobs, func(j traces.Job) bool { return j.ID == jobs[5].ID })
	if p.Jobs[i].Estimate != 5*time.Hour || !p.HasLimits() {
		t.Errorf("%v", p.Jobs[i].Estimate)
	}
}

// What a past plays does not change it.
func TestPlaysDoNotChangeThePast(t *testing.T) {
	jobs := ran(t, nodes, demand(t, 300, 1), Model{Name: "fifo+skip"})
	p, _ := past(t, nodes, jobs)
	before := slices.Clone(p.Jobs)
	for _, m := range p.Models() {
		if _, err := p.PlayModel(t.Context(), &m, "consolidate-best"); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	for i := range before {
		if before[i].Estimate != p.Jobs[i].Estimate || before[i].Submit != p.Jobs[i].Submit {
			t.Fatalf("job %d has changed", i)
		}
	}
	if n := len(p.Models()); n < 12 {
		t.Errorf("%d models", n)
	}
}
