package onnx

import (
	"fmt"
	"io"

	"clustergym/internal/ordinary"
)

// MostBytes is the size of the largest file that ReadFile reads: a hundred times the largest policy that one would play
// here.
const MostBytes = 512 << 20

// ReadFile reads the model in a file.
func ReadFile(name string) (*Model, error) {
	f, err := ordinary.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if st, err := f.Stat(); err == nil && st.Size() > MostBytes {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", st.Size(), int64(MostBytes))
	}
	b, err := io.ReadAll(io.LimitReader(f, MostBytes+1)) // it may grow
	if err != nil {
		return nil, err
	}
	if len(b) > MostBytes {
		return nil, fmt.Errorf("it has more than %d bytes", int64(MostBytes))
	}
	return Decode(b)
}
