package schedulers

import (
	"clustergym/simulator/cluster"
	"clustergym/traces"
)

// Clairvoyant reports whether the policy needs the whole workload before a run begins (Know).
func (c *Config) Clairvoyant() bool { return c.Order == "exact" }

// Know gives the policy what it may know of the workload before a run begins: exact gets the jobs themselves, and fgd
// the distribution of their requests on the empty cluster. Other policies get nothing. jobs must not change
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
