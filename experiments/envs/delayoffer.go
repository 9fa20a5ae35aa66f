package envs

import (
	"clustergym/env"
	"clustergym/env/cluster"
	"clustergym/env/delayoffer"
	"clustergym/env/jobselect"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/traces"
)

// DelayOfferArgs are the arguments of DelayOffer-v1.
type DelayOfferArgs struct {
	delayoffer.Config `yaml:",inline"`
	Stage             `yaml:",inline"`
}

// DefaultDelayOfferArgs are a hundred jobs a day after the workloads of Dally's authors, on its cluster with a slow
// network.
func DefaultDelayOfferArgs() DelayOfferArgs {
	t := workload.DefaultTraceConfig()
	t.Synth.Profile = "dally"
	return DelayOfferArgs{delayoffer.DefaultConfig(), Stage{Cluster: "dally-slow", Trace: t, Split: env.SplitTrain}}
}

// Validate reports every fault. Whether files are there is not looked at.
func (a *DelayOfferArgs) Validate() error {
	var l fault.List
	l.Join("", a.Config.Validate())
	a.check(&l)
	return l.Err()
}

func (a *DelayOfferArgs) stage() *Stage { return &a.Stage }

func (a *DelayOfferArgs) takes() jobselect.Config {
	c := jobselect.DefaultConfig()
	c.Window, c.Warm, c.MaxGPUs, c.Estimates = a.Window, 0, a.MaxGPUs, a.Estimates
	return c
}

func (a *DelayOfferArgs) Open(spec cluster.Spec, w stagedJobs, part traces.Part) (env.Env, error) {
	return delayoffer.New(a.Config, spec, w, part)
}

func (a *DelayOfferArgs) page(s env.Spec) string { return delayoffer.Page(a.Config, s) }

func (a *DelayOfferArgs) words() map[string][2]string {
	return map[string][2]string{
		"max_gpus":  {"1 to 1048576", "larger jobs are left out of the workload"},
		"comm":      {"ring, contention, tree or none", "how a placement slows a gang down"},
		"ideal":     {"true or false", "with ring: run times are compute times, not those at the best place"},
		"per_gpu":   {"true or false", "with ring: every GPU has links of its own"},
		"relative":  {"true or false", "take off what the timers earn on the same jobs at the same time"},
		"lease":     {"a time of 1s or more", "how long gangs hold their GPUs"},
		"history":   {"leases, 0 or more", "how far the tuner of timers looks back"},
		"auto":      {"true or false", "the timers shown are tuned"},
		"rack_wait": {"leases, 0 or more", "where they are not: how long a rack is declined"},
		"nw_wait":   {"leases, 0 or more", "and the network"},
	}
}
