package profile

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"clustergym/traces"
)

// application holds the measurements of Pollux (Qiao et al., OSDI 2021) and Sia (Jayaram Subramanya et al., SOSP 2023)
// for one model: the time of a step by type of GPU, nodes, GPUs and examples on each GPU, and for some batch sizes the
// number of steps to the end of the training.
//
// The time of a step with batch size B on n GPUs is computed as in their simulators. Each GPU takes ceil(B/n) examples.
// If that exceeds the largest measured number M, the GPU takes them in a+1 = ceil(ceil(B/n)/M) parts, all but the last
// without synchronisation: (a+1) step_time - a sync_time. Step and synchronisation are linear between two measured
// numbers of examples; fewer than the smallest were never run. placements takes precedence over scalability; several
// placements on the same number of nodes are averaged. Two of their rules are left out: that one GPU with more than the
// initial batch size always takes two parts, and Sia's factors for the difference between simulation and testbed.
type application struct {
	name  string
	steps []step
	ends  []ending
}

// step is one measurement, or the sum of several of one layout.
type step struct {
	gpu                string
	nodes, gpus, local int     // examples on each GPU
	time, sync         float64 // seconds, sums of n
	n                  int
	placed             bool // from placements
}

func (s *step) layout() [3]int { return [3]int{s.nodes, s.gpus, s.local} }

// ending is the number of iterations with a batch size that reach the end of the training.
type ending struct {
	batch      int
	iterations int64
}

func (b *builder) application(name string) *application {
	for _, a := range b.sia {
		if a.name == name {
			return a
		}
	}
	a := &application{name: name}
	b.sia = append(b.sia, a)
	return a
}

// placements reads placements-<type>.csv. A placement has one digit for each node, the number of GPUs on it.
func (a *application) placements(r io.Reader, file, gpu string) error {
	d, err := newRows(r, file, "placement", "local_bsz", "step_time", "sync_time")
	if err != nil {
		return err
	}
	return a.read(d, gpu, true, func() (nodes, gpus int) {
		s := d.cell("placement")
		for _, c := range s {
			gpus += int(c - '0')
		}
		if s == "" || strings.Trim(s, "123456789") != "" || gpus > maxGPUs {
			d.fail("placement", "digits from 1 to 9, the GPUs on each node")
		}
		return len(s), gpus
	})
}

// scalability reads scalability-<type>.csv.
func (a *application) scalability(r io.Reader, file, gpu string) error {
	d, err := newRows(r, file, "num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
	if err != nil {
		return err
	}
	return a.read(d, gpu, false, func() (nodes, gpus int) {
		n := d.whole("num_replicas", maxGPUs)
		return int(d.whole("num_nodes", n)), int(n)
	})
}

func (a *application) read(d *rows, gpu string, placed bool, layout func() (nodes, gpus int)) error {
	for d.next() {
		nodes, gpus := layout()
		local := d.whole("local_bsz", maxBatch)
		time := d.number("step_time")
		sync := d.number("sync_time")
		if time == 0 {
			d.fail("step_time", "more than 0 seconds")
		}
		if sync >= time && !a.pipelined() {
			d.fail("sync_time", "less than step_time, of which it is a part")
		}
		a.steps = append(a.steps, step{gpu, nodes, gpus, int(local), time, sync, 1, placed})
	}
	return d.end()
}

// validation reads validation-<batch>.csv: a row for each epoch with the iterations done by then. The last row gives
// the end of the training.
func (a *application) validation(r io.Reader, file string, batch int) error {
	d, err := newRows(r, file, "progress", "iteration")
	if err != nil {
		return err
	}
	last := int64(0)
	for d.next() {
		n := d.whole("iteration", math.MaxInt64)
		if n < last {
			d.fail("iteration", fmt.Sprintf("%d or more, as in the row before", last))
		}
		last = n
	}
	if err := d.end(); err != nil {
		return err
	}
	if last == 0 {
		return &traces.RowError{File: file, Line: d.Line(), Want: "a row with the iterations of an epoch"}
	}
	if slices.ContainsFunc(a.ends, func(e ending) bool { return e.batch == batch }) {
		return &traces.RowError{File: file, Line: 1, Value: fmt.Sprint(batch), Want: "each batch size in one file"}
	}
	a.ends = append(a.ends, ending{batch, last})
	return nil
}

// pipelined reports whether the model is cut into stages of one GPU each ("pmp" is Sia's name). The number of stages is
// the smallest number of GPUs measured on a type; each further group of that many GPUs is another pipeline. step_time
// is then a stage's forward pass over local_bsz examples, and the backward pass takes twice as long, so m examples take
// the time of 3 (stages - 1 + m) forward passes of one example, plus sync_time.
func (a *application) pipelined() bool { return strings.HasSuffix(a.name, "_pmp") }

// finish turns the measurements into models, one for each batch size.
func (a *application) finish(b *builder) {
	a.merge()
	stages := map[string]int{}
	for _, s := range a.steps {
		if n := stages[s.gpu]; n == 0 || s.gpus < n {
			stages[s.gpu] = s.gpus
		}
	}
	for _, e := range a.ends {
		m := b.model(named(a.name, e.batch), e.batch)
		m.iterations = e.iterations
		for i := 0; i < len(a.steps); {
			k := i + 1
			for k < len(a.steps) && a.steps[k].gpu == a.steps[i].gpu && a.steps[k].nodes == a.steps[i].nodes &&
				a.steps[k].gpus == a.steps[i].gpus {
				k++
			}
			s := &a.steps[i]
			seconds := 0.0
			if a.pipelined() {
				seconds = pipeline(s, stages[s.gpu], e.batch)
			} else {
				seconds = accumulate(a.steps[i:k], e.batch)
			}
			if seconds > 0 {
				m.add(s.gpu, point{s.gpus, s.nodes, 1 / seconds})
			}
			i = k
		}
	}
}

// merge sorts the steps and merges those of one type and layout.
func (a *application) merge() {
	slices.SortStableFunc(a.steps, func(x, y step) int {
		l, r := x.layout(), y.layout()
		return cmp.Or(cmp.Compare(x.gpu, y.gpu), slices.Compare(l[:], r[:]))
	})
	to := 0
	for _, s := range a.steps {
		if to > 0 {
			if p := &a.steps[to-1]; p.gpu == s.gpu && p.layout() == s.layout() {
				switch {
				case p.placed == s.placed:
					p.time, p.sync, p.n = p.time+s.time, p.sync+s.sync, p.n+1
				case s.placed:
					*p = s
				}
				continue
			}
		}
		a.steps[to] = s
		to++
	}
	a.steps = a.steps[:to]
	for i := range a.steps {
		s := &a.steps[i]
		s.time, s.sync, s.n = s.time/float64(s.n), s.sync/float64(s.n), 1
	}
}

// accumulate returns the time of a step of a whole batch, or 0 if it is not known. s holds the measurements of one
// number of nodes and GPUs in increasing order of local.
func accumulate(s []step, batch int) float64 {
	local := ceil(batch, s[0].gpus)
	parts := ceil(local, s[len(s)-1].local)
	local = ceil(local, parts)
	i, found := slices.BinarySearchFunc(s, local, func(s step, n int) int { return cmp.Compare(s.local, n) })
	if i == 0 && !found {
		return 0
	}
	time, sync := s[i].time, s[i].sync
	if !found {
		u := float64(local-s[i-1].local) / float64(s[i].local-s[i-1].local)
		time, sync = s[i-1].time+u*(time-s[i-1].time), s[i-1].sync+u*(sync-s[i-1].sync)
	}
	return time + float64(parts-1)*(time-sync)
}

// pipeline returns the time of a step of a whole batch, or 0 if the GPUs are not a whole number of pipelines.
func pipeline(s *step, stages, batch int) float64 {
	if s.gpus%stages != 0 {
		return 0
	}
	examples := ceil(batch, s.gpus/stages)
	return 3*float64(stages-1+examples)*s.time/float64(s.local) + s.sync
}

func ceil(a, b int) int { return (a + b - 1) / b }
