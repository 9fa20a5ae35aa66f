package csv

import (
	"bufio"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"clustergym/traces"
)

// Write reads s to its end, writes it in the native format with every column, and returns how many jobs it wrote.
// Reading the file gives equal jobs, with three exceptions: the ID of a job without one becomes its position, the format has no
// batch sizes, SLOs, profiles and task graphs, and if the first job is submitted 1e9 to 4e9 s (31 to 126 years) after the
// origin, submits are taken for unix times and counted from it. A job that the format cannot express (a share of several
// GPUs, a GPU type with | in its name, a negative time, an elastic range that does not contain its GPUs) is an error
// that names the job. Errors of s and w are returned unchanged.
func Write(w io.Writer, s traces.Stream) (n int, err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	if _, err := b.WriteString(strings.Join(names[:written], ",") + "\n"); err != nil {
		return 0, err
	}
	var (
		j   traces.Job
		row []byte
	)
	for ; ; n++ {
		if err := s.Next(&j); err == io.EOF {
			return n, b.Flush()
		} else if err != nil {
			_ = b.Flush() // keep what was read; report the stream's fault
			return n, err
		}
		if err := check(&j); err != nil {
			_ = b.Flush()
			return n, fmt.Errorf("csv: job %d (%q): %w", n, j.ID, err)
		}
		row = appendRow(row[:0], &j)
		if _, err := b.Write(row); err != nil {
			return n, err
		}
	}
}

func check(j *traces.Job) error {
	switch {
	case j.Submit < 0 || j.Work < 0 || j.Estimate < 0 || j.Deadline < 0:
		return fmt.Errorf("times must be 0 or more (submit %v, work %v, estimate %v, deadline %v)", j.Submit, j.Work, j.Estimate, j.Deadline)
	case j.GPUs < 0 || j.GPUs > traces.MaxGPUs || j.GPUMilli != 1000 && (j.GPUs != 1 || j.GPUMilli < 1 || j.GPUMilli > 999):
		return fmt.Errorf("%d GPUs at %d thousandths each: the format holds whole GPUs or a share of one", j.GPUs, j.GPUMilli)
	case j.MinGPUs < 0 || j.MinGPUs > j.GPUs || j.MaxGPUs != 0 && j.MaxGPUs < j.GPUs || j.MaxGPUs > traces.MaxGPUs:
		return fmt.Errorf("elastic range %d to %d: must hold the %d GPUs asked for", j.MinGPUs, j.MaxGPUs, j.GPUs)
	case j.CPUMilli < 0 || j.MemBytes < 0 || j.MemBytes>>30 > 9e8 || j.Iterations < 0:
		return fmt.Errorf("negative or too large: cores %d/1000, memory %d bytes, iterations %d", j.CPUMilli, j.MemBytes, j.Iterations)
	}
	for _, t := range j.GPUTypes {
		if t == "" || strings.Contains(t, "|") {
			return fmt.Errorf("GPU type %q: must have a name without |", t)
		}
	}
	return nil
}

func appendRow(b []byte, j *traces.Job) []byte {
	b = traces.AppendSeconds(b, j.Submit)
	b = append(b, ',')
	b = traces.AppendSeconds(b, j.Work)
	b = append(b, ',')
	b = traces.AppendDecimal(b, int64(j.Milli()), 3)
	for _, s := range [...]string{j.ID, j.User, j.VC} {
		b = AppendText(append(b, ','), s)
	}
	b = append(b, ',')
	if len(j.GPUTypes) == 1 {
		b = AppendText(b, j.GPUTypes[0])
	} else if len(j.GPUTypes) > 1 {
		b = AppendText(b, strings.Join(j.GPUTypes, "|"))
	}
	b = appendGiven(b, j.CPUMilli, 3)
	b = append(b, ',')
	if j.MemBytes != 0 {
		// In units of 1e-10 GiB, rounded to nearest: the reader's rounding then finds the same byte.
		hi, lo := bits.Mul64(uint64(j.MemBytes), 1e10)
		lo, c := bits.Add64(lo, 1<<29, 0)
		hi += c
		b = traces.AppendDecimal(b, int64(hi<<34|lo>>30), memDecimals)
	}
	b = appendGiven(b, int64(j.Estimate), 9)
	b = AppendText(append(b, ','), j.Model)
	b = appendGiven(b, j.Iterations, 0)
	b = appendGiven(b, int64(j.Deadline), 9)
	b = appendGiven(b, int64(j.Priority), 0)
	b = appendGiven(b, int64(j.MinGPUs), 0)
	b = appendGiven(b, int64(j.MaxGPUs), 0)
	b = append(b, ',')
	if j.Status != traces.StatusUnknown {
		b = append(b, j.Status.String()...)
	}
	return append(b, '\n')
}

// appendGiven appends a comma and v/10^places, or the comma alone for 0, which means "not given".
func appendGiven(b []byte, v int64, places int) []byte {
	b = append(b, ',')
	if v == 0 {
		return b
	}
	if places == 0 {
		return strconv.AppendInt(b, v, 10)
	}
	return traces.AppendDecimal(b, v, places)
}

// AppendText appends a cell with the text s, in quotes if it needs them.
func AppendText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}
