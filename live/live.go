// Package live is the contract between real clusters and what watches or steers them: what a cluster says of itself
// (Snapshot), what can be asked of it (Action), and what it cannot do (Caps). Adapters implement Cluster: live/slurm,
// live/kube.
//
// An adapter translates; it decides nothing and keeps no state that a restart would lose. What it has changed in the
// cluster is written down in the cluster itself (a held job, a priority), so that another process can find it and take
// it back.
package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"clustergym/traces"
)

// Cluster is a real cluster. Its methods take as long as the cluster takes to answer, and end with the context. It is
// not safe for concurrent use.
type Cluster interface {
	// Observe returns what the cluster says now. The snapshot is the caller's. The error says in one sentence what is
	// wrong: ErrUnreachable, ErrDenied and ErrUnsupported can be told apart.
	Observe(ctx context.Context) (*Snapshot, error)
	// Act carries out actions in their order and says of each what came of it: there are as many results as actions. One
	// that fails does not keep the others from being tried, unless the cluster cannot be reached.
	Act(ctx context.Context, actions []Action) []Result
	// Can says which actions the cluster takes from this user. It asks the cluster, and changes nothing in it.
	Can(ctx context.Context) (Caps, error)
}

// Errors of adapters. They are wrapped with what was asked (of results, the action) and what the cluster said.
var (
	// ErrUnreachable: nobody answered. The next try may succeed.
	ErrUnreachable = errors.New("the cluster cannot be reached")
	// ErrDenied: the cluster knows no such user, or does not let the user do this.
	ErrDenied = errors.New("the cluster refuses this")
	// ErrUnsupported: the cluster answered something that the adapter does not understand, or is set up in a way that it
	// does not handle. Nothing is done then.
	ErrUnsupported = errors.New("not supported")
	// ErrNotYet: the cluster still carries out what it was asked for before. The next try may succeed; the job is held
	// until then.
	ErrNotYet = errors.New("not yet")
	// ErrTied: a job that StartJob has let go waits for nodes, and the cluster lets nobody change that. It is not held
	// back; what its owner can do is in the error.
	ErrTied = errors.New("it cannot be taken back")
	// ErrOver: what is replayed has come to its end. There is nothing left to look at.
	ErrOver = errors.New("the history is over")
	// ErrGone: the job of an action has started, ended or been withdrawn in the meantime.
	ErrGone = errors.New("the job does not wait any more")
)

// Snapshot is a cluster at one moment.
type Snapshot struct {
	At      time.Time // by the cluster's clock where it tells, otherwise by ours
	Cluster string    // its name
	Version string    // of its software, as it says
	Nodes   []Node    // in order of Name
	Jobs    []Job     // that wait or run, in order of ID
	// Ended are jobs that have ended not long before; how long depends on the cluster. They are in order of ID, and may be
	// missing altogether.
	Ended []Job
}

// Node is one machine.
type Node struct {
	Name     string
	Rack     string // switch or zone; "" = not known
	GPUType  string // as the cluster names it; "" = not known
	GPUs     int
	CPUMilli int64 // 0 = not known
	MemBytes int64 // 0 = not known
	Down     bool  // no job can start there, whatever becomes of those that run
	// Short says that the cluster shows fewer GPUs of the node than running jobs hold there, as when what counts them has
	// come back without them. GPUs are those that jobs hold then, and the node is Down.
	Short bool `json:",omitempty"`
	Why   string
	VCs   []string // partitions or queues whose jobs may run here; nil = all
}

// State is the state of a job.
type State uint8

// The states of a job.
const (
	Waiting State = iota
	Running
	Ended
)

func (s State) String() string {
	if int(s) < len(states) {
		return states[s]
	}
	return fmt.Sprintf("state %d", s)
}

var states = [...]string{"waiting", "running", "ended"}

// Place is the share of a gang on one node.
type Place struct {
	Node string
	GPUs int
	// Index are the GPUs' numbers on the node, in order; nil if the cluster does not tell.
	Index []int
}

// Job is a job as the cluster knows it.
type Job struct {
	// Job holds what a trace would have of it: ID as the cluster names it, User, VC (partition or queue), Group (account),
	// Name, GPUs, GPUTypes, CPUMilli, MemBytes, Estimate (its time limit), Priority (higher starts earlier; 0 = not told).
	// Submit and Work are not set.
	traces.Job
	State  State
	Submit time.Time
	Start  time.Time // zero before it
	End    time.Time // zero before it
	Places []Place   // of a running job, in order of Node
	// Planned is when the cluster itself expects a waiting job to start; zero if it does not say.
	Planned time.Time
	// Blocked says why a waiting job could not start even on an empty cluster: a dependency, a begin time, a hold of its
	// owner, an array limit. "" = it competes for GPUs.
	Blocked string
	// Ours says that this program holds the job back; its owner could not tell from Blocked.
	Ours bool
	// Freed says that StartJob, or an operator after HoldJob, has let the job start: the cluster starts it when it can, on
	// Nodes alone if there are any. ReleaseJob takes this back, too, or says ErrTied.
	Freed bool
	// Nodes are those that the job must run on, by its owner or by us; nil = any. Excluded are those that it must not run
	// on.
	Nodes, Excluded []string
	// Anywhere says that StartJob takes no nodes: the cluster itself chooses where the job runs.
	Anywhere bool
	// Rank is the last score that RankJob wrote; 0 if there is none, -1 if it does not say any more where the job stands
	// among the others, and is to be written anew.
	Rank int64
	// Restarts counts how often it has been started before.
	Restarts int
}

// Op is what an action does.
type Op uint8

// The actions.
const (
	// RankJob gives a waiting job a score among the waiting ones: higher starts earlier. Everything else that the cluster
	// orders jobs by stays in force. A score of 0 takes the rank back.
	RankJob Op = iota
	// HoldJob keeps a waiting job from starting until it is released.
	HoldJob
	// ReleaseJob takes back what HoldJob and StartJob have done to a waiting job.
	ReleaseJob
	// StartJob lets a held job start, on Nodes alone if there are any. The cluster starts it, when it finds that it can.
	StartJob
	// RequeueJob stops a running job and lets it wait again. Where the cluster would start it again at once, or where a
	// stopped job stays stopped, it is held (Ours) afterwards until StartJob or ReleaseJob. Of a job that waits nothing is
	// asked.
	RequeueJob
)

func (o Op) String() string {
	if int(o) < len(ops) {
		return ops[o]
	}
	return fmt.Sprintf("action %d", o)
}

var ops = [...]string{"rank", "hold", "release", "start", "requeue"}

// Action is something that is asked of a cluster.
type Action struct {
	Op    Op
	Job   string   // its ID
	Score int64    // of RankJob: from 0 to MaxScore
	Nodes []string // of StartJob; nil = any
}

// MaxScore is the highest score of RankJob. Adapters scale it to what the cluster takes.
const MaxScore = 1 << 20

func (a Action) String() string {
	switch a.Op {
	case RankJob:
		return fmt.Sprintf("rank %s %d", a.Job, a.Score)
	case StartJob:
		if len(a.Nodes) > 0 {
			return fmt.Sprintf("start %s on %s", a.Job, strings.Join(a.Nodes, ","))
		}
	}
	return a.Op.String() + " " + a.Job
}

// Result is what came of an action: nil if the cluster has taken it, otherwise one of the errors above or what the
// cluster said.
type Result struct{ Err error }

// Caps says which actions a cluster takes. Each reason is "" where it does, and otherwise one sentence that says why
// not and what would change it.
type Caps struct {
	Rank, Gate, Requeue string
}

// Job returns the job with this ID, nil if it neither waits nor runs.
func (s *Snapshot) Job(id string) *Job {
	i, found := slices.BinarySearchFunc(s.Jobs, id, func(j Job, id string) int { return strings.Compare(j.ID, id) })
	if !found {
		return nil
	}
	return &s.Jobs[i]
}

// Sort brings nodes, jobs and places into order. Adapters call it last.
func (s *Snapshot) Sort() {
	byID := func(a, b Job) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Jobs, byID)
	slices.SortFunc(s.Ended, byID)
	for _, jobs := range [][]Job{s.Jobs, s.Ended} {
		for i := range jobs {
			slices.SortFunc(jobs[i].Places, func(a, b Place) int { return strings.Compare(a.Node, b.Node) })
		}
	}
}

// Shorten finds the nodes that are Short. Adapters call it before Check, which would take them for a contradiction.
func (s *Snapshot) Shorten() {
	held := map[string]int{}
	for i := range s.Jobs {
		for _, p := range s.Jobs[i].Places {
			held[p.Node] += max(0, p.GPUs)
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; held[n.Name] > n.GPUs {
			why := fmt.Sprintf("it shows %d GPUs, and jobs hold %d", n.GPUs, held[n.Name])
			if n.Why != "" {
				why = n.Why + ", " + why
			}
			n.GPUs, n.Down, n.Short, n.Why = held[n.Name], true, true, why
		}
	}
}

// Check returns an error, wrapped around ErrUnsupported, if the snapshot contradicts itself: a job that runs on a node
// that is not there, on more GPUs than it has, or two jobs or nodes of one name. Adapters check what they return,
// because a wrong snapshot would make wrong writes.
func (s *Snapshot) Check() error {
	gpus := make(map[string]int, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if _, twice := gpus[n.Name]; twice || n.Name == "" || n.GPUs < 0 {
			return fmt.Errorf("%w: node %q with %d GPUs is there twice, has no name, or fewer than 0 GPUs", ErrUnsupported,
				n.Name, n.GPUs)
		}
		gpus[n.Name] = n.GPUs
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		switch {
		case j.ID == "":
			return fmt.Errorf("%w: a job has no ID", ErrUnsupported)
		case i > 0 && s.Jobs[i-1].ID >= j.ID:
			return fmt.Errorf("%w: job %s is there twice, or jobs are not in order", ErrUnsupported, j.ID)
		case j.State == Ended:
			return fmt.Errorf("%w: job %s has ended and stands among those that wait or run", ErrUnsupported, j.ID)
		case j.State == Waiting && len(j.Places) > 0:
			return fmt.Errorf("%w: job %s waits and has places", ErrUnsupported, j.ID)
		}
		held := 0
		for _, p := range j.Places {
			n, there := gpus[p.Node]
			if !there {
				return fmt.Errorf("%w: job %s runs on node %q, which is not among the nodes", ErrUnsupported, j.ID, p.Node)
			}
			if p.GPUs < 0 || p.GPUs > n || p.Index != nil && len(p.Index) != p.GPUs {
				return fmt.Errorf("%w: job %s holds %d GPUs of node %s, which has %d", ErrUnsupported, j.ID, p.GPUs, p.Node, n)
			}
			held += p.GPUs
		}
		if j.State == Running && held != j.GPUs {
			return fmt.Errorf("%w: job %s has %d GPUs and runs on %d", ErrUnsupported, j.ID, j.GPUs, held)
		}
	}
	return nil
}
