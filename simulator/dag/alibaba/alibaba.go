// Package alibaba makes task graphs from the jobs of Alibaba's cluster-trace-v2018 that traces/alibaba reads.
//
// The trace records dependencies and the duration of each task, but not what a task sends to the next: edges carry no
// bytes unless Options.Bytes draws some. A task of the trace is many instances that ran side by side, and it depends
// on all instances of its parents. Options.Instances makes each instance a task of the graph.
package alibaba

import (
	"fmt"
	"math/rand/v2"
	"time"

	"clustergym/simulator/dag"
	"clustergym/traces"
)

// Options changes how a job becomes a graph. The zero value keeps one task for each task of the trace.
type Options struct {
	// Instances is the greatest number of tasks made from a task's instances; 0 = one for each task of the trace.
	Instances int
	// Bytes draws the bytes of an edge; nil = 0.
	Bytes func() float64
	// Work is the least work of a task in seconds. The trace's clock ticks in seconds, so many tasks take 0.
	Work float64
}

// Graph returns the graph of a job. The work of a task is its seconds.
func Graph(j *traces.Job, o Options) (*dag.Graph, error) {
	if j.Graph == nil {
		return nil, fmt.Errorf("job %s: it has no task graph", j.ID)
	}
	var tasks []dag.Task
	first := make([]int32, len(j.Graph.Tasks)+1)
	seen := make(map[string]int, len(j.Graph.Tasks)) // some tasks that are not numbered have one name
	for i, t := range j.Graph.Tasks {
		n := 1
		if o.Instances > 0 {
			n = max(1, min(t.Instances, o.Instances))
		}
		name := t.Name
		for seen[name] > 0 {
			seen[t.Name]++
			name = fmt.Sprintf("%s#%d", t.Name, seen[t.Name])
		}
		seen[name]++
		for k := range n {
			id := name
			if o.Instances > 0 {
				id = fmt.Sprintf("%s.%d", name, k)
			}
			tasks = append(tasks, dag.Task{ID: id, Work: max(o.Work, float64(t.Work)/float64(time.Second))})
		}
		first[i+1] = first[i] + int32(n)
	}
	var edges []dag.Edge
	for _, e := range j.Graph.Edges {
		for a := first[e.Parent]; a < first[e.Parent+1]; a++ {
			for b := first[e.Child]; b < first[e.Child+1]; b++ {
				bytes := 0.0
				if o.Bytes != nil {
					bytes = o.Bytes()
				}
				edges = append(edges, dag.Edge{From: a, To: b, Bytes: bytes})
			}
		}
	}
	return dag.NewGraph(j.ID, tasks, edges)
}

// Exponential returns a function that draws exponential bytes with the given mean.
func Exponential(mean float64, src *rand.Rand) func() float64 {
	return func() float64 { return mean * src.ExpFloat64() }
}
