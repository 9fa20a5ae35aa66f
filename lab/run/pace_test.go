package run

import (
	"math"
	"testing"
	"time"

	"clustergym/lab/config"
)

// Records of progress are no closer than updates.
func TestRecordsHoldAWholeUpdate(t *testing.T) {
	cfg := config.For("JobSelect-v1")
	cfg.Train.Envs, cfg.PPO.Steps = 2048, 16
	for every, want := range map[int64]int64{0: 0, 1: 32768, 32767: 32768, 32768: 32768, 100_000: 100_000} {
		cfg.Train.LogEvery = every
		if got := loopOf(&cfg).LogEvery; got != want {
			t.Errorf("log_every %d: a record every %d steps, expected %d", every, got, want)
		}
		if cfg.Train.LogEvery != every {
			t.Error("the configuration has changed, and with it what the run's folder says")
		}
	}
	cfg.Agent, cfg.Train.LogEvery = "ddqn", 100 // it learns every few steps
	if got := loopOf(&cfg).LogEvery; got != 100 {
		t.Errorf("ddqn: a record every %d steps, expected 100", got)
	}
}

// 2,048 environments take 16,384 steps in 0.1 s, then an update takes 0.3 s; a record follows every 10,000 steps. After
// each third update comes an evaluation of 5 s. Whatever falls between two records, the mean is that of the training,
// and so is an interval.
func TestPaceIsThatOfTheTraining(t *testing.T) {
	now := time.Unix(1000, 0)
	var p pace
	p.begin(now, 0, 0)
	var step, updates int64
	last := int64(0)
	for updates < 30 {
		for range 8 {
			step += 2048
			now = now.Add(12500 * time.Microsecond)
			if step%16384 == 0 {
				now, updates = now.Add(300*time.Millisecond), updates+1
			}
			if step/10_000 == last/10_000 {
				continue
			}
			last = step
			mean, interval := p.rates(now, step, updates)
			if updates == 0 {
				continue
			}
			if spent := float64(step)/16384*0.1 + float64(updates)*0.3; math.Abs(mean-float64(step)/spent) > 1e-6*mean {
				t.Errorf("step %d: mean %.0f, want %.0f", step, mean, float64(step)/spent)
			}
			if interval < 40960/2 || interval > 40960*2.5 {
				t.Errorf("step %d: an interval of %.0f steps/s, the training makes 40960", step, interval)
			}
		}
		if updates%3 == 0 {
			now = now.Add(5 * time.Second)
			p.aside += 5 * time.Second
		}
	}
}

// The time before the first step, in which another policy is imitated, is not that of steps; nor is that of an earlier
// part of the run.
func TestPaceBeginsWithTheFirstStep(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	var p pace
	p.begin(at(0), 500, 7)
	if mean, interval := p.rates(at(60), 500, 7); mean != 0 || interval != 0 {
		t.Errorf("%v and %v steps/s before the first", mean, interval)
	}
	if mean, interval := p.rates(at(70), 1500, 8); mean != 100 || interval != 100 {
		t.Errorf("%v and %v steps/s, want 100", mean, interval)
	}
	if mean, interval := p.rates(at(75), 2500, 9); mean != 2000.0/15 || interval != 200 {
		t.Errorf("%v and %v steps/s, want 133.3 and 200", mean, interval)
	}
	if mean, interval := p.rates(at(75), 2500, 9); mean != 2000.0/15 || interval != 200 {
		t.Errorf("%v and %v steps/s at the same time, want 133.3 and 200", mean, interval)
	}
}
