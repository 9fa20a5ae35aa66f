package look

import (
	"fmt"
	"strings"

	"clustergym/internal/plain"
	"clustergym/lab/workload"
	"clustergym/traces"
)

// contents is a stream that counts what its jobs have besides submit, run time and size.
type contents struct {
	traces.Stream `json:"-"`

	Deadlines  int `json:"deadlines"` // jobs that have one; likewise below
	Elastic    int `json:"elastic"`
	Typed      int `json:"typed"` // jobs that ask for types of GPUs
	Cores      int `json:"cores"`
	Iterations int `json:"iterations"`
	Priorities int `json:"priorities"`
	Profiles   int `json:"profiles"`
	Graphs     int `json:"graphs"`
	Tasks      int `json:"tasks"` // in all graphs
	Edges      int `json:"edges"`

	names, groups int // jobs whose name or group is not what a log has in place of it
}

// Next implements traces.Stream.
func (c *contents) Next(j *traces.Job) error {
	if err := c.Stream.Next(j); err != nil {
		return err
	}
	for _, f := range [...]struct {
		has bool
		n   *int
	}{{j.Deadline > 0, &c.Deadlines}, {j.MinGPUs != 0 || j.MaxGPUs != 0, &c.Elastic}, {len(j.GPUTypes) > 0, &c.Typed},
		{j.CPUMilli > 0, &c.Cores},
		{j.Iterations > 0, &c.Iterations}, {j.Priority != 0, &c.Priorities}, {j.Profile != nil, &c.Profiles},
		{j.Graph != nil, &c.Graphs},
		{j.Name != "" && j.Model != "" && j.Name != j.Model, &c.names},
		{j.Group != "" && j.VC != "" && j.Group != j.VC, &c.groups}} {
		if f.has {
			*f.n++
		}
	}
	if j.Graph != nil {
		c.Tasks += len(j.Graph.Tasks)
		c.Edges += len(j.Graph.Edges)
	}
	return nil
}

// list describes what some jobs have, except for graphs.
func (c *contents) list() string {
	var parts []string
	for _, f := range c.fields()[1:] {
		if f.n > 0 {
			parts = append(parts, fmt.Sprintf("%s (%d)", f.what, f.n))
		}
	}
	return strings.Join(parts, ", ")
}

// lost describes what a file in format to cannot hold, "" if it holds everything.
func (c *contents) lost(to string) string {
	var parts []string
	for _, f := range c.lostFields(to) {
		parts = append(parts, fmt.Sprintf("%s (%s)", f.What, plain.Count(f.Jobs, "job", "jobs")))
	}
	return strings.Join(parts, ", ")
}

// LostField is something that a file cannot hold, and the number of jobs that have it.
type LostField struct {
	What string `json:"what"`
	Jobs int    `json:"jobs"`
}

func (c *contents) lostFields(to string) []LostField {
	list := []LostField{}
	for _, f := range append(c.fields(), field{"names", c.names, true}, field{"groups", c.groups, true}) {
		if f.n > 0 && (!f.csv || to != workload.FormatCSV) {
			list = append(list, LostField{f.what, f.n})
		}
	}
	return list
}

// field counts the jobs that have something; csv reports whether the native format has a column for it.
type field struct {
	what string
	n    int
	csv  bool
}

func (c *contents) fields() []field {
	return []field{
		{"task graphs", c.Graphs, false}, {"profiles of models", c.Profiles, false}, {"deadlines", c.Deadlines, true},
		{"elastic ranges", c.Elastic, true}, {"GPU types", c.Typed, true}, {"cores", c.Cores, true},
		{"iterations", c.Iterations, true}, {"priorities", c.Priorities, true},
	}
}
