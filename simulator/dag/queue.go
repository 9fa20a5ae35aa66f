package dag

// Queue returns the tasks of a graph in a topological order: of those whose parents were all returned, the one of
// largest priority first, and among equals the one of lowest index. Not safe for concurrent use.
type Queue struct {
	g        *Graph
	priority []float64 // nil = by index alone
	missing  []int32   // parents not returned yet
	heap     []int32
	last     int32 // the task returned last, whose children are not looked at yet; -1 = none
}

// NewQueue returns a queue over g. priority has a number for each task; nil orders by index.
func NewQueue(g *Graph, priority []float64) *Queue {
	q := &Queue{g: g, missing: make([]int32, g.Len()), heap: make([]int32, 0, g.Len())}
	q.Reset(priority)
	return q
}

// Reset starts again with the given priority.
func (q *Queue) Reset(priority []float64) {
	q.priority, q.last, q.heap = priority, -1, q.heap[:0]
	for i := range q.missing {
		if q.missing[i] = q.g.predFirst[i+1] - q.g.predFirst[i]; q.missing[i] == 0 {
			q.push(int32(i))
		}
	}
}

// Next returns the next task. ok is false when none is left.
func (q *Queue) Next() (task int32, ok bool) {
	if q.last >= 0 {
		for _, s := range q.g.Succs(q.last) {
			if q.missing[s.Task]--; q.missing[s.Task] == 0 {
				q.push(s.Task)
			}
		}
		q.last = -1
	}
	n := len(q.heap) - 1
	if n < 0 {
		return -1, false
	}
	task, q.last = q.heap[0], q.heap[0]
	q.heap[0] = q.heap[n]
	q.heap = q.heap[:n]
	q.down(0)
	return task, true
}

func (q *Queue) before(a, b int32) bool {
	if q.priority != nil && q.priority[a] != q.priority[b] {
		return q.priority[a] > q.priority[b]
	}
	return a < b
}

func (q *Queue) push(i int32) {
	q.heap = append(q.heap, i)
	for k := len(q.heap) - 1; k > 0; {
		up := (k - 1) / 2
		if !q.before(q.heap[k], q.heap[up]) {
			return
		}
		q.heap[k], q.heap[up] = q.heap[up], q.heap[k]
		k = up
	}
}

func (q *Queue) down(k int) {
	for {
		c := 2*k + 1
		if c >= len(q.heap) {
			return
		}
		if c+1 < len(q.heap) && q.before(q.heap[c+1], q.heap[c]) {
			c++
		}
		if !q.before(q.heap[c], q.heap[k]) {
			return
		}
		q.heap[k], q.heap[c] = q.heap[c], q.heap[k]
		k = c
	}
}

// SortedOrder appends to dst the order of a Queue over priority.
func SortedOrder(g *Graph, priority []float64, dst []int32) []int32 {
	q := NewQueue(g, priority)
	for i, ok := q.Next(); ok; i, ok = q.Next() {
		dst = append(dst, i)
	}
	return dst
}
