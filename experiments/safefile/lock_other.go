//go:build !unix

package safefile

// Lock does nothing: on this system folders are not locked.
func Lock(string) (unlock func(), err error) { return func() {}, nil }
