package external

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"clustergym/bridge/handle"
	"clustergym/bridge/wire"
	"clustergym/internal/par"
	"clustergym/lab/envs"
)

// Do implements handle.Served.
func (s *simulations) Do(ctx context.Context, op string, re uint32, req wire.Map, w *wire.Writer) error {
	if op != wire.OpDecide {
		return wire.Errorf(wire.BadRequest, "%.40q is for environments, and this is a handle of simulations: want %s", op,
			wire.OpDecide)
	}
	if s.broken {
		return wire.Errorf(wire.EnvFault, "a request took too long, and the simulations are lost: simulate again")
	}
	// Other policies play when the client's schedulers have ended, so that no client can read run times in what they did.
	own := slices.ContainsFunc(s.plays, func(p *play) bool { return p.Policy == nil && !p.over })
	if e := s.read(req); e != nil {
		return e
	}
	// From here on the plays advance: an error loses them.
	s.broken = true
	err := par.For(ctx, s.workers, len(s.plays), func(_, i int) error {
		p := s.plays[i]
		p.news.clear()
		if p.over || own && p.Policy != nil {
			return nil
		}
		return p.advance(ctx, s.clock)
	})
	if err != nil {
		return err
	}
	s.write(re, w)
	if n := w.Len(); n > s.most {
		return wire.Errorf(wire.TooLarge, "the reply has %d bytes, want at most %d: the simulations are lost, simulate less at "+
			"once", n, s.most)
	}
	s.broken = false
	return nil
}

// read reads the decisions of all plays that ask for some. An error leaves everything as it was.
func (s *simulations) read(req wire.Map) *wire.Error {
	list, ok := req.Get("plays").([]any)
	if !ok && req.Get("plays") != nil {
		return wire.Errorf(wire.BadRequest, "field plays, want a list of maps")
	}
	asking := 0
	for _, p := range s.plays {
		if p.asks {
			asking++
		}
	}
	if len(list) != asking {
		return wire.Errorf(wire.BadRequest, "field plays has %d entries, want %d: one for each play that asks, in order",
			len(list), asking)
	}
	next := 0
	for _, p := range s.plays {
		if !p.asks {
			continue
		}
		m, ok := list[next].(wire.Map)
		if !ok {
			return wire.Errorf(wire.BadRequest, "field plays[%d], want a map", next)
		}
		next++
		if e := p.sent.read(m); e != nil {
			return e
		}
	}
	for i, p := range s.plays {
		if p.asks && p.sent.failed != "" {
			s.log.Info("the scheduler of a simulation has failed", "play", i)
			p.fail(errors.New(p.sent.failed))
		}
	}
	return nil
}

// writeOpened writes the reply to simulate.
func (s *simulations) writeOpened(w *wire.Writer, o *handle.Opening) {
	c := s.stage.Cluster()
	spec := c.Spec()
	hardware := wire.MapOf("name", spec.Name, "gpus", c.GPUs(), "types", c.Types())
	if !c.Pool() {
		ints := func(of func(node int) int) wire.Array {
			a := wire.Array{DType: wire.I32, Shape: []int{c.Nodes()}, Data: make([]byte, 4*c.Nodes())}
			for i := range c.Nodes() {
				binary.LittleEndian.PutUint32(a.Data[4*i:], uint32(of(i)))
			}
			return a
		}
		hardware.Add("nodes", spec.NodeNames())
		hardware.Add("node_gpus", ints(func(n int) int {
			from, to := c.NodeGPUs(n)
			return int(to - from)
		}))
		hardware.Add("node_rack", ints(c.RackOf))
		hardware.Add("node_type", ints(c.TypeOf))
	}
	est, why := s.stage.Estimates()
	jobs, refused := s.stage.Jobs()
	plays := make([]any, len(s.plays))
	for i, p := range s.plays {
		rung, nothing := p.Rung()
		plays[i] = wire.MapOf("policy", p.Name(), "rung", rung, "asks_nothing", nothing)
	}
	w.Answer(o.Re, wire.OpSimulate, wire.MapOf(
		"h", o.H, "cluster", hardware, "jobs", jobs, "refused", refused, "estimates", est.String(), "estimates_why", why,
		"plays", plays,
	))
}

// write writes the reply to decide: every play that has something to tell. What describes the workload as a
// whole, its hash and the share of the GPU time that was left out, depends on run times, so that it comes with the end.
func (s *simulations) write(re uint32, w *wire.Writer) {
	n, over := 0, true
	for _, p := range s.plays {
		if p.tells() {
			n++
		}
		over = over && p.over
	}
	if over {
		w.Reply(re, wire.OpDecide, 3)
		w.Key("workload")
		w.Str(s.stage.Info().String())
		w.Key("notes")
		w.Value(s.stage.Notes())
	} else {
		w.Reply(re, wire.OpDecide, 1)
	}
	w.Key("plays")
	w.List(n)
	for i, p := range s.plays {
		if p.tells() {
			p.write(i, w)
		}
	}
}

// tells reports whether the client is to be told something of the play.
func (p *play) tells() bool { return !p.told && (p.asks || p.over || p.news.any()) }

// write writes the entry of play i.
func (p *play) write(i int, w *wire.Writer) {
	n := &p.news
	v, c := p.v, p.v.Cluster()
	keys := 2
	for _, has := range [...]bool{len(n.jobs) > 0, len(n.jobs) > 0, len(n.events) > 0, len(n.gpus) > 0, len(n.expects) > 0,
		len(n.ended) > 0, p.asks, p.asks, p.asks, p.asks && !c.Pool(), p.ended(), p.ended(), p.failed != ""} {
		if has {
			keys++
		}
	}
	w.Map(keys)
	w.Key("play")
	w.Int(int64(i))
	w.Key("now")
	w.Float(v.Now().Seconds())
	if len(n.jobs) > 0 {
		table(w, "jobs", n.jobs, jobCols)
		w.Key("text")
		w.List(len(n.text))
		for _, t := range n.text {
			w.Str(t)
		}
	}
	table(w, "events", n.events, eventCols)
	if len(n.gpus) > 0 {
		numbers(w, "gpus", n.gpus)
	}
	table(w, "expects", n.expects, 2)
	table(w, "ended", n.ended, endCols)
	if p.asks {
		numbers(w, "queue", p.queue)
		numbers(w, "running", p.running)
		w.Key("idle")
		w.Float(float64(c.FreeMilli()) / 1000)
		if !c.Pool() {
			p.writeFree(w)
		}
	}
	p.told = p.over
	if p.ended() {
		m, notes := p.Summary()
		w.Key("metrics")
		w.Value(envs.PlainSummary(m))
		w.Key("notes")
		w.Value(notes)
	}
	if p.failed != "" {
		w.Key("error")
		w.Str(p.failed)
	}
}

// ended reports whether the play has gone as far as it goes.
func (p *play) ended() bool { return p.over && p.failed == "" }

// writeFree writes how many thousandths of each GPU are free, -1 for those of a node that is down.
func (p *play) writeFree(w *wire.Writer) {
	c := p.v.Cluster()
	w.Key("free")
	b := w.Array(wire.I16, c.GPUs())
	for node := range c.Nodes() {
		from, to := c.NodeGPUs(node)
		down := c.Down(node)
		for g := from; g < to; g++ {
			milli := int16(c.GPUFree(g))
			if down {
				milli = -1
			}
			binary.LittleEndian.PutUint16(b[2*g:], uint16(milli))
		}
	}
}

// table writes rows of so many numbers, nothing for none.
func table(w *wire.Writer, key string, rows []float64, columns int) {
	if len(rows) > 0 {
		w.Key(key)
		w.F64(rows, len(rows)/columns, columns)
	}
}

// numbers writes whole numbers.
func numbers(w *wire.Writer, key string, of []int32) {
	w.Key(key)
	b := w.Array(wire.I32, len(of))
	for i, x := range of {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
}
