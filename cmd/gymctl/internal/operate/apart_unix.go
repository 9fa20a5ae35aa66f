//go:build unix

package operate

import (
	"os/exec"
	"syscall"
)

// apart gives a process a group of its own, so that signals to ours do not end it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
