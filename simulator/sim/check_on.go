//go:build invariants

package sim

// check panics if the books do not balance, and says why. It runs after every change.
func (s *Simulator) check() {
	if err := s.CheckInvariants(); err != nil {
		panic(err)
	}
}
