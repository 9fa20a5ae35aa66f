package worlrtgs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/internal/ordinary"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	daglibaba "clustergym/simulator/dag/alibaba"
	"clustergym/simulator/dag/synth"
	"clustergym/traces"
	"clustergym/traces/alibaba"
)

// recordedKinds are the kinds of graphs made of recorded jobs: a large job as it is; the same with a task for each
// instance; and jobs that were submitted one after the other, together as one graph.
var recordedKinds = []string{"job", "instances", "merged"}

const (
	recordedGPUs      = 50
	recordedInstances = 8   // at most this many instances of a task become tasks
	mergedTasks       = 300 // a merged graph has at least this many tasks, if there are enough jobs
	leastWork         = 0.5 // seconds that a task takes at least, because the trace's clock has whole seconds
	recordedCCR       = 0.5 // mean transfer time over mean run time, as in the generated graphs
)

// recordedFile returns the path of the file of jobs in dir, the folder of --data, and the file's SHA-256.
func recordedFile(dir string) (file, digest string, err error) {
	file = filepath.Join(dir, "alibaba-dag-2018", "dag_sample_part1.csv.gz")
	b, err := ordinary.Read(file, ordinary.Document)
	if err != nil {
		return "", "", fault.Mistakef("%s: %s: %v", fault.Key("data"), file, ordinary.Reason(err))
	}
	return file, fmt.Sprintf("%x", sha256.Sum256(b)), nil
}

// readJobs returns all jobs of a file that have a task graph.
func readJobs(file string) ([]traces.Job, error) {
	f, err := traces.OrdinaryFiles().Open(context.Background(), file)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	defer f.Close() //nolint:errcheck // open for reading only
	d, err := alibaba.NewReader(f, file, alibaba.Options{})
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	var jobs []traces.Job
	for {
		var j traces.Job
		if err := d.Next(&j); err == io.EOF {
			return jobs, nil
		} else if err != nil {
			return nil, &fault.Mistake{Err: err}
		}
		if j.Graph != nil && len(j.Graph.Tasks) > 0 {
			jobs = append(jobs, j)
		}
	}
}

// planRecorded plans graph k of a kind with every planner that is not only a part of another one.
func planRecorded(ctx context.Context, b *study.Bench, s *settings, file, kind string, k int) ([]study.Row, error) {
	jobs, err := readJobs(file)
	if err != nil {
		return nil, err
	}
	q, err := recordedProblem(jobs, kind, k, s.Real)
	if err != nil {
		return nil, err
	}
	planners := slices.DeleteFunc(slices.Clone(allPlanners), func(p planner) bool { return p.part })
	rows, err := comparePlans(ctx, b, s, "real", q, planners, false,
		map[string]string{"kind": kind, "graph": fmt.Sprint(k)})
	if err != nil {
		return nil, err
	}
	for metric, v := range map[string]int{"tasks": q.Tasks(), "edges": q.Graph.Edges()} {
		rows = append(rows,
			study.Row{Table: "real-graphs", Metric: metric, Value: float64(v),
				Labels: map[string]string{"kind": kind, "graph": fmt.Sprint(k)}})
	}
	return rows, nil
}

// recordedProblem returns graph k of the graphs of a kind, on busy GPUs.
func recordedProblem(jobs []traces.Job, kind string, k, graphs int) (*dag.Problem, error) {
	src := rng.Stream(uint64(k), "worl-rtgs/real/"+kind)
	c := synth.DefaultPlatformConfig()
	c.GPUs = recordedGPUs
	platform, err := synth.Platform(c, src)
	if err != nil {
		return nil, err
	}
	var own []traces.Job
	o := daglibaba.Options{Work: leastWork}
	switch kind {
	case "merged":
		// The first jobs of the graphs are spread evenly over the file.
		for i, tasks := k*len(jobs)/graphs, 0; i < len(jobs) && tasks < mergedTasks; i++ {
			own = append(own, jobs[i])
			tasks += len(jobs[i].Graph.Tasks)
		}
	default:
		large := slices.Clone(jobs)
		slices.SortStableFunc(large, func(a, b traces.Job) int { return cmp.Compare(len(b.Graph.Tasks), len(a.Graph.Tasks)) })
		if k >= len(large) {
			return nil, fault.Mistakef("%s: there are %d jobs, want %d", fault.Key("data"), len(large), graphs)
		}
		own = large[k : k+1]
		if kind == "instances" {
			o.Instances = recordedInstances
		}
	}
	// The trace does not record what tasks send. Bytes are drawn, with a mean that makes the mean transfer time
	// recordedCCR times the mean run time.
	work, tasks, inverse := 0.0, 0, 0.0
	for i := range own {
		g, err := daglibaba.Graph(&own[i], o)
		if err != nil {
			return nil, err
		}
		for t := range g.Len() {
			work += g.Task(int32(t)).Work
			tasks++
		}
	}
	for g := range platform.Len() {
		inverse += 1 / platform.Processor(g).Speed / float64(platform.Len())
	}
	o.Bytes = daglibaba.Exponential(recordedCCR*work/float64(tasks)*inverse/platform.MeanCost(dag.Pairs).Of(1), src)
	g, err := mergeJobs(own, o)
	if err != nil {
		return nil, err
	}
	return dag.NewProblem(g, platform)
}

// mergeJobs returns one graph of all jobs, without edges between jobs.
func mergeJobs(jobs []traces.Job, o daglibaba.Options) (*dag.Graph, error) {
	var name bytes.Buffer
	var tasks []dag.Task
	var edges []dag.Edge
	for i := range jobs {
		g, err := daglibaba.Graph(&jobs[i], o)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			name.WriteString(g.Name)
		}
		first := int32(len(tasks))
		for t := range int32(g.Len()) {
			task := *g.Task(t)
			task.ID = g.Name + "/" + task.ID
			tasks = append(tasks, task)
			for _, p := range g.Preds(t) {
				edges = append(edges, dag.Edge{From: first + p.Task, To: first + t, Bytes: p.Bytes})
			}
		}
	}
	if len(jobs) > 1 {
		fmt.Fprintf(&name, " and %d more", len(jobs)-1)
	}
	return dag.NewGraph(name.String(), tasks, edges)
}
