package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/env/heuristic/delay"
	"clustergym/env/heuristic/place"
	"clustergym/env/sim"
)

// What those who call this package need of the packages below it.

// Delay is delay scheduling with leases: dally, delay-las and tiresias-lease.
type Delay = delay.Delay

// Offer is an offer of GPUs to a job at the nearest tier that holds the gang now.
type Offer = delay.Offer

// Asks returns the orders in which dally can ask jobs: the values of Leases.Ask.
func Asks() []string { return delay.Asks() }

// Sensitivity is delay.Sensitivity.
func Sensitivity(v *sim.View, j sim.Job) float64 { return delay.Sensitivity(v, j) }

// Tier is how far a gang is spread.
type Tier = place.Tier

// The tiers, nearest first.
const (
	InNode      = place.InNode
	InRack      = place.InRack
	AcrossRacks = place.AcrossRacks
)

// Spread returns how far gpus are spread on c.
func Spread(c *cluster.Cluster, gpus []cluster.GPU) Tier { return place.Spread(c, gpus) }

// NewDelay returns the policy that cfg names: dally, delay-las or tiresias-lease.
func NewDelay(cfg Config) (*delay.Delay, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return delay.New(cfg.Order, cfg.Leases)
}

// PlacementNames returns the placements that a Config may name. lwf-K is accepted for every K from 1, not only those listed.
func PlacementNames() []string { return place.Names() }
