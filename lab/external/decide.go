package external

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"clustergym/bridge/wire"
	"clustergym/internal/plain"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
	"clustergym/traces"
)

// The decisions of a client, by their codes on the wire.
const (
	opStart  = iota // start a waiting job; that it does not fit is an error
	opTry           // start it if it fits
	opStop          // stop a running job, which waits again
	opResize        // give a running elastic job another number of GPUs
	opMove          // give a running job other GPUs, as many as it has
	ops
)

var opWords = [ops]string{"start", "try to start", "stop", "resize", "move"}

// decisions are what a client wants to be done at one point, by column.
type decisions struct {
	op, job []int64
	n       []int64 // GPUs, 0 = as many as asked for; nil = 0 for all
	at      []int64 // how many of gpus belong to each decision, 0 = they are chosen; nil = 0 for all
	gpus    []int64
	used    int           // of gpus, by the decisions so far
	until   time.Duration // be asked again at this time at the latest, 0 = at the next event
	failed  string        // the client's scheduler has failed: the play ends
}

func (d *decisions) reset() { *d = decisions{} }

// read reads the decisions of one play. It checks what does not depend on the state of the play.
func (d *decisions) read(m wire.Map) *wire.Error {
	f := wire.Fields{Map: m}
	*d = decisions{
		op: f.Ints("op"), job: f.Ints("job"), n: f.Ints("n"), at: f.Ints("at"), gpus: f.Ints("gpus"),
		failed: f.Str("failed", ""),
	}
	d.readUntil(&f)
	if f.Err != nil {
		return f.Err
	}
	for _, c := range []struct {
		name string
		col  []int64
		must bool
		most int64
	}{{"op", d.op, true, ops - 1}, {"job", d.job, true, math.MaxInt32}, {"n", d.n, false, traces.MaxGPUs},
		{"at", d.at, false, math.MaxInt32}} {
		if len(c.col) != len(d.op) && (c.must || c.col != nil) {
			return wire.Errorf(wire.BadRequest, "field %s has %d entries, want %d, as op has", c.name, len(c.col), len(d.op))
		}
		for _, x := range c.col {
			if x < 0 || x > c.most {
				return &wire.Error{Code: wire.BadRequest, Msg: "field " + c.name, Got: strconv.FormatInt(x, 10),
					Want: "0 to " + strconv.FormatInt(c.most, 10)}
			}
		}
	}
	placed := int64(0)
	for _, k := range d.at {
		placed += k
	}
	if placed != int64(len(d.gpus)) {
		return wire.Errorf(wire.BadRequest, "field gpus has %d entries, want %d, the sum of at", len(d.gpus), placed)
	}
	return nil
}

// readUntil reads a time in seconds.
func (d *decisions) readUntil(f *wire.Fields) {
	v := f.Get("until")
	if v == nil {
		return
	}
	t, ok := v.(float64)
	if n, whole := wire.Whole(v); whole {
		t, ok = float64(n), true
	}
	if !ok || !(t > 0 && t <= time.Duration(traces.MaxTime).Seconds()) {
		f.Fail(&wire.Error{Code: wire.BadRequest, Msg: "field until", Got: fmt.Sprint(v),
			Want: "a time in seconds, above 0 and at most 146 years"})
		return
	}
	d.until = min(time.Duration(math.Round(t*1e9)), traces.MaxTime)
}

// words names decision i for messages.
func (p *play) words(i int) string {
	pos := p.sent.job[i]
	s := fmt.Sprintf("%s job %d", opWords[p.sent.op[i]], pos)
	if j, ok := p.number(pos); ok {
		s += fmt.Sprintf(" (%s)", plain.Clip(plain.Line(p.v.Trace(j).ID), 60))
	}
	return s
}

// number returns the simulator's number of the job at a position, and whether it is in the system.
func (p *play) number(pos int64) (sim.Job, bool) {
	if pos >= int64(len(p.numbs)) {
		return -1, false
	}
	j := p.numbs[pos]
	return j, j >= 0
}

// one makes decision i of those sent into d. It returns false if there is nothing to do for it.
func (p *play) one(v *sim.View, i int, d *sim.Decision) (done bool, err error) {
	s := &p.sent
	op, n := s.op[i], 0
	if s.n != nil {
		n = int(s.n[i])
	}
	var gpus []int64
	if s.at != nil {
		gpus = s.gpus[s.used : s.used+int(s.at[i])]
		s.used += len(gpus)
	}
	j, ok := p.number(s.job[i])
	switch {
	case ok:
	case s.job[i] < int64(len(p.numbs)):
		return false, errors.New("it has ended")
	default:
		return false, errors.New("there is no such job; want a job of queue or running")
	}
	want := sim.Running
	if op == opStart || op == opTry {
		want = sim.Waiting
	}
	switch {
	case v.Decided(j):
		return false, errors.New("there is a decision about it at this time already")
	case v.State(j) != want:
		return false, fmt.Errorf("it is %v, want one that is %v", v.State(j), want)
	}
	d.Job, d.N = j, 0
	if d.GPUs, err = p.named(v, j, gpus, d.GPUs[:0]); err != nil {
		return false, err
	}
	switch op {
	case opStart, opTry:
		d.Op = sim.StartJob
		if len(gpus) > 0 {
			return true, nil
		}
		return p.place(v, j, n, op == opTry, d)
	case opStop:
		d.Op = sim.PreemptJob
	case opResize:
		d.Op = sim.ResizeJob
		if len(gpus) == 0 {
			return true, p.resize(v, j, n, d)
		}
	case opMove:
		if d.Op = sim.MigrateJob; len(gpus) == 0 {
			return false, errors.New("want the GPUs to which it moves")
		}
	}
	return true, nil
}

// named appends the GPUs that a client names to dst.
func (p *play) named(v *sim.View, j sim.Job, gpus []int64, dst []cluster.GPU) ([]cluster.GPU, error) {
	c := v.Cluster()
	switch {
	case len(gpus) == 0:
		return dst, nil
	case c.Pool():
		return dst, errors.New("the cluster is a counter, whose GPUs cannot be named")
	case v.Asked(j) == 0:
		return dst, errors.New("it asks for no GPU, so none can be named")
	}
	for _, g := range gpus {
		if g < 0 || g >= int64(c.GPUs()) {
			return dst, fmt.Errorf("there is no GPU %d, want 0 to %d", g, c.GPUs()-1)
		}
		dst = append(dst, cluster.GPU(g))
	}
	return dst, nil
}

// place finds GPUs for a start on n of them, 0 = as many as asked for. With try it returns false where there are none.
func (p *play) place(v *sim.View, j sim.Job, n int, try bool, d *sim.Decision) (done bool, err error) {
	c, r := v.Cluster(), v.Request(j)
	var other cluster.Request
	if n != 0 && n != v.Asked(j) {
		if err := elastic(v, j, n); err != nil {
			return false, err
		}
		other = c.Resized(*r, n)
		r, d.N = &other, n
	}
	var ok bool
	if d.GPUs, ok = p.Placement.Place(v, j, r, c, d.GPUs[:0]); ok || try {
		return ok, nil
	}
	return false, fmt.Errorf("it does not fit: it takes %s, and %s free", plain.Count(r.GPUs, "GPU", "GPUs"),
		plain.Count(c.Free(), "is", "are"))
}

// elastic returns an error if j cannot have n GPUs.
func elastic(v *sim.View, j sim.Job, n int) error {
	t := v.Trace(j)
	if t.MaxGPUs == 0 {
		return fmt.Errorf("it is not elastic: it takes %s, and not %d", plain.Count(v.Asked(j), "GPU", "GPUs"), n)
	}
	if least := max(1, t.MinGPUs); n < least || n > t.MaxGPUs {
		return fmt.Errorf("it takes %d to %d GPUs, and not %d", least, t.MaxGPUs, n)
	}
	return nil
}

// resize finds n GPUs for j, which runs: the first of its own, and if these are not enough, others besides.
func (p *play) resize(v *sim.View, j sim.Job, n int, d *sim.Decision) error {
	if err := elastic(v, j, n); err != nil {
		return err
	}
	c := v.Cluster()
	d.N = n
	if c.Pool() {
		return nil
	}
	own := v.GPUs(j)
	if d.GPUs = append(d.GPUs[:0], own[:min(n, len(own))]...); n <= len(own) {
		return nil
	}
	more := c.Resized(*v.Request(j), n-len(own))
	var ok bool
	if p.more, ok = p.Placement.Place(v, j, &more, c, p.more[:0]); !ok {
		return fmt.Errorf("it does not fit: it takes %s more, and %s free",
			plain.Count(n-len(own), "GPU", "GPUs"), plain.Count(c.Free(), "is", "are"))
	}
	d.GPUs = append(d.GPUs, p.more...)
	return nil
}
