package schedulers

import (
	"cmp"
	"fmt"

	"clustergym/simulator/policyname"
)

// Parse returns the default configuration of the policy over the whole queue that is called name, or says why there is
// none.
func Parse(name string) (Config, error) {
	n, err := Names().Find(name)
	return Named(n), err
}

// Named returns the default configuration of a policy over the whole queue.
func Named(n policyname.Name) Config {
	c := DefaultConfig()
	c.Take(n)
	return c
}

// Take sets the policy of c: its order, and its admission and back-filling, which are the order's own where n leaves
// them out.
func (c *Config) Take(n policyname.Name) {
	c.Order, c.Admission, c.Backfill = n.Base, n.Admission, cmp.Or(n.Backfill, "none")
}

// Names resolves the names of policies over the whole queue: an order with an admission and a kind of back-filling that
// go with it.
func Names() *policyname.Resolver {
	return &policyname.Resolver{Orders: Orders(), Written: CheckWritten, Check: func(n policyname.Name) error {
		c := Named(n)
		return c.Validate()
	}}
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
