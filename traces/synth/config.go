package synth

import (
	"fmt"
	"math"
	"slices"
	"time"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/traces"
	"clustergym/traces/dally"
)

// Config describes a workload to generate.
type Config struct {
	Profile string  `yaml:"profile"` // a name of Profiles
	Jobs    int     `yaml:"jobs"`    // how many
	Rate    float64 `yaml:"rate"`    // factor on the arrival rate; hours and days keep their length
	Work    float64 `yaml:"work"`    // factor on run times
	// larger jobs are left out (the rate of the others stays the same); 0 = no limit
	MaxGPUs int           `yaml:"max_gpus"`
	Procs   int           `yaml:"procs"` // processors of the machine, hpc and lublin only; 0 = 128
	Start   time.Duration `yaml:"start"` // time of the week at which the workload begins, 0 = Monday, 0:00
	// time limit of the cluster: jobs that would run longer are ended there (clusters of other people's jobs have one,
	// and without one a few jobs of months decide how long all wait); 0 = no limit
	MaxTime time.Duration `yaml:"max_time,omitempty"`
}

// DefaultConfig returns 20,000 jobs of the Philly profile, of every size, at the recorded rate.
func DefaultConfig() Config { return Config{Profile: "philly", Jobs: 20000, Rate: 1, Work: 1} }

// maxJobs bounds a workload, so that a mistyped number is a fault and does not exhaust the memory.
const maxJobs = 20_000_000

// Validate reports every fault.
func (c Config) Validate() error {
	var l fault.List
	l.Add(slices.Contains(Profiles(), c.Profile), "profile", c.Profile, nearest.OneOf(c.Profile, Profiles()))
	l.Add(c.Jobs >= 1 && c.Jobs <= maxJobs, "jobs", c.Jobs, "1 to 20000000")
	l.Add(c.Rate >= slowest && c.Rate <= fastest, "rate", c.Rate, "a factor from 0.001 to 1000000")
	l.Add(c.Work >= 1e-3 && c.Work <= 1e3, "work", c.Work, "a factor from 0.001 to 1000")
	l.Add(c.MaxGPUs >= 0, "max_gpus", c.MaxGPUs, "1 or more GPUs, 0 = no limit")
	l.Add(!dallys[c.Profile].Multi || c.MaxGPUs != 1, "max_gpus", c.MaxGPUs,
		"2 or more GPUs, 0 = no limit: profile "+c.Profile+" has no jobs of one GPU")
	l.Add(c.Procs == 0 || c.Procs >= 2 && c.Procs <= 1<<20, "procs", c.Procs, "2 to 1048576 processors, 0 = 128")
	l.Add(c.MaxTime >= 0, "max_time", c.MaxTime, "a time; 0s = no limit")
	l.Add(c.Procs == 0 || isHPC(c.Profile), "procs", c.Procs,
		"0: only the profiles hpc and lublin have a machine of any size")
	if least := c.least(); least > 0 {
		l.Add(c.Rate >= least, "rate", c.Rate,
			fmt.Sprintf("%.2g or more for %d jobs, which else would come over more than 280 years", least*1.05, c.Jobs))
	}
	l.Add(c.Start >= 0 && c.Start < week, "start", c.Start, "a time of the week, 0s up to 168h")
	return l.Err()
}

// end ends j at the time limit.
func (c *Config) end(j *traces.Job) {
	if c.MaxTime == 0 || j.Work <= c.MaxTime {
		return
	}
	if j.Iterations > 0 {
		j.Iterations = max(1, int64(float64(j.Iterations)*(float64(c.MaxTime)/float64(j.Work))))
	}
	j.Work, j.Estimate = c.MaxTime, min(j.Estimate, c.MaxTime)
}

// least returns the rate below which the jobs come over more time than there is, 0 if it is not validated.
func (c *Config) least() float64 { return float64(c.Jobs) * c.gap() / maxSpan }

const slowest, fastest = 1e-3, 1e6 // rates

// Faster returns c at f times its rate, or at the nearest rate that there is.
func (c Config) Faster(f float64) Config {
	c.Rate = max(slowest, 1.05*c.least(), min(fastest, c.Rate*f))
	return c
}

// gap returns the mean seconds between two jobs at rate 1 for profiles whose rate is validated, else 0.
func (c *Config) gap() float64 {
	if isHPC(c.Profile) {
		return meanGap
	}
	if p := profiles[c.Profile]; p != nil {
		return p.gap
	}
	if poissons[c.Profile] != nil {
		return PoissonGap.Seconds()
	}
	return 0
}

// Profiles returns the names that Config.Profile accepts, sorted.
func Profiles() []string {
	names := []string{"helios", "hpc", "lublin", "proximity"}
	for n := range profiles { // sorted below
		names = append(names, n)
	}
	for n := range dallys { // sorted below
		names = append(names, n)
	}
	for n := range poissons { // sorted below
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Named reports whether the jobs of a profile have names (traces.Job.Name).
func Named(name string) bool {
	p := profiles[name]
	return p != nil && p.habits != nil
}

const week = 7 * 24 * time.Hour

// dallys are the profiles with models, after the workloads of Dally's authors: a hundred jobs a day, all at once, or
// without single-GPU jobs.
var dallys = map[string]dally.Config{"dally": {PerDay: 100}, "dally-batch": {},
	"dally-multi": {PerDay: 100, Multi: true}}

// profiles holds the profiles that are tables; each other profile has its own generator.
var profiles = map[string]*profile{"philly": &philly, "philly-users": phillyUsers}

// profile holds the statistics of a cluster. Times are in seconds.
type profile struct {
	gap     float64     // mean time between jobs
	hours   [24]float64 // rate of bursts by hour of the day, mean 1
	days    [7]float64  // by day of the week from Monday, mean 1
	work    []class     // run times by size, smallest first
	beat    beat
	vcs     []vc
	multi   []float64 // gaps in bursts of jobs above one GPU, at gapP
	persist float64   // correlation of a VC's busyness from one day to the next
	habits  *habits   // nil = a burst has nothing to do with those before
}

// class is the distribution of run times of the jobs with at least gpus GPUs and fewer than those of the next class.
type class struct {
	gpus int
	work []float64 // at workP
}

// beat is a job that is submitted periodically.
type beat struct {
	vc     string
	user   string
	share  float64   // of all jobs
	every  float64   // seconds
	kept   float64   // share of the ticks at which it is submitted
	jitter int       // whole seconds, in either direction
	work   []float64 // at levelP
}

// vc is one virtual cluster without its beat.
type vc struct {
	name   string
	sizes  []share
	users  int
	busy   float64    // squared coefficient of variation of the bursts begun a day
	length []float64  // jobs of a burst of one-GPU jobs, at lengthP
	gaps   []float64  // seconds between these, at gapP
	many   []float64  // jobs of a burst of larger jobs, at lengthP; empty = length
	few    []float64  // run time level of bursts below bulkLength jobs, at levelP
	bulk   []float64  // and of longer ones; empty = few
	spread [2]float64 // deviation of log run time within a burst, by few and bulk
	tilts  []tilt     // of profiles with habits; sizes without one are like the others of their class
}

// share is the share of jobs with a number of GPUs among all jobs of the profile.
type share struct {
	gpus int
	of   float64
}

// bulkLength is the length from which a burst is a campaign: runs of a script over many settings, with their own
// distribution of run times.
const bulkLength = 20

// The probabilities at which distributions are tabulated.
var (
	workP = []float64{0, .005, .01, .025, .05, .10, .15, .20, .25, .30, .35, .40, .45, .50, .55, .60, .65, .70, .75, .80,
		.85,
		.90, .91, .92, .93, .94, .95, .96, .97, .98, .985, .99, .995, .9975, .999, .9995, .9999, 1}
	lengthP = []float64{0, .25, .50, .60, .70, .75, .80, .85, .90, .95, .98, .99, .995, 1}
	levelP  = []float64{0, .05, .10, .25, .50, .75, .90, .95, .98, .99, 1}
	gapP    = []float64{0, .10, .25, .50, .75, .90, .95, .99, 1}
)

// at returns the value of a tabulated distribution at probability u in [0, 1), interpolated between the logarithms of
// value+shift (shift is 1 if values may be 0).
func at(p, v []float64, u, shift float64) float64 {
	i, found := slices.BinarySearch(p, u)
	if found || i == 0 {
		return v[i]
	}
	if i == len(p) {
		return v[i-1]
	}
	a, b := v[i-1]+shift, v[i]+shift
	return a*math.Exp(math.Log(b/a)*(u-p[i-1])/(p[i]-p[i-1])) - shift
}
