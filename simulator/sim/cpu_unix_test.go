//go:build unix

package sim_test

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that this process has used, which other programs on the machine hardly change.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
