package workerplace

import (
	"fmt"
	"math/rand/v2"

	"clustergym/env"
)

// task is one of the family: how the world of an episode differs from the configuration.
type task struct {
	arrivals, length float64
	servers          float64 // share that is in use
	power            float64 // factor of the interference's exponent
	failures         float64 // probability for a server and an interval, added to the configuration's
	mix              [Types]float64
}

const taskSize = 5 + Types

// usual is the configuration's own task.
var usual = task{arrivals: 1, length: 1, servers: 1, power: 1, mix: [Types]float64{1, 1, 1, 1, 1, 1, 1, 1}}

// The bounds of tasks.
const (
	leastRate, mostRate     = 0.25, 4
	leastServers            = 0.5
	mostPower, mostFailures = 2, 0.2
)

// TaskSpec implements env.Tasker.
func (e *Env) TaskSpec() []env.Field {
	return []env.Field{
		{Name: "arrival_rate", Shape: []int{1}, Low: leastRate, High: mostRate, Unit: "factor", Doc: "of jobs an interval"},
		{Name: "size", Shape: []int{1}, Low: leastRate, High: mostRate, Unit: "factor", Doc: "of the lengths of jobs"},
		{Name: "servers", Shape: []int{1}, Low: leastServers, High: 1, Unit: "fraction",
			Doc: "of the servers that are in use, rounded up"},
		{Name: "interference", Shape: []int{1}, Low: 0, High: mostPower, Unit: "factor",
			Doc: "of the exponent of what jobs keep beside each other"},
		{Name: "failure_rate", Shape: []int{1}, Low: 0, High: mostFailures, Unit: "probability",
			Doc: "that a server fails in an interval, beside that of the arguments"},
		{Name: "mix", Shape: []int{Types}, Low: 0, High: 1, Unit: "weight", Doc: "of the job types; all 0 = alike"},
	}
}

// SampleTask implements env.Tasker: rates between two thirds and one and a half times the usual, three quarters to all
// of the servers, interference from half to one and a half times its exponent, failures up to one in fifty, and a mix
// in which some types are much more frequent than others.
func (e *Env) SampleTask(src *rand.Rand, dst []float64) {
	between := func(low, high float64) float64 { return low + (high-low)*src.Float64() }
	dst[0], dst[1], dst[2] = between(0.67, 1.5), between(0.67, 1.5), between(0.75, 1)
	dst[3], dst[4] = between(0.5, 1.5), between(0, 0.02)
	for k := range Types {
		u := src.Float64()
		dst[5+k] = u * u
	}
}

// readTask is what an episode's task says, the usual one where there is none.
func readTask(v []float64, fields []env.Field) (task, error) {
	if len(v) == 0 {
		return usual, nil
	}
	if len(v) != taskSize {
		return task{}, fmt.Errorf("a task of %d numbers, want %d", len(v), taskSize)
	}
	at := 0
	for _, f := range fields {
		for i := range f.Len() {
			// Bounds are float32.
			if x := float32(v[at]); !(x >= f.Low && x <= f.High) {
				return task{}, fmt.Errorf("task %s[%d] is %v, want %v to %v", f.Name, i, v[at], f.Low, f.High)
			}
			at++
		}
	}
	t := task{arrivals: v[0], length: v[1], servers: v[2], power: v[3], failures: v[4]}
	sum := 0.0
	for k := range t.mix {
		t.mix[k] = v[5+k]
		sum += v[5+k]
	}
	if sum == 0 {
		t.mix = usual.mix
	}
	return t, nil
}
