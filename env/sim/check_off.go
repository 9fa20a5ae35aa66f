//go:build !invariants

package sim

// check holds the books against each other in builds with the tag invariants.
func (s *Simulator) check() {}
