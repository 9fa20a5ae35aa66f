package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"clustergym/env/metrics"
	"clustergym/experiments/workload"
)

// Report is the outcome of a simulation.
type Report struct {
	Runs  []Result      // in the order of the policies
	Info  workload.Info // of the workload
	Notes []string      // sentences for people on what was left out and what did not finish

	refused []string // jobs that a peer's machine refused
}

// Result is one policy's result. Its JSON form is a published document: fields keep their names and order.
type Result struct {
	Policy    string          `json:"policy"`
	Admission string          `json:"admission"`
	Placement string          `json:"placement"`
	Backfill  string          `json:"backfill"`
	Estimates string          `json:"estimates"`
	Trace     Trace           `json:"trace"`
	Cluster   Cluster         `json:"cluster"`
	Metrics   metrics.Summary `json:"metrics"`
	Events    int             `json:"events"`
	WallS     float64         `json:"wall_s"`
	Proven    *bool           `json:"proven_optimal,omitempty"` // only policies that search: whether the schedule is an optimum
	Peer      *Peer           `json:"peer,omitempty"`           // only from a peer's machine
}

// Name returns the policy with its admission and back-filling: "fifo+strict+easy".
func (r *Result) Name() string {
	name := r.Policy
	if r.Admission != "" {
		name += "+" + r.Admission
	}
	if r.Backfill != "none" {
		name += "+" + r.Backfill
	}
	return name
}

// Trace describes the workload of a result.
type Trace struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Jobs    int    `json:"jobs"`    // read, including refused ones
	Refused int    `json:"refused"` // left out because they can never fit the cluster
	// RefusedIDs are the first of the refused jobs.
	RefusedIDs []string `json:"refused_ids,omitempty"`
}

// Cluster describes the cluster of a result.
type Cluster struct {
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	GPUs  int    `json:"gpus"`
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
