package tiresias

import (
	"io"
	"math"
	"time"

	"clustergym/traces"
)

const sampleColumn = "duration"

// SniffSample reports whether head, the first bytes of an unpacked file, is the beginning of a sample of GPU times.
func SniffSample(head []byte) bool { return traces.HasHeader(head, []string{sampleColumn}, nil) }

// ReadSample reads a sample of GPU times to its end: seconds of run time times GPUs, in the order of the file, each
// above 0. file is the name used in messages. A fault in a row, or no rows at all, is a *traces.RowError.
func ReadSample(r io.Reader, file string) ([]float64, error) {
	c, err := traces.OpenCells(r, file, []string{sampleColumn}, 1)
	if err != nil {
		return nil, err
	}
	var sample []float64
	for c.Next() == nil {
		const want = "seconds of GPU time, above 0 and below 292 years"
		sample = append(sample, time.Duration(c.Number(0, 9, 1, math.MaxInt64, want)).Seconds())
	}
	switch {
	case c.Err() != io.EOF:
		return nil, c.Err()
	case sample == nil:
		return nil, &traces.RowError{File: file, Line: c.Line(), Column: sampleColumn, Value: "no rows",
			Want: "at least one GPU time"}
	}
	return sample, nil
}
