//go:build !invariants

package sim

// check does nothing in builds without the tag invariants.
func (s *Simulator) check() {}
