package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/traces"
)

// Clairvoyant says whether the policy must be told of the whole workload before it begins (Know).
func (c *Config) Clairvoyant() bool { return c.Order == "exact" }

// Know tells the policy what it may know of the workload before it begins: exact plans with jobs themselves, and fgd
// knows the distribution of their requests on the empty cluster. Other policies are told nothing. jobs must not change
// afterwards.
func (c *Config) Know(jobs []traces.Job, on *cluster.Cluster) {
	if c.Order == "exact" {
		c.Workload = jobs
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
