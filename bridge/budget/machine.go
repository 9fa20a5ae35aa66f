package budget

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// The live heap is a part of what a Go process takes: the collector lets the heap grow before it collects, and requests
// allocate what no one reserves. So the budget is 60 % of the memory that the process may have, and the runtime
// collects more often, instead of growing, from 90 % of it on (debug.SetMemoryLimit).
const (
	share = 0.6
	// slack is how much the runtime may take for every byte of the budget, and fixed what it may take besides.
	slack = 1.5
	fixed = 64 << 20
	// unknown is the budget where the machine does not tell its memory, as outside Linux.
	unknown = 2 << 30
)

// Default returns the budget for this process: 60 % of the memory that it may have, which is the least of the limits of
// its control groups and of the machine's memory, or two thirds of GOMEMLIMIT if that is less; 2 GiB where none of
// these is known.
func Default() int64 { return defaultOf("/", debug.SetMemoryLimit(-1)) }

// defaultOf is Default for the files below root and a limit of the Go runtime, MaxInt64 for none.
func defaultOf(root string, runtime int64) int64 {
	least := math.Inf(1)
	if n, ok := machineMemory(root); ok {
		least = share * float64(n)
	}
	for _, n := range groupLimits(root) {
		least = min(least, share*float64(n))
	}
	if runtime < math.MaxInt64 {
		least = min(least, float64(runtime)/slack)
	}
	if math.IsInf(least, 1) {
		return unknown
	}
	return max(1, int64(least))
}

// Limit tells the Go runtime how much memory the process may take with a budget of total bytes: one and a half times as
// much and 64 MiB. A limit that was set before, by GOMEMLIMIT, stays. undo restores it.
func Limit(total int64) (undo func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 {
		debug.SetMemoryLimit(int64(slack*float64(total)) + fixed)
	}
	return func() { debug.SetMemoryLimit(before) }
}

// machineMemory returns MemTotal of /proc/meminfo.
func machineMemory(root string) (bytes int64, ok bool) {
	text, err := os.ReadFile(path.Join(root, "proc/meminfo"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err == nil && n > 0
		}
	}
	return 0, false
}

// groupLimits returns the limits of the control groups that this process is in, of version 2 and 1.
func groupLimits(root string) []int64 {
	text, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var limits []int64
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path, of version 2 as 0::path
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if f[1] != "" {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
			if !strings.Contains(","+f[1]+",", ",memory,") {
				continue
			}
		}
		// Every group above limits this one too. Within a container only the top one may be visible.
		for at := path.Clean("/" + f[2]); ; at = path.Dir(at) {
			limits = appendLimit(limits, path.Join(root, mount, at, file))
			if at == "/" {
				break
			}
		}
	}
	return limits
}

// appendLimit appends the limit in a file of a control group, if there is one.
func appendLimit(limits []int64, file string) []int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return limits
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n >= 1<<60 { // "max", or the largest number of pages
		return limits
	}
	return append(limits, n)
}
