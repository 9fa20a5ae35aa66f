package traces

import "io"

// Sorted is a Stream, in order of submit, over the jobs of a file that may have them in any order. The readers of such
// formats embed it. It holds all jobs in memory. The zero value has no jobs. Not safe for concurrent use.
type Sorted struct {
	Left   Skips // the rows that were left out
	stream Slice
	moved  int
}

var _ Stream = (*Sorted)(nil)

// ReadTable reads the table in r to its end, whose header must have the first required of names (see OpenCells), and
// sorts its jobs by submit; jobs with equal submits keep the order of the file. file is the name used in messages. A
// fault in a row is a *RowError. row is as in Read.
func ReadTable(r io.Reader, file string, names []string, required int,
	row func(c *Cells, j *Job) (skip string)) (*Sorted, error) {
	c, err := OpenCells(r, file, names, required)
	if err != nil {
		return nil, err
	}
	s := &Sorted{}
	return s, s.Read(c, func(j *Job) (skip string) { return row(c, j) })
}

// Read reads the rows of c to the end of the file and sorts their jobs. row fills a job, which is zero before, from the
// current row; it returns the reason if the row is to be left out, else "". The first fault in a cell ends the reading.
func (s *Sorted) Read(c *Cells, row func(j *Job) (skip string)) error {
	var (
		jobs Gather[Job]
		j    Job
	)
	for {
		if err := c.Next(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		j = Job{}
		skip := row(&j)
		switch {
		case c.err != nil:
			return c.err
		case skip != "":
			s.Left.Add(skip)
		default:
			jobs.Add(&j)
		}
	}
	s.Sort(jobs.Take())
	return nil
}

// Sort sorts jobs, in place, and begins the stream with the first of them. Jobs with equal submits keep their order.
func (s *Sorted) Sort(jobs []Job) {
	s.moved = SortStable(jobs)
	s.stream.Reset(jobs)
}

// Next implements Stream.
func (s *Sorted) Next(j *Job) error { return s.stream.Next(j) }

// Jobs returns all jobs in order of submit, independent of Next. The caller must not change them.
func (s *Sorted) Jobs() []Job { return s.stream.Jobs }

// Skipped returns how many rows or jobs were left out, by reason; nil if none were.
func (s *Sorted) Skipped() []Skip { return s.Left.All() }

// Moved returns how many jobs came after a job with a later submit in the file.
func (s *Sorted) Moved() int { return s.moved }
