package tuned

import (
	"math"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/grow"
	"clustergym/simulator/predict"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/queue"
	"clustergym/simulator/sim"
)

// Index are the weights of index, an order that preempts: the jobs with the least weighted sum of traits run.
//
// Let m be the expected time left of a job in hours, at least one second: by SRTF's estimate, which with forecasts is
// the time that half of such jobs outlive, or if it has run for longer, the next quantile (predict.Forecast.Outliving).
// Let 1/f be its Gittins index (predict.Forecast.Gittins), in jobs per hour, f = m for estimates that are no forecasts.
// Let g be its GPUs, a and w the hours for which it has run and waited, G the GPUs of the cluster and q those for which
// all waiting jobs ask. A job's key is
//
//	Left·log m + Gittins·log f + Attained·log(1 + 12·a) + Width·log g + Busy·log(1 + q/G)·log g + Spread·s + Wait·log(1 + w/m) +
//	Kin·log n + Elder·log(1 + e/m) + News·log(m′/m)   while it waits,   − Stay − Wider·log g − Longer·log m   while it runs,
//
// and the least goes first. s is the logarithm of the forecast's mean over its median, 0 for estimates that are no
// forecasts. Jobs of the same user, virtual cluster, name, GPUs and requested time are of one kind, as those of a
// script are: n is the number of such jobs in the system, j included, and e the longest run time so far among the
// others, in hours. n is 1 and e is 0 for jobs without a user.
//
// m′ is m by the forecast that the job would get if it were submitted now (sim.View.Renewed): a forecast is made once,
// at the submit, and jobs of the same kind often come together, before any of them has ended. It is m where the
// predictor cannot say that.
//
// So left 1 alone is SRTF, left 1 and width 1 SRSF, gittins 1 and width 1 the order gittins; attained 1 alone is least
// attained service without queues.
type Index struct {
	Left     float64 `yaml:"left"`
	Gittins  float64 `yaml:"gittins"`
	News     float64 `yaml:"news"`
	Attained float64 `yaml:"attained"`
	Width    float64 `yaml:"width"`
	Spread   float64 `yaml:"spread"`
	Wait     float64 `yaml:"wait"`
	Kin      float64 `yaml:"kin"`
	Elder    float64 `yaml:"elder"`
	Stay     float64 `yaml:"stay"`
	Wider    float64 `yaml:"wider"`
	Longer   float64 `yaml:"longer"`
	Busy     float64 `yaml:"busy"`
}

// IndexNames returns the names of the weights, in the order of Index.Weights.
func IndexNames() []string {
	return []string{"left", "gittins", "news", "attained", "width", "spread", "wait", "kin", "elder", "stay", "wider",
		"longer", "busy"}
}

// Weights returns where the weights are, in the order of IndexNames.
func (x *Index) Weights() []*float64 {
	return []*float64{&x.Left, &x.Gittins, &x.News, &x.Attained, &x.Width, &x.Spread, &x.Wait, &x.Kin, &x.Elder, &x.Stay,
		&x.Wider, &x.Longer, &x.Busy}
}

// IsZero reports whether no weights are given.
func (x Index) IsZero() bool { return x == Index{} }

// HeaviestIndex is the bound of a weight's size.
const HeaviestIndex = 1e6

// Validate reports every fault.
func (x *Index) Validate() error {
	var l fault.List
	for i, w := range x.Weights() {
		l.Add(math.Abs(*w) <= HeaviestIndex, IndexNames()[i], *w, "a number from -1e6 to 1e6")
	}
	return l.Err()
}

// DefaultIndex returns the weights that index has with these estimates if none are given. gymctl tune has found them
// for the workload of jobselect-preempt, with forecasts and with exact run times; docs/reference/schedulers.md says how
// well they carry over to others.
func DefaultIndex(e sim.Estimates) Index {
	if e.Causal() {
		return Index{Left: 0.35, Gittins: 0.5, News: 1, Attained: -0.3, Width: 1.5, Stay: 0.3, Wider: -0.8, Longer: -0.35}
	}
	return Index{Left: 0.85, Width: 1.15, Wider: -0.35, Longer: -0.3}
}

// Indexer computes the keys of index. Not safe for concurrent use.
type Indexer struct {
	w     Index
	est   sim.Estimates
	index map[kindName]int32 // place in kind
	kind  []kind
	turn  uint64    // of the last Look; what kind says of others is out of date
	jobs  []indexed // by job
	busy  float64   // log(1 + q/G)
}

// kindName is what jobs of a kind have in common.
type kindName struct {
	user, vc, name string
	gpus, milli    int
	requested      time.Duration
}

// kind is what is known of the jobs of a kind.
type kind struct {
	turn            uint64
	n               int           // in the system
	longest, second time.Duration // run times
	asked, known    bool          // news has been asked for; it is there
	renewed         predict.Forecast
}

// indexed is what is known of a job in the system.
type indexed struct {
	pos   int // −1 = nothing is
	kind  int32
	alone bool    // it has no user, and so no similar jobs
	lg, s float64 // logarithm of GPUs; spread

	ran       time.Duration // for which the rest has been computed; −1 = for none
	lasting   time.Duration // how long it is expected to run in all, while it has run for less
	m, lm, lf float64
	la        float64
}

// NewIndexer returns one with weights and estimates; zero weights = the default ones of est.
func NewIndexer(w Index, est sim.Estimates) *Indexer {
	if w.IsZero() {
		w = DefaultIndex(est)
	}
	return &Indexer{w: w, est: est, index: map[kindName]int32{}}
}

// mostKinds is the number of kinds of jobs that are kept from one run to the next.
const mostKinds = 1 << 12

// Reset forgets all jobs. seed is that of noisy estimates from now on.
func (x *Indexer) Reset(seed uint64) {
	x.est.Seed = seed
	x.turn++
	for i := range x.jobs {
		x.jobs[i].pos = -1
	}
	if len(x.index) > mostKinds {
		clear(x.index)
		x.kind = x.kind[:0]
	}
}

// Meet takes in j, which has come into the system.
func (x *Indexer) Meet(v *sim.View, j sim.Job) { x.meet(v, j) }

// meet returns what is known of j.
func (x *Indexer) meet(v *sim.View, j sim.Job) *indexed {
	k := grow.Or(&x.jobs, j, indexed{pos: -1})
	if k.pos == v.Pos(j) {
		return k
	}
	t := v.Trace(j)
	name := kindName{t.User, t.VC, t.Name, t.GPUs, t.GPUMilli, predict.Requested(t)}
	n, ok := x.index[name]
	if !ok {
		n = int32(len(x.kind))
		x.index[name] = n
		x.kind = append(x.kind, kind{})
	}
	*k = indexed{pos: v.Pos(j), kind: n, alone: t.User == "", lg: math.Log(float64(max(queue.Milli(v, j), 1)) / 1000),
		ran: -1}
	if x.est.Causal() {
		f := v.Forecast(j)
		k.s = math.Log(float64(f.Mean()) / float64(f.Median()))
	}
	return k
}

// kindOf returns what is known of k's kind at this turn.
func (x *Indexer) kindOf(k *indexed) *kind {
	c := &x.kind[k.kind]
	if c.turn != x.turn {
		*c = kind{turn: x.turn}
	}
	return c
}

// Look takes in what follows from all jobs in the system. Keys hold until time passes, or a job comes or goes.
func (x *Indexer) Look(v *sim.View) {
	x.turn++
	asked := 0
	for _, list := range [...][]sim.Job{v.Waiting(), v.Running()} {
		for _, j := range list {
			c := x.kindOf(x.meet(v, j))
			c.n++
			if ran := v.Ran(j); ran > c.longest {
				c.longest, c.second = ran, c.longest
			} else if ran > c.second {
				c.second = ran
			}
		}
	}
	for _, j := range v.Waiting() {
		asked += queue.Milli(v, j)
	}
	x.busy = math.Log1p(float64(asked) / float64(1000*place.OwnGPUs(v.Cluster())))
}

// Key returns the rank of j as of the last Look. The job with the least key goes first; ties go by position in the
// trace.
func (x *Indexer) Key(v *sim.View, j sim.Job) float64 {
	w, k, ran := &x.w, x.meet(v, j), v.Ran(j)
	x.age(v, j, k, ran)
	key := w.Left*k.lm + w.Gittins*k.lf + w.Attained*k.la + (w.Width+w.Busy*x.busy)*k.lg + w.Spread*k.s
	if w.Wait != 0 {
		key += w.Wait * math.Log1p(max(0, v.Now()-v.Trace(j).Submit-ran).Hours()/k.m)
	}
	if (w.Kin != 0 || w.Elder != 0) && !k.alone {
		c := x.kindOf(k)
		elder := c.longest
		if elder == ran { // its own, or that of another which has run for as long
			elder = c.second
		}
		key += w.Kin * math.Log(float64(max(1, c.n)))
		if elder > 0 {
			key += w.Elder * math.Log1p(elder.Hours()/k.m)
		}
	}
	switch {
	case v.State(j) == sim.Running:
		key -= w.Stay + w.Wider*k.lg + w.Longer*k.lm
	case w.News != 0 && x.est.Causal():
		key += w.News * x.newer(v, j, k, ran)
	}
	return key
}

// newer returns log(m′/m) for j, which waits. Waiting jobs of a kind would get the same forecast now.
func (x *Indexer) newer(v *sim.View, j sim.Job, k *indexed, ran time.Duration) float64 {
	c := x.kindOf(k)
	if !c.asked {
		c.renewed, c.known = v.Renewed(j)
		c.asked = true
	}
	if !c.known {
		return 0
	}
	return math.Log(hours(c.renewed.Outliving(ran)-ran)) - k.lm
}

// age brings what follows from j's run time up to date.
func (x *Indexer) age(v *sim.View, j sim.Job, k *indexed, ran time.Duration) {
	exact := x.est.Mode == sim.EstimateExact
	if k.ran == ran && !exact { // what is left of its work can also grow, after a failure
		return
	}
	if exact {
		k.m = max(v.Left(j), float64(time.Second)) / float64(time.Hour)
	} else {
		if ran >= k.lasting || ran < k.ran || k.ran < 0 {
			k.lasting = x.est.Lasting(v, j)
		}
		k.m = hours(k.lasting - ran)
	}
	k.ran, k.lm = ran, math.Log(k.m)
	k.lf = k.lm
	if x.w.Gittins != 0 && x.est.Causal() {
		k.lf = -math.Log(max(v.Forecast(j).Gittins(ran)*float64(time.Hour), 1e-100))
	}
	if x.w.Attained != 0 {
		k.la = math.Log1p(12 * ran.Hours())
	}
}

// hours returns d in hours, at least a second.
func hours(d time.Duration) float64 { return max(d, time.Second).Hours() }
