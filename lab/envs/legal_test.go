package envs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/env/delayoffer"
	"clustergym/internal/raced"
	"clustergym/internal/rng"
	"clustergym/internal/testseed"
)

var (
	legalSeed = flag.Uint64("seed", testseed.Or(20), "seed of the arguments and actions that tests draw")
	long      = flag.Bool("long", false, "ten times as many resets with drawn arguments")
)

// The property test does not draw keys that name files of the server, nor presets, which other tests open.
var undrawn = []string{"trace.file", "trace.format", "trace.columns", "trace.delimiter", "trace.profiles",
	"trace.reference", "preset"}

// sizes are the largest values that tests draw for keys that cost memory and time.
var sizes = map[string]float64{
	"window": 40, "warm": 30, "visible": 32, "max_gpus": 64, "cpus": 64, "tasks": 60, "gpus": 24, "servers": 6,
	"slots": 24, "jobs": 20, "limit": 60,
	"trace.synth.jobs": 900, "trace.jobs": 900, "trace.skip": 900, "trace.synth.max_gpus": 64, "trace.synth.procs": 256,
	"degree": 20,
}

// cheap are the least values that tests draw for keys of which less costs time: leases are points of the simulation.
// Alone, such a key is tried at its least legal value too.
var cheap = map[string]float64{"lease": 1200}

var clusters = []string{"1x8", "2x4", "3x8", "pool:16", "pool:256", "swf-128", "dally:2x2", "dally-slow", "4x1"}

// legal draws values of one argument from the words of its description.
type legal struct {
	Kwarg
	low, high float64 // of numbers and, in seconds, of times
	open      bool    // low itself is not legal
	zero      bool    // 0 is legal too
	even      bool
	names     []string // of texts
}

const numberWords = `(-?[0-9.]+)`

var (
	fromTo = regexp.MustCompile(`^(even, |0, or |leases, )?` + numberWords + ` to ` + numberWords +
		`(, and what the server takes|; 0 = .*)?$`)
	orMore  = regexp.MustCompile(`^` + numberWords + ` or more(; 0 = .*)?$`)
	aTime   = regexp.MustCompile(`^a time(?: above (\w+)| of (\w+) or more|; 0s = none)$`)
	times   = regexp.MustCompile(`^(\w+) up to (\w+)(?:[,;] .*)?$`)
	farther = (math.MaxInt64 * time.Nanosecond).Seconds()
)

// legalOf reads the words of k.
func legalOf(k Kwarg) (legal, error) {
	l := legal{Kwarg: k}
	number := func(s string) float64 {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			panic(err)
		}
		return x
	}
	seconds := func(s string) float64 {
		d, err := time.ParseDuration(s)
		if err != nil {
			panic(err)
		}
		return d.Seconds()
	}
	switch m := fromTo.FindStringSubmatch(k.Want); {
	case k.Type == "bool" && k.Want == "true or false":
		return l, nil
	case k.Name == "cluster":
		l.names = clusters
		return l, nil
	case k.Type == "string":
		text := strings.NewReplacer(", or nothing", ", nothing", "; ", ", ", " or ", ", ", "noisy:SIGMA",
			"noisy:0.5").Replace(k.Want)
		for _, s := range strings.Split(text, ", ") {
			switch s {
			case "…", "on counters":
			case "nothing", `""`:
				l.names = append(l.names, "")
			default:
				l.names = append(l.names, s)
			}
		}
		return l, nil
	case m != nil:
		l.low, l.high = number(m[2]), number(m[3])
		l.zero, l.even = m[1] == "0, or ", m[1] == "even, "
		return l, nil
	case k.Want == "above 0, up to 1":
		l.high, l.open = 1, true
		return l, nil
	case k.Want == "a seed":
		l.high = math.MaxUint64
		return l, nil
	}
	if m := orMore.FindStringSubmatch(k.Want); m != nil {
		l.low, l.high = number(m[1]), math.MaxFloat64
		if k.Type == "int" {
			l.high = math.MaxInt64
		}
		return l, nil
	}
	if m := aTime.FindStringSubmatch(k.Want); m != nil {
		l.high = farther
		switch {
		case m[1] != "":
			l.low, l.open = seconds(m[1]), true
		case m[2] != "":
			l.low = seconds(m[2])
		}
		return l, nil
	}
	if m := times.FindStringSubmatch(k.Want); m != nil {
		l.low, l.high = seconds(m[1]), seconds(m[2])-1
		return l, nil
	}
	return l, fmt.Errorf("argument %s of type %s: no test understands %q", k.Name, k.Type, k.Want)
}

// ends returns the least and the largest value of an argument that is a number or a time, within what tests can afford.
func (l *legal) ends() []any {
	switch l.Type {
	case "bool", "string":
		return nil
	}
	least := l.low
	if l.open {
		least = math.SmallestNonzeroFloat64
	}
	most, ok := sizes[l.Name]
	if !ok || most > l.high {
		most = l.high
	}
	out := []any{l.value(least), l.value(most)}
	if l.zero {
		out = append(out, l.value(0))
	}
	return out
}

// value returns x as a value of the argument's type.
func (l *legal) value(x float64) any {
	switch l.Type {
	case "duration":
		d := time.Duration(math.MaxInt64)
		if x < farther {
			d = time.Duration(x * 1e9)
		}
		if l.open {
			d = max(d, 1)
		}
		return d.String()
	case "int":
		switch {
		case x >= math.MaxUint64:
			return uint64(math.MaxUint64)
		case x >= math.MaxInt64:
			return int64(math.MaxInt64)
		}
		n := int64(x)
		if l.even {
			n &^= 1
		}
		return n
	}
	return x
}

// draw returns a legal value.
func (l *legal) draw(src *rand.Rand) any {
	switch {
	case l.Type == "bool":
		return src.IntN(2) == 0
	case l.Type == "string":
		return l.names[src.IntN(len(l.names))]
	}
	ends := l.ends()
	if least, ok := cheap[l.Name]; ok {
		l.low = least
		ends[0] = l.value(least)
	}
	if src.IntN(3) == 0 {
		return ends[src.IntN(len(ends))]
	}
	low, high := l.low, min(l.high, 1e6)
	if most, ok := sizes[l.Name]; ok {
		high = min(high, most)
	}
	if low > 0 || l.open { // all magnitudes alike
		low = max(low, 1e-3)
		return l.value(math.Min(high, low*math.Pow(high/low, src.Float64())))
	}
	return l.value(low + (high-low)*math.Pow(src.Float64(), 3))
}

// player plays requests on handles, without a connection.
type player struct {
	t  *testing.T
	f  handle.Factory
	h  *handle.Handle
	w  *wire.Writer
	id uint32

	act   wire.Space
	obs   wire.Space
	n     int
	mask  wire.Array
	drawn any // the seeds that the server drew last
	begun bool
}

func (p *player) request(op string, fields wire.Map) wire.Map {
	p.t.Helper()
	p.id++
	w := wire.NewWriter(wire.Ext)
	w.Value(append(wire.Map{{Key: "op", Value: op}, {Key: "id", Value: int64(p.id)}, {Key: "h", Value: int64(1)}},
		fields...))
	m, err := wire.Decode(w.Bytes(), wire.Ext, wire.DefaultLimits())
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (p *player) reply(w *wire.Writer) wire.Map {
	p.t.Helper()
	m, err := wire.Decode(slices.Clone(w.Bytes()), wire.Ext, wire.DefaultLimits())
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// open opens n environments. It returns a refusal of the arguments; any other error fails the test.
func (p *player) open(id, mode string, n int, kwargs wire.Map) *wire.Error {
	p.t.Helper()
	w := wire.NewWriter(wire.Ext)
	o := &handle.Opening{H: 1, Key: handle.NewKeys(func() []byte { return make([]byte, 32) }),
		Log: slog.New(slog.DiscardHandler)}
	o.Req = p.request(wire.OpOpen, wire.Map{
		{Key: "env", Value: id}, {Key: "n", Value: int64(n)}, {Key: "kwargs", Value: kwargs}, {Key: "autoreset", Value: mode},
		{Key: "obs", Value: "flat"},
	})
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	h, err := handle.Open(ctx, p.f, handle.Limits{MaxEnvs: 64, MaxFrameIn: 16 << 20, MaxFrameOut: 64 << 20, Workers: 1}, o,
		w)
	var e *wire.Error
	if errors.As(err, &e) && (e.Code == wire.BadKwargs || e.Code == wire.Capacity || e.Code == wire.TooLarge) &&
		!strings.Contains(e.Error(), "\n") {
		return e
	}
	if err != nil {
		p.t.Fatalf("open: %v", err)
	}
	m := p.reply(w)
	for key, s := range map[string]*wire.Space{"obs_space": &p.obs, "act_space": &p.act} {
		x, err := wire.ParseSpace(m.Get(key))
		if err != nil {
			p.t.Fatal(err)
		}
		*s = *x
	}
	p.h, p.n, p.w, p.begun = h, n, wire.NewWriter(wire.Ext), false
	return nil
}

// do plays a request that must succeed for every environment.
func (p *player) do(op string, fields ...wire.Pair) wire.Map {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	p.w.Reset()
	if err := p.h.Do(ctx, op, p.id+1, p.request(op, fields), p.w); err != nil {
		p.t.Fatalf("%s %v: %v", op, fields, err)
	}
	m := p.reply(p.w)
	if f := m.Get("fault"); f != nil {
		p.t.Fatalf("%s %v: fault %v", op, fields, f)
	}
	if op == wire.OpSnapshot {
		return m
	}
	p.within(op, m.Get("obs"))
	if fin, ok := m.Get("fin").(wire.Map); ok {
		p.within(op+" fin", fin.Get("obs"))
	}
	if r, ok := m.Get("r").(wire.Array); ok {
		for i := range r.Len() {
			if x := r.Float(i); math.IsNaN(x) || math.IsInf(x, 0) {
				p.t.Fatalf("%s: reward %v", op, x)
			}
		}
	}
	if info, ok := m.Get("info").(wire.Map); ok {
		if info.Has(wire.MaskKey) {
			p.mask = info.Get(wire.MaskKey).(wire.Array)
		}
		if info.Has("seed") {
			p.drawn = info.Get("seed")
		}
	}
	return m
}

// within fails the test if an observation is outside its space.
func (p *player) within(op string, v any) {
	p.t.Helper()
	a, ok := v.(wire.Array)
	if !ok {
		p.t.Fatalf("%s: the observation is %T", op, v)
	}
	each := p.obs.Shape[0]
	bound := func(b []float64, i int) float64 { return b[i%len(b)] }
	for i := range a.Len() {
		if x := a.Float(i); !(x >= bound(p.obs.Low, i%each) && x <= bound(p.obs.High, i%each)) {
			p.t.Fatalf("%s: element %d of the observation is %v, want %v to %v", op, i%each, x, bound(p.obs.Low, i%each),
				bound(p.obs.High, i%each))
		}
	}
}

// actions draws an action for every environment: three in four are legal, the others any in the space.
func (p *player) actions(src *rand.Rand) any {
	factors := []int{}
	var list []any
	for _, n := range p.act.NVec {
		factors = append(factors, int(n))
	}
	if p.act.Kind == "discrete" {
		factors = []int{int(p.act.N)}
	}
	at := 0
	for range p.n {
		var row []any
		legal := src.IntN(4) > 0
		for _, n := range factors {
			x := src.IntN(n)
			for k := 0; legal && k < n; k++ { // an ended episode may have no legal action
				if v, _ := p.mask.Int(at + x); v == 1 {
					break
				}
				x = (x + 1) % n
			}
			at += n
			row = append(row, int64(x))
		}
		for i := range length(&p.act) {
			lo, hi := bound(p.act.Low, i, -1), bound(p.act.High, i, 1)
			row = append(row, float64(float32(lo+(hi-lo)*src.Float64())))
		}
		if p.act.Kind == "discrete" {
			list = append(list, row[0])
		} else {
			list = append(list, row)
		}
	}
	return list
}

// length returns the number of numbers of an action.
func length(s *wire.Space) int {
	if s.Kind != "box" {
		return 0
	}
	return s.Shape[0]
}

func bound(b []float64, i int, instead float64) float64 {
	if x := b[i%len(b)]; !math.IsInf(x, 0) {
		return x
	}
	return instead
}

// play resets and steps the environments of the handle in every way until so many episodes have begun.
func (p *player) play(src *rand.Rand, mode string, resets int) (begun int) {
	p.t.Helper()
	over := make([]bool, p.n)
	for begun < resets {
		var fields []wire.Pair
		switch src.IntN(4) {
		case 0:
			fields = []wire.Pair{{Key: "seed", Value: int64(src.Uint64() >> 1)}}
		case 1:
			seeds := make([]any, p.n)
			for i := range seeds {
				if src.IntN(2) == 0 {
					seeds[i] = int64(src.IntN(1000))
				}
			}
			fields = []wire.Pair{{Key: "seed", Value: seeds}}
		case 2:
			fields = []wire.Pair{{Key: "options", Value: wire.Map{{Key: "window", Value: int64(-1)}}}}
		}
		if !p.begun && src.IntN(2) == 0 {
			fields = nil // the first reset without a seed
		}
		if !p.begun && fields == nil && src.IntN(8) > 0 {
			fields = []wire.Pair{{Key: "seed", Value: int64(src.Uint64() >> 1)}}
		}
		p.do(wire.OpReset, fields...)
		p.begun = true
		begun += p.n
		clear(over)
		for range 2 + src.IntN(40) {
			if mode == "disabled" && slices.Contains(over, true) {
				break
			}
			m := p.do(wire.OpStep, wire.Pair{Key: "a", Value: p.actions(src)})
			te, tr := m.Get("te").(wire.Array), m.Get("tr").(wire.Array)
			for i := range over {
				was := over[i]
				a, _ := te.Int(i)
				b, _ := tr.Int(i)
				over[i] = a+b > 0
				if over[i] && mode == "same_step" || was && mode == "next_step" {
					begun++
				}
			}
		}
	}
	return begun
}

// arguments returns what can be drawn for the environment id.
func arguments(t *testing.T, id string) []legal {
	t.Helper()
	info, err := Describe(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []legal
	for _, k := range info.Kwargs {
		if slices.Contains(undrawn, k.Name) {
			continue
		}
		l, err := legalOf(k)
		if err != nil {
			t.Error(err)
			continue
		}
		if id == delayoffer.V1 && k.Name == "trace.synth.work" {
			l.high = 5 // there are points for every lease of a job
		}
		all = append(all, l)
	}
	return all
}

// small returns arguments of episodes that tests can afford, as far as all has them.
func small(all []legal) wire.Map {
	var m wire.Map
	for _, p := range []wire.Pair{
		{Key: "window", Value: int64(10)}, {Key: "warm", Value: int64(5)}, {Key: "tasks", Value: int64(12)},
		{Key: "jobs", Value: int64(4)},
		{Key: "trace.synth.jobs", Value: int64(900)}, {Key: "lease", Value: "1h"},
	} {
		if slices.ContainsFunc(all, func(l legal) bool { return l.Name == p.Key }) {
			m = append(m, p)
		}
	}
	return m
}

// with returns kwargs with one of them changed.
func with(kwargs wire.Map, key string, v any) wire.Map {
	out := slices.DeleteFunc(slices.Clone(kwargs), func(p wire.Pair) bool { return p.Key == key })
	return append(out, wire.Pair{Key: key, Value: v})
}

// stopKeys are the arguments that mean something only where jobs can be stopped, which needs visible gangs.
var stopKeys = []string{"min_run", "checkpoint", "checkpoint_per_gpu", "restart", "restart_per_gpu"}

// complete adds to kwargs what others of them need.
func complete(kwargs wire.Map) wire.Map {
	if slices.ContainsFunc(kwargs, func(p wire.Pair) bool { return slices.Contains(stopKeys, p.Key) }) {
		kwargs = with(kwargs, "preempt", true)
	}
	if kwargs.Get("preempt") == true {
		if n, ok := kwargs.Get("running").(int64); !ok || n == 0 {
			kwargs = with(kwargs, "running", int64(4))
		}
	}
	return kwargs
}

var modes = []string{"next_step", "same_step", "disabled"}

// Arguments that an environment describes as legal are refused at open in one sentence, or every later reset and every
// legal action succeeds: with and without seeds, in every mode of autoreset, in every window.
func TestLegalArgumentsNeverFail(t *testing.T) {
	if raced.On {
		t.Skip("one goroutine plays all of it; make unit runs this test")
	}
	resets := 1000
	if *long {
		resets *= 10
	}
	t.Logf("go test -run %s -seed %d", t.Name(), *legalSeed)
	for _, id := range IDs() {
		t.Run(id, func(t *testing.T) {
			src := rng.Stream(*legalSeed, "legal/"+id)
			p := &player{t: t, f: NewFactory(registry(t, nil))}
			all := arguments(t, id)
			opened, refused, begun := 0, map[string]int{}, 0
			resets := resets
			if d, err := Lookup(id); err == nil && d.Ongoing { // whose load each new generator has measured first
				resets /= 10
			}
			try := func(mode string, kwargs wire.Map, least int) {
				t.Helper()
				failed := t.Failed()
				defer func() {
					if t.Failed() && !failed {
						t.Logf("seed %d: %s in mode %s with %v; seeds drawn by the server: %v", *legalSeed, id, mode, kwargs, p.drawn)
					}
				}()
				if err := p.open(id, mode, 2, kwargs); err != nil {
					refused[err.Error()]++
					return
				}
				defer p.h.Close() //nolint:errcheck // it holds nothing
				opened++
				begun += p.play(src, mode, least)
			}
			// Every number at its least and largest value, alone.
			for k := range all {
				for i, v := range all[k].ends() {
					kwargs := with(small(all), all[k].Name, v)
					if _, ok := cheap[all[k].Name]; ok {
						kwargs = with(kwargs, "trace.synth.work", 0.001)
					}
					before := opened
					try(modes[i%3], complete(kwargs), 4)
					_, amount := sizes[all[k].Name] // which may leave too few jobs
					if opened == before && !amount {
						t.Errorf("%s = %v is refused, although it is described as %q: %v", all[k].Name, v, all[k].Want, refused)
					}
				}
			}
			for begun < resets {
				kwargs := small(all)
				for k := range all {
					if src.IntN(3) == 0 {
						kwargs = with(kwargs, all[k].Name, all[k].draw(src))
					}
				}
				before := opened
				try(modes[src.IntN(3)], complete(kwargs), 8)
				if opened == before && opened+len(refused) > 5000 {
					t.Fatal("nearly everything is refused")
				}
			}
			t.Logf("%d resets in %d handles; refused: %d", begun, opened, len(refused))
			for r, n := range refused {
				t.Log(n, r)
			}
		})
	}
}
