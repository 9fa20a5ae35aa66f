//go:build unix

package clitest

import (
	"os"
	"strconv"
	"syscall"
)

// FewFiles is the number of files that gymctl may open, for tests that run it as a process.
const FewFiles = "GYMCTL_TEST_FILES"

func lowerFiles() {
	n, err := strconv.ParseUint(os.Getenv(FewFiles), 10, 32)
	if err != nil {
		return // not asked for
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		panic(err)
	}
	r.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		panic(err)
	}
}
