package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clustergym/internal/fault"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
)

// Order is a compiled order. Not safe for concurrent use: it belongs to one scheduler.
type Order struct {
	// Looks says what the rank follows from, and Conditions what the other clauses follow from. A key that grows by the
	// same in each second for every job gives ranks that the clock does not change.
	Looks, Conditions Looks

	written     policyname.Written
	key         func(e *state) float64
	start, stop func(e *state) bool // nil = no such clause
	used        []*Variable         // by the key, for messages
	still       bool                // the key is computed as if the clock showed 0
	state       state
	err         error
}

// Compile compiles an order as policyname.ReadWritten reads it. An error says in one sentence which clause is wrong,
// where, and what would be right.
func Compile(order string) (*Order, error) {
	w, err := policyname.ReadWritten(order)
	if err != nil {
		return nil, err
	}
	o, c := &Order{written: w}, newCompiler()
	for _, clause := range w.Clauses {
		if !strings.HasPrefix(clause.Name, "$") {
			continue
		}
		x, err := strconv.ParseFloat(clause.Text, 64)
		if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, fmt.Errorf("%s: %q is no number; write one such as 0.5", clause.Name, clause.Text)
		}
		c.constants[clause.Name] = x
	}
	for _, clause := range w.Clauses {
		k := condition
		switch clause.Name {
		case policyname.Key:
			k = number
		case policyname.StartIf, policyname.StopIf:
		default:
			continue
		}
		c.used = nil
		v, err := c.compile(clause.Text, k)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", clause.Name, err)
		}
		switch clause.Name {
		case policyname.Key:
			if o.key, o.Looks = v.number, v.looks; o.Looks&Clock != 0 && !math.IsNaN(v.rate) && !math.IsInf(v.rate, 0) {
				o.still, o.Looks = true, o.Looks&^Clock
			}
			for _, name := range c.used {
				o.used = append(o.used, c.variables[name])
			}
		case policyname.StartIf:
			o.start, o.Conditions = v.truth, o.Conditions|v.looks
		default:
			o.stop, o.Conditions = v.truth, o.Conditions|v.looks
		}
	}
	return o, nil
}

// Label returns what tables call the order, "" if it has no name.
func (o *Order) Label() string { return o.written.Label }

// Holds reports whether the order holds jobs back: it has start if.
func (o *Order) Holds() bool { return o.start != nil }

// Stops reports whether the order stops running jobs: it has stop if.
func (o *Order) Stops() bool { return o.stop != nil }

// Reset forgets the run before.
func (o *Order) Reset() {
	o.err, o.state.sums.valid = nil, false
}

// Err returns the first error since Reset: a key that is not a number. It is a *fault.Mistake.
func (o *Order) Err() error { return o.err }

// at sets the state to job j of a run.
func (o *Order) at(v *sim.View, j sim.Job, est *sim.Estimates) *state {
	o.state.view, o.state.job, o.state.est, o.state.origin = v, j, est, false
	return &o.state
}

// Key returns the rank of j, least first: the key, or what it was at time 0 if it grows by the same for every job, so
// that ranks of different times compare. It is finite: infinite keys are the greatest and the least number, so that a
// caller can rank before and behind all. A key that is not a number is the greatest, and sets Err.
func (o *Order) Key(v *sim.View, j sim.Job, est *sim.Estimates) float64 {
	e := o.at(v, j, est)
	e.origin = o.still
	x := o.key(e)
	if x >= -math.MaxFloat64 && x <= math.MaxFloat64 {
		return x
	}
	if math.IsNaN(x) {
		o.undefined(e)
		return math.MaxFloat64
	}
	return math.Copysign(math.MaxFloat64, x)
}

// undefined notes that the key of a job is not a number.
func (o *Order) undefined(e *state) {
	if o.err != nil {
		return
	}
	var with []string
	e.origin = false
	for _, v := range o.used {
		with = append(with, fmt.Sprintf("%s = %.6g", v.Name, v.number(e)))
	}
	where := ""
	if len(with) > 0 {
		where = " with " + strings.Join(with, ", ")
	}
	o.err = fault.Mistakef("at %v the key of job %s is not a number: %s%s; want one for every job, as by max(x, 1) under "+
		"a logarithm or a fraction", e.view.Now(), e.view.Trace(e.job).ID, o.written.Of(policyname.Key), where)
}

// Start reports whether j, which waits, may start now. An order that holds no jobs back always lets them.
func (o *Order) Start(v *sim.View, j sim.Job, est *sim.Estimates) bool {
	return o.start == nil || o.start(o.at(v, j, est))
}

// Stop reports whether j, which runs, may be stopped now.
func (o *Order) Stop(v *sim.View, j sim.Job, est *sim.Estimates) bool {
	return o.stop != nil && o.stop(o.at(v, j, est))
}
