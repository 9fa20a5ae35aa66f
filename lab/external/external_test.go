package external

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clustergym/bridge/wire"
	"clustergym/lab/envs"
)

// Three jobs on two GPUs, by hand: the first two run at once, the third waits until one of them has ended, and the
// client sees each of them arrive, start and end.
func TestPlaysThreeJobsByHand(t *testing.T) {
	d := newDesk(t, 1<<30)
	path := trace(t, ",job_id,user,estimate", "0,100,1,a,ann,60", "10,50,1,b,bob,50", "20,30,2,c,cem,30")
	about := d.must(file(path, "pool:2", "estimates", "trace"), "")
	if about.Get("jobs") != int64(3) || about.Get("estimates") != "trace" {
		t.Errorf("opened %v", about)
	}
	p := d.one()
	jobs := rows(t, p, "jobs")
	if len(jobs) != 1 || jobs[0][0] != 0 || jobs[0][1] != 1 || jobs[0][7] != 60 || !math.IsNaN(jobs[0][8]) {
		t.Errorf("the first job arrives as %v", jobs)
	}
	if text := p.Get("text"); fmt.Sprint(text) != "[a ann  ]" {
		t.Errorf("its texts are %q", text)
	}
	if q := ints(t, p, "queue"); !slices.Equal(q, []int64{0}) || p.Get("idle") != 2.0 {
		t.Errorf("queue %v, idle %v", q, p.Get("idle"))
	}
	p = d.one(sent(opStart, 0)) // b arrives at 10
	if e := rows(t, p, "events"); len(e) != 1 || !slices.Equal(e[0], []float64{eventStart, 0, 0, 0, 60, 1}) {
		t.Errorf("the start is told as %v", e)
	}
	if p.Get("now") != 10.0 || p.Get("idle") != 1.0 || !slices.Equal(ints(t, p, "running"), []int64{0}) {
		t.Errorf("at b's arrival: %v", p)
	}
	d.one(sent(opStart, 1))   // c arrives at 20, and does not fit
	p = d.one(sent(opTry, 2)) // b ends at 60, when a has run for as long as was expected
	if p.Get("now") != 60.0 || !slices.Equal(ints(t, p, "queue"), []int64{2}) {
		t.Errorf("at b's end: %v", p)
	}
	if e := rows(t, p, "ended"); len(e) != 1 || !slices.Equal(e[0], []float64{1, 10, 60, 50, 50, 0, 0, 0, 0, endFinished}) {
		t.Errorf("b ended as %v", e)
	}
	if x := rows(t, p, "expects"); len(x) != 1 || !slices.Equal(x[0], []float64{0, 120}) {
		t.Errorf("a, which outlives its 60 s, is expected to end at twice that: %v", x)
	}
	d.one(sent()) // a ends at 100
	p = d.one(sent(opStart, 2))
	if e := rows(t, p, "ended"); len(e) != 1 || e[0][0] != 2 || e[0][1] != 100 || e[0][2] != 130 {
		t.Errorf("c ended as %v", e)
	}
	m := p.Get("metrics").(wire.Map)
	if m.Get("finished") != int64(3) || m.Get("makespan_s") != 130.0 || p.Get("error") != nil {
		t.Errorf("the end: %v", p)
	}
	if got, err := d.decide(); err != nil || len(got) != 0 {
		t.Errorf("after the end %v, %v", got, err)
	}
	if err := d.s.Close(); err != nil || d.b.Total() != d.b.Free() {
		t.Errorf("%v, %d bytes are still reserved", err, d.b.Total()-d.b.Free())
	}
}

// An impossible decision ends its own play with a sentence that names it and its time, and the other plays go on.
func TestAnImpossibleDecisionEndsItsOwnPlay(t *testing.T) {
	path := trace(t, ",job_id,min_gpu,max_gpu", "5,100,1,a\x1b[31m,,", "5,100,4,b,2,4", "5,100,3,c,,")
	for _, c := range []struct {
		name  string
		plays []wire.Map // at the points one after the other
		want  string
	}{
		{"unknown", []wire.Map{sent(opStart, 7)}, "at 5 s, decision 1, to start job 7: there is no such job"},
		{"does not fit", []wire.Map{sent(opStart, 0, opStart, 1)},
			"at 5 s, decision 2, to start job 1 (b): it does not fit: it takes 4 GPUs, and 3 are free"},
		{"twice", []wire.Map{sent(opStart, 0, opStart, 0)},
			"decision 2, to start job 0 (a\uFFFD[31m): there is a decision about it at this time already"},
		{"stop one that waits", []wire.Map{sent(opStop, 0)}, "it is waiting, want one that is running"},
		{"start one that runs", []wire.Map{sent(opStart, 0), sent(opStart, 0)}, "it has ended"},
		{"not elastic", []wire.Map{decoded(wire.MapOf("op", []int{opStart}, "job", []int{0}, "n", []int{2}))},
			"it is not elastic: it takes 1 GPU, and not 2"},
		{"too elastic", []wire.Map{decoded(wire.MapOf("op", []int{opStart}, "job", []int{1}, "n", []int{1}))},
			"it takes 2 to 4 GPUs, and not 1"},
		{"no such GPU", []wire.Map{decoded(wire.MapOf("op", []int{opStart}, "job", []int{0}, "at", []int{1}, "gpus", []int{4}))},
			"there is no GPU 4, want 0 to 3"},
		{"negative GPU", []wire.Map{decoded(wire.MapOf("op", []int{opStart}, "job", []int{0}, "at", []int{1}, "gpus", []int{-1}))},
			"there is no GPU -1, want 0 to 3"},
		{"one GPU twice", []wire.Map{decoded(wire.MapOf("op", []int{opStart}, "job", []int{2}, "at", []int{3}, "gpus", []int{1, 2, 1}))},
			"at 5 s, decision 1, to start job 2 (c): "},
		{"move without GPUs", []wire.Map{sent(opStart, 2), sent(opMove, 2)}, "it has ended"},
		{"the past", []wire.Map{decoded(wire.MapOf("op", []int{}, "job", []int{}, "until", 5.0))}, "at 5 s: "},
		{"never", []wire.Map{sent()}, "nothing is started although a job fits"},
		{"failed", []wire.Map{decoded(wire.MapOf("op", []int{}, "job", []int{}, "failed", "it\nraised"))}, "it\uFFFDraised"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, 1<<30)
			d.must(file(path, "1x4"), "", "sjf+skip")
			got, err := d.decide()
			if err != nil || len(got) != 1 {
				t.Fatalf("%d plays, %v", len(got), err)
			}
			for _, m := range c.plays {
				if got, err = d.decide(m); err != nil || len(got) != 1 {
					t.Fatalf("%d plays, %v", len(got), err)
				}
			}
			text, _ := got[0].Get("error").(string)
			if !strings.Contains(text, c.want) || strings.ContainsAny(text, "\n\x1b") || got[0].Get("metrics") != nil {
				t.Errorf("error %q, want one with %q", text, c.want)
			}
			if other, err := d.decide(); err != nil || len(other) != 1 || other[0].Get("metrics") == nil {
				t.Errorf("the other play: %v, %v", other, err)
			}
		})
	}
}

// A request that cannot be read changes nothing.
func TestAWrongRequestChangesNothing(t *testing.T) {
	d := newDesk(t, 1<<30)
	d.must(file(trace(t, "", "0,100,1"), "pool:1"), "")
	d.one()
	for _, m := range []any{
		nil, "start", wire.MapOf("op", "start"), decoded(wire.MapOf("op", []int{0, 0}, "job", []int{0})),
		decoded(wire.MapOf("op", []int{9}, "job", []int{0})), decoded(wire.MapOf("op", []int{0}, "job", []int{-1})),
		decoded(wire.MapOf("op", []int{0}, "job", []int{0}, "gpus", []int{1})),
		decoded(wire.MapOf("op", []int{0}, "job", []float64{0.5})),
		decoded(wire.MapOf("op", []int{}, "job", []int{}, "until", math.NaN())),
		decoded(wire.MapOf("op", []int{}, "job", []int{}, "until", "soon")),
	} {
		var e *wire.Error
		if _, err := d.decide(m); !errors.As(err, &e) || e.Code != wire.BadRequest {
			t.Errorf("%v: %v", m, err)
		}
	}
	if _, err := d.decide(sent(), sent()); err == nil {
		t.Error("decisions for two plays, of which there is one")
	}
	w := wire.NewWriter(wire.Ext)
	if err := d.s.Do(t.Context(), wire.OpStep, 9, nil, w); err == nil {
		t.Error("simulations are stepped")
	}
	if p := d.one(sent(opStart, 0)); p.Get("metrics") == nil {
		t.Errorf("the play has changed: %v", p)
	}
}

// What a client asks for wrongly is named.
func TestMistakesOfSimulateAreNamed(t *testing.T) {
	path := trace(t, "", "0,100,1", "1,5,4")
	for want, kwargs := range map[string]wire.Map{
		"estimates":                         file(path, "pool:4", "estimates", "some"),
		"gbdt without a file":               file(path, "pool:4", "estimates", "gbdt:model.bin"),
		"placement":                         file(path, "pool:4", "placement", "firstfit"),
		"cluster":                           file(path, "nowhere"),
		"no.csv":                            file(path+"no.csv", "pool:4"),
		"horizon":                           file(path, "pool:4", "horizon", "-1s"),
		"can never fit":                     file(trace(t, "", "0,5,9"), "pool:4"),
		"leave none of the 2 jobs":          file(path, "pool:4", "warmup", int64(1), "tail", int64(1)),
		"want nothing here; horizon counts": file(path, "pool:4", "simulator.horizon", "5s"),
	} {
		d := newDesk(t, 1<<30)
		var e *wire.Error
		if _, err := d.opened(kwargs, ""); !errors.As(err, &e) || e.Code != wire.BadKwargs || !strings.Contains(e.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
		if d.b.Total() != d.b.Free() {
			t.Errorf("%q leaves %d bytes reserved", want, d.b.Total()-d.b.Free())
		}
	}
	d := newDesk(t, 1<<30)
	if _, err := d.opened(file(path, "pool:4"), "", "sfj"); err == nil || !strings.Contains(err.Error(), "sjf") {
		t.Errorf("a policy that does not exist: %v", err)
	}
	strangers := newDesk(t, 1<<30)
	r, err := envs.NewRegistry(envs.DefaultRegistryConfig())
	if err != nil {
		t.Fatal(err)
	}
	strangers.f = NewFactory(r, func() time.Duration { return 0 }).(*factory)
	few := wire.MapOf("trace.synth.jobs", int64(20), "cluster", "2x8")
	for _, policy := range []string{"exact", "rollout:sjf+skip"} {
		if _, err := strangers.opened(few, policy); err == nil || !strings.Contains(err.Error(), "one that does not search") {
			t.Errorf("a stranger asks for %s: %v", policy, err)
		}
	}
	strangers.must(few, "sjf+skip", "")
	if _, err := d.opened(file(path, "pool:4")); err == nil {
		t.Error("no play at all")
	}
	var e *wire.Error
	if _, err := newDesk(t, 100<<10).opened(file(path, "pool:4"), ""); !errors.As(err, &e) || e.Code != wire.Capacity {
		t.Errorf("without memory: %v", err)
	}
}

// hidden draws a workload twice, with the same jobs but other run times.
func hidden(t *rapid.T) (one, other []string) {
	draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	at := 0
	for i := range rapid.IntRange(2, 25).Draw(t, "jobs") {
		at += draw.IntN(40)
		rest := fmt.Sprintf("%d,j%d,u%d,%d", 1+draw.IntN(4), i, draw.IntN(3), 50+draw.IntN(500))
		one = append(one, fmt.Sprintf("%d,%d,%s", at, 1+draw.IntN(400), rest))
		other = append(other, fmt.Sprintf("%d,%d,%s", at, 1+draw.IntN(400), rest))
	}
	return one, other
}

// Below the rungs noisy and exact no byte depends on a run time before the run time has had a consequence: until a job
// has ended in one of two workloads, of which only the run times differ, the server sends the same bytes for both.
func TestNoByteDependsOnAHiddenRunTime(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		one, other := hidden(r)
		estimates := rapid.SampledFrom([]string{"", "none", "trace", "history", "gbdt"}).Draw(r, "estimates")
		cluster := rapid.SampledFrom([]string{"pool:8", "2x4"}).Draw(r, "cluster")
		skip := rapid.Uint64().Draw(r, "policy")
		var sides [2]*desk
		for i, jobs := range [][]string{one, other} {
			kwargs := file(trace(t, ",job_id,user,estimate", jobs...), cluster)
			if estimates != "" {
				kwargs.Add("estimates", estimates)
			}
			rule := "sjf+skip"
			if estimates == "none" {
				rule = "fifo" // which asks for none
			}
			sides[i] = newDesk(t, 1<<30)
			sides[i].must(kwargs, "", rule) // which plays when the client has ended
		}
		compared, ended := 0, false
		for point := 0; !ended; point++ {
			var now [2]float64
			for i, d := range sides {
				var plays []any
				if point > 0 {
					// The same decisions on both sides: some of the jobs.
					draw := rand.New(rand.NewPCG(skip, uint64(point)))
					var pairs []int64
					for j := range int64(25) {
						if draw.IntN(2) > 0 {
							pairs = append(pairs, opTry, j)
						}
					}
					plays = append(plays, d.waiting(pairs))
				}
				p := d.one(plays...)
				now[i] = p.Get("now").(float64)
				ended = ended || p.Get("ended") != nil || p.Get("error") != nil || p.Get("metrics") != nil
			}
			if now[0] != now[1] {
				return // the timer of one has a consequence: nothing else can differ
			}
			if ended {
				break
			}
			a, b := sides[0].frames, sides[1].frames
			if !slices.Equal(a[len(a)-1], b[len(b)-1]) {
				r.Fatalf("the replies at %v s differ:\n% x\n% x", now[0], a[len(a)-1], b[len(b)-1])
			}
			compared++
		}
		if a, b := sides[0].frames[0], sides[1].frames[0]; !slices.Equal(a, b) {
			r.Fatalf("the replies to simulate differ:\n%q\n%q", a, b)
		}
		if compared == 0 {
			r.Fatal("nothing was compared")
		}
	})
}

// waiting keeps those of the decisions whose jobs wait at the point of the last reply.
func (d *desk) waiting(pairs []int64) wire.Map {
	m, e := wire.Decode(d.frames[len(d.frames)-1], wire.Ext, wire.Limits{Depth: 16, String: 1 << 16})
	if e != nil {
		d.t.Fatal(e)
	}
	queue := ints(d.t, m.Get("plays").([]any)[0].(wire.Map), "queue")
	var kept []int64
	for i := 0; i < len(pairs); i += 2 {
		if slices.Contains(queue, pairs[i+1]) {
			kept = append(kept, pairs[i], pairs[i+1])
		}
	}
	if len(kept) == 0 { // something must happen
		kept = []int64{opTry, queue[0]}
	}
	return sent(kept...)
}

// Placements, moves, sizes, stops and timers do what they say.
func TestEveryDecisionDoesWhatItSays(t *testing.T) {
	d := newDesk(t, 1<<30)
	path := trace(t, ",job_id,min_gpu,max_gpu", "0,100,1,a,,", "0,100,2,b,1,4")
	d.must(file(path, "2x4"), " always")
	d.one()
	p := d.one(decoded(wire.MapOf("op", []int{opStart, opStart}, "job", []int{1, 0}, "n", []int{0, 0}, "at", []int{0, 1},
		"gpus", []int{6}, "until", 10.0)))
	if e := rows(t, p, "events"); len(e) != 2 || e[0][1] != 1 || e[1][1] != 0 ||
		!slices.Equal(ints(t, p, "gpus"), []int64{0, 1, 6}) || p.Get("now") != 10.0 {
		t.Fatalf("after the starts: %v", p)
	}
	if free := ints(t, p, "free"); !slices.Equal(free, []int64{0, 0, 1000, 1000, 1000, 1000, 0, 1000}) {
		t.Errorf("free %v", free)
	}
	// b grows to four GPUs, a moves to the first node's last.
	p = d.one(decoded(wire.MapOf("op", []int{opMove, opResize}, "job", []int{0, 1}, "n", []int{0, 4}, "at", []int{1, 0},
		"gpus", []int{3}, "until", 20.0)))
	if got := ints(t, p, "gpus"); !slices.Equal(got, []int64{3, 0, 1, 4, 5}) {
		t.Errorf("moved to and resized on %v", got)
	}
	// b shrinks to its first, a stops and waits again, and the run goes on until both have ended.
	p = d.one(decoded(wire.MapOf("op", []int{opResize, opStop}, "job", []int{1, 0}, "n", []int{1, 0}, "until", 30.0)))
	if e := rows(t, p, "events"); len(e) != 2 || e[1][0] != eventStop || e[1][3] != 20 || e[0][5] != 1 {
		t.Errorf("shrunk and stopped as %v", e)
	}
	if q := ints(t, p, "queue"); !slices.Equal(q, []int64{0}) || !slices.Equal(ints(t, p, "running"), []int64{1}) {
		t.Errorf("then %v waits", q)
	}
	p = d.one(sent(opStart, 0)) // a ends at 110, 80 s after this
	if p.Get("now") != 110.0 || rows(t, p, "ended")[0][5] != 1 {
		t.Errorf("after the second start: %v", p)
	}
	if p = d.one(sent()); p.Get("metrics") == nil {
		t.Errorf("the end: %v", p)
	}
}

// A client that is asked only where a job fits is not asked where none does, and starts the same jobs at the same times.
func TestClientsAreAskedWhenTheyWant(t *testing.T) {
	path := trace(t, "", "0,100,1", "10,100,1", "20,100,2", "150,10,1")
	for ask, want := range map[string][]float64{
		"": {0, 10, 20, 100, 110, 150, 210}, " room": {0, 10, 110, 210}, " always": {0, 10, 20, 100, 110, 150, 210},
	} {
		d := newDesk(t, 1<<30)
		d.must(file(path, "pool:2"), ask)
		var at []float64
		p := d.one()
		for p.Get("metrics") == nil {
			at = append(at, p.Get("now").(float64))
			p = d.one(sent(opTry, ints(t, p, "queue")[0]))
		}
		if !slices.Equal(at, want) || p.Get("metrics").(wire.Map).Get("makespan_s") != 220.0 {
			t.Errorf("%q: asked at %v, want %v", ask, at, want)
		}
	}
	d := newDesk(t, 1<<30)
	if _, err := d.opened(file(path, "pool:2"), " rooms"); err == nil || !strings.Contains(err.Error(), "room") {
		t.Errorf("%v", err)
	}
}
