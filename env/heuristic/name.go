package heuristic

import (
	"fmt"
	"slices"
	"strings"
)

// Admissions returns what can happen when the first job in line does not fit: the values of Config.Admission.
func Admissions() []string { return []string{"strict", "skip", "commit"} }

// Backfills returns the ways in which other jobs may start while the first in line waits: the values of Config.Backfill.
func Backfills() []string { return []string{"none", "easy", "conservative"} }

// SplitName takes a policy's name apart: ORDER, ORDER+ADMISSION, ORDER+BACKFILL or ORDER+ADMISSION+BACKFILL. Parts that
// the name leaves out are "". ok is false where a part is unknown or given twice; the order itself is not checked.
func SplitName(name string) (order, admission, backfill string, ok bool) {
	order, rest, has := strings.Cut(name, "+")
	for has {
		var part string
		part, rest, has = strings.Cut(rest, "+")
		switch {
		case admission == "" && backfill == "" && slices.Contains(Admissions(), part):
			admission = part
		case backfill == "" && slices.Contains(Backfills(), part):
			backfill = part
		default:
			return order, "", "", false
		}
	}
	return order, admission, backfill, true
}

// HiddenError says that an order ranks by run time where estimates: none hides run times.
type HiddenError struct {
	Order string
	Says  string // instead, for what is no order
}

func (e *HiddenError) Error() string {
	if e.Says != "" {
		return e.Says
	}
	return fmt.Sprintf("%s ranks by run time, which estimates: none hides", e.Order)
}

// Hidden returns the *HiddenError of an order.
func Hidden(order string) error { return &HiddenError{Order: order} }
