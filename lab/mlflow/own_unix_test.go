//go:build unix

package mlflow

import (
	"os/exec"
	"syscall"
)

// own gives a program a group of its own, so that end ends what it started too.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func end(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // it may have ended
	_ = c.Wait()
}
