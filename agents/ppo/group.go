package ppo

import (
	"fmt"
	"math"

	"clustergym/env"
)

// groups computes the baseline of rows that play the same episodes at nearly the same time (Mao et al. 2019, "Variance
// Reduction for Reinforcement Learning in Input-Driven Environments", arXiv 1807.02264, and Decima, arXiv 1810.01963,
// which trains so): jobs that come at the same times make most of the variance of returns, and what others got from
// them cancels it.
//
// The advantage of a step that begins at simulated time τ of its episode is
//
//	A = R − mean over peers of R'(τ)
//
// R is the step's return: rewards up to the end of the rollout, weighted by lambda, and then the critic's value (the
// Return of replay.Rollout.Advantages). R'(τ) is the same of a peer, another row of the group, at the same time of the
// same episode. Between two of the peer's decisions rewards accrue evenly: in a step from T to T+e with reward r and
// discount d, at share w = (T+e−τ)/e of its time before its end, R'(τ) = w·r + d^w·R'(T+e). With lambda 1 that is the
// return to go, as there; it is exact where rewards are integrals of something that does not change between decisions.
//
// A peer counts only if this rollout has its step at τ: rows drift apart, because policies draw, and a rollout begins
// and ends at other times of their episodes. Where no peer counts, the critic is the baseline, as without groups. A
// peer's return does not depend on the row's own action, so the baseline has no bias.
type groups struct {
	groupsState
	size int

	// Scratch, [Steps, Rows].
	begin []float64
	of    []int64
	base  []float64
}

func newGroups(cfg Config, rows int) (*groups, error) {
	if cfg.Group < 2 || rows%cfg.Group != 0 {
		return nil,
			fmt.Errorf("ppo: baseline group for groups of %d of %d rows, want a number from 2 that divides them: train.group",
				cfg.Group, rows)
	}
	n := rows * cfg.Steps
	return &groups{
		size: cfg.Group,
		groupsState: groupsState{
			Clock: make([]float64, rows), Episode: make([]int64, rows),
			ClockThen: make([]float64, rows), EpisodeThen: make([]int64, rows),
		},
		begin: make([]float64, n), of: make([]int64, n), base: make([]float64, n),
	}, nil
}

// remember notes where rows are before the first step of a rollout.
func (g *groups) remember() {
	copy(g.ClockThen, g.Clock)
	copy(g.EpisodeThen, g.Episode)
}

// follow counts a step.
func (g *groups) follow(next *env.Batch) {
	for i := range g.Clock {
		switch kind := next.Kind[i]; {
		case kind == env.First:
		case kind.Last():
			g.Clock[i] = 0
			g.Episode[i]++
		default:
			g.Clock[i] += float64(float32(next.Elapsed[i].Seconds())) // as the rollout keeps it
		}
	}
}

// baselines replaces the advantages of a full rollout whose returns are known. rewards were multiplied by scale. It
// returns the share of steps that have a peer.
func (a *Agent) baselines(scale float64) (share float64) {
	g, r := a.groups, a.roll
	n := r.Len()
	for i := range a.rows {
		clock, episode := g.ClockThen[i], g.EpisodeThen[i]
		for t := range n {
			k := t*a.rows + i
			g.begin[k], g.of[k] = clock, episode
			switch {
			case !r.Live[k]:
			case r.End[k]:
				clock = 0
				episode++
			default:
				clock += float64(r.Elapsed[k])
			}
		}
	}
	steps, met := 0, 0
	for i := range a.rows {
		first := i / g.size * g.size
		for t := range n {
			k := t*a.rows + i
			if !r.Live[k] {
				continue
			}
			steps++
			sum, peers := 0.0, 0
			for j := first; j < first+g.size; j++ {
				if j == i {
					continue
				}
				if x, ok := a.returnAt(j, g.of[k], g.begin[k], scale); ok {
					sum += x
					peers++
				}
			}
			g.base[k] = math.NaN()
			if peers > 0 {
				met++
				g.base[k] = sum / float64(peers)
			}
		}
	}
	for k, live := range r.Live[:n*a.rows] {
		if live && !math.IsNaN(g.base[k]) {
			r.Advantage[k] = float32(float64(r.Return[k]) - g.base[k])
		}
	}
	if steps == 0 {
		return 0
	}
	return float64(met) / float64(steps)
}

// returnAt returns row j's return from time at of an episode on, if the rollout has the step that contains it.
func (a *Agent) returnAt(j int, episode int64, at, scale float64) (float64, bool) {
	g, r := a.groups, a.roll
	lo, hi := 0, r.Len() // the first step that is of a later episode, or of this one and ends at that time or later
	for lo < hi {
		mid := (lo + hi) / 2
		k := mid*a.rows + j
		if g.of[k] > episode || g.of[k] == episode && r.Live[k] && g.begin[k]+float64(r.Elapsed[k]) >= at {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo == r.Len() {
		return 0, false
	}
	k := lo*a.rows + j
	if g.of[k] != episode || g.begin[k] > at {
		return 0, false
	}
	elapsed, reward := float64(r.Elapsed[k]), float64(r.Reward[k])*scale
	if c := r.RewardClip; c > 0 {
		reward = min(max(reward, -c), c)
	}
	if elapsed == 0 || g.begin[k] == at {
		return float64(r.Return[k]), true
	}
	w, after := (g.begin[k]+elapsed-at)/elapsed, 0.0
	switch {
	case r.End[k]:
		after = float64(r.Final[k]) // 0 unless it was truncated
	case lo+1 < r.Len():
		after = float64(r.Return[k+a.rows])
	default:
		after = float64(a.last[j])
	}
	d := float64(r.Discount[k])
	if r.End[k] && d == 0 { // terminated: nothing follows
		return w * reward, true
	}
	return w*reward + math.Pow(d, w)*after, true
}
