package htmlpage

import (
	"math"
	"strconv"
	"time"
)

// encoder writes JSON: objects of columns, with numbers as short as precision allows. Times are whole milliseconds
// since the page's origin, the first submit.
type encoder struct {
	b      []byte
	origin time.Duration
}

// key starts the value called name, after a comma if one is needed.
func (e *encoder) key(name string) {
	e.comma()
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) comma() {
	switch e.b[len(e.b)-1] {
	case '{', '[', ':':
	default:
		e.b = append(e.b, ',')
	}
}

func (e *encoder) open(c byte)  { e.b = append(e.b, c) }
func (e *encoder) close(c byte) { e.b = append(e.b, c) }

func (e *encoder) string(s string)    { e.b = append(e.b, text(s)...) }
func (e *encoder) int(v int64)        { e.b = strconv.AppendInt(e.b, v, 10) }
func (e *encoder) ms(d time.Duration) { e.int(millis(d)) }

// millis rounds to whole milliseconds.
func millis(d time.Duration) int64 { return int64(d.Round(time.Millisecond) / time.Millisecond) }

// number writes v rounded to thousandths, or to tenths from 1000 on, which is precise enough for a pixel.
func (e *encoder) number(v float64) {
	if a := math.Abs(v); a >= 1000 {
		v = math.Round(v*10) / 10
	} else {
		v = math.Round(v*1000) / 1000
	}
	e.b = strconv.AppendFloat(e.b, v, 'f', -1, 64)
}

// digits writes v with the digits of a float32, which is more than a figure shows.
func (e *encoder) digits(v float64) { e.b = strconv.AppendFloat(e.b, v, 'g', -1, 32) }

// object begins the object called key; close('}') ends it.
func (e *encoder) object(key string) {
	e.key(key)
	e.open('{')
}

// named writes a text called key, count a whole number, time a time and flag a truth value.
func (e *encoder) named(key, s string) {
	e.key(key)
	e.string(s)
}

func (e *encoder) count(key string, n int64) {
	e.key(key)
	e.int(n)
}

func (e *encoder) time(key string, d time.Duration) {
	e.key(key)
	e.ms(d)
}

func (e *encoder) flag(key string, v bool) {
	e.key(key)
	e.b = strconv.AppendBool(e.b, v)
}

// texts writes the list of texts called key.
func (e *encoder) texts(key string, all []string) {
	e.column(key, len(all), func(i int) { e.string(all[i]) })
}

// column writes the list of n values called name.
func (e *encoder) column(name string, n int, value func(i int)) {
	e.key(name)
	e.list(n, value)
}

func (e *encoder) list(n int, value func(i int)) {
	e.open('[')
	for i := range n {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		value(i)
	}
	e.close(']')
}

// encode returns the page's data.
func (p *Page) encode() []byte {
	e := &encoder{}
	end := time.Duration(0)
	for i, r := range p.runs {
		if r.begun {
			if i == 0 || r.from < e.origin {
				e.origin = r.from
			}
			end = max(end, r.to)
		}
	}
	e.open('{')
	e.named("title", p.Title)
	e.column("facts", len(p.Facts), func(i int) {
		e.list(2, func(k int) { e.string(p.Facts[i][k]) })
	})
	e.encodeFigures(p)
	e.texts("notes", p.Notes)
	e.time("origin", e.origin)
	e.time("end", max(0, end-e.origin))
	if p.Focus {
		e.time("focus", p.focus(e.origin, end))
	}
	e.texts("sizes", sizeNames[:])
	e.cluster(p)

	// Jobs and stints can take much room. They are written as long as the limit permits.
	jobs := p.jobs.encode(e.origin)
	left := p.limits.detail - len(jobs)
	told := !p.jobs.over && left >= 0
	kept := false
	e.column("runs", len(p.runs), func(i int) {
		var stints []byte
		if r := p.runs[i]; told && r.begun && r.detail {
			if b := r.encodeStints(e.origin); len(b) <= left {
				stints, kept = b, true
				left -= len(b)
			}
		}
		e.run(p.runs[i], stints)
	})
	if kept {
		e.key("jobs")
		e.b = append(e.b, jobs...)
	}
	e.close('}')
	return e.b
}

// cluster writes the cluster of the first run. All runs have the same cluster.
func (e *encoder) cluster(p *Page) {
	for _, r := range p.runs {
		if !r.begun {
			continue
		}
		c := r.cluster
		e.count("gpus", int64(c.GPUs()))
		e.flag("pool", c.Pool())
		if c.Pool() {
			return
		}
		e.count("nodes", int64(c.Nodes()))
		if c.GPUs() <= p.limits.gpus && c.Nodes() <= p.limits.gpus {
			e.column("node0", c.Nodes(), func(i int) {
				g, _ := c.NodeGPUs(i)
				e.int(int64(g))
			})
			if len(c.Types()) > 1 {
				e.column("types", len(c.Types()), func(i int) { e.string(shorten(c.Types()[i], p.limits.text)) })
				e.column("type", c.Nodes(), func(i int) { e.int(int64(c.TypeOf(i))) })
			}
		}
		return
	}
}

// run writes one run, with its stints unless they are nil.
func (e *encoder) run(r *Run, stints []byte) {
	e.open('{')
	e.named("name", r.name)
	jct := r.curve()
	e.object("jct")
	e.count("jobs", int64(jct.jobs))
	e.column("at", len(jct.at), func(i int) { e.ms(jct.at[i]) })
	e.column("share", len(jct.at),
		func(i int) { e.b = strconv.AppendFloat(e.b, math.Round(jct.share[i]*1e6)/1e6, 'f', -1, 64) })
	e.close('}')
	if r.begun {
		r.settle()
		e.time("from", r.from-e.origin)
		e.time("to", r.to-e.origin)
		e.column("ended", len(r.counts), func(i int) { e.int(int64(r.counts[i])) })
		e.count("starts", int64(r.started))
		e.count("coreOnly", int64(r.coreJobs))
		e.series(&r.series, r.to)
		if !r.cluster.Pool() {
			e.heat(r)
			e.downs(r)
		}
		if stints != nil {
			e.key("stints")
			e.b = append(e.b, stints...)
		}
	}
	e.close('}')
}

// amount returns a variable's value in the page's unit: GPUs or jobs.
func amount(v int, x float64) float64 {
	if v == queue || v == running {
		return x
	}
	return x / 1000
}

// series writes every change, or buckets if there are too many changes.
func (e *encoder) series(s *series, end time.Duration) {
	e.object("series")
	if s.exact {
		e.column("at", len(s.at), func(i int) { e.ms(s.at[i] - e.origin) })
		e.column("values", vars, func(v int) {
			e.list(len(s.changes), func(i int) { e.number(amount(v, float64(s.changes[i][v]))) })
		})
		e.close('}')
		return
	}
	e.time("from", s.ticks.origin-e.origin)
	e.time("width", s.ticks.width)
	e.column("values", vars, func(v int) {
		e.list(len(s.buckets), func(i int) {
			span := min(s.ticks.width, end-s.ticks.origin-s.ticks.width*time.Duration(i))
			e.number(amount(v, s.buckets[i].sum[v]/float64(span)))
		})
	})
	e.column("low", sizes, func(v int) {
		e.list(len(s.buckets), func(i int) { e.number(amount(v, float64(s.buckets[i].low[v]))) })
	})
	e.column("top", sizes, func(v int) {
		e.list(len(s.buckets), func(i int) { e.number(amount(v, float64(s.buckets[i].top[v]))) })
	})
	e.close('}')
}

// shades are the digits for shares in steps of 1/63.
const shades = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// heat writes the map of node × time: a string for each row, with a digit for each column.
func (e *encoder) heat(r *Run) {
	h := &r.heat
	columns := int((r.to - h.ticks.origin + h.ticks.width - 1) / h.ticks.width)
	e.object("heat")
	e.time("from", h.ticks.origin-e.origin)
	e.time("width", h.ticks.width)
	e.count("nodes", int64(h.perRow))
	e.column("gpu0", len(h.gpu0), func(i int) { e.int(int64(h.gpu0[i])) })
	e.column("rows", len(h.level), func(row int) {
		whole := float64(h.gpu0[row+1]-h.gpu0[row]) * 1000
		e.b = append(e.b, '"')
		for i := range columns {
			span := float64(min(h.ticks.width, r.to-h.ticks.origin-h.ticks.width*time.Duration(i)))
			share := 0.0
			if whole > 0 {
				share = h.area[row*h.columns+i] / (whole * span)
			}
			e.b = append(e.b, shades[int(math.Round(63*min(1, share)))])
		}
		e.b = append(e.b, '"')
	})
	e.close('}')
}

// downs writes the times for which nodes were down.
func (e *encoder) downs(r *Run) {
	if r.downsInAll == 0 {
		return
	}
	e.object("downs")
	e.count("all", int64(r.downsInAll))
	e.column("node", len(r.downs), func(i int) { e.int(int64(r.downs[i].node)) })
	e.column("gpu0", len(r.downs), func(i int) {
		g, _ := r.cluster.NodeGPUs(int(r.downs[i].node))
		e.int(int64(g))
	})
	e.column("gpus", len(r.downs), func(i int) {
		a, b := r.cluster.NodeGPUs(int(r.downs[i].node))
		e.int(int64(b - a))
	})
	e.column("from", len(r.downs), func(i int) { e.ms(r.downs[i].from - e.origin) })
	e.column("to", len(r.downs), func(i int) {
		to := r.downs[i].to
		if to < 0 {
			to = r.to
		}
		e.ms(to - e.origin)
	})
	e.close('}')
}

// encodeStints returns the stints in order of their start, which is encoded as the difference from the previous start.
// One letter encodes how a stint began and ended.
func (r *Run) encodeStints(origin time.Duration) []byte {
	e := &encoder{origin: origin}
	e.open('{')
	e.column("job", len(r.stints), func(i int) { e.int(int64(r.stints[i].job)) })
	e.column("start", len(r.stints), func(i int) {
		before := int64(0)
		if i > 0 {
			before = millis(r.stints[i-1].start - origin)
		}
		e.int(millis(r.stints[i].start-origin) - before)
	})
	e.column("length", len(r.stints), func(i int) {
		s := &r.stints[i]
		end := s.end
		if end < 0 {
			end = r.to
		}
		e.int(millis(end-origin) - millis(s.start-origin))
	})
	e.key("kind")
	e.b = append(e.b, '"')
	for i := range r.stints {
		s := &r.stints[i]
		e.b = append(e.b, shades[int(s.began)*int(endings)+int(s.ended)])
	}
	e.b = append(e.b, '"')
	e.column("spans", len(r.stints), func(i int) {
		before := int32(0)
		if i > 0 {
			before = r.stints[i-1].to
		}
		e.int(int64(r.stints[i].to - before))
	})
	e.column("gpu", len(r.spans), func(i int) { e.int(int64(r.spans[i].gpu)) })
	e.column("n", len(r.spans), func(i int) { e.int(int64(r.spans[i].n)) })
	if r.page.jobs.shares {
		e.column("off", len(r.spans), func(i int) { e.int(int64(r.spans[i].off)) })
		e.column("milli", len(r.spans), func(i int) { e.int(int64(r.spans[i].milli)) })
	}
	e.close('}')
	return e.b
}

// encode returns the jobs by position.
func (t *jobTable) encode(origin time.Duration) []byte {
	e := &encoder{origin: origin}
	e.open('{')
	e.texts("id", t.id)
	e.column("submit", len(t.id), func(i int) { e.ms(t.submit[i] - origin) })
	e.column("work", len(t.id), func(i int) { e.ms(t.work[i]) })
	e.column("gpus", len(t.id), func(i int) { e.int(int64(t.gpus[i])) })
	if t.shares {
		e.column("milli", len(t.id), func(i int) { e.int(int64(t.milli[i])) })
	}
	for _, c := range []struct {
		key   string
		names *names
	}{{"user", &t.user}, {"vc", &t.vc}, {"model", &t.model}} {
		if !c.names.told() {
			continue
		}
		e.object(c.key)
		e.texts("names", c.names.text)
		e.column("of", len(c.names.of), func(i int) { e.int(int64(c.names.of[i])) })
		e.close('}')
	}
	e.close('}')
	return e.b
}
