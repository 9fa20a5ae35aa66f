package sia

import (
	"io"
	"math"

	"clustergym/traces"
)

const (
	colName = iota
	colTime
	colApplication
	colReplicas
	colBatch
	colCategory
	required = colCategory // the columns before it are required
)

var names = []string{"name", "time", "application", "num_replicas", "batch_size", "category"}

// NewReader reads r to its end. The result is a stream over the jobs in order of submit; the file may have them in any
// order. file is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string) (*traces.Sorted, error) {
	return traces.ReadTable(r, file, names, required, row)
}

func row(c *traces.Cells, j *traces.Job) (skip string) {
	j.ID, j.Submit = string(c.Text(colName)), c.Seconds(colTime)
	if j.Model = c.Name(colApplication); j.Model == "" {
		c.Fail(colApplication, "the name of an application: run times follow from it")
	}
	j.GPUs, j.GPUMilli = c.GPUs(colReplicas, 1)
	j.Batch = int(c.Whole(colBatch, 1, math.MaxInt)) // of all GPUs together
	switch c.Name(colCategory) {
	case "", "adaptive", "scale-gpus", "rigid":
	default:
		c.Fail(colCategory, "adaptive, scale-gpus or rigid, or nothing")
	}
	return ""
}

// Sniff reports whether head, the first bytes of an unpacked file, begins with this format's header.
func Sniff(head []byte) bool { return traces.HasColumns(head, names[:required]...) }
