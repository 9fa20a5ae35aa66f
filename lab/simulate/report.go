package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"clustergym/internal/plain"
	"clustergym/lab/report"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
	"clustergym/simulator/metrics"
	"clustergym/simulator/policyname"
	"clustergym/simulator/sim"
)

// Report is the outcome of a simulation.
type Report struct {
	Runs  []Result      // in the order of the policies
	Info  workload.Info // of the workload
	Notes []string      // sentences for people on what was left out and what did not finish

	chosen       string   // why Run chose the estimates, "" = the configuration names them
	freeStops    bool     // nothing is paid or lost when a job is stopped
	refused      []string // jobs that a peer's machine refused
	refusedShare float64  // their share of the GPU time
}

// Result is one policy's result. Its JSON form is a published document: fields keep their names and order.
type Result struct {
	Policy    string        `json:"policy"`
	Admission string        `json:"admission"`
	Placement string        `json:"placement"`
	Backfill  string        `json:"backfill"`
	Estimates sim.Estimates `json:"estimates"`
	Rung      string        `json:"rung"` // what the policy knows of run times
	// it does not ask for them, so that it is the same on every rung
	Nothing bool            `json:"asks_nothing,omitempty"`
	Trace   Trace           `json:"trace"`
	Cluster Cluster         `json:"cluster"`
	Metrics metrics.Summary `json:"metrics"`
	Events  int             `json:"events"`
	WallS   float64         `json:"wall_s"`
	// only policies that search: whether the schedule is an optimum
	Proven *bool `json:"proven_optimal,omitempty"`
	Peer   *Peer `json:"peer,omitempty"` // only from the machine of Dally's authors
	LWF    *LWF  `json:"lwf,omitempty"`  // only from the machine of LWF's authors

	knows bool // it knows the workload beforehand
}

// row is what the table says of what the policy knows.
func (r *Result) row() report.Knowledge {
	return report.Knowledge{Name: policyname.Short(r.Name()), Nothing: r.Nothing, Knows: r.knows}
}

// knowledge returns what the policies of the table know.
func (r *Report) knowledge() []report.Knowledge {
	rows := make([]report.Knowledge, len(r.Runs))
	for i := range r.Runs {
		rows[i] = r.Runs[i].row()
	}
	return rows
}

// Name returns the policy with its admission and back-filling: "fifo+strict+easy".
func (r *Result) Name() string {
	n := policyname.Name{Base: r.Policy, Admission: r.Admission, Backfill: r.Backfill}
	if n.Backfill == "none" {
		n.Backfill = ""
	}
	return n.String()
}

// Trace describes the workload of a result.
type Trace struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Jobs    int    `json:"jobs"`    // read, including refused ones
	Refused int    `json:"refused"` // left out because they can never fit the cluster
	// RefusedIDs are the first of the refused jobs.
	RefusedIDs []string `json:"refused_ids,omitempty"`
	// RefusedShare is their share of the GPU time, run time × GPUs, of all jobs read, 0 to 1.
	RefusedShare float64 `json:"refused_share,omitempty"`
	// What happened to rows before they became jobs, as in workload.Info: Jobs does not count those dropped or passed
	// over.
	Dropped  int             `json:"dropped,omitempty"` // left out for the reasons in Skipped
	Skipped  []workload.Skip `json:"skipped,omitempty"`
	Passed   int             `json:"passed,omitempty"`   // passed over by trace.skip
	Moved    int             `json:"moved,omitempty"`    // put in order of submit
	Repeated int             `json:"repeated,omitempty"` // repeated by the file, kept
	Limited  int             `json:"limited,omitempty"`  // estimates missing, for which trace.limit stands
	Assumed  int             `json:"assumed,omitempty"`  // estimates taken from the run time
}

// traceOf describes the workload of info, of which jobs were read and refused left out.
func traceOf(info *workload.Info, jobs, refused int, share float64, ids []string) Trace {
	return Trace{
		File: info.File, Format: info.Format, Jobs: jobs, Refused: refused, RefusedIDs: ids, RefusedShare: share,
		Dropped: info.Dropped, Skipped: info.Skipped, Passed: info.Passed, Moved: info.Moved, Repeated: info.Repeated,
		Limited: info.Limited, Assumed: info.Assumed,
	}
}

// Cluster describes the cluster of a result.
type Cluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"` // 0 = a plain counter of GPUs, which has none
	GPUs  int    `json:"gpus"`
}

// clusterOf describes c.
func clusterOf(c *cluster.Cluster) Cluster {
	d := Cluster{Name: c.Spec().Name, Nodes: c.Nodes(), GPUs: c.GPUs()}
	if c.Pool() {
		d.Nodes = 0
	}
	return d
}

// String describes the cluster in a few words.
func (c Cluster) String() string {
	if c.Nodes == 0 {
		return fmt.Sprintf("%s: a plain counter of %s", c.Name, plain.Count(c.GPUs, "GPU or processor", "GPUs or processors"))
	}
	return fmt.Sprintf("%s: %s, %s", c.Name, plain.Count(c.Nodes, "node", "nodes"), plain.Count(c.GPUs, "GPU", "GPUs"))
}

// MarshalJSON returns the document of a single run, or {"runs": […]} for several.
func (r *Report) MarshalJSON() ([]byte, error) {
	if len(r.Runs) == 1 {
		return marshalJSON(r.Runs[0])
	}
	return marshalJSON(struct {
		Runs []Result `json:"runs"`
	}{r.Runs})
}

// marshalJSON encodes v without escaping <, > and &.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// note adds a sentence to the report.
func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}
