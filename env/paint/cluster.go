package paint

import (
	"fmt"
	"image"
	"image/color"
	"math"
)

// Cluster is what Canvas.Cluster draws: machines of GPUs, by rack. A cluster whose GPUs have no place is one machine.
type Cluster struct {
	First  []int        // [machines+1], the first GPU of each machine, and the number of GPUs
	Rack   []int        // [machines], ascending
	Down   []bool       // [machines], whether the machine has failed; nil = none has
	Held   []color.RGBA // [GPUs], of the job that holds the whole GPU; all zero = none does
	Parts  []Part       // jobs that hold part of a GPU, by GPU
	Marked []int        // GPUs with a frame around them
}

// Part is a job's part of a GPU.
type Part struct {
	GPU   int
	Milli int // thousandths of the GPU
	Job   color.RGBA
}

// The sizes of a GPU's cell in pixels, with the gap to the next.
const (
	largestCell  = 44
	smallestCell = 2
	manyCell     = 4 // of a cell that stands for several GPUs
	rackLabel    = 8 * CharWidth
)

// grid is the layout of a cluster in a part of the picture.
type grid struct {
	r      image.Rectangle
	cell   int  // size
	racks  bool // each begins a line, with its number before it
	labels bool
	many   int // GPUs of a cell
}

// Cluster draws the GPUs in r, each as a cell in the colour of its job. The cells of a machine stand together, and
// machines by rack. Cells are as large as fits; if even the smallest do not, a cell stands for several GPUs, dark where
// they are held. It returns the line of text that explains the drawing.
func (c *Canvas) Cluster(r image.Rectangle, k *Cluster) string {
	gpus := len(k.Held)
	if gpus == 0 {
		return "no GPUs"
	}
	g := k.fit(r)
	if g.many > 1 {
		c.crowd(g, k)
		return fmt.Sprintf("GPUs, %d to a square: dark = held, grey = failed", g.many)
	}
	marked := make([]bool, gpus)
	for _, i := range k.Marked {
		marked[i] = true
	}
	parts := k.Parts
	side, free := g.cell-1, Free
	if g.cell < 4 { // the cells of a machine touch
		side, free = g.cell, Mix(Free, frame, 0.6)
	}
	rack := -1
	k.walk(g, func(m, x, y, from, to int) {
		if g.labels && k.Rack[m] != rack {
			rack = k.Rack[m]
			c.Text(g.r.Min.X, y+(side-LineHeight)/2+1, Cut(fmt.Sprintf("rack %d", rack), rackLabel/CharWidth), Muted)
		}
		if g.cell >= 8 { // the machine's case
			c.Box(x-2, y-2, (to-from)*g.cell+3, side+4, frame)
		}
		down := k.Down != nil && k.Down[m]
		for i := from; i < to; i++ {
			cell := image.Rect(x, y, x+side, y+side)
			switch {
			case down:
				c.Rect(cell, Down)
				if side >= 6 {
					c.cross(cell)
				}
			case k.Held[i].A != 0:
				c.Rect(cell, k.Held[i])
			default:
				c.Rect(cell, free)
			}
			for len(parts) > 0 && parts[0].GPU < i {
				parts = parts[1:]
			}
			for used := 0; len(parts) > 0 && parts[0].GPU == i; parts = parts[1:] {
				p := parts[0]
				left, right := cell.Min.X+side*used/1000, cell.Min.X+side*(used+p.Milli)/1000
				used += p.Milli
				c.Box(left, y, max(right-left, 1), side, p.Job)
			}
			if marked[i] {
				c.mark(cell)
			}
			x += g.cell
		}
	})
	switch {
	case g.labels:
		return "GPUs by rack and machine: colour = job, pale = free"
	case len(k.Rack) > 1:
		return "GPUs by machine: colour = job, pale = free"
	}
	return "GPUs: colour = job, pale = free"
}

// cross strikes out the cell of a failed GPU.
func (c *Canvas) cross(r image.Rectangle) {
	low, high := Point{float64(r.Min.X + 1), float64(r.Min.Y + 1)}, Point{float64(r.Max.X - 1), float64(r.Max.Y - 1)}
	c.Line(low, high, 1.5, Paper)
	c.Line(Point{low.X, high.Y}, Point{high.X, low.Y}, 1.5, Paper)
}

// mark frames a cell.
func (c *Canvas) mark(r image.Rectangle) {
	switch {
	case r.Dx() >= 9:
		c.Outline(r.Inset(-2), 3, Accent)
	case r.Dx() >= 4:
		c.Outline(r.Inset(-1), 2, Accent)
	default:
		c.Rect(r, Accent)
	}
}

// fit chooses the layout: the largest cells with which the cluster fits into r.
func (k *Cluster) fit(r image.Rectangle) grid {
	racks := len(k.Rack) > 0 && k.Rack[len(k.Rack)-1] > k.Rack[0]
	// A rack of one line is easiest to read, but not if its cells are tiny.
	for _, try := range []struct {
		racks bool
		lines int // of a rack at the most
		cell  int // at the least
	}{{true, 1, LineHeight - 2}, {true, math.MaxInt, smallestCell}, {false, math.MaxInt, smallestCell}} {
		if try.racks && !racks {
			continue
		}
		for cell := largestCell; cell >= try.cell; cell-- {
			g := grid{r: r, cell: cell, racks: try.racks, labels: try.racks && cell >= LineHeight-4, many: 1}
			if bottom, lines := k.walk(g, nil); bottom <= r.Max.Y && lines <= try.lines {
				return g
			}
		}
	}
	room := (r.Dx() / manyCell) * (r.Dy() / manyCell)
	return grid{r: r, cell: manyCell, many: (len(k.Held) + room - 1) / room}
}

// walk goes through the cluster in the layout g and calls place with the upper left corner of each run of GPUs of a
// machine that stand in one line; place may be nil. It returns the lower edge of the last line, and how many lines the
// tallest rack has. A walk of a layout that does not fit may stop early.
func (k *Cluster) walk(g grid, place func(machine, x, y, from, to int)) (bottom, tallest int) {
	between, line := max(2, g.cell/2), g.cell+max(1, g.cell/3)
	if g.cell >= 8 {
		line = g.cell + 5
	}
	left := g.r.Min.X + 2
	if g.labels {
		left += rackLabel
	}
	perLine := (g.r.Max.X - left) / g.cell
	x, y, lines := left, g.r.Min.Y+2, 1
	for m := range k.Rack {
		from, to := k.First[m], k.First[m+1]
		if m > 0 && g.racks && k.Rack[m] != k.Rack[m-1] {
			x, y, lines = left, y+line+g.cell/4, 1
		}
		for from < to {
			n := min(to-from, perLine)
			if x > left && x+n*g.cell > g.r.Max.X {
				x, y, lines = left, y+line, lines+1
			}
			tallest = max(tallest, lines)
			if place == nil && y > g.r.Max.Y {
				return y + g.cell, tallest
			}
			if place != nil {
				place(m, x, y, from, from+n)
			}
			from, x = from+n, x+n*g.cell
		}
		x += between
	}
	return y + g.cell, tallest
}

// crowd draws cells that stand for several GPUs each.
func (c *Canvas) crowd(g grid, k *Cluster) {
	held := make([]int, len(k.Held)) // thousandths
	for i, job := range k.Held {
		if job.A != 0 {
			held[i] = 1000
		}
	}
	for _, p := range k.Parts {
		held[p.GPU] = min(held[p.GPU]+p.Milli, 1000)
	}
	down := make([]bool, len(k.Held))
	for m := range k.Down {
		if k.Down[m] {
			for i := k.First[m]; i < k.First[m+1]; i++ {
				down[i] = true
			}
		}
	}
	marked := make(map[int]bool, len(k.Marked))
	for _, i := range k.Marked {
		marked[i/g.many] = true
	}
	columns := g.r.Dx() / g.cell
	for cell := 0; cell*g.many < len(held); cell++ {
		sum, up := 0, 0
		for i := cell * g.many; i < min((cell+1)*g.many, len(held)); i++ {
			if !down[i] {
				up++
				sum += held[i]
			}
		}
		fill := Down
		switch {
		case up > 0 && sum == 0:
			fill = Free
		case up > 0:
			fill = Scale(float64(sum) / float64(1000*up))
		}
		if marked[cell] {
			fill = Accent
		}
		c.Box(g.r.Min.X+cell%columns*g.cell, g.r.Min.Y+cell/columns*g.cell, g.cell-1, g.cell-1, fill)
	}
}
