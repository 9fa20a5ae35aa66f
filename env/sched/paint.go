package sched

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"slices"
	"strconv"
	"strings"
	"time"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/simulator/cluster"
	"clustergym/simulator/sim"
)

// FrameRate is that of env.Painter for environments whose steps are decisions of a scheduler.
const FrameRate = 8

// Paint implements env.Painter for the environment whose shell this is: draw draws on a white canvas. It returns the
// errors of a closed environment, a missing Reset and a picture of another size, in this order.
func (s *Shell) Paint(dst *image.RGBA, draw func(c *paint.Canvas)) error {
	if err := s.Current(); err != nil {
		return err
	}
	c, err := paint.On(dst)
	if err != nil {
		return err
	}
	draw(c)
	return nil
}

// Moment returns what stands at the right end of a picture's first line: how the episode has ended, if it has, the time
// since its beginning, the step and the seed.
func (s *Shell) Moment(t time.Duration) string {
	m := fmt.Sprintf("t = %s  step %d  seed %d", paint.Span(t), s.Steps(), s.record.Episode.Seed)
	if s.kind.Last() {
		m = strings.ToLower(s.kind.String()) + "  " + m
	}
	return m
}

// clusterOf returns who holds which GPUs of v; running are its running jobs in order of submit.
func clusterOf(v *sim.View, running []sim.Job, marked []cluster.GPU) paint.Cluster {
	c := v.Cluster()
	k := paint.Cluster{Held: make([]color.RGBA, c.GPUs())}
	for _, g := range marked {
		k.Marked = append(k.Marked, int(g))
	}
	if c.Pool() {
		k.First, k.Rack = []int{0, c.GPUs()}, []int{0}
		fill(k.Held, v, running)
		return k
	}
	k.First, k.Rack, k.Down = make([]int, c.Nodes()+1), make([]int, c.Nodes()), make([]bool, c.Nodes())
	for m := range c.Nodes() {
		_, to := c.NodeGPUs(m)
		k.First[m+1], k.Rack[m], k.Down[m] = int(to), c.RackOf(m), c.Down(m)
	}
	for _, j := range v.Running() {
		colour, milli := paint.Colour(v.Pos(j)), v.Request(j).Milli
		for _, g := range v.GPUs(j) {
			switch {
			case g < 0: // a job without GPUs
			case milli < 1000:
				k.Parts = append(k.Parts, paint.Part{GPU: int(g), Milli: milli, Job: colour})
			default:
				k.Held[g] = colour
			}
		}
	}
	slices.SortStableFunc(k.Parts, func(a, b paint.Part) int { return cmp.Compare(a.GPU, b.GPU) })
	return k
}

// fill draws the jobs of a pool side by side in order of submit, because its GPUs have no identity.
func fill(held []color.RGBA, v *sim.View, running []sim.Job) {
	at := 0.0
	for _, j := range running {
		from := at
		at += gpus(v, j)
		for g := int(from + 0.5); g < min(int(at+0.5), len(held)); g++ {
			held[g] = paint.Colour(v.Pos(j))
		}
	}
}

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int { return FrameRate }

// Teller is an optional ability of Actions: it says in a few words what the next action decides, for pictures.
type Teller interface {
	Tell() string
}

// Asker is an optional ability of Actions that do not choose among the visible jobs, but decide about them: pictures
// mark those jobs with a word or two.
type Asker interface {
	Asked() string
}

// Paint implements env.Painter: the cluster, the visible slots and the rest of the queue. It shows what a policy may
// know: estimates, never run times.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) {
		s := &e.state
		v := s.View
		k, running := v.Cluster(), pictureOf(v).running
		b := paint.Board{
			Title: e.spec.ID, More: e.shell.Moment(v.Now() - e.win.Begin), Cluster: clusterOf(v, running, s.Picked),
			Second: fmt.Sprintf("%s jobs finished, %d running, %d waiting%s", e.finished(), len(v.Running()), s.Waiting,
				e.toCome()),
			Held: heldGPUs(k), Down: k.DownGPUs(), Runs: len(v.Running()),
		}
		if t, ok := e.parts.Actions.(Teller); ok {
			b.Second += ". " + t.Tell()
		}
		for _, j := range running[:min(len(running), paint.MostKeys)] {
			b.Running = append(b.Running, paint.Job(name(v.Trace(j).ID), gpus(v, j), paint.Colour(v.Pos(j))))
		}
		e.paintQueue(&b)
		c.Board(&b)
	})
}

// paintQueue adds the jobs that can be chosen, or that the decision is about, and then the rest of the queue.
func (e *Env) paintQueue(b *paint.Board) {
	s := &e.state
	v := s.View
	asker, _ := e.parts.Actions.(Asker)
	first := make(map[sim.Job]bool, len(s.Slots))
	add := func(j sim.Job) *paint.Waiting {
		first[j] = true
		b.Queue = append(b.Queue, paint.Waiting{
			Name: name(v.Trace(j).ID), Colour: paint.Colour(v.Pos(j)), GPUs: gpus(v, j), Estimate: s.Known[j].Rest,
			Waited: v.Now() - v.Trace(j).Submit, Fits: v.Fits(j),
		})
		return &b.Queue[len(b.Queue)-1]
	}
	for i, j := range s.Slots[:min(len(s.Slots), paint.MostRows)] {
		if w := add(j); asker != nil {
			w.Asked, w.Note = true, asker.Asked()
		} else {
			w.Label = strconv.Itoa(i)
		}
	}
	for _, j := range v.Waiting() {
		if len(b.Queue) >= paint.MostRows {
			break
		}
		if !first[j] {
			add(j)
		}
	}
	b.Waits = max(len(v.Waiting()), len(b.Queue))
}
