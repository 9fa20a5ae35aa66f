package options

import (
	"strconv"

	"clustergym/bridge/budget"
)

// SizeFlag is a flag whose value is a number of bytes; 0 stands for the default.
type SizeFlag struct{ Bytes *int64 }

// String implements pflag.Value.
func (f SizeFlag) String() string {
	if f.Bytes == nil || *f.Bytes == 0 {
		return ""
	}
	return strconv.FormatInt(*f.Bytes, 10)
}

// Set implements pflag.Value.
func (f SizeFlag) Set(s string) (err error) {
	*f.Bytes, err = budget.ParseSize(s)
	return err
}

// Type implements pflag.Value.
func (f SizeFlag) Type() string { return "size" }
