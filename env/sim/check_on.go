//go:build invariants

package sim

// check panics with what is wrong when the books do not balance. It runs after every change.
func (s *Simulator) check() {
	if err := s.CheckInvariants(); err != nil {
		panic(err)
	}
}
