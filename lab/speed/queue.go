package speed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"clustergym/internal/rng"
	"clustergym/lab/simulate"
	"clustergym/lab/workload"
	"clustergym/simulator/metrics"
	"clustergym/simulator/schedulers"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// QueueTiming is the cost of one job, from arrival to end, while a number of other jobs wait.
type QueueTiming struct {
	Policy  string `json:"policy"`
	Cluster string `json:"cluster"`
	Waiting []int  `json:"waiting"`
	// processor time of one job for each number in Waiting; wall time if the system does not report processor time
	JobS []float64 `json:"job_s"`
}

// queues measures how the cost of a job grows with the queue.
func (b *bench) queues(ctx context.Context) error {
	lengths, jobs := []int{100, 1_000, 10_000, 100_000, 1_000_000}, 50_000
	if b.cfg.Quick {
		lengths, jobs = lengths[:3], 1000
	}
	for _, k := range []struct{ cluster, policy string }{
		{"64x8", "fifo+strict"}, {"64x8", "sjf+strict"}, {"pool:512", "fifo+strict"}, {"pool:512", "sjf+strict"},
		{"pool:512", "fifo+skip"}, {"pool:512", "sjf+skip"},
	} {
		t := QueueTiming{Policy: k.policy, Cluster: k.cluster, Waiting: lengths}
		for _, n := range lengths {
			b.say(fmt.Sprintf("simulator: %s on %s with %d jobs waiting", k.policy, k.cluster, n))
			s, err := b.queue(ctx, k.cluster, k.policy, n, jobs)
			if err != nil {
				return err
			}
			t.JobS = append(t.JobS, s)
		}
		b.report.Queues = append(b.report.Queues, t)
	}
	return nil
}

// queue returns the cost of a job in seconds, averaged over jobs jobs while about waiting others wait. It is the best
// of some rounds.
func (b *bench) queue(ctx context.Context, on, policy string, waiting, jobs int) (float64, error) {
	q, err := b.newQueue(on, policy, waiting)
	if err != nil {
		return 0, err
	}
	// The queue fills and reaches its steady state before the measurement.
	if err := q.until(ctx, waiting/8+jobs/4); err != nil {
		return 0, err
	}
	best := 0.0
	for range rounds {
		cpu, begin, before := processorTime(), b.hooks.Now(), q.ended
		if err := q.until(ctx, before+jobs); err != nil {
			return 0, err
		}
		spent := (processorTime() - cpu).Seconds()
		if spent == 0 {
			spent = b.hooks.Now().Sub(begin).Seconds()
		}
		if one := spent / float64(q.ended-before); best == 0 || one < best {
			best = one
		}
	}
	return best, nil
}

// newQueue starts a run in which waiting jobs wait.
func (b *bench) newQueue(on, policy string, waiting int) (*stepwise, error) {
	spec, err := workload.ClusterSpec(on)
	if err != nil {
		return nil, err
	}
	cfg := simulate.Config{Policy: schedulers.DefaultConfig(), Seed: 1}
	if spec.Pool == 0 {
		cfg.Policy.Placement = "best-fit"
	}
	h, err := schedulers.New(cfg.Heuristic(policy))
	if err != nil {
		return nil, err
	}
	s, err := sim.New(sim.DefaultConfig(), spec)
	if err != nil {
		return nil, err
	}
	gpus := s.View().Cluster().GPUs()
	if err := s.Reset(&steady{view: s.View(), waiting: waiting, rng: rng.Stream(1, "bench/queue"),
		gap: 1.2 * meanArea / float64(gpus)}); err != nil {
		return nil, err
	}
	h.Reset(s.View())
	return &stepwise{sim: s, policy: h, observer: new(metrics.Collector)}, nil
}

// stepwise is sim.Run in pieces.
type stepwise struct {
	sim      *sim.Simulator
	policy   schedulers.Policy
	observer sim.Observer
	decision sim.Decision
	ended    int
}

// until continues until jobs jobs have ended in total.
func (p *stepwise) until(ctx context.Context, jobs int) error {
	v := p.sim.View()
	for p.ended < jobs {
		at, err := p.sim.Advance(ctx)
		if err != nil {
			return err
		}
		if err := p.observer.Observe(v, at); err != nil {
			return err
		}
		for i := range at.Events {
			if at.Events[i].Kind == sim.Finish {
				p.ended++
			}
		}
		if err := sim.Decide(p.sim, p.policy, at, &p.decision, nil); err != nil {
			return err
		}
	}
	return nil
}

// steady is an endless stream of jobs of 1 to 8 GPUs. The jobs that are to wait arrive first, all at once. The others
// follow one by one, slightly slower than the cluster can serve them, or much faster while too few wait.
type steady struct {
	view    *sim.View
	waiting int
	rng     *rand.Rand
	gap     float64 // seconds between jobs when enough wait
	n       int
	at      float64
}

// meanArea is the mean GPU-time of a job of steady in seconds: 15/4 GPUs for 1000 s.
const meanArea = 15. / 4 * 1000

// Next implements traces.Stream.
func (s *steady) Next(j *traces.Job) error {
	if s.n >= s.waiting {
		gap := s.gap * s.rng.ExpFloat64()
		if len(s.view.Waiting()) < s.waiting {
			gap *= 0.05 // enough even for orders that serve short jobs first and so need more jobs
		}
		s.at += gap
	}
	s.n++
	work := time.Duration(1 + 1000*s.rng.ExpFloat64()*float64(time.Second))
	*j = traces.Job{ID: "job", Submit: time.Duration(s.at * float64(time.Second)), Work: work, GPUs: 1 << s.rng.IntN(4),
		GPUMilli: 1000}
	return nil
}
