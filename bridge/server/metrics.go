package server

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"clustergym/bridge/budget"
	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
)

// metrics holds the figures of /metrics. Counts that change with every step are plain atomics, read only when /metrics
// is.
type metrics struct {
	registry *prometheus.Registry

	handles, envs, inflight atomic.Int64
	steps, resets, episodes atomic.Uint64
	advice                  atomic.Uint64
	bytesIn, bytesOut       atomic.Uint64
	reaped, resumes         atomic.Uint64
	dropped, refused        atomic.Uint64
	adviceNanos             atomic.Int64
	errors                  *prometheus.CounterVec
	stepSeconds, batchEnvs  prometheus.Histogram
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "clustergym_errors_total", Help: "Error replies, by code.",
		}, []string{"code"}),
		stepSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "clustergym_step_seconds",
			Help:    "Time that the environments of one step or recv took, with the writing of the reply's bytes.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 2.5, 18),
		}),
		batchEnvs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "clustergym_batch_envs", Help: "Environments stepped by one request.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
	}
	sessions := func(parked bool) func() float64 {
		return func() float64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			n := 0
			for _, x := range s.sessions {
				if (x.parked.Load() > 0) == parked {
					n++
				}
			}
			return float64(n)
		}
	}
	gauge := func(name, help string, f func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "clustergym_" + name, Help: help}, f))
	}
	counter := func(name, help string, labels prometheus.Labels, n *atomic.Uint64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: "clustergym_" + name, Help: help, ConstLabels: labels},
			func() float64 { return float64(n.Load()) }))
	}
	gauge("sessions", "Sessions with a connection.", sessions(false))
	gauge("sessions_parked", "Sessions that lost their connection and wait for their clients.", sessions(true))
	gauge("handles", "Open handles.", func() float64 { return float64(m.handles.Load()) })
	gauge("envs", "Environments of all handles.", func() float64 { return float64(m.envs.Load()) })
	gauge("requests_in_flight", "Requests to handles that are not answered yet, queued ones included.",
		func() float64 { return float64(m.inflight.Load()) })
	gauge("memory_budget_bytes", "Memory that environments, workloads, replies and requests may take together.",
		func() float64 { return float64(s.budget.Total()) })
	for _, k := range budget.Kinds() {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "clustergym_memory_reserved_bytes", Help: "Memory of the budget that is reserved, by what it is for.",
			ConstLabels: prometheus.Labels{"kind": k.String()},
		}, func() float64 { return float64(s.budget.Used(k)) }))
	}
	counter("steps_total", "Steps of environments.", nil, &m.steps)
	counter("resets_total", "Resets of environments.", nil, &m.resets)
	counter("episodes_total", "Episodes that ended.", nil, &m.episodes)
	counter("advice_total", "Actions that policies advised.", nil, &m.advice)
	m.registry.MustRegister(prometheus.NewCounterFunc(
		prometheus.CounterOpts{Name: "clustergym_advice_seconds_total", Help: "Time that requests for advice took."},
		func() float64 { return time.Duration(m.adviceNanos.Load()).Seconds() }))
	counter("bytes_total", "Bytes of messages.", prometheus.Labels{"direction": "in"}, &m.bytesIn)
	counter("bytes_total", "Bytes of messages.", prometheus.Labels{"direction": "out"}, &m.bytesOut)
	counter("sessions_reaped_total", "Connections closed because nothing was received for the idle time.", nil, &m.reaped)
	counter("connections_dropped_total", "Connections without a session that were closed to make room for others.", nil,
		&m.dropped)
	counter("accept_errors_total", "Errors of the system when a connection came in.", nil, &m.refused)
	counter("resumes_total", "Sessions that were taken over by another connection.", nil, &m.resumes)
	m.registry.MustRegister(m.errors, m.stepSeconds, m.batchEnvs, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, c := range []wire.Code{wire.BadFrame, wire.BadRequest, wire.BadAction, wire.Busy, wire.Timeout, wire.EnvFault,
		wire.Internal} {
		m.errors.WithLabelValues(string(c)) // these exist from the start, so that their rates can be computed
	}
	return m
}

// failed counts an error reply.
func (m *metrics) failed(code wire.Code) { m.errors.WithLabelValues(string(code)).Inc() }

// count adds the counts of one call of a handle.
func (m *metrics) count(st handle.Stats, op string, took time.Duration) {
	m.steps.Add(st.Steps)
	m.resets.Add(st.Resets)
	m.episodes.Add(st.Episodes)
	if st.Advice > 0 {
		m.advice.Add(st.Advice)
		m.adviceNanos.Add(int64(took))
	}
	if op == wire.OpStep || op == wire.OpRecv {
		m.stepSeconds.Observe(took.Seconds())
		m.batchEnvs.Observe(float64(st.Steps))
	}
}
