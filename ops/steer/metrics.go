package steer

import (
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"
)

// Metrics are the figures of a loop, for Prometheus. Safe for concurrent use; nil counts nothing.
type Metrics struct {
	mu                                     sync.Mutex
	cycles, writes, refused, errors, stale int64
	seconds, read, think, write            float64
	waiting, running, lost, starts         int64
	spared                                 int64
	now                                    func() time.Time
	seen, renewed                          time.Time // zero = never
}

func (m *Metrics) change(f func(m *Metrics)) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// age returns the seconds since t, NaN if that was never.
func (m *Metrics) age(t time.Time) float64 {
	if t.IsZero() || m.now == nil {
		return math.NaN()
	}
	return max(0, m.now().Sub(t).Seconds())
}

// ServeHTTP implements http.Handler: the text format of Prometheus.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, x := range []struct {
		name, kind, help string
		value            float64
	}{
		{"cycles_total", "counter", "Cycles that have observed the cluster.", float64(m.cycles)},
		{"cycle_seconds_total", "counter", "Time that cycles have taken.", m.seconds},
		{"read_seconds_total", "counter", "What of it went to asking the cluster.", m.read},
		{"think_seconds_total", "counter", "What of it went to the policy.", m.think},
		{"write_seconds_total", "counter", "What of it went to writing into the cluster.", m.write},
		{"errors_total", "counter", "Cycles in which the cluster could not be reached.", float64(m.errors)},
		{"stale_total", "counter", "Cycles whose observation was too old to write.", float64(m.stale)},
		{"writes_total", "counter", "Actions that the cluster has taken.", float64(m.writes)},
		{"refused_total", "counter", "Actions that the cluster has refused, or that came too late.", float64(m.refused)},
		{"starts_total", "counter", "Starts that the policy has chosen, in all cycles.", float64(m.starts)},
		{"observation_age_seconds", "gauge", "Age of the last observation, by the cluster's clock; NaN before the first.",
			m.age(m.seen)},
		{"lease_age_seconds", "gauge", "Time since the lease was renewed; NaN without one.", m.age(m.renewed)},
		{"waiting_jobs", "gauge", "Jobs that wait.", float64(m.waiting)},
		{"running_jobs", "gauge", "Jobs that run.", float64(m.running)},
		{"spared_jobs", "gauge", "Waiting jobs that are left to the cluster.", float64(m.spared)},
		{"lost_log_lines", "gauge", "Lines of the log lost since the last one that was written.", float64(m.lost)},
	} {
		_, _ = fmt.Fprintf(w, "# HELP clustergym_steer_%s %s\n# TYPE clustergym_steer_%s %s\nclustergym_steer_%s %g\n",
			x.name, x.help, x.name, x.kind, x.name, x.value)
	}
}
