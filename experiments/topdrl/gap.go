package topdrl

import (
	"fmt"

	"clustergym/experiments/study"
	"clustergym/internal/rng"
	"clustergym/lab/workload"
	"clustergym/simulator/cluster"
)

// gapPlacements are compared with the best placement.
var gapPlacements = []string{"closest-a", "closest-b", "closest-c", "load-balance", "first-available", "random"}

// measureGap compares placements with the cheapest one, found by exhaustion, in random states of a cluster. Each GPU is
// taken with a probability drawn for the state, and a gang of 2 to 8 GPUs that fits is placed.
func measureGap(name string, states int) ([]study.Row, error) {
	spec, err := workload.ClusterSpec(name)
	if err != nil {
		return nil, err
	}
	r := rng.Stream(1, "topdrl/gap")
	var rules []cluster.Placement
	for _, p := range append([]string{"optimal"}, gapPlacements...) {
		rule, err := cluster.NewPlacement(p)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	var rows []study.Row
	for state := 0; state < states; {
		c, err := cluster.New(spec)
		if err != nil {
			return nil, err
		}
		busy := r.Float64()
		var taken []cluster.GPU
		for g := range c.GPUs() {
			if r.Float64() < busy {
				taken = append(taken, cluster.GPU(g))
			}
		}
		n := 2 + r.IntN(7)
		if c.GPUs()-len(taken) < n {
			continue
		}
		if len(taken) > 0 {
			if err := c.Allocate(&cluster.Request{GPUs: len(taken), Milli: 1000}, taken); err != nil {
				return nil, err
			}
		}
		req := cluster.Request{GPUs: n, Milli: 1000}
		best := 0.0
		for k, rule := range rules {
			gpus, ok := rule.Place(c, &req, nil)
			if !ok {
				return nil, fmt.Errorf("placement %s finds no place for %d GPUs", rule.Name(), n)
			}
			cost := c.Cost(gpus)
			if k == 0 {
				best = cost
				continue
			}
			row := study.RowOf("gap", map[string]string{"cluster": name, "placement": rule.Name(), "state": fmt.Sprint(state)})
			rows = append(rows, row("excess_percent", 100*(cost-best)/best),
				row("optimal_share", map[bool]float64{true: 1}[cost <= best+1e-9]))
		}
		state++
	}
	return rows, nil
}
