package steer

import (
	"slices"

	"clustergym/live"
)

// step is the distance of scores that are given out anew, where there is room: jobs that come later get scores in
// between.
const step = live.MaxScore / 4096

// Ranked is a waiting job and its score.
type Ranked struct {
	ID    string
	Score int64 // that the cluster has; 0 = none
}

// Rerank returns the actions that give the jobs of order falling scores, as few as it can: jobs that stand in order
// already keep theirs. The first jobs in order come first, so that a part of the actions does what matters most.
func Rerank(order []Ranked) []live.Action {
	keep := kept(order)
	scores := make([]int64, len(order))
	above := int64(live.MaxScore + 1)
	for i := 0; i < len(order); {
		if keep[i] {
			scores[i] = order[i].Score
			above = scores[i]
			i++
			continue
		}
		to := i
		for to < len(order) && !keep[to] {
			to++
		}
		below := int64(0)
		if to < len(order) {
			below = order[to].Score
		}
		if !spread(scores[i:to], above, below, i == 0, to == len(order)) {
			anew(scores)
			break
		}
		above = scores[to-1]
		i = to
	}
	var actions []live.Action
	for i := range order {
		if scores[i] != order[i].Score {
			actions = append(actions, live.Action{Op: live.RankJob, Job: order[i].ID, Score: scores[i]})
		}
	}
	return actions
}

// spread fills dst with scores that fall from below above to above below. It reports whether there is room.
func spread(dst []int64, above, below int64, first, last bool) bool {
	n := int64(len(dst))
	if above-below-1 < n {
		return false
	}
	gap := (above - below) / (n + 1)
	from := above
	switch {
	case first && last:
		gap = min(gap, step)
		from = min(above, max(live.MaxScore*3/4, gap*n)+gap)
	case last:
		gap = min(gap, step)
	case first:
		gap = min(gap, step)
		from = below + gap*(n+1)
	}
	for i := range dst {
		dst[i] = from - gap*int64(i+1)
	}
	return true
}

// anew fills dst with falling scores, whatever there was.
func anew(dst []int64) { spread(dst, live.MaxScore+1, 0, true, true) }

// kept marks a longest list of jobs whose scores fall.
func kept(order []Ranked) []bool {
	var tails []int // tails[k] ends the list of k+1 jobs whose last score is the highest
	before := make([]int, len(order))
	for i := range order {
		s := order[i].Score
		if s <= 0 || s > live.MaxScore {
			continue
		}
		k, _ := slices.BinarySearchFunc(tails, s, func(t int, s int64) int {
			if order[t].Score > s {
				return -1
			}
			return 1
		})
		before[i] = -1
		if k > 0 {
			before[i] = tails[k-1]
		}
		if k == len(tails) {
			tails = append(tails, i)
		} else {
			tails[k] = i
		}
	}
	keep := make([]bool, len(order))
	if len(tails) == 0 {
		return keep
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		keep[i] = true
	}
	return keep
}
