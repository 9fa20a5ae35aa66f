package schedulers

import (
	"fmt"

	"clustergym/internal/nearest"
	"clustergym/simulator/policyname"
	"clustergym/simulator/schedulers/expression"
	"clustergym/simulator/sim"
)

// writtenRule returns the rule of an order that a user has written out (package expression). It has a state of its
// own, so every scheduler needs one.
//
// An order with stop if preempts: running and waiting jobs are ranked together, and a running job is stopped only if
// the condition is true of it. A job of which start if is false counts as not waiting, until the next decision, unless
// no job runs: something must always start.
func writtenRule(order string) (rule, error) {
	o, err := expression.Compile(order)
	if err != nil {
		return rule{}, err
	}
	for _, name := range Orders() {
		if name == o.Label() {
			return rule{}, fmt.Errorf("%s is the name of another order; choose another one, such as my-%s", name, name)
		}
	}
	usage := o.Looks&expression.Usage != 0
	return rule{
		name: order, preemptive: o.Stops(), estimates: (o.Looks|o.Conditions)&expression.Estimates != 0,
		dynamic: usage || o.Looks&expression.Clock != 0,
		// A pass that stops jobs is planned as a whole, by what was free at its beginning.
		everyStart: usage && !o.Stops(),
		written:    o,
		key:        func(in *inputs, v *sim.View, j sim.Job) float64 { return o.Key(v, j, &in.est) },
	}, nil
}

// CheckWritten says in one sentence what is wrong with a written order of policies over the whole queue, nil if nothing
// is.
func CheckWritten(n policyname.Name) error {
	if n.Kind != policyname.Queue {
		return fmt.Errorf("it acts in slots, which there are none of here; leave %s out", policyname.Slots(""))
	}
	_, err := writtenRule(n.Base)
	return err
}

// Written reports whether order is written out and can be computed.
func Written(order string) bool {
	r, _, _ := named(order)
	return r.written != nil
}

// Known reports whether there is an order or policy called name, or one that is written out so.
func Known(name string) bool {
	_, _, ok := named(name)
	return ok
}

// whyUnknown says what would be right in place of an order that is not known.
func whyUnknown(order string) string {
	if !policyname.IsWritten(order) {
		return nearest.OneOf(order, Orders())
	}
	_, err := writtenRule(order)
	return policyname.Compiles + err.Error()
}

// beyond reports whether a written order looks at run times, which est does not give.
func (r *rule) beyond(est sim.Estimates) bool {
	return r.written != nil && (r.written.Looks|r.written.Conditions)&expression.RunTimes != 0 &&
		est.Mode != sim.EstimateExact
}

// beyondWanted says what would be right in place of estimates beyond which an order looks.
func beyondWanted(order string) string {
	return "exact, as " + order + " looks at run_time, which only that rung knows; or estimate in its place, what is " +
		"known of the run time on every rung but none"
}

// heldBack reports whether start if keeps j, which waits, from starting now. busy says that a job runs or will.
func (b *books) heldBack(v *sim.View, j sim.Job, busy bool) bool {
	w := b.rule.written
	return w != nil && busy && w.Holds() && !w.Start(v, j, &b.est)
}

// stays reports whether stop if keeps j, which runs, from being stopped now.
func (b *books) stays(v *sim.View, j sim.Job) bool {
	w := b.rule.written
	return w != nil && !w.Stop(v, j, &b.est)
}
