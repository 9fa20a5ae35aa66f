package schedulers

import (
	"clustergym/simulator/cluster"
	"clustergym/simulator/schedulers/delay"
	"clustergym/simulator/schedulers/place"
	"clustergym/simulator/schedulers/tuned"
	"clustergym/simulator/sim"
)

type (
	// Hold are the weights of hold.
	Hold = tuned.Hold
	// Index are the weights of index.
	Index = tuned.Index
	// Indexer computes the keys of index.
	Indexer = tuned.Indexer
)

// HeaviestHold is the bound of a weight's size.
const HeaviestHold = tuned.HeaviestHold

// HoldNames returns the names of the weights of hold, in the order of Hold.Weights.
func HoldNames() []string { return tuned.HoldNames() }

// IndexNames returns the names of the weights of index, in the order of Index.Weights.
func IndexNames() []string { return tuned.IndexNames() }

// DefaultHold returns the weights that hold has with these estimates if none are given, DefaultIndex those of index.
func DefaultHold(e sim.Estimates) Hold { return tuned.DefaultHold(e) }

// DefaultIndex is explained at DefaultHold.
func DefaultIndex(e sim.Estimates) Index { return tuned.DefaultIndex(e) }

// NewIndexer returns one with weights and estimates; zero weights = the default ones of est.
func NewIndexer(w Index, est sim.Estimates) *Indexer { return tuned.NewIndexer(w, est) }

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
