package pai

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

const (
	colID = iota
	colSubmit
	colDeadline
	firstType // the first of the GPU types
)

// required are the columns that every file has. Every other column with a name is a GPU type.
var required = []string{"job_name", "norm_job_submit_time", "ddl"}

// reference is the default for Options.Reference.
const reference = "A100"

// Options changes how a file is read. The zero value is right for the published ones.
type Options struct {
	Reference string // the GPU type whose run time is Job.Work; "" = A100, or the first type of the file if it has no A100
}

// Reader is a traces.Stream over the workload, in order of submit. Not safe for concurrent use.
type Reader struct{ traces.Sorted }

// Sniff reports whether head, the first bytes of an unpacked file, is the beginning of such a workload.
func Sniff(head []byte) bool {
	t, err := traces.NewTable(bytes.NewReader(head), "", required...)
	return err == nil && len(gpuTypes(t.Columns())) > 0
}

// gpuTypes returns the columns that are GPU types, in the order of the file.
func gpuTypes(header []string) (types []string) {
	for _, name := range header {
		if name != "" && !slices.Contains(required, name) {
			types = append(types, name)
		}
	}
	return types
}

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError.
func NewReader(r io.Reader, file string, o Options) (*Reader, error) {
	t, err := traces.NewTable(r, file, required...)
	if err != nil {
		return nil, err
	}
	types := gpuTypes(t.Columns())
	if len(types) == 0 {
		return nil, t.FaultIn("", strings.Join(t.Columns(), ","),
			"a header with also a column of run times for each GPU type")
	}
	ref := slices.Index(types, o.Reference)
	if o.Reference == "" {
		ref = max(0, slices.Index(types, reference))
	} else if ref < 0 {
		return nil, t.FaultIn(o.Reference, strings.Join(types, ","),
			"a column of run times on the reference type "+o.Reference)
	}
	c := traces.NewCells(t, slices.Concat(required, types))
	run := make([]time.Duration, len(types))
	d := &Reader{}
	return d, d.Read(c, func(j *traces.Job) (skip string) {
		j.ID, j.Submit, j.GPUs, j.GPUMilli = string(c.Text(colID)), c.Seconds(colSubmit), 1, 1000
		if !strings.EqualFold(string(c.Text(colDeadline)), "inf") {
			const want = "seconds above 0 and below 292 years, or inf where there is none"
			j.Deadline = time.Duration(c.Number(colDeadline, 9, 1, math.MaxInt64, want))
		}
		for i := range run {
			const want = "a run time in seconds, above 0 and below 292 years"
			run[i] = time.Duration(c.Number(firstType+i, 9, 1, math.MaxInt64, want))
		}
		j.Work = run[ref]
		speeds := make(map[string]float64, len(run))
		for i, name := range types {
			speeds[name] = float64(j.Work) / float64(run[i])
		}
		j.Profile = &traces.Profile{Speeds: speeds}
		return ""
	})
}
