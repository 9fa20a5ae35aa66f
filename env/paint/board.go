package paint

import (
	"fmt"
	"image"
	"image/color"

	"clustergym/env"
)

// Board is the picture of a scheduling environment: a head, the cluster with the jobs that run, and the queue.
type Board struct {
	Title, More, Second string // see Canvas.Head
	Cluster             Cluster
	Held                float64 // GPUs
	Down                int     // GPUs that cannot be used
	Running             []Key   // jobs, as far as they fit in the legend
	Runs                int     // all jobs that run
	Queue               []Waiting
	Waits               int // all jobs that wait
}

// The heights of a board's parts.
const (
	clusterTop = HeadHeight + 2
	queueTop   = 276
	keyLines   = 2 // of the legend
)

// MostKeys and MostRows are how many running and waiting jobs a board can show: to list more is of no use.
const (
	MostKeys = 32
	MostRows = (env.FrameHeight - queueTop) / thinHeight
)

// Board draws b.
func (c *Canvas) Board(b *Board) {
	c.Head(b.Title, b.More, b.Second)
	area := image.Rect(Margin, clusterTop+LineHeight+4, env.FrameWidth-Margin, queueTop-10-keyLines*LineHeight)
	c.Caption(clusterTop, c.Cluster(area, &b.Cluster))
	total := len(b.Cluster.Held)
	text := fmt.Sprintf("%.4g of %d held", b.Held, total)
	if b.Down > 0 {
		text += fmt.Sprintf(", %d down", b.Down)
	}
	c.Gauge(clusterTop, text, b.Held/float64(max(total, 1)))
	if len(b.Running) > 0 {
		c.Legend(area.Max.Y+4, keyLines, "job:GPUs", b.Running, b.Runs)
	}
	c.Box(0, queueTop-4, env.FrameWidth, 1, Rule)
	c.Queue(queueTop, env.FrameHeight-4, b.Queue, b.Waits)
}

// Job returns the entry of a running job in a board's legend.
func Job(name string, gpus float64, colour color.RGBA) Key {
	return Key{Colour: colour, Text: fmt.Sprintf("%s:%.4g", Cut(name, 16), gpus)}
}
