package heuristic

import (
	"clustergym/env/cluster"
	"clustergym/env/heuristic/place"
)

// What those who call this package need of the packages below it.

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

// PlacementNames returns the placements that a Config may name. lwf-K is accepted for every K from 1, not only those listed.
func PlacementNames() []string { return place.Names() }
