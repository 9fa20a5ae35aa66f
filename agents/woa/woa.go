package woa

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clustergym/agents"
	"clustergym/env/dagplace"
	"clustergym/internal/fault"
	"clustergym/internal/par"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
)

// Config holds the parameters.
type Config struct {
	Space      string  `yaml:"space"`     // time or ranks: in which whales move
	Hopes      string  `yaml:"hopes"`     // whales, random or leader: see doc.go; not of generator direct
	Generator  string  `yaml:"generator"` // direct, greedy or policy; in space ranks greedy or policy
	Position   string  `yaml:"position"`  // final or prefix; of greedy and policy
	Whales     int     `yaml:"whales"`    // plans in the population
	Iterations int     `yaml:"iterations"`
	B          float64 `yaml:"b"`         // shape of the spiral
	Order      string  `yaml:"order"`     // of tasks: rank or index
	Insert     bool    `yaml:"insertion"` // tasks may go into gaps
	// of policy: initial number of a plan's tasks that go to a random slot; falls to 0
	Explore float64 `yaml:"explore"`
	Slots   int     `yaml:"slots"` // of policy: processors that it chooses among
	Moves   int     `yaml:"moves"` // attempts to move a single task of the leader in each iteration
}

// DefaultConfig is the setting of gymctl plan for small graphs.
func DefaultConfig() Config {
	return Config{
		Space: "time", Hopes: "whales", Generator: "greedy", Position: "prefix", Whales: 30, Iterations: 100, B: 1,
		Order: "rank", Insert: true,
		Explore: 10, Slots: 16,
	}
}

// Validate reports every fault.
func (c Config) Validate() error {
	var l fault.List
	l.Add(c.Space == "time" || c.Space == "ranks", "space", c.Space, "time or ranks")
	l.Add(c.Hopes == "whales" || c.Hopes == "random" || c.Hopes == "leader", "hopes", c.Hopes, "whales, random or leader")
	l.Add(c.Space != "ranks" || c.Generator != "direct", "generator", c.Generator, "greedy or policy in space ranks")
	l.Add(c.Generator == "direct" || c.Generator == "greedy" || c.Generator == "policy", "generator", c.Generator,
		"direct, greedy or policy")
	l.Add(c.Position == "final" || c.Position == "prefix", "position", c.Position, "final or prefix")
	l.Add(c.Whales >= 2 && c.Whales <= 10_000, "whales", c.Whales, "2 to 10000")
	l.Add(c.Iterations >= 1 && c.Iterations <= 1_000_000, "iterations", c.Iterations, "1 to 1000000")
	l.Add(c.B >= -10 && c.B <= 10, "b", c.B, "-10 to 10")
	l.Add(c.Order == "rank" || c.Order == "index", "order", c.Order, "rank or index")
	l.Add(c.Explore >= 0 && c.Explore <= 1e9, "explore", c.Explore, "0 or more")
	l.Add(c.Slots >= 2 && c.Slots <= 1024, "slots", c.Slots, "2 to 1024")
	l.Add(c.Moves >= 0 && c.Moves <= 1_000_000_000, "moves", c.Moves, "0 or more")
	return l.Err()
}

// mostExplored is the largest share of a plan's tasks that are placed at random: in small graphs most must follow the
// policy.
const mostExplored = 0.25

// Hooks connect a search with its caller; all may be nil.
type Hooks struct {
	// Policy makes a policy for observations of dagplace with Slots slots and local scale, one for each worker. The
	// generator policy requires it.
	Policy func() (agents.Policy, error)
	// Progress is called after every iteration with the share that is done and the least makespan.
	Progress func(share, makespan float64)
}

// Result is what a search found.
type Result struct {
	Plan    *dag.Plan
	Initial float64   // least makespan of the first population
	Curve   []float64 // least makespan after each iteration
	Plans   int       // made and evaluated
}

// whale is one plan of the population.
type whale struct {
	proc     []int32
	makespan float64
	position []float64 // loads or, with generator direct, a number in [0, processors)
}

func (w *whale) copyFrom(o *whale) {
	copy(w.proc, o.proc)
	copy(w.position, o.position)
	w.makespan = o.makespan
}

type search struct {
	cfg     Config
	q       *dag.Problem
	n, m    int
	order   []int32
	rank    []float64
	workers []*worker
	now     []*whale // the population
	next    []*whale // and the one that is being made
	leader  int
	seed    uint64
	plans   int
}

// Search plans q. The first population contains seeds (HEFT's plan, for instance) and random plans. Up to workers
// goroutines share the work.
func Search(ctx context.Context, q *dag.Problem, cfg Config, seeds []*dag.Plan, seed uint64, workers int,
	hooks Hooks) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Generator == "policy" && hooks.Policy == nil {
		return nil, fmt.Errorf("woa: generator policy without a policy")
	}
	s := &search{cfg: cfg, q: q, n: q.Tasks(), m: q.Procs(), seed: seed}
	s.rank = q.UpwardRanks(dag.Pairs, nil)
	s.order = q.Graph.Order()
	if cfg.Order == "rank" {
		s.order = dag.SortedOrder(q.Graph, s.rank, nil)
	}
	if cfg.Space == "ranks" {
		r, err := s.searchRanks(ctx, seeds, workers, hooks)
		if err != nil {
			return nil, err
		}
		r.keepBest(seeds)
		return r, nil
	}
	for range cfg.Whales {
		s.now, s.next = append(s.now, s.newWhale()), append(s.next, s.newWhale())
	}
	for range max(1, min(workers, cfg.Whales)) {
		w, err := s.newWorker(hooks)
		if err != nil {
			return nil, err
		}
		s.workers = append(s.workers, w)
	}
	if err := s.begin(ctx, seeds); err != nil {
		return nil, err
	}
	r := &Result{Initial: s.now[s.leader].makespan}
	for k := range cfg.Iterations {
		if err := s.iterate(ctx, k); err != nil {
			return nil, err
		}
		r.Curve = append(r.Curve, s.now[s.leader].makespan)
		if hooks.Progress != nil {
			hooks.Progress(float64(k+1)/float64(cfg.Iterations), s.now[s.leader].makespan)
		}
	}
	r.Plans = s.plans
	r.Plan = s.workers[0].timed(s.now[s.leader].proc).Clone()
	r.keepBest(seeds)
	return r, nil
}

// keepBest keeps a seed if it is shorter: its times may come from another rule than the search's.
func (r *Result) keepBest(seeds []*dag.Plan) {
	for _, p := range seeds {
		if p.Makespan < r.Plan.Makespan {
			r.Plan = p.Clone()
		}
	}
}

func (s *search) newWhale() *whale {
	return &whale{proc: make([]int32, s.n), position: make([]float64, s.n)}
}

// stream returns the random stream of one whale in one iteration: src, which draws from pcg.
func (s *search) stream(pcg *rand.PCG, src *rand.Rand, iteration, i int) *rand.Rand {
	pcg.Seed(rng.At(s.seed, uint64(iteration+1), uint64(i)), rng.At(s.seed, uint64(i), uint64(iteration+1), 1))
	return src
}

// begin makes the first population.
func (s *search) begin(ctx context.Context, seeds []*dag.Plan) error {
	err := par.For(ctx, len(s.workers), len(s.now), func(k, i int) error {
		w, x := s.workers[k], s.now[i]
		src := s.stream(&w.pcg, w.src, -1, i)
		if i < len(seeds) {
			copy(x.proc, seeds[i].Proc)
		} else {
			for t := range x.proc {
				g := int32(src.IntN(s.m))
				for math.IsInf(s.q.Exec(int32(t), g), 1) {
					g = int32(src.IntN(s.m))
				}
				x.proc[t] = g
			}
		}
		for t, g := range x.proc {
			x.position[t] = float64(g) + src.Float64()
		}
		x.makespan = w.evaluate(x.proc)
		s.place(w, x)
		return nil
	})
	s.plans += len(s.now)
	s.lead()
	return err
}

// place computes a whale's position in running-time space.
func (s *search) place(w *worker, x *whale) {
	switch {
	case s.cfg.Generator == "direct":
	case s.cfg.Position == "final":
		dagplace.FinalLoads(s.q, s.order, x.proc, x.position, w.total)
	default:
		dagplace.PrefixLoads(s.q, s.order, x.proc, x.position, w.total)
	}
}

// lead finds the leader, the first of the best.
func (s *search) lead() {
	s.leader = 0
	for i, x := range s.now {
		if x.makespan < s.now[s.leader].makespan {
			s.leader = i
		}
	}
}

// iterate moves the population once.
func (s *search) iterate(ctx context.Context, k int) error {
	share := float64(k) / float64(s.cfg.Iterations)
	err := par.For(ctx, len(s.workers), len(s.now), func(wk, i int) error {
		w, x := s.workers[wk], s.next[i]
		if i == s.leader {
			x.copyFrom(s.now[i])
			return nil
		}
		src := s.stream(&w.pcg, w.src, k, i)
		pull := dagplace.NewPull(share, src)
		target := s.now[s.leader]
		if pull.Random {
			target = s.now[src.IntN(len(s.now))]
		}
		if s.cfg.Generator == "direct" {
			s.swim(pull, x, target, s.now[i], src)
			x.makespan = w.evaluate(x.proc)
			return nil
		}
		s.hopes(w.hope, pull, target, s.now[i], src)
		if err := w.generate(ctx, x, s.now[s.leader].makespan, (1-share)*min(s.cfg.Explore/float64(s.n), mostExplored),
			src); err != nil {
			return err
		}
		s.place(w, x)
		return nil
	})
	if err != nil {
		return err
	}
	s.plans += len(s.now) - 1
	s.now, s.next = s.next, s.now
	s.lead()
	if s.cfg.Moves > 0 {
		return s.refine(ctx, k)
	}
	return nil
}

// hopes fills hope for a whale at from that is pulled towards target.
func (s *search) hopes(hope []float64, pull dagplace.Pull, target, from *whale, src *rand.Rand) {
	switch s.cfg.Hopes {
	case "random":
		most := slices.Max(s.now[s.leader].position)
		for i := range hope {
			hope[i] = most * src.Float64()
		}
	case "leader":
		copy(hope, s.now[s.leader].position)
	default:
		pull.Hopes(hope, target.position, from.position, s.cfg.B, src)
	}
}

// swim is the plain update of one whale, coordinate by coordinate (Mirjalili and Lewis 2016, equations 2.1 to 2.8).
func (s *search) swim(pull dagplace.Pull, x, target, current *whale, src *rand.Rand) {
	c := 2 * src.Float64()
	for t := range x.position {
		to, from := target.position[t], current.position[t]
		var v float64
		if pull.Spiral {
			v = math.Abs(to-from)*pull.Factor(s.cfg.B, src) + to
		} else {
			v = to - pull.A*math.Abs(c*to-from)
		}
		v = min(max(v, 0), math.Nextafter(float64(s.m), 0))
		x.position[t] = v
		g := int32(v)
		for math.IsInf(s.q.Exec(int32(t), g), 1) { // the next one that can run it
			g = (g + 1) % int32(s.m)
		}
		x.proc[t] = g
	}
}

// refine tries to move single tasks of the leader, drawn among those that determine its makespan, to a processor that
// finishes them early, and keeps a move unless it makes the plan longer. It counts every try as a plan.
func (s *search) refine(ctx context.Context, k int) error {
	w, x := s.workers[0], s.now[s.leader]
	src := s.stream(&w.pcg, w.src, k, len(s.now))
	e := w.moves
	best := e.Makespan(x.proc)
	improved := false
	for try := range s.cfg.Moves {
		if try%256 == 255 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		i := w.critical(e, src)
		old := e.Proc()[i]
		g := w.earliest(e, i, old, src)
		if g == old {
			continue
		}
		s.plans++
		if got := e.Move(i, g); got > best {
			e.Move(i, old)
		} else {
			improved = improved || got < best
			best = got
		}
	}
	if !improved {
		return nil
	}
	if makespan := w.evaluate(e.Proc()); makespan < x.makespan {
		copy(x.proc, e.Proc())
		x.makespan = makespan
		s.place(w, x)
		if s.cfg.Generator == "direct" {
			for t, g := range x.proc {
				x.position[t] = float64(g) + 0.5
			}
		}
	}
	return nil
}
