package envtest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"clustergym/env"
)

var idPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./]*-v[0-9]+$`)

func (s *suite) specIsSane() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	sp := s.spec
	if !idPattern.MatchString(sp.ID) {
		bad("ID %q, want a name and a version as in JobSelect-v1", sp.ID)
	}
	fieldsAreSane(&sp, bad)
	actionsAreSane(&sp, bad)
	if sp.MaxSteps < 0 {
		bad("MaxSteps is %d", sp.MaxSteps)
	}
	if sp.Tau < 0 {
		bad("Tau is %v", sp.Tau)
	}
	if math.IsInf(sp.Solved, 0) {
		bad("Solved is %v, want a return, or NaN for none", sp.Solved)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	before := s.spec
	if err := s.play(s.first(), s.episode(0), func(*env.TimeStep) error { return nil }); err != nil {
		return err
	}
	if !sameSpec(before, s.first().Spec()) {
		return errors.New("the spec changed with an episode")
	}
	if !sameSpec(before, s.open().Spec()) {
		return errors.New("two instances have different specs")
	}
	return nil
}

// fieldsAreSane calls bad for everything that is wrong with observations and infos.
func fieldsAreSane(sp *env.Spec, bad func(format string, args ...any)) {
	if len(sp.Obs) == 0 {
		bad("no observations")
	}
	for i, f := range sp.Obs {
		if i > 0 && f.Name <= sp.Obs[i-1].Name {
			bad("observation %q stands after %q, want them sorted and distinct", f.Name, sp.Obs[i-1].Name)
		}
		if err := fieldIsSane(f); err != nil {
			bad("observation %q: %w", f.Name, err)
		}
		if !(f.Low <= f.High) {
			bad("observation %q: bounds [%v, %v]", f.Name, f.Low, f.High)
		}
		if f.Filled < 0 || f.Filled > 0 && (len(f.Shape) != 2 || f.Filled > f.Shape[1]) {
			bad("observation %q of shape %v: Filled is %d, want 0 or 1 + a column of a table [rows, columns]", f.Name, f.Shape,
				f.Filled)
		}
		if i > 0 && sp.Obs[i-1].Critic && !f.Critic {
			bad("observation %q, which policies see, stands after %q, which is for critics", f.Name, sp.Obs[i-1].Name)
		}
		if f.Metric {
			bad("observation %q is a Metric, which only infos are", f.Name)
		}
	}
	names := map[string]bool{}
	for _, f := range sp.Info {
		if names[f.Name] {
			bad("info %q stands twice", f.Name)
		}
		names[f.Name] = true
		if err := fieldIsSane(f); err != nil {
			bad("info %q: %w", f.Name, err)
		} else if f.Len() != 1 {
			bad("info %q has %d elements, want a scalar: TimeStep.Info holds one number for each", f.Name, f.Len())
		}
	}
}

// actionsAreSane calls bad for everything that is wrong with the actions.
func actionsAreSane(sp *env.Spec, bad func(format string, args ...any)) {
	a := sp.Action
	if len(a.Sizes) == 0 && len(a.Low) == 0 {
		bad("no actions")
	}
	for i, n := range a.Sizes {
		if n < 1 {
			bad("factor %d of the action has %d values", i, n)
		}
	}
	if len(a.Low) != len(a.High) {
		bad("actions have %d lower and %d upper bounds", len(a.Low), len(a.High))
	}
	for i := range min(len(a.Low), len(a.High)) {
		if !(a.Low[i] < a.High[i]) {
			bad("dimension %d of the action has bounds [%v, %v]", i, a.Low[i], a.High[i])
		}
	}
	if sp.NoOp < -1 || sp.NoOp >= 0 && (len(a.Sizes) == 0 || sp.NoOp >= a.Sizes[0]) {
		bad("NoOp is %d, want -1 or an action", sp.NoOp)
	}
}

func fieldIsSane(f env.Field) error {
	if f.Name == "" || strings.TrimSpace(f.Name) != f.Name {
		return fmt.Errorf("name %q", f.Name)
	}
	for _, d := range f.Shape {
		if d < 1 {
			return fmt.Errorf("shape %v", f.Shape)
		}
	}
	return nil
}

// sameSpec compares specs; a NaN (Solved undefined) equals itself here.
func sameSpec(a, b env.Spec) bool {
	if math.IsNaN(a.Solved) && math.IsNaN(b.Solved) {
		a.Solved, b.Solved = 0, 0
	}
	return reflect.DeepEqual(a, b)
}
