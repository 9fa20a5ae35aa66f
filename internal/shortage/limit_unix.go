//go:build unix

package shortage

import "syscall"

// MayOpen returns the number of files that the process may open. Go's runtime has raised the limit as far as it may.
func MayOpen() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return Unlimited
	}
	return int(min(uint64(r.Cur), Unlimited)) //nolint:unconvert // it is signed on some systems
}
