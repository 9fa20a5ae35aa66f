package sched

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

const (
	// wideCluster is the number of GPUs above which a picture has one mark per machine instead of one per GPU.
	wideCluster = 512
	lineMarks   = 96   // per line of the picture
	mostMarks   = 2048 // above it, a mark stands for several machines
	mostSlots   = 32   // listed
	mostNames   = 48   // of running jobs listed
)

// marks name the running jobs in the picture, in order of submit; further jobs share otherMark.
const (
	marks     = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	freeMark  = '.'
	downMark  = 'x'
	shareMark = '+'
	otherMark = '*'
)

var _ env.Renderer = (*Env)(nil)

// Render implements env.Renderer: it writes who holds which GPUs, the visible slots and the clock, in lines of less
// than 120 columns of plain text. It shows what a policy may know: estimates, never run times.
func (e *Env) Render(w io.Writer, mode string) error {
	return e.shell.Render(w, mode, func(b *strings.Builder) {
		p := newPicture(e)
		p.head(e)
		if t, ok := e.parts.Actions.(Teller); ok {
			p.printf("%s\n", t.Tell())
		}
		p.cluster()
		p.slots()
		p.stops()
		b.WriteString(p.b.String())
	})
}

// gpus returns how many GPUs j asks for.
func gpus(v *sim.View, j sim.Job) float64 {
	r := v.Request(j)
	return float64(r.GPUs*r.Milli) / 1000
}

// heldGPUs returns how many GPUs of c are held; a shared one counts by the part that is.
func heldGPUs(c *cluster.Cluster) float64 {
	return float64(1000*(c.GPUs()-c.DownGPUs())-c.FreeMilli()) / 1000
}

// picture is the text of one rendering.
type picture struct {
	b       strings.Builder
	v       *sim.View
	s       *State // nil without an Env
	c       *cluster.Cluster
	running []sim.Job // in order of submit
}

func newPicture(e *Env) *picture {
	p := pictureOf(e.state.View)
	p.s = &e.state
	return p
}

func pictureOf(v *sim.View) *picture {
	p := &picture{v: v, c: v.Cluster(), running: slices.Clone(v.Running())}
	slices.SortFunc(p.running, func(a, b sim.Job) int { return v.Pos(a) - v.Pos(b) })
	return p
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// head writes the episode, the clock, and how many jobs and GPUs are in which state.
func (p *picture) head(e *Env) {
	v := p.v
	streamed := e.win.Mode == Streamed // which jobs count, and how many come, is not shown
	p.printf("%s  %s, ", e.spec.ID, e.shell.Episode().Split)
	if streamed {
		p.printf("stream, step %d", e.shell.Steps())
	} else {
		p.printf("jobs %d to %d, seed %d, step %d", e.win.At, e.win.At+e.win.Jobs-1, e.seed, e.shell.Steps())
	}
	if kind := e.shell.Kind(); kind.Last() {
		p.printf(", %s", strings.ToLower(kind.String()))
	}
	of := "window"
	if streamed {
		of = "stream"
	}
	p.printf("\n%s since the %s's first job; last arrival %s ago, last finish %s ago\n",
		paint.Span(v.Now()-e.win.Begin), of, paint.Span(v.Now()-p.s.LastArrival), paint.Span(v.Now()-p.s.LastFinish))
	before := 0
	for _, j := range p.running {
		if !p.s.Known[j].Counted {
			before++
		}
	}
	p.printf("jobs  %s finished, %d running", e.finished(), len(p.running))
	if before > 0 {
		p.printf(" (%d from before the window)", before)
	}
	p.printf(", %d waiting for %.4g GPUs%s\n", p.s.Waiting, p.s.WaitingGPUs, e.toCome())
	p.printf("GPUs  %.4g of %d held", heldGPUs(p.c), p.c.GPUs())
	if d := p.c.DownGPUs(); d > 0 {
		p.printf(", %d down", d)
	}
	p.b.WriteByte('\n')
}

// finished returns how many of the agent's jobs have finished, of how many: a policy on a stream does not see that.
func (e *Env) finished() string {
	if e.win.Mode == Streamed {
		return fmt.Sprint(e.done)
	}
	return fmt.Sprintf("%d of %d", e.done, e.win.Jobs)
}

// toCome returns how many jobs are to come, "" on a stream.
func (e *Env) toCome() string {
	if e.win.Mode == Streamed {
		return ""
	}
	return fmt.Sprintf(", %d to come", e.win.Jobs-max(0, e.state.View.Arrived()-e.win.First))
}

// cluster draws which job holds which GPUs.
func (p *picture) cluster() {
	switch {
	case p.c.Pool():
		p.counter()
	case p.c.GPUs() > wideCluster:
		p.machines()
	default:
		p.gpus()
	}
}

// markOf returns the mark of the i-th running job.
func markOf(i int) byte {
	if i < len(marks) {
		return marks[i]
	}
	return otherMark
}

// gpus draws a mark for each GPU, with machines set apart and one line per rack.
func (p *picture) gpus() {
	v := p.v
	held := []byte(strings.Repeat(string(freeMark), p.c.GPUs()))
	for i, j := range p.running {
		for _, g := range v.GPUs(j) {
			switch {
			case g < 0: // a job without GPUs
			case held[g] == freeMark:
				held[g] = markOf(i)
			default:
				held[g] = shareMark
			}
		}
	}
	for rack := range p.c.Racks() {
		label := fmt.Sprintf("rack %d", rack)
		line := 0
		from, to := p.c.RackNodes(rack)
		for node := from; node < to; node++ {
			g0, g1 := p.c.NodeGPUs(node)
			text := string(held[g0:g1])
			if p.c.Down(node) {
				text = strings.Repeat(string(downMark), int(g1-g0))
			}
			for len(text) > lineMarks {
				p.lines(&label, &line, text[:lineMarks])
				text = text[lineMarks:]
			}
			p.lines(&label, &line, text)
		}
		p.b.WriteByte('\n')
	}
	p.names()
}

// lines adds text to the current line of a rack, or to a new one if that is full.
func (p *picture) lines(label *string, line *int, text string) {
	if *line > 0 && *line+1+len(text) > lineMarks {
		p.b.WriteByte('\n')
		*label, *line = "", 0
	}
	if *line == 0 {
		p.printf("%-9s", *label)
	}
	p.printf(" %s", text)
	*line += 1 + len(text)
}

// names lists which job each mark stands for.
func (p *picture) names() {
	if len(p.running) == 0 {
		return
	}
	const indent = "         "
	line := len(indent)
	p.b.WriteString(indent)
	for i, j := range p.running {
		text := fmt.Sprintf(" %c=%s:%.4g", markOf(i), name(p.v.Trace(j).ID), gpus(p.v, j))
		if i == mostNames {
			text = fmt.Sprintf(" and %d more", len(p.running)-i)
		}
		if line+len(text) > 118 {
			p.b.WriteString("\n" + indent)
			line = len(indent)
		}
		p.b.WriteString(text)
		line += len(text)
		if i == mostNames {
			break
		}
	}
	p.b.WriteByte('\n')
	if len(p.running) > len(marks) ||
		slices.ContainsFunc(p.running, func(j sim.Job) bool { return p.v.Request(j).Milli < 1000 }) {
		p.printf("%s %c shared by several jobs, %c another job\n", indent, shareMark, otherMark)
	}
}

// counter draws the jobs of a pool side by side, because its GPUs have no identity.
func (p *picture) counter() {
	total := p.c.GPUs()
	if total > wideCluster {
		held := (total*1000 - p.c.FreeMilli()) * lineMarks / (total * 1000)
		p.printf("counter    %s%s\n", strings.Repeat("#", held), strings.Repeat(string(freeMark), lineMarks-held))
		return
	}
	row := make([]byte, 0, total)
	for i, j := range p.running {
		for range int(gpus(p.v, j) + 0.999) {
			if len(row) < total {
				row = append(row, markOf(i))
			}
		}
	}
	row = append(row, strings.Repeat(string(freeMark), total-len(row))...)
	label := "counter"
	for at := 0; at < len(row); at += lineMarks {
		p.printf("%-9s  %s\n", label, row[at:min(len(row), at+lineMarks)])
		label = ""
	}
	p.names()
}

// machines draws how full each machine is, one mark each, or one mark for several adjacent machines of a very large
// cluster.
func (p *picture) machines() {
	per := (p.c.Nodes() + mostMarks - 1) / mostMarks
	p.printf("by machine")
	if per > 1 {
		p.printf(", %d to a mark", per)
	}
	p.printf(": %c idle, 1 to 9 tenths held, # full, %c down\n", freeMark, downMark)
	byRack := per == 1 && p.c.Racks() <= 64
	var row []byte
	flush := func(label string) {
		for at := 0; at < len(row); at += lineMarks {
			p.printf("%-9s  %s\n", label, row[at:min(len(row), at+lineMarks)])
			label = ""
		}
		row = row[:0]
	}
	for node := 0; node < p.c.Nodes(); node += per {
		row = append(row, p.fill(node, min(node+per, p.c.Nodes())))
		if last := node+per >= p.c.Nodes(); byRack && (last || p.c.RackOf(node+1) != p.c.RackOf(node)) {
			flush(fmt.Sprintf("rack %d", p.c.RackOf(node)))
		}
	}
	flush("")
}

// fill returns the mark for how full the machines [from, to) are.
func (p *picture) fill(from, to int) byte {
	total, free := 0, 0
	for node := from; node < to; node++ {
		if p.c.Down(node) {
			continue
		}
		g0, g1 := p.c.NodeGPUs(node)
		total += 1000 * int(g1-g0)
		for g := g0; g < g1; g++ {
			free += p.c.GPUFree(g)
		}
	}
	switch {
	case total == 0:
		return downMark
	case free == 0:
		return '#'
	case free == total:
		return freeMark
	}
	return byte('0' + max(1, min(9, (total-free)*10/total)))
}

// slots lists the visible jobs in the order of the actions.
func (p *picture) slots() {
	if len(p.s.Slots) == 0 {
		p.printf("slots     none is filled\n")
		return
	}
	v := p.v
	p.printf("slot  %-20s  %6s  %10s  %10s\n", "job", "GPUs", "estimate", "waited")
	for i, j := range p.s.Slots {
		if i == mostSlots {
			p.printf("      and %d more\n", len(p.s.Slots)-i)
			break
		}
		k := &p.s.Known[j]
		estimate, fits := paint.Span(k.Rest), "does not fit"
		if p.s.Blind {
			estimate = "unknown"
		}
		if p.s.Fits[i] {
			fits = "fits"
		}
		p.printf("%4d  %-20s  %6.4g  %10s  %10s  %s\n", i, name(v.Trace(j).ID), k.GPUs, estimate,
			paint.Span(v.Now()-v.Trace(j).Submit), fits)
	}
}

// stops lists the running jobs that can be stopped, by their rows.
func (p *picture) stops() {
	listed := 0
	for i, j := range p.s.Running {
		if !p.s.Stops[i] {
			continue
		}
		if listed++; listed == 1 {
			p.printf("stop  %-20s  %6s  %10s  %10s\n", "job", "GPUs", "left", "ran")
		} else if listed > mostSlots {
			p.printf("      and more\n")
			return
		}
		left := "unknown"
		if !p.s.Blind {
			left = paint.Span(p.s.Remaining(j))
		}
		p.printf("%4d  %-20s  %6.4g  %10s  %10s\n", i, name(p.v.Trace(j).ID), p.s.Known[j].GPUs, left, paint.Span(p.v.Ran(j)))
	}
}

// name returns a job's name, shortened and made printable, because names come from files.
func name(id string) string {
	short := []rune(strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) || r == ' ' {
			return '?'
		}
		return r
	}, id))
	if len(short) > 20 {
		short = append(short[:17], '.', '.', '.')
	}
	return string(short)
}
