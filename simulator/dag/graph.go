package dag

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Task is one node of a graph.
type Task struct {
	ID   string
	Work float64 // in units of Processor.Speed times seconds; NaN = not given, there are only costs
	// Cost is the seconds on each processor, in the order of the platform, NaN if the task cannot run there. It
	// replaces Work; nil = use Work and Speed.
	Cost []float64
	// Types are the types of processors that can run the task; nil = all.
	Types []string
}

// Edge says that task To needs the output of task From. Both are indices of tasks.
type Edge struct {
	From, To int32
	Bytes    float64 // 0 = only the order matters
}

// Link is an edge seen from one of its ends. Task is the task at the other end.
type Link struct {
	Task  int32
	Bytes float64
}

// Graph is a directed acyclic graph of tasks. It is read-only after NewGraph and safe for concurrent use.
type Graph struct {
	Name string

	tasks     []Task
	edges     int
	predFirst []int32 // of a task's links in preds
	preds     []Link
	succFirst []int32
	succs     []Link
	order     []int32
	index     []int32 // of a task in order
}

// CycleError reports tasks that depend on themselves through each other.
type CycleError struct {
	IDs []string // the tasks of one cycle: each is needed by the next, and the last by the first
}

// shownOfCycle is the greatest number of tasks of a cycle that a message names.
const shownOfCycle = 12

func (e *CycleError) Error() string {
	if len(e.IDs) == 1 {
		return fmt.Sprintf("task %s needs itself; want a graph without cycles", e.IDs[0])
	}
	ids := e.IDs
	if len(ids) > shownOfCycle {
		ids = append(slices.Clone(ids[:shownOfCycle-1]), fmt.Sprintf("… (%d tasks)", len(e.IDs)))
	}
	return fmt.Sprintf("tasks %s → %s form a cycle; want a graph without cycles", strings.Join(ids, " → "), e.IDs[0])
}

// NewGraph checks tasks and edges and returns the graph. It keeps tasks. Errors name the task or the edge; a cycle is
// a *CycleError.
func NewGraph(name string, tasks []Task, edges []Edge) (*Graph, error) {
	if len(tasks) == 0 {
		return nil, fmt.Errorf("tasks: got none, want at least one")
	}
	seen := make(map[string]int, len(tasks))
	for i := range tasks {
		if err := tasks[i].check(); err != nil {
			return nil, fmt.Errorf("tasks[%d] (%s): %w", i, tasks[i].ID, err)
		}
		if k, twice := seen[tasks[i].ID]; twice {
			return nil, fmt.Errorf("tasks[%d].id: got %q, which is that of tasks[%d], want an id of its own", i, tasks[i].ID, k)
		}
		seen[tasks[i].ID] = i
	}
	n := int32(len(tasks))
	g := &Graph{Name: name, tasks: tasks, edges: len(edges)}
	for k, e := range edges {
		if e.From < 0 || e.From >= n || e.To < 0 || e.To >= n {
			return nil, fmt.Errorf("edges[%d]: from task %d to %d, want indices from 0 to %d", k, e.From, e.To, n-1)
		}
		if !(e.Bytes >= 0) || math.IsInf(e.Bytes, 0) {
			return nil, fmt.Errorf("edges[%d] (%s to %s): got %v bytes, want 0 or more", k, tasks[e.From].ID, tasks[e.To].ID,
				e.Bytes)
		}
	}
	g.succFirst, g.succs = links(int(n), edges, func(e Edge) (int32, Link) { return e.From, Link{e.To, e.Bytes} })
	g.predFirst, g.preds = links(int(n), edges, func(e Edge) (int32, Link) { return e.To, Link{e.From, e.Bytes} })
	for i := range n {
		s := g.Succs(i)
		for k := 1; k < len(s); k++ {
			if s[k].Task == s[k-1].Task {
				return nil, fmt.Errorf("edges: two lead from %s to %s, want at most one", tasks[i].ID, tasks[s[k].Task].ID)
			}
		}
	}
	if g.order = g.kahn(); len(g.order) < len(tasks) {
		return nil, g.cycle()
	}
	g.index = make([]int32, n)
	for k, i := range g.order {
		g.index[i] = int32(k)
	}
	return g, nil
}

func (t *Task) check() error {
	if t.Cost == nil && math.IsNaN(t.Work) {
		return fmt.Errorf("it has neither work nor cost, want one of them")
	}
	if t.Work < 0 || math.IsInf(t.Work, 0) {
		return fmt.Errorf("work: got %v, want 0 or more", t.Work)
	}
	for g, c := range t.Cost {
		if c < 0 || math.IsInf(c, 0) {
			return fmt.Errorf("cost[%d]: got %v, want 0 seconds or more", g, c)
		}
	}
	return nil
}

// links sorts edges by one end, and among those of one task by the other.
func links(n int, edges []Edge, at func(Edge) (int32, Link)) (first []int32, all []Link) {
	first, all = make([]int32, n+1), make([]Link, len(edges))
	for _, e := range edges {
		i, _ := at(e)
		first[i+1]++
	}
	for i := range n {
		first[i+1] += first[i]
	}
	next := slices.Clone(first)
	for _, e := range edges {
		i, l := at(e)
		all[next[i]] = l
		next[i]++
	}
	for i := range n {
		slices.SortStableFunc(all[first[i]:first[i+1]], func(a, b Link) int { return int(a.Task) - int(b.Task) })
	}
	return first, all
}

// kahn returns a topological order (Kahn 1962) in which, of the ready tasks, the one of lowest index goes first. It
// omits tasks that are on a cycle or behind one.
func (g *Graph) kahn() []int32 {
	q := NewQueue(g, nil)
	order := make([]int32, 0, len(g.tasks))
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		order = append(order, i)
	}
	return order
}

// cycle returns a cycle among the tasks that the order omits.
func (g *Graph) cycle() error {
	stuck := make([]bool, len(g.tasks))
	for i := range stuck {
		stuck[i] = true
	}
	for _, i := range g.order {
		stuck[i] = false
	}
	// Every stuck task has a stuck parent, so going from parent to parent must return to a task already visited.
	place := make([]int, len(g.tasks)) // in path, from 1
	at := int32(slices.Index(stuck, true))
	var path []int32
	for place[at] == 0 {
		path = append(path, at)
		place[at] = len(path)
		for _, p := range g.Preds(at) {
			if stuck[p.Task] {
				at = p.Task
				break
			}
		}
	}
	path = path[place[at]-1:]
	slices.Reverse(path)
	low := slices.Index(path, slices.Min(path)) // start with the task listed first
	var ids []string
	for k := range path {
		ids = append(ids, g.tasks[path[(low+k)%len(path)]].ID)
	}
	return &CycleError{IDs: ids}
}

// Len returns the number of tasks.
func (g *Graph) Len() int { return len(g.tasks) }

// Edges returns the number of edges.
func (g *Graph) Edges() int { return g.edges }

// Task returns the task of index i. It belongs to the graph.
func (g *Graph) Task(i int32) *Task { return &g.tasks[i] }

// Preds returns the tasks that task i needs, by index. The slice belongs to the graph.
func (g *Graph) Preds(i int32) []Link { return g.preds[g.predFirst[i]:g.predFirst[i+1]] }

// Succs returns the tasks that need task i, by index. The slice belongs to the graph.
func (g *Graph) Succs(i int32) []Link { return g.succs[g.succFirst[i]:g.succFirst[i+1]] }

// Order returns the topological order in which, of the ready tasks, the one of lowest index goes first: 0, 1, 2, … if
// the indices are topological. The slice belongs to the graph.
func (g *Graph) Order() []int32 { return g.order }

// Bytes returns the bytes of all edges together.
func (g *Graph) Bytes() float64 {
	sum := 0.0
	for _, l := range g.succs {
		sum += l.Bytes
	}
	return sum
}

// WithBytes returns the graph with other bytes on its edges: bytes is called for every edge, in the order of from and
// then of to, with what the edge carries now, and returns what it carries instead, 0 or more. Tasks and order are
// shared with g, which does not change.
func (g *Graph) WithBytes(bytes func(from, to int32, old float64) float64) *Graph {
	c := *g
	c.preds, c.succs = slices.Clone(g.preds), slices.Clone(g.succs)
	next := slices.Clone(g.predFirst) // parents are in order too
	for i := range int32(len(g.tasks)) {
		for k := g.succFirst[i]; k < g.succFirst[i+1]; k++ {
			s := &c.succs[k]
			s.Bytes = bytes(i, s.Task, s.Bytes)
			if !(s.Bytes >= 0) || math.IsInf(s.Bytes, 0) {
				panic(fmt.Sprintf("dag: %v bytes from task %d to %d", s.Bytes, i, s.Task))
			}
			c.preds[next[s.Task]].Bytes = s.Bytes
			next[s.Task]++
		}
	}
	return &c
}
