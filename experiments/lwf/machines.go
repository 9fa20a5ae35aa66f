package lwf

import (
	"context"
	"fmt"

	peer "clustergym/peer/lwf"
)

// The rules of when a transfer begins, by their names in the tables.
const (
	srsf1     = "SRSF(1)"
	srsf2     = "SRSF(2)"
	srsf3     = "SRSF(3)"
	unlimited = "no limit"
	ada       = "Ada-SRSF"
	adaAll    = "Ada-SRSF, asks all"
	adaOrig   = "Ada-SRSF, published"
)

// sharing returns the rules of the tables.
func sharing() []string { return []string{srsf1, srsf2, srsf3, ada, adaAll, adaOrig} }

// shares are the end of a rule's name in the authors' program, and its question.
var shares = map[string][2]string{
	srsf1: {"0-false", "pure"}, srsf2: {"1-false", "pure"}, srsf3: {"2-false", "pure"}, unlimited: {"1000-false", "pure"},
	ada: {"1-true", "pure"}, adaAll: {"1-true", "pureall"}, adaOrig: {"1-true", "orig"},
}

// The placements.
const (
	lwf1     = "LWF-1"
	firstFit = "first fit"
	list     = "list scheduling"
	random   = "random"
)

// places are the placements' names in the authors' program.
var places = map[string]string{
	lwf1: "lwf1", "LWF-2": "lwf2", "LWF-4": "lwf4", "LWF-8": "lwf8", "LWF-16": "lwf16", list: "lwf32", firstFit: "bp",
	random: "random",
}

// kappas returns the placements LWF-κ, in order of κ. With κ of the largest job it is list scheduling.
func kappas() []string { return []string{lwf1, "LWF-2", "LWF-4", "LWF-8", "LWF-16", list} }

// The GPUs: shared by jobs as long as their memory fits, or each of one job at a time. A GPU whose memory is that of
// the largest job has room for no two.
const (
	shared = "shared"
	own    = "own"
)

// memory returns the MB of a GPU.
func memory(gpus string) int64 {
	if gpus == own {
		largest := int64(0)
		for _, m := range peer.Models() {
			largest = max(largest, m.Memory)
		}
		return largest
	}
	return peer.DefaultConfig().Memory
}

// player plays workloads on the authors' cluster. It keeps its machines, since a play on a new one takes longer.
type player map[string]*peer.Machine

// play returns what a placement and a rule make of jobs. seed is that of the placement random.
func (p player) play(ctx context.Context, jobs []peer.Job, gpus, placement, rule string,
	seed uint64) (*peer.Report, error) {
	key := fmt.Sprint(gpus, "/", placement, "/", rule, "/", seed)
	m, ok := p[key]
	if !ok {
		cfg := peer.DefaultConfig()
		cfg.Question, cfg.Memory, cfg.Seed = shares[rule][1], memory(gpus), seed
		if err := cfg.SetAlgorithm("ssf-" + places[placement] + "-srsf-" + shares[rule][0]); err != nil {
			return nil, err
		}
		var err error
		if m, err = peer.NewMachine(cfg); err != nil {
			return nil, err
		}
		p[key] = m
	}
	return m.Run(ctx, jobs, nil)
}
