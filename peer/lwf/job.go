package lwf

import "fmt"

// Job is one training of the workload. Times are milliseconds.
type Job struct {
	Name       string
	Arrival    int64
	Workers    int
	Model      string
	Iterations int64
	Size       float64 // MB that an iteration sends
	Forward    int64
	Backward   int64
	Memory     int64 // MB on each of its GPUs
}

// compute returns what all iterations compute on one GPU.
func (j *Job) compute() int64 { return (j.Forward + j.Backward) * j.Iterations }

// endless reports whether the compute time of all workers is so long that sums of it may overflow. It wants the other
// limits of a job to hold.
func (j *Job) endless() bool { return j.compute() > 1<<50/int64(j.Workers) }

// check returns an error if j is no job, or one that can never be placed.
func (j *Job) check(c *Config) error {
	switch {
	case j.Workers < 1 || j.Workers > c.Nodes*c.GPUs:
		return fmt.Errorf("job %s: got %d workers, want 1 to the %d GPUs of %d nodes of %d", j.Name, j.Workers,
			c.Nodes*c.GPUs, c.Nodes, c.GPUs)
	case j.Memory < 0 || j.Memory > c.Memory:
		return fmt.Errorf("job %s: got %d MB of memory, want 0 to the %d of a GPU", j.Name, j.Memory, c.Memory)
	case j.Arrival < 0 || j.Arrival > 1<<50:
		return fmt.Errorf("job %s: got arrival %d, want 0 to 2^50 ms", j.Name, j.Arrival)
	case j.Iterations < 1 || j.Iterations > 1<<30:
		return fmt.Errorf("job %s: got %d iterations, want 1 to 2^30", j.Name, j.Iterations)
	case j.Forward < 1 || j.Backward < 1 || j.Forward > 1<<20 || j.Backward > 1<<20:
		return fmt.Errorf("job %s: got forward %d and backward %d, want 1 to 2^20 ms each", j.Name, j.Forward, j.Backward)
	case !(j.Size >= 0 && j.Size <= 1e9):
		return fmt.Errorf("job %s: got a size of %v, want 0 to 1e9 MB", j.Name, j.Size)
	case j.endless():
		return fmt.Errorf("job %s: got %d workers that compute for %d ms each, want 2^50 ms together or less", j.Name,
			j.Workers, j.compute())
	}
	return nil
}

// Result is what happened to a job.
type Result struct {
	Placed int64 // when it got its GPUs' memory
	First  int64 // when its first task began
	Finish int64
	Nodes  int     // on which it is
	GPUs   []int32 // of worker 0, 1, …; node·GPUs + number
}

// Report is the result of a run.
type Report struct {
	Jobs  []Result // in the order of the workload
	Steps int64    // milliseconds that the program steps through: the last one + 1
	Busy  int64    // milliseconds of computing, summed over GPUs
	// Questions is how often orig asked what is left of a transfer, and Moved by how many MB that moved transfers.
	Questions int64
	Moved     float64
}

// MeanJCT returns the mean time from arrival to finish, in ms.
func (r *Report) MeanJCT(jobs []Job) float64 {
	sum := 0.0
	for i := range r.Jobs {
		sum += float64(r.Jobs[i].Finish - jobs[i].Arrival)
	}
	return sum / float64(max(1, len(jobs)))
}

// EventKind is what happened.
type EventKind uint8

// The kinds of events. Worker, Node and GPU are set for Forward and Backward, Iteration for all but Place and Finish.
const (
	Place     EventKind = iota // the job got its GPUs' memory
	Forward                    // a worker began forward
	Backward                   // a worker began backward
	SendStart                  // the job's transfer began
	SendEnd                    // the transfer has ended
	Finish                     // the last iteration has ended
)

func (k EventKind) String() string {
	return [...]string{"place", "fw", "bw", "comm_start", "comm_end", "finish"}[k]
}

// Event is one thing that happened to a job.
type Event struct {
	At        int64
	Kind      EventKind
	Job       int   // index in the workload
	Iteration int64 // from 1
	Worker    int
	Node, GPU int // GPU is the number in its node
}
