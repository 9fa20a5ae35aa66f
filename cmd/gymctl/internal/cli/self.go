package cli

import (
	"os"
)

// Self returns the path of this program.
func Self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
