package run

import (
	"time"

	"clustergym/agents/train"
	"clustergym/lab/config"
)

// loopOf returns the settings of a training's loop. Between two records of progress there is a whole update at least:
// PPO learns once in ppo.steps steps of all environments, and a record without an update repeats the losses of the one
// before.
func loopOf(cfg *config.Config) train.Config {
	c := cfg.Train
	if c.LogEvery > 0 && cfg.Agent == "ppo" {
		c.LogEvery = max(c.LogEvery, int64(c.Envs)*int64(cfg.PPO.Steps))
	}
	return c
}

// pace measures how fast a training goes, without its evaluations.
type pace struct {
	from  time.Time     // when the first step was about to be taken
	first int64         // steps that had been taken then
	aside time.Duration // spent on evaluations since

	last    time.Duration // of training, at the end of the last interval
	step    int64         // then
	updates int64         // then
	rate    float64       // of the last interval
}

// unknownUpdates is the number of updates before the first record of a run, which may have been resumed.
const unknownUpdates = -1

func (p *pace) begin(now time.Time, step, updates int64) {
	*p = pace{from: now, first: step, step: step, updates: updates}
}

// rates returns the steps per second since the beginning and of the last interval; 0 if no time has passed. An interval
// ends at the first record after an update: a part of an update's steps, without the update, says nothing about the
// training.
func (p *pace) rates(now time.Time, step, updates int64) (mean, interval float64) {
	if step == p.first { // what came before was imitation
		p.begin(now, step, updates)
		return 0, 0
	}
	spent := now.Sub(p.from) - p.aside
	if spent > 0 {
		mean = float64(step-p.first) / spent.Seconds()
	}
	if p.updates == unknownUpdates {
		p.updates = updates
		if updates == 0 || p.step > 0 { // none of them, or perhaps none, is of this interval
			return mean, mean
		}
		p.updates = 0
	}
	if dt := (spent - p.last).Seconds(); dt > 0 && updates > p.updates {
		p.rate = float64(step-p.step) / dt
		p.last, p.step, p.updates = spent, step, updates
	}
	if p.rate == 0 { // no interval has ended yet
		return mean, mean
	}
	return mean, p.rate
}
