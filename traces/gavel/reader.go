package gavel

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"clustergym/traces"
)

// layout holds the position of each value in a row, from 0; -1 = absent.
type layout struct{ model, command, dataDir, steps, arrival, gpus, weight, slo int }

var (
	sevenFields = layout{model: 0, command: 1, dataDir: 3, steps: 4, arrival: 5, gpus: 6, weight: -1, slo: -1}
	tenFields   = layout{model: 0, command: 1, dataDir: 4, steps: 5, arrival: 9, gpus: 6, weight: 7, slo: 8}
)

// Reader is a traces.Stream over a trace, in order of submit. A file may be out of order, so the reader holds all of it
// in memory. Not safe for concurrent use.
type Reader struct{ traces.Sorted }

// NewReader reads r to its end and sorts the jobs by submit; jobs with equal submits keep the order of the file. file
// is the name used in messages. A fault in a row is a *traces.RowError. A file without rows is an empty trace.
func NewReader(r io.Reader, file string) (*Reader, error) {
	p := &parser{lines: traces.NewLines(r, file)}
	var all traces.Gather[traces.Job]
	for {
		var j traces.Job
		if err := p.row(&j); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		j.ID = strconv.Itoa(all.Len())
		all.Add(&j)
	}
	d := &Reader{}
	d.Sort(all.Take())
	return d, nil
}

// Named reports that jobs can have a name and have no group.
func (*Reader) Named() (name, group bool) { return true, false }

// Sniff reports whether head, the first bytes of an unpacked file, is of this format: its first line must read as a
// row.
func Sniff(head []byte) bool {
	var j traces.Job
	p := &parser{lines: traces.NewLines(bytes.NewReader(head), "")}
	return p.row(&j) == nil
}

type parser struct {
	lines *traces.Lines
	width int // fields in the first row; 0 before the first row
	at    layout
	f     [][]byte
	text  traces.Names
}

func (p *parser) row(j *traces.Job) error {
	if err := p.split(); err != nil {
		return err
	}
	model := p.f[p.at.model]
	if len(model) == 0 {
		return p.lines.Fault("job type", "", `a name, as in "ResNet-18 (batch size 64)": run times follow from it`)
	}
	j.Model, j.Name = p.text.Get(model), p.text.Get(p.f[p.at.command])
	if _, err := p.whole("needs data folder", p.at.dataDir, 0, 1); err != nil {
		return err
	}
	var err error
	if j.Iterations, err = p.whole("total steps", p.at.steps, 1, math.MaxInt64); err != nil {
		return err
	}
	at := p.f[p.at.arrival]
	submit, _, err := traces.Decimal(string(at), 9)
	if err != nil || submit < 0 {
		return p.lines.Fault("arrival time", string(at), "seconds, 0 or more and below 292 years")
	}
	j.Submit = time.Duration(submit)
	gpus, err := p.whole("scale factor", p.at.gpus, 1, traces.MaxGPUs)
	if err != nil {
		return err
	}
	j.GPUs, j.GPUMilli = int(gpus), 1000
	if p.at.weight < 0 {
		return nil
	}
	weight, err := p.whole("priority weight", p.at.weight, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	j.Priority = int(weight)
	j.SLO, err = p.slo()
	return err
}

// split splits the next line that is not blank into fields. The first such line fixes the layout.
func (p *parser) split() error {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = p.lines.Next(); err != nil {
			return err
		}
	}
	p.f = p.f[:0]
	for more := true; more; {
		var f []byte
		f, line, more = bytes.Cut(line, []byte{'\t'})
		p.f = append(p.f, bytes.TrimSpace(f))
	}
	n := len(p.f)
	if p.width == 0 {
		switch p.at = sevenFields; n {
		case 7:
		case 10:
			p.at = tenFields
		default:
			return p.lines.Fault("", fields(n), "7 or 10, separated by tabs")
		}
		p.width = n
	}
	if n != p.width {
		return p.lines.Fault("", fields(n), fmt.Sprintf("%d, as in the first row, separated by tabs", p.width))
	}
	return nil
}

func fields(n int) string {
	if n == 1 {
		return "1 field"
	}
	return fmt.Sprintf("%d fields", n)
}

// whole reads a whole number from lo to hi; decimals are allowed if they are zeros.
func (p *parser) whole(name string, at int, lo, hi int64) (int64, error) {
	v, exact, err := traces.Decimal(string(p.f[at]), 0)
	if err == nil && exact && v >= lo && v <= hi {
		return v, nil
	}
	want := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	if hi == math.MaxInt64 {
		want = fmt.Sprintf("a whole number, %d or more", lo)
	}
	return 0, p.lines.Fault(name, string(p.f[at]), want)
}

// slo reads a multiple of a run time; every negative number means none, as in the authors' scheduler.
func (p *parser) slo() (float64, error) {
	v, _, err := traces.Decimal(string(p.f[p.at.slo]), 6) // as many decimals as the authors write
	if err != nil || v == 0 {
		return 0, p.lines.Fault("SLO", string(p.f[p.at.slo]), "a multiple of the run time above 0, or -1 where there is none")
	}
	return max(0, float64(v)/1e6), nil
}
