//go:build !unix

package mlflow

import "os/exec"

func own(*exec.Cmd) {}

func end(c *exec.Cmd) {
	_ = c.Process.Kill() // it may have ended
	_ = c.Wait()
}
