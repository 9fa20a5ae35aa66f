package workerplace

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clustergym/env"
	"clustergym/env/envtest"
	"clustergym/traces"
	"clustergym/traces/profile"
	"clustergym/traces/sia"
)

const minute = time.Minute

// speeds are those of two models by hand.
const speeds = `model,workers,servers,speed
bert,1,1,1
bert,2,1,2
bert,2,2,1
ncf,1,,5
ncf,4,1,10
ncf,4,2,9
ncf,4,4,5
`

// interference is what they keep.
const interference = "model,other,kept\nbert,ncf,0.5\nncf,*,0.8\n"

func profiles(t *testing.T) *Profiles {
	t.Helper()
	p, err := ReadProfiles(strings.NewReader(speeds), "speeds.csv")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func between(t *testing.T) *profile.Interference {
	t.Helper()
	x, err := profile.ReadInterference(strings.NewReader(interference), "kept.csv")
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// jobs makes n of them, one every ten minutes, of 30 minutes and more, by turns of the given models and of 1, 2 and 4
// GPUs.
func jobs(n int, models ...string) []traces.Job {
	var all []traces.Job
	for i := range n {
		all = append(all, traces.Job{
			ID: fmt.Sprint("j",
				i), Model: models[i%len(models)], Submit: time.Duration(i) * 10 * minute, Work: time.Duration(30+i%40) * minute,
			GPUs: 1 << (i % 3), GPUMilli: 1000,
		})
	}
	return all
}

func windows(t *testing.T, all []traces.Job, length int) *traces.Windows {
	t.Helper()
	w, err := traces.NewWindows(all, length, 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// tiny are settings for windows of 10 jobs.
func tiny() Config {
	c := DefaultConfig()
	c.Jobs = 10
	return c
}

func open(t *testing.T, c Config, all []traces.Job, o WorkloadOptions) *Env {
	t.Helper()
	w, err := NewWorkload(c, windows(t, all, c.Jobs), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewRecorded(c, w, traces.Training)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mix(t *testing.T, name string) *profile.Mix {
	t.Helper()
	m, err := profile.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func TestAWorkloadKeepsTheContract(t *testing.T) {
	pairs := tiny()
	pairs.Obs, pairs.Slots, pairs.Failures, pairs.Noise = "pairs", 5, 0.02, 0.1
	for name, c := range map[string]struct {
		cfg    Config
		models []string
		o      WorkloadOptions
	}{
		"types by name": {tiny(), []string{"vgg-16", "wlm", "resnet-50 (batch size 32)"}, WorkloadOptions{Load: 0.9}},
		"types drawn":   {pairs, []string{""}, WorkloadOptions{Mix: mix(t, "dl2")}},
		"measured":      {tiny(), []string{"bert", "ncf"}, WorkloadOptions{Profiles: profiles(t), Interference: between(t)}},
	} {
		t.Run(name, func(t *testing.T) {
			envtest.Run(t, func() env.Env { return open(t, c.cfg, jobs(100, c.models...), c.o) }, envtest.NoAllocs(),
				envtest.Sealed(), envtest.Cap(3000))
		})
	}
}

// Intervals take 20 minutes: what is submitted within one comes at its end.
func TestRecordedJobsByHand(t *testing.T) {
	all := jobs(100, "bert", "ncf")
	e := open(t, tiny(), all, WorkloadOptions{Profiles: profiles(t), Interference: between(t)})
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: 2}, ts); err != nil {
		t.Fatal(err)
	}
	for i := range e.jobs {
		j, r := &e.jobs[i], &all[20+i]
		if j.arrives != (i+1)/2 || j.kind != i%2 || j.workers != r.GPUs || j.gpus != 1 ||
			math.Abs(j.work-r.Work.Minutes()/20) > 1e-12 {
			t.Errorf("job %d is %+v, recorded %+v", i, j, r)
		}
	}
	if names := e.work.Names(); !slices.Equal(names, []string{"bert", "ncf"}) {
		t.Errorf("types %v", names)
	}
	// Of the test part's window 1, and of one that is drawn.
	if err := e.Reset(ctx, env.Episode{Window: 1, Split: "test"}, ts); err != nil || e.jobs[0].workers != all[90].GPUs {
		t.Errorf("%+v, %v", e.jobs[0], err)
	}
	starts := map[float64]bool{}
	for seed := range uint64(50) {
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: -1, Split: "validation"}, ts); err != nil {
			t.Fatal(err)
		}
		starts[e.jobs[0].work] = true
	}
	if len(starts) != 1 { // ten jobs, windows of ten
		t.Errorf("%d windows of the validation part", len(starts))
	}
	// Tasks change times and lengths.
	task := []float64{2, 3, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1}
	if err := e.Reset(ctx, env.Episode{Window: 2, Task: task}, ts); err != nil {
		t.Fatal(err)
	}
	if j := e.jobs[9]; j.arrives != 3 || math.Abs(j.work-3*all[29].Work.Minutes()/20) > 1e-12 { // 45 minutes
		t.Errorf("with twice the rate and three times the length: %+v", j)
	}
}

func TestALoadStretchesTheSubmits(t *testing.T) {
	all := jobs(100, "bert")
	for _, load := range []float64{0.5, 2} {
		e := open(t, tiny(), all, WorkloadOptions{Profiles: profiles(t), Load: load})
		ts := env.NewTimeStep(e.Spec())
		if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
			t.Fatal(err)
		}
		area := 0.0
		for _, j := range all[:10] {
			area += float64(j.GPUs) * j.Work.Minutes() / 20
		}
		if got, want := float64(e.jobs[9].arrives), area/(48*load); got < want || got >= want+1 {
			t.Errorf("load %v: the last job comes at %v, want %v rounded up", load, got, want)
		}
	}
}

// Measured speeds: ncf with 4 workers makes 10, 9 and 5 iterations a second on 1, 2 or 3, and 4 servers.
func TestMeasuredSpeedsByHand(t *testing.T) {
	e := open(t, tiny(), jobs(100, "bert", "ncf"), WorkloadOptions{Profiles: profiles(t), Interference: between(t)})
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
		t.Fatal(err)
	}
	bert := func(on ...int32) Placed { return Placed{Type: 0, Workers: int(sum(on)), On: on} }
	ncf := func(on ...int32) Placed { return Placed{Type: 1, Workers: int(sum(on)), On: on} }
	for _, c := range []struct {
		jobs []Placed
		want []float64
	}{
		{[]Placed{ncf(4, 0, 0, 0, 0, 0)}, []float64{1}},
		{[]Placed{ncf(3, 1, 0, 0, 0, 0)}, []float64{0.9}},
		{[]Placed{ncf(2, 1, 1, 0, 0, 0)}, []float64{0.9}},
		{[]Placed{ncf(1, 1, 1, 1, 0, 0)}, []float64{0.5}},
		{[]Placed{bert(1, 1, 0, 0, 0, 0)}, []float64{0.5}},
		{[]Placed{bert(1, 0, 0, 0, 0, 0), ncf(1, 0, 0, 0, 0, 0)}, []float64{0.5, 0.8}},
		// Half of ncf's workers are beside bert: 0.9 · 0.8, and bert keeps 0.5 to the power of a half.
		{[]Placed{bert(1, 0, 0, 0, 0, 0), ncf(2, 2, 0, 0, 0, 0)}, []float64{math.Sqrt(0.5), 0.9 * 0.8}},
		{[]Placed{bert(1, 0, 0, 0, 0, 0), bert(1, 0, 0, 0, 0, 0)}, []float64{1, 1}},
	} {
		got := make([]float64, len(c.jobs))
		if err := e.Truth().Speeds(got, &Placement{Servers: 6, Jobs: c.jobs}); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-12 {
				t.Errorf("%+v: job %d runs at %v, want %v", c.jobs, i, got[i], c.want[i])
			}
		}
	}
}

func sum(on []int32) (n int32) {
	for _, w := range on {
		n += w
	}
	return n
}

func TestInterferenceComesFromTheFirstThatKnows(t *testing.T) {
	c := tiny()
	drawn := Table(c.Table)
	e := open(t, c, jobs(100, "bert", "ncf"), WorkloadOptions{Profiles: profiles(t)})
	if k := e.work.kept; k != drawn {
		t.Errorf("without measurements: %v", k[0])
	}
	e = open(t, c, jobs(100, "vgg-16"), WorkloadOptions{})
	if e.work.kept != drawn {
		t.Error("DL2's types: the table is another one")
	}
	x, err := profile.ReadInterference(strings.NewReader("model,other,kept\nvgg-16,wlm,0.25\n"), "kept.csv")
	if err != nil {
		t.Fatal(err)
	}
	e = open(t, c, jobs(100, "vgg-16"), WorkloadOptions{Interference: x})
	if k := e.work.kept; k[1][7] != 0.25 || k[7][1] != 1 {
		t.Errorf("given: %v, %v", k[1], k[7])
	}
}

// A drawn model follows from seed and job; a job that names one keeps it.
func TestModelsAreDrawnForJobsThatNameNone(t *testing.T) {
	all := jobs(200, "", "wlm", "gpt")
	e := open(t, tiny(), all, WorkloadOptions{Mix: mix(t, "dl2")})
	ts := env.NewTimeStep(e.Spec())
	kinds := func(seed uint64, window int, task []float64) (k []int) {
		if err := e.Reset(ctx, env.Episode{Seed: seed, Window: window, Task: task}, ts); err != nil {
			t.Fatal(err)
		}
		for i := range e.jobs {
			k = append(k, e.jobs[i].kind)
		}
		return k
	}
	seen := map[int]bool{}
	for window := range 14 {
		a, b := kinds(1, window, nil), kinds(1, window, nil)
		if !slices.Equal(a, b) {
			t.Errorf("window %d: %v, then %v", window, a, b)
		}
		for i, k := range a {
			if all[10*window+i].Model == "wlm" && k != 7 {
				t.Errorf("a job of wlm is of type %d", k)
			}
			seen[k] = true
		}
	}
	if len(seen) != Types {
		t.Errorf("%d types were drawn", len(seen))
	}
	if slices.Equal(kinds(1, 0, nil), kinds(2, 0, nil)) {
		t.Error("two seeds draw the same types")
	}
	task := []float64{1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0}
	for i, k := range kinds(1, 0, task) {
		if k != 3 && all[i].Model != "wlm" {
			t.Errorf("a task of type 3 alone draws %d", k)
		}
	}
	// Weights of the mix: a model that has none never comes.
	m := mix(t, "dl2")
	m.Weights = []float64{0, 1, 0, 0, 0, 0, 0, 0}
	e = open(t, tiny(), jobs(100, ""), WorkloadOptions{Mix: m})
	if k := kinds(5, 0, nil); slices.ContainsFunc(k, func(k int) bool { return k != 1 }) {
		t.Errorf("types %v, want 1 alone", k)
	}
	if k := kinds(5, 0, task); k[0] != 1 { // the task wants types that the mix does not have
		t.Errorf("types %v, want 1 alone", k)
	}
}

func TestIterationsGiveTheRunTime(t *testing.T) {
	all := jobs(100, "bert", "ncf")
	for i := range all {
		all[i].Work, all[i].Iterations = 0, 2400
	}
	e := open(t, tiny(), all, WorkloadOptions{Profiles: profiles(t)})
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Window: 0}, ts); err != nil {
		t.Fatal(err)
	}
	// bert on 1, ncf on 2 (as on 1), bert on 4 (as on 2), ncf on 1, bert on 2, ncf on 4.
	for i, want := range []float64{2, 0.4, 1, 0.4, 1, 0.2} {
		if math.Abs(e.jobs[i].work-want) > 1e-12 {
			t.Errorf("job %d takes %v intervals, want %v", i, e.jobs[i].work, want)
		}
	}
}

// The mean completion time of the end is that of the return.
func TestReturnsOfAWorkloadAreWhatTheyStandFor(t *testing.T) {
	e := open(t, tiny(), jobs(100, "bert", "ncf"), WorkloadOptions{Profiles: profiles(t), Interference: between(t)})
	for _, r := range Rules() {
		ret := play(t, e, r.Name, env.Episode{Seed: 1, Window: 1, Split: "test"})
		jct, left := e.JCTs(nil)
		total := 0.0
		for _, x := range jct {
			total += x / 10
		}
		if left != 0 || math.Abs(ret+total) > 1e-9 {
			t.Errorf("%s: return %v, mean completion %v, %d unfinished", r.Name, ret, total, left)
		}
	}
}

func TestSnapshotsNameTheWorkload(t *testing.T) {
	o := WorkloadOptions{Profiles: profiles(t), Interference: between(t)}
	e := open(t, tiny(), jobs(100, "bert", "ncf"), o)
	ts := env.NewTimeStep(e.Spec())
	if err := e.Reset(ctx, env.Episode{Seed: 9, Window: 1, Split: "test"}, ts); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		a := slices.Index(ts.Mask, true)
		if err := e.Step(ctx, env.Action{Disc: []int32{int32(a)}}, ts); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, tiny(), jobs(100, "bert", "ncf"), o)
	got := env.NewTimeStep(other.Spec())
	if err := other.RestoreSnapshot(s, got); err != nil || fmt.Sprint(*got) != fmt.Sprint(*ts) {
		t.Errorf("%v", err)
	}
	again, err := other.AppendSnapshot(nil)
	if err != nil || !bytes.Equal(s, again) {
		t.Errorf("the snapshot of what was restored differs: %v", err)
	}
	o.Interference = nil
	another := open(t, tiny(), jobs(100, "bert", "ncf"), o)
	if err := another.RestoreSnapshot(s, got); !errors.Is(err, env.ErrSnapshot) ||
		!strings.Contains(err.Error(), "of another workload") {
		t.Errorf("%v", err)
	}
	if err := newEnv(t, func(c *Config) { *c = tiny() }).RestoreSnapshot(s, got); !errors.Is(err, env.ErrSnapshot) {
		t.Errorf("%v", err)
	}
}

func TestJobsThatCannotBeTakenAreNamed(t *testing.T) {
	change := func(f func(j *traces.Job)) []traces.Job {
		all := jobs(100, "bert")
		f(&all[95])
		return all
	}
	own := WorkloadOptions{Profiles: profiles(t)}
	many := WorkloadOptions{Profiles: func() *Profiles {
		text := "model,workers,speed\n"
		for k := range 9 {
			text += fmt.Sprintf("m%d,1,1\n", k)
		}
		p, err := ReadProfiles(strings.NewReader(text), "many.csv")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}()}
	for _, c := range []struct {
		jobs []traces.Job
		o    WorkloadOptions
		want string
	}{
		{jobs(100, ""), own,
			`WorkerPlace-v1: job "j0": it names no model; want jobs that name one of bert, ncf, or a mix that draws models (trace.mix=dl2)`},
		{jobs(100, ""), WorkloadOptions{},
			`WorkerPlace-v1: job "j0": it names no model; want jobs that name one of resnet-50, vgg-16,`},
		{change(func(j *traces.Job) { j.Model = "gpt" }), own,
			`WorkerPlace-v1: job "j95": it names model "gpt", of which no speed is known (known are bert, ncf); want a table of speeds that has it, or a mix`},
		{change(func(j *traces.Job) { j.GPUs = 49 }), own,
			`WorkerPlace-v1: job "j95": it asks for 49 GPUs, and the servers hold 48 workers; leave out larger jobs (max_gpus), or take more servers`},
		{change(func(j *traces.Job) { j.GPUs = 0 }), own, `WorkerPlace-v1: job "j95": it asks for 0 GPUs, want 1 or more`},
		{change(func(j *traces.Job) { j.Work = 0 }), own,
			`WorkerPlace-v1: job "j95": it has no run time; want one, or iterations and a table of speeds`},
		{change(func(j *traces.Job) { j.Work, j.Model = 0, "wlm" }), WorkloadOptions{Mix: mix(t, "dl2")},
			`WorkerPlace-v1: job "j95": it has no run time`},
		{jobs(100, "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"), many,
			"WorkerPlace-v1: its observation has 8 types of jobs, and the workload uses 9 models (m0, m1, m2, m3, m4, m5, m6, m7, m8); want at most 8"},
		{jobs(100, "bert"), WorkloadOptions{Profiles: profiles(t), Mix: mix(t, "dl2")},
			`WorkerPlace-v1: mix dl2: it has model "resnet-50", of which no speed is known; want models among bert, ncf`},
		{jobs(100, "bert"), WorkloadOptions{Profiles: profiles(t), Load: -1}, "load: got -1, want 0 (as recorded) to 1000"},
	} {
		if _, err := NewWorkload(tiny(), windows(t, c.jobs, 10), c.o); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
	if _, err := NewWorkload(tiny(), windows(t, jobs(100, "bert"), 20), own); err == nil ||
		err.Error() != "WorkerPlace-v1: windows of 20 jobs, want jobs = 10" {
		t.Errorf("%v", err)
	}
	if _, err := NewWorkload(Config{}, windows(t, jobs(100, "bert"), 10), own); err == nil ||
		!strings.Contains(err.Error(), "servers: got 0") {
		t.Errorf("%v", err)
	}
	few := change(func(j *traces.Job) { j.Model, j.Work, j.Iterations, j.GPUs = "slow", 0, 5, 1 })
	slow, err := ReadProfiles(strings.NewReader(speeds+"slow,8,1,1\n"), "speeds.csv")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewWorkload(tiny(), windows(t, few, 10), WorkloadOptions{Profiles: slow}); err == nil ||
		!strings.Contains(err.Error(), "it has iterations and no run time, and no speed of slow is known for a gang of 1") {
		t.Errorf("%v", err)
	}
	e := open(t, tiny(), jobs(100, "bert"), own)
	ts := env.NewTimeStep(e.Spec())
	for want, ep := range map[string]env.Episode{
		`WorkerPlace-v1: split "dev", want train, validation, test or nothing`: {Split: "dev"},
		"WorkerPlace-v1: window 2 of the test part: want 0 to 1, or -1":        {Window: 2, Split: "test"},
		"WorkerPlace-v1: a task of 1 numbers, want 13":                         {Task: []float64{1}},
	} {
		if err := e.Reset(ctx, ep, ts); !errors.Is(err, env.ErrEpisode) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func TestFilesOfSpeeds(t *testing.T) {
	p := profiles(t)
	if !slices.Equal(p.Names(), []string{"bert", "ncf"}) {
		t.Errorf("names %v", p.Names())
	}
	for _, c := range []struct {
		model            string
		workers, servers int
		spread, rate     float64
	}{{"bert", 2, 2, 0.5, 2}, {"bert", 8, 3, 0.5, 2}, {"bert", 1, 1, 1, 1}, {"ncf", 3, 3, 1, 5}, {"ncf", 4, 3, 0.9, 10},
		{"ncf", 4, 4, 0.5, 10}} {
		if s, r := p.Spread(c.model, c.workers, c.servers), p.Rate(c.model, c.workers); s != c.spread || r != c.rate {
			t.Errorf("%+v: spread %v, rate %v", c, s, r)
		}
	}
	if own, ok := p.Known("ncf (batch size 64)"); own != "ncf" || !ok {
		t.Errorf("%q, %v", own, ok)
	}
	if _, ok := p.Known("gpt"); ok {
		t.Error("a model that is not there is known")
	}
	for _, c := range []struct{ text, want string }{
		{"model,speed\n", "speeds.csv:1: got \"model,speed\", want a header with also workers"},
		{"model,workers,speed\n,1,1\n", "speeds.csv:2: model: got \"\", want the name of a model"},
		{"model,workers,speed\na,0,1\n", "speeds.csv:2: workers: got \"0\", want a whole number from 1 to 4096"},
		{"model,workers,speed\na,1,0\n", "speeds.csv:2: speed: got \"0\", want iterations a second, 1e-9 to 1e9"},
		{"model,workers,servers,speed\na,1,2,1\n", "speeds.csv:2: servers: got \"2\", want a whole number from 1 to 1"},
		{"model,workers,speed\na,1,1\na,1,2\n",
			"speeds.csv:3: workers: got \"1\", want each number of workers and servers of a model once"},
		{"model,workers,speed\n", "speeds.csv:1: got \"no rows\", want the speed of at least one model"},
	} {
		if _, err := ReadProfiles(strings.NewReader(c.text), "speeds.csv"); err == nil || err.Error() != c.want {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

func TestSpeedsAreLoadedByContent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := write("own.csv", speeds)
	gavel := write("gavel.json", `{"v100": {"('A (batch size 5)', 1)": {"null": 4.0, "('A (batch size 5)', 1)": [1.0, 2.0]}, "('A (batch size 5)', 2)": {"null": 6.0}},
 "k80": {"('A (batch size 5)', 1)": {"null": 1.0}}}`)
	if p, err := LoadProfiles(t.Context(), nil, own, ""); err != nil || len(p.Names()) != 2 {
		t.Errorf("%v", err)
	}
	p, err := LoadProfiles(t.Context(), nil, gavel, "V100")
	if err != nil {
		t.Fatal(err)
	}
	if own, ok := p.Known("A (batch size 7)"); own != "A" || !ok || !slices.Equal(p.Names(), []string{"A"}) {
		t.Errorf("%q, %v, %v", own, ok, p.Names())
	}
	if r := p.Rate("A", 1); r != 4 || p.Rate("A", 3) != p.Rate("A", 2) || p.Rate("B", 1) != 0 {
		t.Errorf("rates %v, %v, %v", r, p.Rate("A", 2), p.Rate("A", 3))
	}
	if k, ok := p.kept("A", "A"); !ok || k != 0.25 { // the first of two that are equal
		t.Errorf("kept %v, %v", k, ok)
	}
	if s := p.Spread("A", 4, 2); s != 1 {
		t.Errorf("spread %v", s)
	}
	for path, want := range map[string]string{
		gavel:                                `speeds: type of GPU: got "", want one of k80, v100`,
		filepath.Join(dir, "none.csv"):       "there is no such file or folder",
		write("half.csv", "model,workers\n"): "want a header with also speed",
	} {
		if _, err := LoadProfiles(t.Context(), nil, path, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// The recorded files lie beside this repository, of which they are no part.
func TestARecordedWorkloadIsPlayed(t *testing.T) {
	root := "../../../shared/traces"
	if _, err := os.Stat(root); err != nil {
		t.Skip("no recorded workloads in " + root)
	}
	table, err := profile.LoadIn(t.Context(), nil, filepath.Join(root, "profiles-sia"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(root, "sia-workloads/philly/workload-1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	d, err := sia.NewReader(f, "workload-1.csv")
	if err != nil {
		t.Fatal(err)
	}
	all, err := traces.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	gpu := table.Types()[0]
	for i := range all {
		table.Assign(&all[i], gpu)
	}
	all, _, _ = traces.Filter(all, 8)
	p, err := TableProfiles(table, gpu)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, tiny(), all, WorkloadOptions{Profiles: p, Load: 1})
	t.Logf("%d jobs of %v on %s", len(all), e.work.Names(), gpu)
	for _, r := range Rules() {
		total := 0.0
		for k := range e.work.Count(traces.Test) {
			total += play(t, e, r.Name, env.Episode{Seed: 1, Window: k, Split: "test"})
		}
		t.Logf("%s: mean completion %.3f intervals", r.Name, -total/float64(e.work.Count(traces.Test)))
		if !(total < 0) {
			t.Errorf("%s returns %v", r.Name, total)
		}
	}
}
