package sim

import (
	"fmt"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/predict"
	"clustergym/traces"
)

// Config holds the user's settings for a run.
type Config struct {
	Comm       string     `yaml:"comm"` // how placement slows a gang down: one of CommNames
	Ring       Ring       `yaml:"ring"`
	Contention Contention `yaml:"contention"`

	// Restart is work that is added to a job's remaining work at every start but the first; it remains until it is
	// done. Moving and resizing a running job do not count as restarts.
	Restart  time.Duration `yaml:"restart"`
	Overhead Overhead      `yaml:"overhead"`
	// time of progress from one checkpoint to the next; 0 = progress is never lost
	Checkpoint time.Duration `yaml:"checkpoint"`
	Failures   Failures      `yaml:"failures"`
	Seed       uint64        `yaml:"seed,omitempty"` // of the node failures

	// Serial makes every event a point of its own, and processes arrivals before finishes at equal times, like
	// RLScheduler's simulator (Zhang et al., SC 2020).
	Serial  bool          `yaml:"serial,omitempty"`
	Horizon time.Duration `yaml:"horizon,omitempty"` // the run ends at this time; 0 = when all jobs have finished

	// Predictor makes the run's predictor of run times; nil = none. Snapshots distinguish it from others by its String.
	Predictor predict.Maker `yaml:"-"`
	// Interference slows down jobs that share hardware; nil = none. If the implementation is a fmt.Stringer, snapshots
	// distinguish it from others by its String.
	Interference Interference `yaml:"-"`
	// InterferenceScope says which jobs interfere with each other: those that share a GPU ("gpu", also if empty) or a
	// node ("node").
	InterferenceScope string `yaml:"interference_scope"`
}

// Ring is the α–β model of hierarchical ring all-reduce.
type Ring struct {
	// Overlap is the share of an iteration's compute time that hides communication, 0 to 1.
	Overlap float64 `yaml:"overlap"`
	// Ideal measures rates against an iteration without communication, instead of the best placement for the same
	// number of GPUs. It is for workloads whose run times are compute times, as in Dally's simulator.
	Ideal bool `yaml:"ideal,omitempty"`
	// PerGPU gives every GPU a link of its own to the next tier, so that a tier of m members passes on an m-th of the
	// bytes, as in ASTRA-sim and in Dally's simulator. Otherwise the members share their node's NIC and their rack's
	// uplink, which carry all bytes.
	PerGPU bool `yaml:"per_gpu,omitempty"`
}

// Contention models jobs that slow each other down on the network (Wang et al., arXiv 2002.10105): a transfer of
// M·10^6 bytes that shares its busiest link with k−1 others takes A + k·B·M + (k−1)·Eta·M.
type Contention struct {
	A   time.Duration `yaml:"a"`   // per transfer
	B   time.Duration `yaml:"b"`   // per 10^6 bytes on a link of 10 Gbps
	Eta time.Duration `yaml:"eta"` // per 10^6 bytes and per other job, on a link of 10 Gbps
}

// Overhead is how long a gang holds its GPUs before it makes progress. Starting is paid at every start, including
// the first, because containers must come up. Stopping is paid at the next start: the job writes its state while it
// stops, yet its GPUs are free at once. Moving and resizing pay both. After a failure only the start is paid, since
// nothing was stopped.
type Overhead struct {
	Start       time.Duration `yaml:"start"`
	StartPerGPU time.Duration `yaml:"start_per_gpu"`
	Stop        time.Duration `yaml:"stop"`
	StopPerGPU  time.Duration `yaml:"stop_per_gpu"`
}

// start and stop return the two parts of the overhead for a gang of n GPUs.
func (o *Overhead) start(n int) int64 { return int64(o.Start) + int64(n)*int64(o.StartPerGPU) }
func (o *Overhead) stop(n int) int64  { return int64(o.Stop) + int64(n)*int64(o.StopPerGPU) }

// Failures says how often nodes fail and how long their repair takes: exponential times with these means.
type Failures struct {
	MTBF time.Duration `yaml:"mtbf"` // mean working time of one node between failures; 0 = nodes never fail
	MTTR time.Duration `yaml:"mttr"`
}

// Interference says how jobs that share hardware slow each other down. Kept is the share of victim's speed, in (0, 1],
// that other leaves it; it must depend only on the two jobs. The shares of several others multiply.
type Interference interface {
	Kept(victim, other *traces.Job) float64
}

// DefaultConfig returns a run without communication cost, overheads and failures. The constants of Contention are
// those that its authors measured on 10 Gbps Ethernet.
func DefaultConfig() Config {
	return Config{
		Comm:       "none",
		Contention: Contention{B: 856 * time.Microsecond, Eta: 235 * time.Microsecond},
		Failures:   Failures{MTTR: time.Hour},
	}
}

// CommNames returns the communication models.
func CommNames() []string { return []string{"none", "tree", "ring", "contention"} }

// These bounds keep a job's overheads within an int64: 2^24 GPUs at a minute each are 32 years.
const (
	maxPerGPU   = time.Minute
	maxOverhead = 1000 * time.Hour
	maxOwed     = int64(maxOverhead) + 1<<24*int64(maxPerGPU)
)

// Validate reports all faults. New reports those that depend on the cluster, such as failures on a counter.
func (c *Config) Validate() error {
	var l fault.List
	names := CommNames()
	l.Add(slices.Contains(names, c.Comm), "comm", c.Comm, nearest.OneOf(c.Comm, names))
	l.Add(c.Ring.Overlap >= 0 && c.Ring.Overlap <= 1, "ring.overlap", c.Ring.Overlap,
		"a share of the compute time, 0 to 1")
	const perMB = "a time per 10^6 bytes, 0s to 1h"
	l.Add(inRange(c.Contention.A, time.Hour), "contention.a", c.Contention.A, "a time, 0s to 1h")
	l.Add(inRange(c.Contention.B, time.Hour), "contention.b", c.Contention.B, perMB)
	l.Add(c.Comm != "contention" || c.Contention.B != 0, "contention.b", c.Contention.B,
		"a time above 0s, as 856us, where comm is contention")
	l.Add(inRange(c.Contention.Eta, time.Hour), "contention.eta", c.Contention.Eta, perMB)
	l.Add(c.Restart >= 0, "restart", c.Restart, "a time of 0s or more")
	for _, o := range []struct {
		key   string
		value time.Duration
		most  time.Duration
	}{
		{"start", c.Overhead.Start, maxOverhead}, {"start_per_gpu", c.Overhead.StartPerGPU, maxPerGPU},
		{"stop", c.Overhead.Stop, maxOverhead}, {"stop_per_gpu", c.Overhead.StopPerGPU, maxPerGPU},
	} {
		l.Add(inRange(o.value, o.most), "overhead."+o.key, o.value, fmt.Sprintf("a time, 0s to %v", o.most))
	}
	l.Add(c.Checkpoint >= 0, "checkpoint", c.Checkpoint, "a time, or 0s where progress is never lost")
	l.Add(c.Failures.MTBF >= 0, "failures.mtbf", c.Failures.MTBF, "a time, or 0s for no failures")
	l.Add(c.Failures.MTTR > 0 || c.Failures.MTTR == 0 && c.Failures.MTBF == 0, "failures.mttr", c.Failures.MTTR,
		"a time above 0s")
	l.Add(inRange(c.Horizon, traces.MaxTime), "horizon", c.Horizon, "a time of at most "+lastTime+", or 0s for none")
	l.Add(c.InterferenceScope == "" || c.InterferenceScope == "gpu" || c.InterferenceScope == "node", "interference_scope",
		c.InterferenceScope, "gpu or node"+nearest.Meant(c.InterferenceScope, []string{"gpu", "node"}))
	return l.Err()
}

func inRange(d, most time.Duration) bool { return d >= 0 && d <= most }
