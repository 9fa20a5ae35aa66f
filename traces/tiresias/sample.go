package tiresias

import (
	"io"

	"clustergym/traces"
)

const sampleColumn = "duration"

// SniffSample reports whether head, the first bytes of an unpacked file, is the beginning of a sample of GPU times.
func SniffSample(head []byte) bool { return traces.HasHeader(head, []string{sampleColumn}, nil) }

// ReadSample reads a sample of GPU times to its end: seconds of run time times GPUs, in the order of the file, each
// above 0. file is the name used in messages. A fault in a row, or no rows at all, is a *traces.RowError.
func ReadSample(r io.Reader, file string) ([]float64, error) {
	t, err := traces.NewTable(r, file, sampleColumn)
	if err != nil {
		return nil, err
	}
	c := t.Column(sampleColumn)
	var sample []float64
	for {
		if err := t.Next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		d, err := t.Seconds(c)
		if err != nil {
			return nil, err
		}
		if d == 0 {
			return nil, t.Fault(c, "seconds of GPU time, above 0 and below 292 years")
		}
		sample = append(sample, d.Seconds())
	}
	if sample == nil {
		return nil, t.FaultIn(sampleColumn, "no rows", "at least one GPU time")
	}
	return sample, nil
}
