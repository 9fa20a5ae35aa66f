//go:build !unix

package shortage

// MayOpen returns the number of files that the process may open.
func MayOpen() int { return Unlimited }
