package profile

import (
	"math"
	"sync"
	"testing"
	"time"

	"clustergym/traces"
)

func TestAssignSetsWorkAndProfile(t *testing.T) {
	g := gavelTable(t)
	before := &traces.Profile{Name: "mine", GradientBytes: 7, Skewed: true, Compute: 1, MemBytes: 9}
	jobs := []traces.Job{
		{ID: "0", Model: "A (batch size 16)", GPUs: 4, Iterations: 60},
		{ID: "1", Model: "A (batch size 16)", GPUs: 1, Iterations: 60, Work: 5 * time.Second},
		{ID: "2", Model: "A (batch size 16)", GPUs: 16, Iterations: 60}, // as on 4, the largest number measured
		{ID: "3", Model: "D", GPUs: 1, Iterations: 60},
		{ID: "4", Model: "B", GPUs: 1},
		{ID: "5", Model: "B", GPUs: 1, Iterations: 3, Profile: before},
		{ID: "6", GPUs: 1, Work: time.Second},
	}
	changed, unknown := assign(jobs, g, "V100")
	if changed != 5 || unknown != 3 { // the model of 3, the iterations of 4, the name of 6
		t.Errorf("%d changed, %d unknown", changed, unknown)
	}
	for i, want := range []time.Duration{2 * time.Second, 5 * time.Second, 2 * time.Second, 0, 0, 1500 * time.Millisecond,
		time.Second} {
		if jobs[i].Work != want {
			t.Errorf("job %d runs %v, want %v", i, jobs[i].Work, want)
		}
	}
	if p := jobs[0].Profile; p == nil || p != jobs[1].Profile || p != jobs[2].Profile || jobs[3].Profile != nil ||
		jobs[6].Profile != nil {
		t.Error("jobs of one model do not share its profile, or others have one")
	}
	if p := jobs[5].Profile; p.Name != "B" || p.Compute != 500*time.Millisecond || p.GradientBytes != 7 || !p.Skewed ||
		p.MemBytes != 9 || p.Speeds["k80"] != .25 {
		t.Errorf("%+v", p)
	}
	if before.Name != "mine" || before.Speeds != nil {
		t.Error("a profile was changed in place")
	}
	first := *jobs[0].Profile
	again := jobs[0].Profile
	if changed, unknown := assign(jobs, g, "v100"); changed != 0 || unknown != 3 {
		t.Errorf("again: %d changed, %d unknown", changed, unknown)
	}
	if jobs[0].Profile != again || jobs[0].Profile.Compute != first.Compute {
		t.Error("a second Assign changes something")
	}
	if changed, unknown := assign([]traces.Job{{Model: "A", GPUs: 1, Iterations: 1}}, g, "p100"); changed != 0 ||
		unknown != 1 {
		t.Errorf("with a type that is not there: %d changed, %d unknown", changed, unknown)
	}
}

func TestAssignTakesTheBatchSizeOfAJob(t *testing.T) {
	s := smallSia(t).table()
	for _, c := range []struct {
		batch int
		work  time.Duration
		name  string
	}{{10, 200 * time.Second, "net (batch size 10)"}, {40, 189 * time.Second, "net (batch size 40)"},
		{0, 189 * time.Second, "net (batch size 40)"}, {20, 0, ""}} {
		j := traces.Job{Model: "net", GPUs: 1, Batch: c.batch}
		changed, known := s.Assign(&j, "rtx")
		if known != (c.work > 0) || changed != known || j.Work != c.work || known && j.Profile.Name != c.name {
			t.Errorf("batch size %d: %v, %v, %+v", c.batch, changed, known, j)
		}
	}
}

func TestAssignTakesTheBatchSizeThatAJobHas(t *testing.T) {
	s := smallSia(t).table()
	jobs := []traces.Job{{Model: "net", GPUs: 1, Batch: 10}, {Model: "net", GPUs: 1, Batch: 40}, {Model: "net", GPUs: 1},
		{Model: "net", GPUs: 1, Batch: 20}}
	changed, unknown := assign(jobs, s, "rtx")
	if changed != 3 || unknown != 1 {
		t.Errorf("%d changed, %d unknown", changed, unknown)
	}
	for i, want := range []time.Duration{200 * time.Second, 189 * time.Second, 189 * time.Second, 0} {
		if jobs[i].Work != want {
			t.Errorf("batch size %d: %v, want %v", jobs[i].Batch, jobs[i].Work, want)
		}
	}
}

func TestAssignCountsDeadlinesInRunTimes(t *testing.T) {
	const s, end = time.Second, time.Duration(math.MaxInt64)
	for name, c := range map[string]struct {
		job  traces.Job
		want time.Duration
	}{ // 4 steps of B take 2 s on a V100
		"a multiple of the run time": {traces.Job{Submit: 10 * s, SLO: 1.5}, 13 * s},
		"less than the run time":     {traces.Job{Submit: 10 * s, SLO: .5}, 11 * s},
		"no multiple":                {traces.Job{Submit: 10 * s}, 0},
		"no multiple, a deadline":    {traces.Job{Submit: 10 * s, Deadline: 5 * s}, 5 * s},
		"a run time of its own":      {traces.Job{Submit: 10 * s, SLO: 2, Work: s}, 0},
		"beyond all time":            {traces.Job{Submit: 10 * s, SLO: 9e12}, end},
		"late and beyond":            {traces.Job{Submit: end - s, SLO: 1}, end},
	} {
		c.job.Model, c.job.GPUs, c.job.Iterations = "B", 1, 4
		if _, known := gavelTable(t).Assign(&c.job, "V100"); !known || c.job.Deadline != c.want {
			t.Errorf("%s: deadline %v of %v, want %v", name, c.job.Deadline, c.job.Work, c.want)
		}
	}
}

func TestWorkBeyondADurationIsNotOk(t *testing.T) {
	g := gavelTable(t)
	if d, ok := g.Work("B", 0, 1, math.MaxInt64, "k80"); ok {
		t.Errorf("got %v", d)
	}
	if d, ok := g.Work("B", 0, 1, 1, "k80"); !ok || d != 2*time.Second {
		t.Errorf("got %v, %v", d, ok)
	}
	if d, ok := g.Work("B", 0, 1, 0, "k80"); ok {
		t.Errorf("no iterations take %v", d)
	}
}

func TestProfilesAreSafeForConcurrentUse(t *testing.T) {
	g := gavelTable(t)
	m, _ := Named("lwf")
	var wg sync.WaitGroup
	got := make([][2]*traces.Profile, 8)
	for i := range got {
		wg.Go(func() {
			got[i][0], _ = g.Profile("A", "v100")
			got[i][1] = m.Profile(1, "7", "vgg16")
		})
	}
	wg.Wait()
	for _, p := range got {
		if p != got[0] || p[0] == nil || p[1] == nil {
			t.Fatal("profiles differ")
		}
	}
}

// assign calls Assign for each of jobs. changed counts the jobs that got something, unknown those whose model the table
// does not have or whose Work is still 0.
func assign(jobs []traces.Job, t *Table, reference string) (changed, unknown int) {
	for i := range jobs {
		did, known := t.Assign(&jobs[i], reference)
		if did {
			changed++
		}
		if !known {
			unknown++
		}
	}
	return changed, unknown
}

// Work returns the run time of a job alone on gpus GPUs of type reference, consolidated: iterations over the
// throughput. As in a profile's Scaling, more GPUs than were measured give no more throughput. Sia's and Pollux' tables
// know how many iterations a training takes with each batch size, so iterations may be 0 for them. batch counts the
// examples on all GPUs together. If batch is 0, Work takes the one in the model's name; else, if the table knows how
// long a training is, the one with the shortest training on these GPUs (as the authors did for their workloads); else
// the smallest that was measured there. ok is false if the table does not have the answer, or the time exceeds what a
// time.Duration holds.
func (t *Table) Work(model string, batch, gpus int, iterations int64, reference string) (time.Duration, bool) {
	gpu, ok := t.Type(reference)
	m := t.pick(model, batch, gpus, gpu)
	if !ok || m == nil {
		return 0, false
	}
	return m.work(gpus, iterations, gpu)
}

// Profile returns what the table knows about a model, for a cluster whose reference GPU is of type reference (see
// Type):
//
//   - Compute: the time of an iteration on one GPU; if the model needs n GPUs at least, n times the time on n.
//   - Speeds: by type, relative to the reference, on the smallest number of GPUs for which both were measured; nil for
//     a table with one type.
//   - Scaling: the throughput on the reference, consolidated on the fewest nodes; nil if fewer than two points are
//     known.
//   - GradientBytes, MemBytes, Skewed, if the table has them.
//
// ok is false if the table does not have the model, or has throughputs but none of this model on the reference. A base
// name stands for the batch size that Work takes on one GPU. Equal calls return the same *traces.Profile.
func (t *Table) Profile(model string, reference string) (*traces.Profile, bool) {
	gpu, _ := t.Type(reference)
	p := t.profile(t.pick(model, 0, 1, gpu), gpu, nil)
	return p, p != nil
}
