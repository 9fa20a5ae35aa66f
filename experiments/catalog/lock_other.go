//go:build !unix

package catalog

// tryLock gives the lock to everybody: here several processes may fetch one entry at once, and the hash keeps the
// result right.
func tryLock(string) (unlock func(), err error) { return func() {}, nil }
