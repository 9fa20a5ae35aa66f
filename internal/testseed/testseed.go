// Package testseed sets the seed of the tests that draw.
package testseed

import (
	"fmt"
	"os"
	"strconv"
)

// Key is the environment variable that sets the seed of the tests that draw, in Go as in Python.
const Key = "CLUSTERGYM_TEST_SEED"

// Or returns the value of Key, usual without one. It panics if the value is no number.
func Or(usual uint64) uint64 {
	text, ok := os.LookupEnv(Key)
	if !ok {
		return usual
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		panic(fmt.Errorf("%s is %q, want a number from 0 to %d", Key, text, uint64(1<<64-1)))
	}
	return seed
}
