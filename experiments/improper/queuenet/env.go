package queuenet

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"clustergym/env"
	"clustergym/internal/rng"
)

// unit is the number of packets that a reward of −1 stands for.
const unit = 10

// Env is a network as an environment. An action is the number of a base controller. The reward is minus the packets
// that wait at the end of the slot, in tens. Episodes begin empty, at a slot of the loads' cycle that is drawn, and are
// truncated after a number of slots.
type Env struct {
	net    Network
	spec   env.Spec
	slots  int
	choose func(queues []int) int // instead of base controllers; nil = they choose

	queues []int
	slot   int
	begin  int // slots of the loads' cycle that were over at the start
	kind   env.Kind
	src    *rand.Rand
	pcg    *rand.PCG
	sum    float64 // of packets over slots
	ready  bool
	closed bool
}

var _ env.Env = (*Env)(nil)

// New returns an environment of episodes of so many slots. n must not change afterwards.
func New(n Network, slots int) (*Env, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	if slots < 1 {
		return nil, fmt.Errorf("queuenet: got episodes of %d slots, want 1 or more", slots)
	}
	e := &Env{net: n, slots: slots, queues: make([]int, n.Queues()), pcg: rand.NewPCG(0, 0)}
	e.src = rand.New(e.pcg)
	e.spec = env.Spec{
		ID: "QueueNet-v0",
		Obs: []env.Field{{Name: "queues", Shape: []int{2 * n.Queues()}, High: 1, Unit: "fraction",
			Doc: "whether a queue holds a packet, of each queue; then ln(1 + packets)/ln 1025, cut to 1"}},
		Action: env.ActionSpec{Sizes: []int{len(n.Bases)}}, MaxSteps: slots, Solved: math.NaN(), NoOp: -1,
		Info: []env.Field{{Name: "packets", Low: 0, High: float32(math.Inf(1)), Unit: "packets",
			Doc: "mean number that wait, of the episode so far", Metric: true}},
	}
	return e, nil
}

// Serve makes the environment serve the sets that choose chooses, whatever the actions are; nil = the actions count
// again. choose must not change or keep its slice.
func (e *Env) Serve(choose func(queues []int) int) { e.choose = choose }

// Spec implements env.Env.
func (e *Env) Spec() env.Spec { return e.spec }

// Reset implements env.Env.
func (e *Env) Reset(ctx context.Context, ep env.Episode, ts *env.TimeStep) error {
	if e.closed {
		return env.ErrClosed
	}
	e.ready = false // an error asks for another Reset
	if err := ctx.Err(); err != nil {
		return err
	}
	if ep.Split != "" || ep.Task != nil {
		return fmt.Errorf("queuenet: episode %+v: there are no parts and no tasks: %w", ep, env.ErrEpisode)
	}
	rng.Seed(e.pcg, ep.Seed, "queuenet")
	clear(e.queues)
	e.slot, e.begin, e.sum, e.kind, e.ready = 0, 0, 0, env.First, true
	if k := len(e.net.Rates); k > 1 {
		e.begin = e.src.IntN(k * e.net.Slots)
	}
	e.show(ts, 0)
	return nil
}

// Step implements env.Env.
func (e *Env) Step(ctx context.Context, a env.Action, ts *env.TimeStep) error {
	switch {
	case e.closed:
		return env.ErrClosed
	case !e.ready || e.kind.Last():
		return env.ErrResetNeeded
	case ctx.Err() != nil:
		return ctx.Err()
	case len(a.Disc) != 1 || len(a.Cont) != 0 || a.Disc[0] < 0 || int(a.Disc[0]) >= len(e.net.Bases):
		return fmt.Errorf("queuenet: action %v of %d base controllers: %w", a.Disc, len(e.net.Bases), env.ErrIllegalAction)
	}
	set := 0
	if e.choose != nil {
		set = e.choose(e.queues)
	} else {
		set = e.net.Choose(e.net.Bases[a.Disc[0]], e.queues)
	}
	// Every slot draws one number for each link and each arrival, so that all schedulers see the same ones.
	up := uint64(0)
	for i := range e.queues {
		if e.net.Up == nil || e.src.Float64() < e.net.Up[i] {
			up |= 1 << i
		}
	}
	for _, i := range e.net.Sets[set] {
		if e.queues[i] > 0 && up>>i&1 == 1 {
			e.queues[i]--
		}
	}
	for i, p := range e.net.load(e.begin + e.slot) {
		if e.src.Float64() < p {
			e.queues[i]++
		}
	}
	packets := 0
	for _, q := range e.queues {
		packets += q
	}
	e.slot++
	e.sum += float64(packets)
	if e.kind = env.Mid; e.slot == e.slots {
		e.kind = env.Truncated
	}
	e.show(ts, -float64(packets)/unit)
	return nil
}

func (e *Env) show(ts *env.TimeStep, reward float64) {
	ts.Kind, ts.Reward, ts.Elapsed = e.kind, reward, 0
	for i, q := range e.queues {
		ts.Obs[i] = float32(min(q, 1))
		ts.Obs[len(e.queues)+i] = float32(min(1, math.Log1p(float64(q))/math.Log(1025)))
	}
	for i := range ts.Mask {
		ts.Mask[i] = true
	}
	if ts.Info[0] = math.NaN(); e.slot > 0 {
		ts.Info[0] = e.sum / float64(e.slot)
	}
}

// Close implements env.Env.
func (e *Env) Close() error {
	e.closed = true
	return nil
}
