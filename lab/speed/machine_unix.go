//go:build unix

package speed

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime returns the processor time that the process has used so far.
func processorTime() time.Duration {
	u, err := usage()
	if err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns the process's peak of memory in MiB, 0 if the system does not report it.
func peakMemory() float64 {
	u, err := usage()
	if err != nil {
		return 0
	}
	unit := 1024. // on most systems
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unit = 1
	}
	return float64(u.Maxrss) * unit / (1 << 20)
}

func usage() (u syscall.Rusage, err error) {
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u, err
}
