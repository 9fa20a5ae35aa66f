//go:build unix

package server

import "syscall"

// mayOpen returns the number of files that the process may open. Go's runtime has raised the limit as far as it may.
func mayOpen() int {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return unlimited
	}
	return int(min(uint64(r.Cur), unlimited)) //nolint:unconvert // it is signed on some systems
}
