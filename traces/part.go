package traces

// Bounds returns the first place of part p among n things in order, and the place after its last.
func (p Part) Bounds(n int) (lo, hi int) { return p.bounds(n) }
