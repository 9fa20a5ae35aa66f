package main

import (
	"strconv"

	"clustergym/env/bridge/budget"
)

// sizeFlag is a flag whose value is a number of bytes; 0 stands for the default.
type sizeFlag struct{ bytes *int64 }

// String implements pflag.Value.
func (f sizeFlag) String() string {
	if f.bytes == nil || *f.bytes == 0 {
		return ""
	}
	return strconv.FormatInt(*f.bytes, 10)
}

// Set implements pflag.Value.
func (f sizeFlag) Set(s string) (err error) {
	*f.bytes, err = budget.ParseSize(s)
	return err
}

// Type implements pflag.Value.
func (f sizeFlag) Type() string { return "size" }
