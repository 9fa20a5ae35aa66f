package acme

import (
	"io"
	"math"
	"math/bits"
	"time"

	"clustergym/traces"
)

const (
	colID = iota
	colArrival
	colIterations
	colWorkers
	colGPUs
	required // the columns before it are required
	colCPU   = iota - 1
	colMem
	colNet
	read // the columns before it are read
)

var names = []string{"job_id", "arrival_time", "num_iteration", "gpu_workers", "gpu_per_worker",
	"cpu_per_gpu_worker", "tensorsizes", "iteration_networking_time",
	"iteration_computing_time", "ps", "cpu_per_ps_worker", "profiled_network"}

// NoRunTime is the reason for which rows are left out.
const NoRunTime = "no run time: num_iteration is 0"

// The constants of the conversion: an iteration is half a second, the size of a tensor is memory in hundreds of GB, or
// a fixed value if the memory was not known, and pretraining has this network time.
const (
	iteration     = 500 * time.Millisecond
	memUnit       = 100_000_000_000
	memUnknown    = 5_000_000_000 // in 10^-9 memUnit
	pretrain      = "Pretrain"
	pretrainMilli = 750
)

// Reader is a traces.Stream over the table. It holds one row at a time. Not safe for concurrent use.
type Reader struct {
	c     *traces.Cells
	skips traces.Skips
	o     Options
	last  time.Duration
}

// Options changes what the reader accepts.
type Options struct {
	Unsorted bool // submit times may go backwards; jobs then come in the order of the file, for traces.SortStable
}

var _ traces.Stream = (*Reader)(nil)

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of such a table.
func Sniff(head []byte) bool { return traces.HasHeader(head, names[:required], names[required:]) }

// NewReader reads the header of r. file is the name used in messages. A header that lacks required columns is a
// *traces.RowError that names all of them.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	c, err := traces.OpenCells(r, file, names[:read], required)
	if err != nil {
		return nil, err
	}
	return &Reader{c: c, o: o}, nil
}

// Next implements traces.Stream. After an error it gives the same error again.
func (d *Reader) Next(j *traces.Job) error {
	for d.c.Next() == nil {
		if d.read(j); d.c.Err() != nil || j.Work > 0 {
			break
		}
		d.skips.Add(NoRunTime)
	}
	return d.c.Err()
}

// Named reports whether the file has the column that tells pretraining, which is a name. There are no groups.
func (d *Reader) Named() (name, group bool) { return d.c.Has(colNet), false }

// Skipped returns how many rows were left out so far, by reason.
func (d *Reader) Skipped() []traces.Skip { return d.skips.All() }

func (d *Reader) read(j *traces.Job) {
	c := d.c
	*j = traces.Job{ID: string(c.Text(colID)), Submit: c.Seconds(colArrival), Status: traces.Completed}
	if j.Submit < d.last && !d.o.Unsorted {
		c.Fail(colArrival, string(traces.AppendSeconds(nil, d.last))+
			" or later, as in the row before (rows must be in order of arrival; --sort puts them in order)")
	}
	d.last = j.Submit
	const halves = "a whole number of half seconds, 0 or more and below 292 years"
	j.Work = time.Duration(c.Number(colIterations, 0, 0, math.MaxInt64/int64(iteration), halves)) * iteration
	workers := c.Number(colWorkers, 0, 1, 1<<16, "a whole number of nodes, 1 to 65536")
	j.GPUs, j.GPUMilli = d.gpus(workers), 1000
	if c.Has(colCPU) {
		// The column is a quotient, such as 128 cores over 24 GPUs, so its product with the GPUs is rounded to a
		// thousandth of a core.
		per := c.Number(colCPU, 9, 0, 1e6*nano, "cores for each GPU, 0 to a million")
		j.CPUMilli = scaled(per, int64(j.GPUs)*1000)
	}
	if c.Has(colMem) {
		per := c.Number(colMem, 9, 0, 100*nano, "main memory of each node in units of 100 GB, 0 to 100")
		if per != memUnknown {
			j.MemBytes = scaled(per, memUnit) * workers
		}
	}
	if c.Has(colNet) && c.Number(colNet, 3, 0, math.MaxInt64, "seconds, 0 or more") == pretrainMilli {
		j.Model, j.Name = pretrain, pretrain
	}
}

// gpus returns the GPUs of all nodes together. The GPUs of one node are a quotient, such as 3.3333333333333335 for 10
// GPUs on 3 nodes, so a product close to a whole number is rounded to it.
func (d *Reader) gpus(workers int64) int {
	per := d.c.Number(colGPUs, 9, 0, 1e4*nano, "GPUs on each node, above 0 and at most 10000")
	total := scaled(per, workers)
	if off := per*workers - total*nano; total < 1 || off > workers || off < -workers {
		d.c.Fail(colGPUs, "GPUs on each node that make a whole number with gpu_workers, 1 or more")
	}
	return int(total)
}

const nano = 1_000_000_000

// scaled returns v·10^-9·n, rounded to nearest. v and n must be 0 or more and the result must fit.
func scaled(v, n int64) int64 {
	hi, lo := bits.Mul64(uint64(v), uint64(n))
	lo, carry := bits.Add64(lo, nano/2, 0)
	q, _ := bits.Div64(hi+carry, lo, nano)
	return int64(q)
}
