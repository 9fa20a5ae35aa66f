package heuristic

import (
	"slices"
	"time"

	"clustergym/env/cluster"
	"clustergym/traces"
)

// Clairvoyant says whether the policy must be told of the whole workload before it begins (Know).
func (c *Config) Clairvoyant() bool {
	return c.Order == "exact" || c.Order == "gittins-2d" && c.Service == nil
}

// Know tells the policy what it may know of the workload before it begins: exact plans with jobs themselves,
// gittins-2d knows the distribution of their GPU-times unless it has one already, and fgd that of their requests
// on the empty cluster. Other policies are told nothing. jobs must not change afterwards.
func (c *Config) Know(jobs []traces.Job, on *cluster.Cluster) {
	switch {
	case c.Order == "exact":
		c.Workload = jobs
	case c.Order == "gittins-2d" && c.Service == nil:
		c.Service = make([]time.Duration, 0, len(jobs))
		for i := range jobs {
			c.Service = append(c.Service, time.Duration(float64(jobs[i].Work)*float64(jobs[i].Milli())/1000))
		}
		slices.Sort(c.Service)
	}
	if c.Placement == "fgd" && c.Given.Classes == nil {
		requests := make([]cluster.Request, 0, len(jobs))
		for i := range jobs {
			if r, ok := on.Request(&jobs[i]); ok {
				requests = append(requests, r)
			}
		}
		c.Given.Classes = cluster.Classes(requests)
	}
}
