package traces

import (
	"fmt"
	"io"
	"time"
)

// Stream yields jobs in order of Submit, then io.EOF. Next overwrites *j completely; the caller may keep the strings
// and slices in it. A broken row is a *RowError. Not safe for concurrent use.
type Stream interface{ Next(j *Job) error }

// RowError is a fault in one row of a trace file. Line counts from 1 and includes headers and comments.
type RowError struct {
	File   string
	Line   int
	Column string // name of the column, "" if the fault is in the whole row
	Value  string // as found
	Want   string // what would be right
	Says   string // the fault in words, in place of Column, Value and Want; "" for most
}

func (e *RowError) Error() string {
	at := fmt.Sprintf("%s:%d", e.File, e.Line)
	if e.Says != "" {
		return at + ": " + e.Says
	}
	if e.Column != "" {
		at += ": " + e.Column
	}
	return fmt.Sprintf("%s: got %q, want %s", at, e.Value, e.Want)
}

// Rows is an optional ability of streams over jobs in memory. Row is Next without a copy: it returns the next job, nil
// at the end. The job must not change as long as somebody uses it.
type Rows interface{ Row() *Job }

// Slice is a Stream over jobs in memory. It does not copy or change them, and implements Rows.
type Slice struct {
	Jobs []Job
	next int
	from time.Duration
}

// Next implements Stream.
func (s *Slice) Next(j *Job) error {
	if s.next >= len(s.Jobs) {
		return io.EOF
	}
	*j = s.Jobs[s.next]
	s.next++
	return nil
}

// Row implements Rows.
func (s *Slice) Row() *Job {
	if s.next >= len(s.Jobs) {
		return nil
	}
	s.next++
	return &s.Jobs[s.next-1]
}

// Reset restarts the stream over jobs.
func (s *Slice) Reset(jobs []Job) { s.ResetAt(jobs, 0) }

// ResetAt restarts the stream over jobs whose clock shows 0 when the clock of the whole trace shows origin.
func (s *Slice) ResetAt(jobs []Job, origin time.Duration) { s.Jobs, s.next, s.from = jobs, 0, origin }

// Origin returns what the clock of the whole trace shows when the jobs' shows 0.
func (s *Slice) Origin() time.Duration { return s.from }

// ReadAll reads s to its end.
func ReadAll(s Stream) ([]Job, error) {
	var (
		all Gather[Job]
		j   Job
	)
	for {
		if err := s.Next(&j); err == io.EOF {
			return all.Take(), nil
		} else if err != nil {
			return nil, err
		}
		all.Add(&j)
	}
}
