package workerplace

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/rng"
	"clustergym/traces"
	"clustergym/traces/profile"
)

// WorkloadOptions says what the models of recorded jobs are and how fast they train.
type WorkloadOptions struct {
	// Profiles are the speeds of the models; nil = DL2's eight job types, by their formulas.
	Profiles *Profiles
	// Interference says what models keep beside each other; nil = what the table of Profiles measured and, of pairs that
	// it did not measure and of DL2's types, the table that Config.Table draws.
	Interference *profile.Interference
	// Mix draws a model, from the episode's seed and the job's ID alone, for jobs that name none that is known; nil =
	// every job must name one.
	Mix *profile.Mix
	// Load stretches the submit times of an episode so that its jobs load the cluster to this degree, see
	// traces.LoadFactor; 0 = as recorded.
	Load float64
}

// Workload is recorded jobs in windows, one for each episode, in place of those that the configuration would draw. It
// does not change after NewWorkload, and any number of environments may use it at once.
//
// A worker is a GPU that the job asks for; it takes one GPU, 2 CPUs and 8 GB, whatever its model and what else the
// trace says. The run time of a job is that on its own in its best placement. A job that is submitted within an
// interval comes at the interval's end, since decisions are taken there. The types of jobs are the models that the
// workload uses, at most Types of them; they are in alphabetical order, or DL2's in DL2's order.
type Workload struct {
	windows *traces.Windows
	options WorkloadOptions
	dl2     bool // the types are DL2's and run at the speeds of its formulas
	sha     string

	names   []string       // of the types
	index   map[string]int // of a type, by every name that jobs use
	drawn   [Types]float64 // weight of each type in the mix
	largest int            // workers of a job
	servers int
	spread  [Types][]float64 // [workers × servers]: part of the speed on fewest servers
	kept    [Types][Types]float64
	known   [Types][Types]bool // pairs of kept that were measured
}

// NewWorkload checks every job of the windows, which must hold cfg.Jobs jobs each. An error is one sentence about the
// first job that the environment cannot take.
func NewWorkload(cfg Config, windows *traces.Windows, o WorkloadOptions) (*Workload, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.ID(), err)
	}
	if !(o.Load >= 0) || o.Load > 1000 {
		return nil, fault.New("load", o.Load, "0 (as recorded) to 1000")
	}
	if n := windows.Length(); n != cfg.Jobs {
		return nil, fmt.Errorf("%s: windows of %d jobs, want jobs = %d", cfg.ID(), n, cfg.Jobs)
	}
	w := &Workload{windows: windows, options: o, dl2: o.Profiles == nil, index: map[string]int{}, servers: cfg.Servers}
	if err := w.types(); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.ID(), err)
	}
	room := cfg.Servers * perServer(&cfg)
	h := sha256.New()
	for p := traces.Training; p <= traces.Test; p++ {
		jobs := windows.Jobs(p)
		for i := range jobs {
			j := &jobs[i]
			if err := w.check(j, room); err != nil {
				return nil, fmt.Errorf("%s: job %q: %w", cfg.ID(), j.ID, err)
			}
			w.largest = max(w.largest, j.GPUs)
			fmt.Fprintf(h, "%q %q %d %d %d %d\n", j.ID, j.Model, j.Submit, j.Work, j.GPUs, j.Iterations)
		}
	}
	w.measure(&cfg)
	fmt.Fprintf(h, "%q %v %v %v %v\n", w.names, w.drawn, w.kept, o.Load, w.dl2)
	for k := range w.spread {
		for _, v := range w.spread[k] {
			h.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(v)))
		}
	}
	w.sha = hex.EncodeToString(h.Sum(nil))
	return w, nil
}

// perServer returns how many workers of a recorded job a server holds.
func perServer(c *Config) int { return min(c.GPUs, c.CPUs/workerCPUs, c.Memory/workerMemory) }

// types finds the types that the jobs and the mix use.
func (w *Workload) types() error {
	used := map[string]int{} // own names, with the number of jobs
	known := func(model string) (string, bool) {
		if model == "" {
			return "", false
		}
		if !w.dl2 {
			return w.options.Profiles.Known(model)
		}
		own := model
		if dl2Index(own) < 0 {
			own = baseName(own)
		}
		return own, dl2Index(own) >= 0
	}
	if m := w.options.Mix; m != nil {
		for i := range m.Models {
			own, ok := known(m.Models[i].Name)
			if weight := len(m.Weights) == 0 || m.Weights[i] > 0; !weight {
				continue
			}
			if !ok {
				return fmt.Errorf("mix %s: it has model %q, of which no speed is known; want models among %s", m.Name,
					m.Models[i].Name, w.who())
			}
			used[own] += 0
		}
	}
	named := map[string]string{} // by the jobs' names
	for p := traces.Training; p <= traces.Test; p++ {
		for _, j := range w.windows.Jobs(p) {
			if own, ok := known(j.Model); ok {
				used[own]++
				named[j.Model] = own
			}
		}
	}
	if w.dl2 {
		for _, m := range profile.DL2Models() {
			w.names = append(w.names, m.Name)
		}
	} else {
		w.names = slices.Sorted(maps.Keys(used))
	}
	if len(w.names) > Types {
		slices.SortStableFunc(w.names, func(a, b string) int { return cmp.Compare(used[b], used[a]) })
		return fmt.Errorf("its observation has %d types of jobs, and the workload uses %d models (%s); want at most %d",
			Types, len(w.names), strings.Join(w.names, ", "), Types)
	}
	for model, own := range named {
		w.index[model] = slices.Index(w.names, own)
	}
	if m := w.options.Mix; m != nil {
		for i := range m.Models {
			weight := 1.0
			if len(m.Weights) > 0 {
				weight = m.Weights[i]
			}
			if own, _ := known(m.Models[i].Name); weight > 0 {
				w.drawn[slices.Index(w.names, own)] += weight
			}
		}
	}
	return nil
}

// dl2Index returns the number of the DL2 type called name, -1 where there is none.
func dl2Index(name string) int {
	return slices.IndexFunc(profile.DL2Models(), func(m profile.DL2Model) bool { return m.Name == name })
}

// who lists the models whose speeds are known.
func (w *Workload) who() string {
	names := w.names
	if !w.dl2 {
		names = w.options.Profiles.Names()
	} else if names == nil {
		for _, m := range profile.DL2Models() {
			names = append(names, m.Name)
		}
	}
	if len(names) > 12 {
		return strings.Join(names[:12], ", ") + fmt.Sprintf(" and %d more", len(names)-12)
	}
	return strings.Join(names, ", ")
}

// check says why the environment cannot take job j; room is the number of workers that the cluster holds.
func (w *Workload) check(j *traces.Job, room int) error {
	kind, ok := w.index[j.Model]
	switch {
	case j.GPUs < 1:
		return fmt.Errorf("it asks for %d GPUs, want 1 or more", j.GPUs)
	case j.GPUs > room:
		return fmt.Errorf(
			"it asks for %d GPUs, and the servers hold %d workers; leave out larger jobs (max_gpus), or take more servers",
			j.GPUs, room)
	case j.Model == "" && w.options.Mix == nil:
		return fmt.Errorf("it names no model; want jobs that name one of %s, or a mix that draws models (trace.mix=dl2)",
			w.who())
	case !ok && w.options.Mix == nil:
		return fmt.Errorf(
			"it names model %q, of which no speed is known (known are %s); want a table of speeds that has it, or a mix that "+
				"draws models (trace.mix=dl2)", j.Model, w.who())
	case j.Work > 0:
		return nil
	case j.Iterations <= 0 || w.dl2:
		return fmt.Errorf("it has no run time; want one, or iterations and a table of speeds")
	}
	for k := range w.names {
		if (ok && k == kind || !ok && w.drawn[k] > 0) && w.options.Profiles.Rate(w.names[k], j.GPUs) == 0 {
			return fmt.Errorf("it has iterations and no run time, and no speed of %s is known for a gang of %d", w.names[k],
				j.GPUs)
		}
	}
	return nil
}

// measure fills the tables that the speeds of an environment are looked up in.
func (w *Workload) measure(cfg *Config) {
	w.kept = Table(cfg.Table)
	for a, victim := range w.names {
		for b, other := range w.names {
			switch x := w.options.Interference; {
			case x != nil:
				w.kept[a][b], w.known[a][b] = x.Kept(&traces.Job{Model: victim}, &traces.Job{Model: other}), true
			case !w.dl2:
				if v, ok := w.options.Profiles.kept(victim, other); ok {
					w.kept[a][b], w.known[a][b] = v, true
				}
			}
		}
		if w.dl2 {
			continue
		}
		w.spread[a] = make([]float64, (w.largest+1)*(w.servers+1))
		for workers := 1; workers <= w.largest; workers++ {
			for servers := 1; servers <= min(workers, w.servers); servers++ {
				w.spread[a][workers*(w.servers+1)+servers] = w.options.Profiles.Spread(victim, workers, servers)
			}
		}
	}
}

// relative returns the speed of a model on so many servers as a part of that on as few as hold its workers.
func (w *Workload) relative(kind, workers, servers, fewest int) float64 {
	row := w.spread[kind][workers*(w.servers+1):]
	return min(1, row[servers]/row[fewest])
}

// Names returns the names of the types of jobs, in the order of their columns in observations.
func (w *Workload) Names() []string { return slices.Clone(w.names) }

// Count returns the number of windows of part p.
func (w *Workload) Count(p traces.Part) int { return w.windows.Count(p) }

// SHA256 returns the digest, in hexadecimal digits, of the jobs and of all that is known of their models.
func (w *Workload) SHA256() string { return w.sha }

// NewRecorded returns the environment over workload w, for which NewWorkload was called with the same cfg; w nil is
// New. part is the one from which episodes come that name none (env.Episode.Split). Episode.Window is the number of a
// window of the part, -1 = one that begins at a job drawn from the seed.
//
// The task of an episode changes recorded jobs too: arrival_rate divides the times between them, size multiplies their
// lengths, and mix weights the models that are drawn; models that jobs name stay.
func NewRecorded(cfg Config, w *Workload, part traces.Part) (*Env, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if w != nil {
		e.work, e.part = w, part
		e.truth.record(w)
	}
	return e, nil
}

// fill makes jobs of the recorded ones.
func (w *Workload) fill(jobs []job, counted []traces.Job, c *Config, t *task, seed uint64) {
	scale := 1.0
	if w.options.Load > 0 {
		scale = traces.LoadFactor(counted, c.Servers*c.GPUs, w.options.Load)
	}
	scale /= t.arrivals * c.Interval * 1e9 // from nanoseconds to intervals
	for i := range jobs {
		j, r := &jobs[i], &counted[i]
		j.arrives = int(math.Ceil(float64(r.Submit-counted[0].Submit)*scale - 1e-9))
		kind, ok := w.index[r.Model]
		if !ok {
			kind = w.draw(t, seed, r.ID)
		}
		j.kind, j.workers, j.gpus = kind, r.GPUs, 1
		seconds := r.Work.Seconds()
		if r.Work <= 0 {
			seconds = float64(r.Iterations) / w.options.Profiles.Rate(w.names[kind], r.GPUs)
		}
		j.work = max(1e-9, seconds/c.Interval*t.length)
		j.reset()
	}
}

var modelKey = rng.Hash("workerplace/model")

// draw returns the type of a job that names none that is known.
func (w *Workload) draw(t *task, seed uint64, id string) int {
	total := 0.0
	for k, v := range w.drawn {
		total += v * t.mix[k]
	}
	mix := &t.mix
	if total == 0 { // the task's weights leave none of them
		mix = &usual.mix
		for _, v := range w.drawn {
			total += v
		}
	}
	u, last := rng.Uniform(rng.At(seed, modelKey, rng.Hash(id)))*total, 0
	for k, v := range w.drawn {
		if v *= mix[k]; v > 0 {
			last = k
			if u < v {
				break
			}
			u -= v
		}
	}
	return last
}
