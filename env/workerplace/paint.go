package workerplace

import (
	"fmt"
	"image"
	"image/color"
	"slices"
	"strconv"
	"time"

	"clustergym/env"
	"clustergym/env/paint"
	"clustergym/env/sched"
)

var _ env.Painter = (*Env)(nil)

// FrameRate implements env.Painter.
func (e *Env) FrameRate() int { return sched.FrameRate }

// Paint implements env.Painter: what stands on each server, the gang that is being placed included, and what waits.
// Servers that the episode does not use look as if they had failed.
func (e *Env) Paint(dst *image.RGBA) error {
	return e.shell.Paint(dst, func(c *paint.Canvas) {
		names := e.names()
		name := func(j *job) string { return fmt.Sprintf("%s x%d", paint.Cut(names[j.kind], 10), j.workers) }
		b := paint.Board{
			Title: e.cfg.ID(), More: e.shell.Moment(e.lasts(float64(e.time))),
			Second: fmt.Sprintf("interval %d: %s; x4 = a gang of 4 workers", e.time, e.counts()),
			Runs:   len(e.running), Waits: len(e.waiting), Down: (e.cfg.Servers - e.active) * e.cfg.GPUs,
		}
		e.servers(&b)
		for _, id := range e.running[:min(len(e.running), paint.MostKeys)] {
			j := &e.jobs[id]
			b.Running = append(b.Running, paint.Job(name(j), float64(j.workers*j.gpus), paint.Colour(int(id))))
		}
		for s, id := range e.waiting[:min(len(e.waiting), paint.MostRows)] {
			j := &e.jobs[id]
			w := paint.Waiting{
				Name: name(j), Colour: paint.Colour(int(id)), GPUs: float64(j.workers * j.gpus),
				Estimate: e.lasts(j.work), Waited: e.lasts(float64(e.time - j.arrives)), Asked: id == e.begun,
			}
			if s < len(e.visible()) {
				w.Label = strconv.Itoa(s)
				w.Fits = slices.Contains(e.mask[s*e.cfg.Servers:(s+1)*e.cfg.Servers], true)
			}
			switch {
			case w.Asked:
				w.Note = fmt.Sprintf("%d placed", j.placed)
			case e.begun >= 0: // that gang has to be placed first
				w.Note = "later"
			}
			b.Queue = append(b.Queue, w)
		}
		c.Board(&b)
	})
}

// lasts returns how long that many intervals last.
func (e *Env) lasts(intervals float64) time.Duration {
	return time.Duration(min(intervals*e.cfg.Interval, 1e9) * float64(time.Second))
}

// servers fills in who holds which GPUs. Within a server they have no order, so jobs stand there in order of start.
func (e *Env) servers(b *paint.Board) {
	n, k := e.cfg.Servers, &b.Cluster
	k.First, k.Rack, k.Down, k.Held = make([]int, n+1), make([]int, n), make([]bool, n), make([]color.RGBA, n*e.cfg.GPUs)
	for m := range n {
		k.First[m+1], k.Down[m] = (m+1)*e.cfg.GPUs, m >= e.active
		at, end := k.First[m], k.First[m+1]
		for _, list := range [...][]int32{e.running, e.gang()} {
			for _, id := range list {
				j := &e.jobs[id]
				for range int(j.on[m]) * j.gpus {
					if at < end {
						k.Held[at] = paint.Colour(int(id))
						at++
						b.Held++
					}
				}
			}
		}
	}
}
