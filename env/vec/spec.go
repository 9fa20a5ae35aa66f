package vec

import (
	"fmt"
	"math"
	"slices"

	"clustergym/env"
)

// specsDiffer says how a and b differ, or returns nil. A NaN (Solved undefined) equals itself here.
func specsDiffer(a, b env.Spec) error {
	switch {
	case a.ID != b.ID:
		return fmt.Errorf("id %q and %q", a.ID, b.ID)
	case !slices.EqualFunc(a.Obs, b.Obs, sameField):
		return fmt.Errorf("observations of %s", a.ID)
	case !slices.EqualFunc(a.Info, b.Info, sameField):
		return fmt.Errorf("infos of %s", a.ID)
	case !slices.Equal(a.Action.Sizes, b.Action.Sizes) || !slices.Equal(a.Action.Low, b.Action.Low) ||
		!slices.Equal(a.Action.High, b.Action.High):
		return fmt.Errorf("actions of %s", a.ID)
	case a.MaxSteps != b.MaxSteps:
		return fmt.Errorf("limits of %d and %d steps", a.MaxSteps, b.MaxSteps)
	case a.NoOp != b.NoOp:
		return fmt.Errorf("no-ops %d and %d", a.NoOp, b.NoOp)
	case a.Tau != b.Tau:
		return fmt.Errorf("discount times %v and %v", a.Tau, b.Tau)
	case math.Float64bits(a.Solved) != math.Float64bits(b.Solved) && !(math.IsNaN(a.Solved) && math.IsNaN(b.Solved)):
		return fmt.Errorf("returns %v and %v that count as solved", a.Solved, b.Solved)
	}
	return nil
}

func sameField(a, b env.Field) bool {
	return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.Low == b.Low && a.High == b.High &&
		a.Unit == b.Unit && a.Doc == b.Doc && a.Metric == b.Metric
}
