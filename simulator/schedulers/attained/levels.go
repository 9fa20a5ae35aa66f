package attained

import (
	"fmt"
	"time"

	"clustergym/internal/fault"
)

// Levels are the settings of orders of attained service.
type Levels struct {
	// Limits are the attained service times at which LAS demotes a job to the next queue.
	Limits []time.Duration `yaml:"limits"`
	// Promote returns a job of las and las-2d to the first queue, with nothing attained, when it has waited this many
	// times as long as it has run (Tiresias' knob: 1, 2, 4, 8; see las); 0 = never.
	Promote float64 `yaml:"promote"`
	// Quantum is the service quantum of gittins-2d, in GPU-time.
	Quantum time.Duration `yaml:"quantum,omitempty"`
	// Service is the distribution of job GPU-times that gittins-2d uses; empty = learn it from jobs that finish. It
	// is not changed.
	Service []time.Duration `yaml:"-"`
}

// DefaultLevels returns the limits of Tiresias' simulator (3250 and 7200 s), and its first one as the quantum.
func DefaultLevels() Levels {
	return Levels{Limits: []time.Duration{3250 * time.Second, 7200 * time.Second}, Quantum: 3250 * time.Second}
}

// Check adds the faults of l to f.
func (l *Levels) Check(f *fault.List) {
	ok := len(l.Limits) <= 7
	for i, d := range l.Limits {
		ok = ok && d > 0 && (i == 0 || d > l.Limits[i-1])
	}
	f.Add(ok, "limits", fmt.Sprint(l.Limits), "at most 7 growing times above 0s")
	f.Add(l.Promote >= 0 && l.Promote <= 1e6, "promote", l.Promote, "a factor of 0 (never) or more")
	f.Add(l.Quantum > 0, "quantum", l.Quantum, "a time above 0s")
}
