//go:build unix

package bench

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime is what the process has used of processors so far.
func processorTime() time.Duration {
	u, err := usage()
	if err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most memory that the process has had at once, in MiB, 0 where the system does not tell.
func peakMemory() float64 {
	u, err := usage()
	if err != nil {
		return 0
	}
	unit := 1024. // of most systems
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		unit = 1
	}
	return float64(u.Maxrss) * unit / (1 << 20)
}

func usage() (u syscall.Rusage, err error) {
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u, err
}
