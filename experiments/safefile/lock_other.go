//go:build !unix

package safefile

// Lock does nothing: here nobody is kept out of a folder.
func Lock(string) (unlock func(), err error) { return func() {}, nil }
