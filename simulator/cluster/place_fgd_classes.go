package cluster

import (
	"cmp"
	"math"
	"slices"
)

// Class is a kind of request and how often it occurs.
type Class struct {
	Request Request // its memory is ignored
	Count   int64
}

// key returns what distinguishes classes.
func (k *Class) key() kindKey {
	r := &k.Request
	return kindKey{r.GPUs, r.Milli, r.Types, r.VC, r.CPUMilli, r.Each}
}

// Classes counts equal requests, the most frequent first. FGD descends on this distribution.
func Classes(jobs []Request) []Class {
	var l learner
	for i := range jobs {
		l.count(&jobs[i], len(jobs))
	}
	slices.SortStableFunc(l.classes, func(a, b Class) int { return cmp.Compare(b.Count, a.Count) })
	return l.classes
}

// learner counts requests as they arrive.
type learner struct {
	classes []Class
	index   map[kindKey]int
	seen    int
	due     int // the number of requests at which the classes are next updated
}

// mostLearned bounds the kinds of request that are counted; later kinds are ignored. A stream of jobs that all differ
// must not cost more and more.
const mostLearned = 1024

func (l *learner) reset() {
	l.classes, l.seen, l.due = l.classes[:0], 0, 1
	clear(l.index)
}

func (l *learner) count(r *Request, most int) {
	k := Class{Request: *r, Count: 1}
	k.Request.MemBytes = 0
	i, ok := l.index[k.key()]
	if ok {
		l.classes[i].Count++
		return
	}
	if len(l.classes) >= most {
		return
	}
	if l.index == nil {
		l.index = map[kindKey]int{}
	}
	l.index[k.key()] = len(l.classes)
	l.classes = append(l.classes, k)
}

// add counts r and reports whether the classes are due for an update.
func (l *learner) add(r *Request) bool {
	l.count(r, mostLearned)
	l.seen++
	if l.seen < l.due {
		return false
	}
	l.due = 2 * l.seen
	return true
}

// classTable computes how many fragments a node has.
type classTable struct {
	all    int64   // requests counted
	levels []int64 // the distinct totals of cores needed, increasing
	groups []classGroup
	ok     []int64 // [groups][levels+1]: how many of the group's requests need at most this many levels
}

// classGroup is the classes that differ only in cores, in order of milli.
type classGroup struct {
	gpus, milli int
	types       uint64
	vc          int32
}

// cpu returns the cores that the gang needs on one node.
func (k *Class) cpu() int64 {
	n := int64(max(1, k.Request.OneNode()))
	if k.Request.CPUMilli > math.MaxInt64/n {
		return math.MaxInt64
	}
	return k.Request.CPUMilli * n
}

func (t *classTable) build(classes []Class) {
	t.all, t.levels, t.groups = 0, t.levels[:0], t.groups[:0]
	for i := range classes {
		k := &classes[i]
		t.all += k.Count
		if r := &k.Request; r.GPUs > 0 {
			t.levels = append(t.levels, k.cpu())
			t.groups = append(t.groups, classGroup{r.OneNode(), r.Milli, r.Types, r.VC})
		}
	}
	slices.Sort(t.levels)
	t.levels = slices.Compact(t.levels)
	slices.SortFunc(t.groups, classGroup.compare)
	t.groups = slices.Compact(t.groups)
	w := len(t.levels) + 1
	t.ok = slices.Grow(t.ok[:0], w*len(t.groups))[:w*len(t.groups)]
	clear(t.ok)
	for i := range classes {
		k := &classes[i]
		r := &k.Request
		if r.GPUs == 0 {
			continue
		}
		g, _ := slices.BinarySearchFunc(t.groups, classGroup{r.OneNode(), r.Milli, r.Types, r.VC}, classGroup.compare)
		level, _ := slices.BinarySearch(t.levels, k.cpu())
		t.ok[g*w+level+1] += k.Count
	}
	for g := range t.groups {
		row := t.ok[g*w:][:w]
		for i := 1; i < w; i++ {
			row[i] += row[i-1]
		}
	}
}

func (g classGroup) compare(h classGroup) int {
	return cmp.Or(cmp.Compare(g.milli, h.milli), cmp.Compare(g.gpus, h.gpus), cmp.Compare(g.types, h.types),
		cmp.Compare(g.vc, h.vc))
}

// fragments returns F of node times the number of requests counted. left is what is free of its GPUs (increasing, no
// zeros), cpu its free cores. The result is the free thousandths that each request counted cannot use, summed over the
// requests.
func (t *classTable) fragments(c *Cluster, node int, left []int32, cpu int64) int64 {
	usable := int64(0)
	for _, f := range left {
		usable += int64(f)
	}
	sum := t.all * usable
	level, exact := slices.BinarySearch(t.levels, cpu)
	if exact {
		level++
	}
	for i := range t.groups {
		g := &t.groups[i]
		for len(left) > 0 && int(left[0]) < g.milli {
			usable -= int64(left[0])
			left = left[1:]
		}
		if len(left) == 0 {
			break
		}
		if len(left) >= g.gpus && c.admits(node, g.types, g.vc) {
			sum -= t.ok[i*(len(t.levels)+1)+level] * usable
		}
	}
	return sum
}
