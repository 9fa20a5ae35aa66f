package heuristic

import (
	"slices"
	"strings"

	spelling "clustergym/internal/nearest"
)

// Meant returns the end of a message that refuses the policy name, "; did you mean sjf+skip?", or "" if no policy is near. It
// corrects the order, the admission and the back-filling each by itself. orders are those to choose from.
func Meant(name string, orders []string) string {
	if near := spelled(name, orders); near != "" && near != name {
		return "; did you mean " + near + "?"
	}
	return ""
}

func spelled(name string, orders []string) string {
	parts := strings.Split(name, "+")
	for i, p := range parts {
		known := orders
		if i > 0 {
			known = slices.Concat(Admissions(), Backfills())
		}
		if parts[i] = spelling.Name(p, known); parts[i] == "" {
			return ""
		}
	}
	for n := len(parts); n > 0; n-- { // without the last parts if they do not go with the order
		if near := strings.Join(parts[:n], "+"); Exists(near) {
			return near
		}
	}
	return ""
}

// Exists reports whether name is a policy: an order with an admission and a kind of back-filling that go with it, or without.
func Exists(name string) bool {
	c := DefaultConfig()
	var ok bool
	if c.Order, c.Admission, c.Backfill, ok = SplitName(name); !ok {
		return false
	}
	if c.Backfill == "" {
		c.Backfill = "none"
	}
	return c.Validate() == nil
}
