package philly

import (
	"io"
	"strconv"
	"time"

	"clustergym/traces"
)

const (
	colTime = iota
	colDuration
	colGPUs
	colVC
	required // the columns before it are required
)

var names = []string{"timestamp", "duration", "num_gpus", "cluster",
	"gpu_time"}

// Reader is a traces.Stream over the table, in order of submit. The file is not in order, so the reader holds all of it
// in memory. Not safe for concurrent use.
type Reader struct {
	traces.Sorted
	origin   time.Time
	repeated int
}

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names[:required], required)
	if err != nil {
		return nil, err
	}
	d, n := &Reader{}, 0
	err = d.Read(c, func(j *traces.Job) (skip string) {
		j.ID, j.Submit, j.Work = strconv.Itoa(n), at(c, colTime), c.Seconds(colDuration)
		j.GPUs, j.GPUMilli = c.GPUs(colGPUs, 1)
		j.VC = c.Name(colVC)
		n++
		return ""
	})
	jobs := d.Jobs()
	d.repeated = repeated(jobs)
	if len(jobs) > 0 {
		first := jobs[0].Submit
		d.origin = time.Unix(int64(first/time.Second), 0).UTC()
		for i := range jobs {
			jobs[i].Submit -= first
		}
	}
	return d, err
}

// repeated counts the jobs that equal an earlier one. Equal jobs have equal submits, so only jobs of the same second
// lie between them.
func repeated(jobs []traces.Job) (n int) {
	type row struct {
		work time.Duration
		gpus int
		vc   string
	}
	seen := map[row]bool{}
	for i := 0; i < len(jobs); {
		end := i + 1
		for end < len(jobs) && jobs[end].Submit == jobs[i].Submit {
			end++
		}
		if end-i > 1 {
			clear(seen)
			for _, j := range jobs[i:end] {
				k := row{j.Work, j.GPUs, j.VC}
				if seen[k] {
					n++
				}
				seen[k] = true
			}
		}
		i = end
	}
	return n
}

// Origin returns the first job's timestamp as written, which gives weekdays and hours of the day. Its location is UTC,
// although the cluster's clock was not. It is the zero time for a table without jobs.
func (d *Reader) Origin() time.Time { return d.origin }

// Repeated returns how many rows equal an earlier row in every column. They are kept, because two jobs submitted in the
// same second look the same.
func (d *Reader) Repeated() int { return d.repeated }

// at reads the clock time in a cell.
func at(c *traces.Cells, col int) time.Duration {
	d, ok := clock(c.Text(col))
	if !ok {
		c.Fail(col, "a time from 1970 to 2199 such as 2017-10-09 07:01:55")
	}
	return d
}

// clock reads "2006-01-02 15:04:05" as the time since 1970.
func clock(b []byte) (time.Duration, bool) {
	if len(b) != 19 || b[10] != ' ' {
		return 0, false
	}
	at, zoned, ok := traces.ParseDate(b)
	return at, ok && !zoned
}
