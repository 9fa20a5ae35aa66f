package traces

import "time"

// Profile describes how a job's model runs. Jobs of one model share it; it never changes after creation.
type Profile struct {
	Name          string        // of the model, as in interference tables
	GradientBytes int64         // exchanged between each worker and the others in one iteration
	Compute       time.Duration // one iteration on the reference GPU, without communication
	MemBytes      int64         // memory on each GPU; 0 = not known
	Skewed        bool          // one tensor is a large share of the gradients (Tiresias: such models want one node)
	// Speeds are the speeds by GPU type; 1 = the reference GPU. A type named here overrides the cluster's own figure;
	// any other type has the cluster's. nil = not known.
	Speeds map[string]float64
	// Scaling is the throughput by number of GPUs, in any unit, in increasing order of GPUs. It is linear between two
	// points and constant beyond the last. nil = proportional to the number of GPUs.
	Scaling []ScalePoint
}

// ScalePoint is the throughput of a model on a number of GPUs.
type ScalePoint struct {
	GPUs       int
	Throughput float64
}

// Throughput returns the model's throughput on n GPUs in the unit of Scaling, or n if no scaling is known.
func (p *Profile) Throughput(n int) float64 {
	if p == nil || len(p.Scaling) == 0 {
		return float64(n)
	}
	s := p.Scaling
	if n <= s[0].GPUs {
		return s[0].Throughput * float64(n) / float64(s[0].GPUs)
	}
	for i := 1; i < len(s); i++ {
		if n <= s[i].GPUs {
			a, b := s[i-1], s[i]
			return a.Throughput + (b.Throughput-a.Throughput)*float64(n-a.GPUs)/float64(b.GPUs-a.GPUs)
		}
	}
	return s[len(s)-1].Throughput
}

// Graph is the task graph of a job. Edges point from parent to child, by index of Tasks; there are no cycles.
type Graph struct {
	Tasks []Task
	Edges []Edge
}

// Task is one node of a Graph.
type Task struct {
	Name      string
	Instances int           // parallel instances
	Work      time.Duration // of one instance on the reference processor
	CPUMilli  int64         // of one instance
	MemBytes  int64         // of one instance; 0 = not given
}

// Edge says that Child needs what Parent produces.
type Edge struct {
	Parent, Child int32
	Bytes         int64 // 0 = not given
}
