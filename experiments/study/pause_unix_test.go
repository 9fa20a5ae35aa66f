//go:build unix

package study

import (
	"os"
	"syscall"
)

// pause stops a process for a while, and goOn ends that.
var pause, goOn os.Signal = syscall.SIGSTOP, syscall.SIGCONT
