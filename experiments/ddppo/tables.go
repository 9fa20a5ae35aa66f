package ddppo

import (
	"fmt"
	"strings"

	"clustergym/experiments/study"
)

// order returns the order of the values of labels.
func (s *settings) order() map[string][]string {
	var policies, replicas []string
	for _, n := range s.Replicas {
		policies, replicas = append(policies, replicated(n)), append(replicas, fmt.Sprint(n))
	}
	policies = append(policies, tunedPolicy)
	for i := range rules {
		policies = append(policies, rules[i].name)
	}
	return map[string][]string{"run times": rungs, "policy": policies, "replicas": replicas, "way": ways, "trait": traits[:]}
}

// tables returns the tables of the report.
func (s *settings) tables(study.Plan) []study.Table {
	order, two := s.order(), study.Fixed(2)
	bare := func(title, metric string, format func(float64) string) study.Column {
		return study.Column{Title: title, Metric: metric, Format: format, Bare: true}
	}
	versus := func(policy string) study.Column {
		return study.Column{Title: "vs " + policy, Metric: "bsld", Stat: study.Percent, Versus: map[string]string{"policy": policy}}
	}
	easy := versus("EASY")
	easy.Bare = true
	yes := func(v float64) string {
		if v == 1 {
			return "yes"
		}
		return "no"
	}
	all := []study.Table{
		{
			Name: "log", Title: "The log", By: []string{"log"}, Columns: []study.Column{
				bare("jobs", "jobs", study.Fixed(0)), bare("processors", "procs", study.Fixed(0)), bare("weeks", "weeks", study.Fixed(1)),
				bare("load", "load", study.Share), bare("users", "users", study.Fixed(0)), bare("left out", "dropped", study.Fixed(0)),
			},
			Notes: []string{"left out: jobs that did not run. load: run time × processors over what the machine has until the last submit."},
		},
		{
			Name: "pass", Title: "One pass over the whole log, streamed from its file; run times " + predicted, By: []string{"policy"}, Order: order, Columns: []study.Column{
				bare("jobs", "jobs", study.Fixed(0)), bare("bounded slowdown", "bsld", two), bare("wait (h)", "wait_h", two), bare("choices", "choices", study.Fixed(0)),
				bare("longest queue", "longest", study.Fixed(0)), bare("minutes", "timing_min", two), bare("jobs/s", "timing_jobs_s", study.Fixed(0)), bare("heap (MiB)", "timing_mib", study.Fixed(1)),
			},
			Notes: []string{"One goroutine. choices: decisions with more than one visible job, at which the network is asked; longest queue: at these. heap: the most of it in use at 400 looks, with what is not collected yet."},
		},
	}
	all = append(all, study.Table{
		Name: "heap", Title: "Memory while a log is streamed: the most heap in use so far", By: []string{"policy", "read"}, Order: order,
		Columns: []study.Column{bare("heap (MiB)", "timing_mib", study.Fixed(1))},
		Notes:   []string{"read: percent of the log."},
	})
	for _, rung := range rungs {
		all = append(all, study.Table{
			Name: "held-" + rung, From: "held", Where: map[string]string{"run times": rung}, By: []string{"policy"}, Order: order,
			Title:   "The held-out weeks, played through; run times " + rung,
			Columns: []study.Column{{Title: "bounded slowdown", Metric: "bsld", Format: two}, versus(s.last(rung)), easy, bare("wait (h)", "wait_h", two)},
			Notes:   []string{"Intervals are over weeks, and over trainings where there are several. FCFS to F4 hold the job that they have picked and back-fill, as the agent does."},
		})
	}
	for _, rung := range rungs {
		all = append(all, study.Table{
			Name: "curve-" + rung, From: "curve", Where: map[string]string{"run times": rung}, By: []string{"replicas", "samples"}, Order: order,
			Title:   "Learning with N replicas that share the batch of one; run times " + rung,
			Columns: []study.Column{bare("return", "return", study.Fixed(4)), bare("loss of the value", "value_loss", study.Fixed(4)), bare("entropy", "entropy", study.Fixed(4))},
			Notes:   []string{"return: minus the bounded slowdown, the mean over the last 100 episodes."},
		})
	}
	return append(all,
		study.Table{
			Name: "equal", Title: "Is an update of N replicas that of one?", By: []string{"replicas", "update"}, Order: order,
			Columns: []study.Column{{Title: "distance", Metric: "distance", Format: func(v float64) string { return fmt.Sprintf("%.2g", v) }, Bare: true}, bare("same bits with 1 and 3 workers", "same", yes)},
			Notes:   []string{"distance: of the weights from those of one replica, as a share of how far these have moved from their beginning."},
		},
		study.Table{
			Name: "speed", Title: "Training speed on this machine", By: []string{"replicas"}, Order: order, Columns: []study.Column{
				bare("processors", "timing_processors", study.Fixed(0)), bare("samples/s", "timing_samples_s", study.Fixed(0)), bare("hours for an epoch", "timing_epoch_h", two),
			},
			Notes: []string{"epoch: as many samples as the log has jobs. More replicas than processors cannot be faster. What many machines would do: gymctl bench ranks, and docs/evidence/performance.md."},
		},
		study.Table{
			Name: "straggler", Title: fmt.Sprintf("%d replicas, of which one is slow: each step of its environments takes %v longer", s.Straggler.Replicas, s.Straggler.Delay), By: []string{"way"}, Order: order,
			Columns: []study.Column{
				bare("seconds", "timing_s", study.Fixed(1)), bare("samples/s", "timing_samples_s", study.Fixed(0)), bare("updates/s", "timing_updates_s", two),
				bare("collected", "timing_collected", study.Share), bare("return", "timing_return", study.Fixed(4)), bare("same bits as all alike", "same", yes),
			},
			Notes: []string{
				fmt.Sprintf("cut short: once %.0f %% of the replicas have full rollouts, the others end theirs (ppo.preempt_share). Which are cut short depends on the clock, so those two cannot be repeated; the others can, bit for bit.", 100*s.Straggler.Share),
				"Every training ends after the same number of samples; collected: of the samples of full rollouts.",
			},
		},
		study.Table{
			Name: "key", Title: "The tuned keys: the job of the least weighted sum is next", By: []string{"run times", "trait"}, Order: order,
			Columns: []study.Column{bare("weight", "weight", study.Fixed(3))},
			Notes:   []string{"Traits are those of gymctl experiment run rlscheduler. The mean over searches, of which each plays its own."},
		},
	)
}

// figures returns the drawings of the report.
func (s *settings) figures(study.Plan) []study.Figure {
	ours := make([]string, len(s.Replicas))
	for i, n := range s.Replicas {
		ours[i] = replicated(n)
	}
	all := []study.Figure{{
		Name: "heap", Title: "Memory while the log is streamed", X: "percent of the log", Y: "heap (MiB)", Kind: study.Lines, Zero: true,
		Series: func(r *study.Results) []study.Series { return r.Curves("heap", "heap (MiB)", "read") },
	}}
	curves := func(rung, column string) func(*study.Results) []study.Series {
		return func(r *study.Results) []study.Series {
			series := r.Curves("curve-"+rung, column, "samples")
			for i := range series {
				series[i].Name = "N = " + series[i].Name
			}
			return series
		}
	}
	for _, rung := range rungs {
		all = append(all, study.Figure{
			Name: "curve-" + rung, Title: "Return while learning, N replicas sharing the batch of one; run times " + rung, X: "samples", Y: "return", Kind: study.Lines,
			Series: curves(rung, "return"),
		}, study.Figure{
			Name: "value-" + rung, Title: "Loss of the value while learning; run times " + rung, X: "samples", Y: "loss", Kind: study.Lines,
			Series: curves(rung, "loss of the value"),
		}, study.Figure{
			Name: "held-" + rung, Title: "Bounded slowdown in the held-out weeks; run times " + rung, X: "bounded slowdown", Kind: study.Bars, LogX: true, Sorted: true, Ours: ours,
			Series: func(r *study.Results) []study.Series { return r.Bars("held-"+rung, "bounded slowdown", nil) },
		})
	}
	return all
}

// claims returns what the paper says beside ours.
func (s *settings) claims(study.Plan) []study.Claim {
	var all []study.Claim
	for _, rung := range rungs {
		for _, rival := range []string{"FCFS", "SJF", "F1", "EASY", tunedPolicy} {
			all = append(all, study.Claim{
				What: fmt.Sprintf("%s against the agent, run times %s", rival, rung), Paper: "the agent is better; no figure", Table: "held-" + rung,
				Line: map[string]string{"policy": rival}, Column: "vs " + s.last(rung),
			})
		}
	}
	return all
}

// notes returns sentences on how to read the tables.
func (s *settings) notes(p study.Plan) []string {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].name + " = " + rules[i].policy
	}
	all := []string{
		"The paper's log of 11.5 million jobs is not public, nor are its states, actions, rewards, network and figures. The log here is generated; the machine and the network are RLScheduler's.",
		"As policies of gymctl sim: " + strings.Join(names, ", ") + ".",
		"run times exact: known to all. history: predicted from jobs that have ended and from requested times. The agent sees RLScheduler's eight numbers of a job, and 14 of what is known of run times and users.",
		"tuned key: at most as many training episodes as an agent, with the same reward.",
	}
	if p.Data != "" {
		all = append(all, "The log is that of --data.")
	}
	return all
}
