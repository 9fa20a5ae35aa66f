package schedulers_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/simulator/cluster"
	"clustergym/simulator/predict"
	past "clustergym/simulator/predict/history"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// textbook is back-filling implemented directly from its description: every pass starts from nothing and sorts and
// walks all lists.
type textbook struct {
	cfg   schedulers.Config
	place cluster.Placement
	keys  schedulers.Policy
	est   sim.Estimates
	open  bool
	plan  []sim.Decision
	// collect selects the other reading of EASY: running jobs are collected one by one until there are enough for the
	// head, and the extra is what these leave over, even if others end at the same time.
	collect bool
}

func newTextbook(t fatal, cfg schedulers.Config) *textbook {
	t.Helper()
	b := &textbook{cfg: cfg}
	var err error
	if b.place, err = cluster.NewPlacement(cfg.Placement); err != nil {
		t.Fatal(err)
	}
	if b.keys, err = schedulers.New(cfg); err != nil {
		t.Fatal(err)
	}
	b.est = cfg.Estimates
	b.est.Seed = cfg.Seed
	return b
}

func (b *textbook) Reset(*sim.View) { b.open = false }

func (b *textbook) Decide(v *sim.View, _ *sim.Point, d *sim.Decision) error {
	if !b.open {
		b.open, b.plan = true, nil
		groups := map[int32]bool{}
		for _, j := range v.Waiting() {
			groups[v.Request(j).VC] = true
		}
		vcs := []int32{}
		for vc := range groups {
			vcs = append(vcs, vc)
		}
		slices.Sort(vcs)
		b.pass(v, vcs)
	}
	if len(b.plan) > 0 {
		*d, b.plan = b.plan[0], b.plan[1:]
		return nil
	}
	b.open = false
	return nil
}

// gang is a job that runs, or will run according to the plan.
type gang struct {
	req  *cluster.Request
	gpus []cluster.GPU
	end  time.Duration
}

func (g gang) milli() int { return g.req.GPUs * g.req.Milli }

func (b *textbook) running(v *sim.View) []gang {
	var all []gang
	for _, j := range v.Running() {
		all = append(all, gang{v.Request(j), v.GPUs(j), b.end(v, j)})
	}
	return all
}

// end returns when j, which runs, is expected to end. With forecasts it is forecast anew from its age at every pass.
func (b *textbook) end(v *sim.View, j sim.Job) time.Duration {
	if b.est.Causal() {
		return v.Started(j) + v.Forecast(j).Outliving(v.Ran(j))
	}
	return max(v.Now(), v.Started(j)+b.est.Of(v, j))
}

// built returns the cluster with gangs placed on it.
func built(v *sim.View, gangs []gang) *cluster.Cluster {
	c := v.Cluster().Twin()
	for _, g := range gangs {
		if err := c.Allocate(g.req, g.gpus); err != nil {
			panic(err)
		}
	}
	return c
}

func (b *textbook) queue(v *sim.View, vc int32) []sim.Job {
	var all []sim.Job
	for _, j := range v.Waiting() {
		if vc < 0 || v.Request(j).VC == vc {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(x, y sim.Job) int {
		return cmp.Or(cmp.Compare(schedulers.KeyOf(b.keys, v, x), schedulers.KeyOf(b.keys, v, y)),
			cmp.Compare(v.Pos(x), v.Pos(y)))
	})
	return all
}

func (b *textbook) start(v *sim.View, run *[]gang, j sim.Job, gpus []cluster.GPU) {
	*run = append(*run, gang{v.Request(j), gpus, v.Now() + b.est.Of(v, j)})
	b.plan = append(b.plan, sim.Decision{Op: sim.StartJob, Job: j, GPUs: gpus})
}

func (b *textbook) pass(v *sim.View, vcs []int32) {
	run := b.running(v)
	if b.cfg.Backfill == "conservative" {
		for _, vc := range vcs {
			b.conservative(v, &run, vc)
		}
		return
	}
	heads := map[int32]sim.Job{}
	for _, j := range b.queue(v, -1) {
		vc := v.Request(j).VC
		if _, blocked := heads[vc]; blocked {
			continue
		}
		if gpus, ok := b.place.Place(built(v, run), v.Request(j), nil); ok {
			b.start(v, &run, j, gpus)
		} else {
			heads[vc] = j
		}
	}
	for _, vc := range vcs {
		head, blocked := heads[vc]
		if !blocked {
			continue
		}
		rest := b.queue(v, vc)
		rest = rest[slices.Index(rest, head)+1:]
		if v.Cluster().Pool() && len(v.Cluster().VCs()) == 0 {
			b.easyOnCounter(v, run, head, rest)
		} else {
			b.easyOnNodes(v, &run, head, rest)
		}
	}
}

// easyOnCounter is Mu'alem and Feitelson's algorithm, steps 2 and 3.
func (b *textbook) easyOnCounter(v *sim.View, run []gang, head sim.Job, rest []sim.Job) {
	free := v.Cluster().GPUs() * 1000
	for _, g := range run {
		free -= g.milli()
	}
	slices.SortStableFunc(run, func(x, y gang) int { return cmp.Compare(x.end, y.end) })
	need := v.Request(head).GPUs * v.Request(head).Milli
	shadow, avail, k := time.Duration(0), free, 0
	for ; avail < need; k++ {
		avail += run[k].milli()
		shadow = run[k].end
	}
	if !b.collect {
		for ; k < len(run) && run[k].end == shadow; k++ {
			avail += run[k].milli()
		}
	}
	extra := avail - need
	for _, j := range rest {
		r := v.Request(j)
		n, ends := r.GPUs*r.Milli, v.Now()+b.est.Of(v, j) <= shadow
		if n > free || !ends && n > extra {
			continue
		}
		free -= n
		if !ends {
			extra -= n
		}
		b.start(v, &run, j, nil)
	}
}

// easyOnNodes looks at the cluster at the shadow time. A rejected request is also rejected for all other jobs in this
// pass.
func (b *textbook) easyOnNodes(v *sim.View, run *[]gang, head sim.Job, rest []sim.Job) {
	later := func(t time.Duration) *cluster.Cluster {
		return built(v, slices.DeleteFunc(slices.Clone(*run), func(g gang) bool { return g.end <= t }))
	}
	var ends []time.Duration
	for _, g := range *run {
		ends = append(ends, g.end)
	}
	slices.Sort(ends)
	shadow := time.Duration(math.MaxInt64)
	for _, t := range ends {
		if _, ok := b.place.Place(later(t), v.Request(head), nil); ok {
			shadow = t
			break
		}
	}
	closed, short := map[cluster.Request]bool{*v.Request(head): true}, map[cluster.Request]bool{}
	for _, j := range rest {
		r := v.Request(j)
		ends := shadow == math.MaxInt64 || v.Now()+b.est.Of(v, j) <= shadow
		if closed[*r] || short[*r] && !ends {
			continue
		}
		gpus, ok := b.place.Place(built(v, *run), r, nil)
		if !ok {
			closed[*r] = true
			continue
		}
		if !ends {
			c := later(shadow)
			if err := c.Allocate(r, gpus); err != nil {
				panic(err)
			}
			if _, ok := b.place.Place(c, v.Request(head), nil); !ok {
				short[*r] = true
				continue
			}
		}
		b.start(v, run, j, gpus)
	}
}

// conservative makes all reservations, by counting. Its profile is a function of time that looks at every gang and
// reservation.
func (b *textbook) conservative(v *sim.View, run *[]gang, vc int32) {
	type booking struct {
		from, to time.Duration
		milli    int
	}
	room := min(v.Cluster().FreeMilli(), v.Cluster().VCRoom(vc))
	var booked []booking
	var mine []gang
	for _, g := range b.running(v) {
		if g.req.VC == vc {
			mine = append(mine, g)
		}
	}
	free := func(t time.Duration) int {
		n := room
		for _, g := range mine {
			if g.end <= t {
				n += g.milli()
			}
		}
		for _, k := range booked {
			if k.from <= t && t < k.to {
				n -= k.milli
			}
		}
		return n
	}
	left := room
	for _, j := range b.queue(v, vc) {
		r := v.Request(j)
		need, lasts := r.GPUs*r.Milli, b.est.Of(v, j)
		times := []time.Duration{v.Now()}
		for _, g := range mine {
			times = append(times, g.end)
		}
		for _, k := range booked {
			times = append(times, k.to, k.from)
		}
		slices.Sort(times)
		for _, t := range times {
			fits := t >= v.Now()
			for _, u := range times {
				fits = fits && (u < t || u >= t+lasts || free(u) >= need)
			}
			if !fits {
				continue
			}
			booked = append(booked, booking{t, t + lasts, need})
			if t == v.Now() && need <= left {
				if gpus, ok := b.place.Place(built(v, *run), r, nil); ok {
					left -= need
					b.start(v, run, j, gpus)
				}
			}
			break
		}
	}
}

// estimated returns a workload with wrong estimates, some of them far too short, and many ties.
func estimated(r *rand.Rand, n int) (cluster.Spec, []traces.Job) {
	spec, jobs := drawn(r, n)
	for i := range jobs {
		j := &jobs[i]
		if r.IntN(2) == 0 {
			j.Estimate = j.Work
		}
		if r.IntN(20) == 0 {
			j.Work = 0
		}
		if r.IntN(4) == 0 {
			j.GPUs = 1 + r.IntN(12)
		}
		if r.IntN(15) == 0 && len(j.GPUTypes) == 0 {
			j.GPUs, j.GPUMilli = 0, 0
		}
	}
	switch r.IntN(6) {
	case 0:
		if spec.Pool == 0 {
			spec.VCs = []cluster.VCSpec{{Name: "own", Nodes: 1}, {Name: "few", Quota: 6}, {Name: "any"}}
		} else {
			spec.VCs = []cluster.VCSpec{{Name: "own", Quota: 12}, {Name: "few", Quota: 5}, {Name: "any"}}
		}
		for i := range jobs {
			jobs[i].VC = []string{"own", "few", "any"}[r.IntN(3)]
		}
	}
	return spec, jobs
}

// Back-filling decides exactly as the textbook does, for every order, placement and kind of estimates.
func TestBackfillingAgreesWithTheTextbook(t *testing.T) {
	for _, backfill := range []string{"easy", "conservative"} {
		for _, order := range []string{"fifo", "sjf", "largest", "wfp3", "random"} {
			t.Run(order+"+"+backfill, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					agreesOn(t, order, backfill, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "jobs"),
						nil, rapid.Bool().Draw(t, "chunks"))
				})
			})
		}
	}
}

// It does so with forecasts, which running jobs outlive again and again.
func TestBackfillingAgreesWithTheTextbookUnderForecasts(t *testing.T) {
	for _, backfill := range []string{"easy", "conservative"} {
		for _, order := range []string{"fifo", "sjf", "wfp3"} {
			for _, by := range []predict.Maker{past.NewArchive(nil), scattered(0, 2), always(time.Second)} {
				t.Run(fmt.Sprint(order, "+", backfill, " ", by), func(t *testing.T) {
					rapid.Check(t, func(t *rapid.T) {
						agreesWithTheTextbook(t, order, backfill, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "jobs"),
							by)
					})
				})
			}
		}
	}
}

// agreesWithTheTextbook compares both on the workload and the settings that seed gives; by replaces their estimates if
// it is not nil.
func agreesWithTheTextbook(t fatal, order, backfill string, seed uint64, n int, by predict.Maker) {
	t.Helper()
	agreesOn(t, order, backfill, seed, n, by, false)
}

// agreesOn is agreesWithTheTextbook; with chunks, gangs say on how many nodes they are.
func agreesOn(t fatal, order, backfill string, seed uint64, n int, by predict.Maker, chunks bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	spec, jobs := estimated(r, n)
	for i := 0; chunks && i < n; i++ {
		if j := &jobs[i]; j.GPUs > 1 {
			j.Nodes = r.IntN(4)
		}
	}
	cfg := schedulers.DefaultConfig()
	cfg.Order, cfg.Admission, cfg.Backfill, cfg.Seed = order, "strict", backfill, r.Uint64()
	cfg.Placement = fixedPlacements[r.IntN(len(fixedPlacements))]
	if countable(&spec, jobs, backfill == "conservative") && backfill == "conservative" {
		cfg.Placement = freePlacements()[0]
	}
	cfg.Estimates = sim.MustEstimates([]string{"exact", "trace", "noisy:0.7"}[r.IntN(3)])
	run := sim.DefaultConfig()
	if by != nil {
		cfg.Estimates, run.Predictor = sim.MustEstimates("history"), by
	}
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := simulate(t, run, spec, jobs,
		schedulers.OnParts(func() sim.Scheduler { return newTextbook(t, cfg) }))
	for range 2 { // the second time with the state that the first left
		if got := simulate(t, run, spec, jobs, h); got != want {
			t.Fatalf("%+v on %+v:\n%s", cfg, spec, diff(got, want))
		}
	}
}

// countable changes what the textbook does not do: virtual clusters that share nodes and, if all is set and there are
// nodes, jobs for anything but whole GPUs. It reports whether there are nodes.
func countable(spec *cluster.Spec, jobs []traces.Job, all bool) bool {
	if len(spec.VCs) > 0 {
		shared := ""
		for i := range spec.VCs {
			if spec.VCs[i].Nodes == 0 {
				shared = spec.VCs[i].Name
			}
		}
		spec.VCs = slices.DeleteFunc(spec.VCs, func(vc cluster.VCSpec) bool { return vc.Nodes == 0 && vc.Name != shared })
		for i := range jobs {
			if !slices.ContainsFunc(spec.VCs, func(vc cluster.VCSpec) bool { return vc.Name == jobs[i].VC }) {
				jobs[i].VC = shared
			}
		}
	}
	if spec.Pool > 0 {
		return false
	}
	for i := range jobs {
		if j := &jobs[i]; all {
			j.GPUs, j.GPUMilli, j.GPUTypes, j.CPUMilli, j.MemBytes = max(1, j.GPUs), 1000, nil, 0, 0
			j.Nodes = 0
		}
	}
	return true
}

// Workloads on which back-filling once differed from the textbook.
func TestBackfillingAgreesWithTheTextbookOnFoundWorkloads(t *testing.T) {
	agreesWithTheTextbook(t, "sjf", "easy", 0xef98, 46, nil)
}

// Ten processors: A holds six until 10, B three until 20 by its request though it ends at 5. The head H wants eight.
func TestEasyByHand(t *testing.T) {
	job := func(id string, submit, work, request time.Duration, n int) traces.Job {
		j := whole(id, submit*second, work*second, n)
		j.Estimate = request * second
		return j
	}
	jobs := []traces.Job{
		job("A", 0, 10, 10, 6), job("B", 0, 5, 20, 3),
		job("H", 1, 10, 10, 8), // at 1 one is free; it could start at 20, with two left over then
		job("C", 2, 18, 18, 1), // ends at 20, right at the shadow time
		job("D", 3, 1, 1, 2),   // never fits before B ends at 5; then three are free and the shadow time is 20 by C
		job("E", 3, 30, 30, 2), // too long at 5 as D has taken two of them; at 6 it may have two, the extra
	}
	cfg := schedulers.DefaultConfig()
	cfg.Backfill, cfg.Estimates = "easy", sim.MustEstimates("trace")
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if h.Name() != "fifo+strict+easy" {
		t.Errorf("its name is %s", h.Name())
	}
	// At 5 B has ended: free 3, running A (10) and C (20), so 3 + 6 = 9 ≥ 8 at 10: the shadow time is 10, the extra 1.
	// D ends by then. At 6 E needs two, is too long and more than the extra. At 10 eight of nine go to H, at 20 E starts.
	if got, want := startTimes(simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 10}, jobs, h)),
		"A0s B0s C2s D5s H10s E20s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// startTimes returns the starts in a log: each job and its time.
func startTimes(log string) string {
	var all []string
	for _, line := range strings.Split(log, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "start" {
			all = append(all, f[2]+f[0])
		}
	}
	return strings.Join(all, " ")
}

// Four processors; the plan of conservative back-filling protects the second in line too, which EASY does not.
func TestConservativeByHand(t *testing.T) {
	jobs := []traces.Job{
		whole("A", 0, 10*second, 3), whole("B", 0, 10*second, 4), // B is reserved from 10 to 20
		whole("C", 0, 20*second, 3), // C from 20 on
		whole("D", 0, 30*second, 1), // needs one: beside C from 20 on, for it would delay B before
		whole("E", 0, 10*second, 1), // beside A, now
	}
	for backfill, want := range map[string]string{
		"conservative": "A0s E0s B10s C20s D20s",
		"easy":         "A0s E0s B10s C20s D20s",
	} {
		h := scheduler(t, func(c *schedulers.Config) { c.Backfill = backfill })
		if got := startTimes(simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 4}, jobs, h)); got != want {
			t.Errorf("%s: got %s, want %s", backfill, got, want)
		}
	}
	// With B small enough to leave one over, EASY gives it to D, which delays C from 20 to 30; conservative does not.
	jobs[1].GPUs, jobs[2].GPUs = 3, 4
	for backfill, want := range map[string]string{
		"conservative": "A0s E0s B10s C20s D40s",
		"easy":         "A0s D0s B10s E20s C30s",
	} {
		h := scheduler(t, func(c *schedulers.Config) { c.Backfill = backfill })
		if got := startTimes(simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 4}, jobs, h)); got != want {
			t.Errorf("%s: got %s, want %s", backfill, got, want)
		}
	}
}

// The same with a recorded log, whose estimates come from users.
func TestEasyOnALog(t *testing.T) {
	jobs := recorded(t, "KTH-SP2-1996-2.1-cln.swf.gz")
	cfg := schedulers.DefaultConfig()
	cfg.Backfill, cfg.Estimates = "easy", sim.MustEstimates("trace")
	h, err := schedulers.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spec := cluster.Spec{Pool: 100}
	if got, want := simulate(t, sim.DefaultConfig(), spec, jobs, h),
		simulate(t, sim.DefaultConfig(), spec, jobs, newTextbook(t, cfg)); got != want {
		t.Fatal(diff(got, want))
	}
}

// Two virtual clusters of one node each: a head that does not fit blocks only its own virtual cluster and has its own
// reservation.
func TestAdmissionActsWithinVirtualClusters(t *testing.T) {
	spec := cluster.Spec{Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 4}}}},
		VCs: []cluster.VCSpec{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}}}
	in := func(vc string, j traces.Job) traces.Job {
		j.VC = vc
		return j
	}
	jobs := []traces.Job{
		in("a", whole("A", 0, 10*second, 3)), in("b", whole("B", 0, 20*second, 3)),
		in("a", whole("C", 0, 10*second, 4)), in("b", whole("D", 0, 10*second, 4)), // the heads
		in("a", whole("E", 0, 11*second, 1)), in("b", whole("F", 0, 11*second, 1)), // F ends before D can start, E does not
	}
	for name, want := range map[string]string{
		"fifo+strict":              "A0s B0s C10s D20s E20s F30s",
		"fifo+skip":                "A0s B0s E0s F0s C11s D20s",
		"fifo+strict+easy":         "A0s B0s F0s C10s D20s E20s",
		"fifo+strict+conservative": "A0s B0s F0s C10s D20s E20s",
		"fifo+commit":              "A0s B0s C10s D20s E20s F30s",
		"fifo+commit+easy":         "A0s B0s F0s C10s D20s E20s",
	} {
		got := strings.Fields(startTimes(simulate(t, sim.DefaultConfig(), spec, jobs, scheduler(t, called(name)))))
		slices.SortStableFunc(got, func(a, b string) int {
			x, _ := time.ParseDuration(a[1:])
			y, _ := time.ParseDuration(b[1:])
			return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
		})
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// The chosen job is held even if a better one arrives, and no job runs past its shadow time.
func TestCommitByHand(t *testing.T) {
	jobs := []traces.Job{
		whole("A", 0, 10*second, 3),
		whole("B", second, 9*second, 4),    // chosen and held until 10
		whole("C", 2*second, 5*second, 2),  // better than B, and does not fit
		whole("D", 3*second, 7*second, 1),  // ends at 10, the shadow time: not before it
		whole("E", 3*second, 6*second, 1),  // ends at 9
		whole("F", 11*second, 1*second, 4), // better than C, which has been chosen as B started
	}
	for _, on := range []cluster.Spec{{Pool: 4}, {Racks: []cluster.RackSpec{{Nodes: []cluster.NodeSpec{{Count: 2, GPUs: 2}}}}}} {
		for name, want := range map[string]string{
			"sjf+commit":      "A0s B10s C19s F24s E25s D25s",
			"sjf+commit+easy": "A0s E3s B10s C19s F24s D25s",
			"sjf+strict":      "A0s C10s E10s D10s F17s B18s",
		} {
			if got := startTimes(simulate(t, sim.DefaultConfig(), on, jobs, scheduler(t, called(name)))); got != want {
				t.Errorf("%s on %+v: got %s, want %s", name, on, got, want)
			}
		}
	}
}

// others makes decisions of other code at some times, before those of the scheduler.
type others struct {
	sim.Scheduler
	at map[time.Duration]sim.Op
	id string
}

func (o *others) Decide(v *sim.View, p *sim.Point, d *sim.Decision) error {
	op, ok := o.at[v.Now()]
	if !ok {
		return o.Scheduler.Decide(v, p, d)
	}
	delete(o.at, v.Now())
	for _, j := range append(slices.Clone(v.Waiting()), v.Running()...) {
		if v.Trace(j).ID == o.id {
			d.Op, d.Job, d.GPUs = op, j, d.GPUs[:0]
		}
	}
	return nil
}

// Other code runs C from 0 to 18; the scheduler hears of its start when it has been stopped already. C has 12 of its 30
// seconds left then. At 20 B starts, at 21 F, for 25 s, by other code. D, the next in line, can start at 46; C ends
// before only if it is known what is left of it.
func TestBackfillingKnowsWhatOthersHaveRun(t *testing.T) {
	jobs := []traces.Job{
		whole("A", 0, 20*second, 1), whole("B", 0, second, 2), whole("D", 0, second, 2), whole("C", 0, 30*second, 1),
		whole("E", 18*second, second, 2), whole("F", 18*second, 25*second, 1),
	}
	for _, backfill := range []string{"easy", "conservative"} {
		cfg := schedulers.DefaultConfig()
		cfg.Backfill, cfg.Estimates = backfill, sim.MustEstimates("exact")
		h, err := schedulers.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := &others{h, map[time.Duration]sim.Op{0: sim.StartJob, 18 * second: sim.PreemptJob}, "C"}
		f := &others{c, map[time.Duration]sim.Op{21 * second: sim.StartJob}, "F"}
		got := startTimes(simulate(t, sim.DefaultConfig(), cluster.Spec{Pool: 2}, jobs, f))
		if want := "C0s A0s B20s F21s C21s D46s E47s"; got != want {
			t.Errorf("%s: got %s, want %s", backfill, got, want)
		}
	}
}
