package sim

import (
	"fmt"
	"math"
	"time"

	"clustergym/internal/rng"
)

// failures makes nodes fail and recover. Every node draws its times from its own stream, so that it fails at the same
// times under every policy. Each node has one pending event.
type failures struct {
	on      bool
	pending []nodeEvent // a heap
	draws   []int64     // draws so far, by node: odd while it works, even while it is down
	down    int         // number of nodes that are down
	hit     []Job       // scratch
}

// nodeEvent is the failure of a working node, or the recovery of one that is down.
type nodeEvent struct {
	at      int64
	node    int32
	recover bool
}

func (a *nodeEvent) less(b *nodeEvent) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.recover != b.recover {
		return b.recover
	}
	return a.node < b.node
}

var failureStream = rng.Hash("sim/failure")

// draw returns the time from now to node's next event: exponential, at least a nanosecond.
func (s *Simulator) draw(node int32) int64 {
	f := &s.nodes
	mean := s.cfg.Failures.MTBF
	if f.draws[node]&1 == 1 {
		mean = s.cfg.Failures.MTTR
	}
	x := rng.At(s.cfg.Seed, failureStream, uint64(node), uint64(f.draws[node]))
	f.draws[node]++
	u := (float64(x>>11) + 0.5) / (1 << 53) // never 0
	d := math.Round(-float64(mean) * math.Log(u))
	if d >= float64(maxTime-s.now) {
		return maxTime - s.now // never
	}
	return max(1, int64(d))
}

func (s *Simulator) resetFailures() {
	f := &s.nodes
	if f.on = s.cfg.Failures.MTBF > 0 && !s.cluster.Pool(); !f.on {
		return
	}
	if f.draws == nil {
		f.draws = make([]int64, s.cluster.Nodes())
	}
	clear(f.draws)
	f.down, f.pending = 0, f.pending[:0]
	for n := range f.draws {
		f.pending = append(f.pending, nodeEvent{at: s.draw(int32(n)), node: int32(n)})
	}
	f.order()
}

// order turns the pending events into a heap.
func (f *failures) order() {
	for i := len(f.pending)/2 - 1; i >= 0; i-- {
		f.siftDown(i)
	}
}

func (f *failures) siftDown(i int) {
	h, e := f.pending, f.pending[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].less(&h[k]) {
			k++
		}
		if !h[k].less(&e) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = e
}

// nextNode processes the first pending event, which is due: if a node fails, all jobs on it wait again.
func (s *Simulator) nextNode() {
	f := &s.nodes
	e := &f.pending[0]
	node := e.node
	kind := NodeFail
	if e.recover {
		kind = NodeRecover
		f.down--
	} else {
		f.down++
		// In the order in which they were started.
		f.hit = append(f.hit[:0], s.near.byNode[node]...)
		for i := 1; i < len(f.hit); i++ {
			for k := i; k > 0 && s.seqOf(f.hit[k]) < s.seqOf(f.hit[k-1]); k-- {
				f.hit[k], f.hit[k-1] = f.hit[k-1], f.hit[k]
			}
		}
		for _, j := range f.hit {
			s.extra(j).fails++
			s.stop(j, Fail)
		}
	}
	if err := s.cluster.SetDown(int(node), kind == NodeFail); err != nil {
		panic(fmt.Sprintf("sim: node %d at %v: %v", node, time.Duration(s.now), err))
	}
	e.recover = !e.recover
	e.at = s.now + s.draw(node)
	f.siftDown(0)
	s.events = append(s.events, Event{At: time.Duration(s.now), Kind: kind, Job: -1, Node: node})
}

// seqOf returns the sequence number of j's start.
func (s *Simulator) seqOf(j Job) int64 { return s.finishes[s.jobs[j].heap].seq }
