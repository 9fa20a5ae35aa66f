//go:build !amd64

package kernel

// fast are the sets that this machine can run, the fastest first: none is written for it.
func fast() []*set { return nil }
