//go:build !unix

package catalog

// tryLock always succeeds: on this system several processes may fetch an entry at the same time. The check of the hash still
// keeps the result right.
func tryLock(string) (unlock func(), err error) { return func() {}, nil }
