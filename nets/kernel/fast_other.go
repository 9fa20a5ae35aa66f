//go:build !amd64

package kernel

// fast returns the sets that this machine can run besides the portable one: none.
func fast() []*set[float32] { return nil }
