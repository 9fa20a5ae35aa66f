package envs

import (
	"strings"

	"clustergym/env/reward"
	"clustergym/traces/profile"
	"clustergym/traces/synth"
)

// commonKeys gives the allowed values and the meaning of keys that several environments share.
var commonKeys = map[string][2]string{
	"gamma":      {"above 0, up to 1", "discount per tau of simulated time"},
	"tau":        {"a time above 0s", "simulated time over which gamma applies once"},
	"window":     {"1 to 1048576", "W, counted jobs of an episode"},
	"warm":       {"0 to 1048576", "jobs before the window that fill the cluster; 0 = empty"},
	"load":       {"0, or 0.01 to 100", "offered load to which submit times are stretched; 0 = as recorded"},
	"relative":   {`"", fifo, sjf, smallest or auto`, "subtract what that baseline earns on the same window at the same time; auto is sjf, and smallest without estimates, of which sjf knows the true run times"},
	"contested":  {"true or false", "draw training windows again where FIFO skip and SJF skip differ by less than 1 %"},
	"horizon":    {"0s up to 1281023h, 146 years; 0s = none", "truncate so long after the window's first submit"},
	"max_steps":  {"0 or more; 0 = none", "truncate after so many steps"},
	"estimates":  {"none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA", "what is known of run times; history and gbdt learn from jobs that have ended; FILE is a path as for trace.file"},
	"forecast":   {"auto, on or off", "whether observations show forecasts of single jobs, and what is known of their users; auto = where estimates are history or gbdt"},
	"visible":    {"even, 2 to 1024", "K, jobs that the agent sees and can start"},
	"slots":      {"mixed or oldest", "which jobs are visible"},
	"max_gpus":   {"1 to 1024", "M, the largest gang; larger jobs are left out of the workload"},
	"placement":  {"first-fit, best-fit, worst-fit, pack, closest-a, closest-b, closest-c, …", "which GPUs a job gets"},
	"comm":       {"none or tree", "how a gang's placement slows it down"},
	"reward":     {strings.Join(reward.Names(), ", "), "what is paid"},
	"wait_cost":  {"0 to 1000000", "c of reward throughput"},
	"time_axis":  {"log or linear", "rows of the images"},
	"row":        {"a time above 0s", "length of a row of a linear axis"},
	"models":     {strings.Join(profile.Names(), ", "), "mix from which a job gets a model and batch size that its trace does not name"},
	"running":    {"0 to 1024; 0 = no table", "R, running gangs that the agent sees in a table: those of most expected GPU-time left"},
	"images":     {"true or false", "whether the observation has the images of queue and cluster; without them its size does not depend on the cluster"},
	"privileged": {"true or false", "a field truth with what the simulator alone knows, which only critics see in training"},
	"preempt":    {"true or false", "the agent can stop the running gangs that it sees; needs running"},

	"min_run":            {"0s up to 168h", "how long a gang must have run since its last start before it can be stopped"},
	"checkpoint":         {"0s up to 24h", "what a stopped gang pays for its checkpoint, at its next start"},
	"checkpoint_per_gpu": {"0s up to 30s", "more of it for each of its GPUs"},
	"restart":            {"0s up to 24h", "what it pays for starting again"},
	"restart_per_gpu":    {"0s up to 30s", "more of it for each of its GPUs"},

	"cluster": {"a preset, pool:N, swf-N, NxG, dally:RxM, or the keys of a cluster file as a map; a path where files can be named", "the hardware; gymctl config list names the presets"},

	"trace.file":           {"a path of your own on a server that Python started, a path below --trace-root on another, or get:NAME", `recorded jobs; "" = jobs are generated`},
	"trace.format":         {"auto, or as in gymctl trace formats", "of trace.file"},
	"trace.columns":        {"names of the native format and of the file, as {submit_time: Submit}", "columns of trace.file that have other names than the format's"},
	"trace.delimiter":      {"comma, semicolon, tab, bar or nothing", "between the fields of trace.file; nothing = what its header shows"},
	"trace.limit":          {"0s up to 1281023h, 146 years; 0s = none", "stands for the time limit of jobs that have none, which estimates trace needs; 0s = none does"},
	"trace.sort":           {"true or false", "put jobs in order of submit, instead of refusing a file that is not"},
	"trace.skip":           {"0 or more", "leave out the first jobs"},
	"trace.jobs":           {"0 or more; 0 = all", "take so many jobs"},
	"trace.seed":           {"0 or more", "of the generator, and of trace.mix"},
	"trace.synth.profile":  {strings.Join(synth.Profiles(), ", "), "statistics that generated jobs follow"},
	"trace.synth.jobs":     {"1 to 20000000, and what the server takes", "generated jobs"},
	"trace.synth.rate":     {"0.001 to 1000000", "factor on the rate at which generated jobs come"},
	"trace.synth.work":     {"0.001 to 1000", "factor on their run times"},
	"trace.synth.max_gpus": {"0 or more; 0 = any", "larger ones are not generated"},
	"trace.synth.procs":    {"0, or 2 to 1048576", "processors of the machine, profiles hpc and lublin; 0 = 128"},
	"trace.synth.start":    {"0s up to 168h", "time of the week at which generated jobs begin, 0s = Monday, 0:00"},
	"trace.profiles":       {"a path of your own on a server that Python started, a path below --trace-root on another, or get:NAME", "throughput table that gives jobs their profiles"},
	"trace.reference":      {"a type of GPU", "to which run times refer, where the table or the trace know several"},
	"trace.mix":            {strings.Join(profile.Names(), ", ") + ", or nothing", "mix of models for jobs without a profile"},

	"split":  {strings.Join(SplitNames[:], ", "), "part of the workload that episodes are of; reset can name another"},
	"preset": {"an embedded run of this environment, or nothing", "a run whose trace, cluster and settings take the place of the defaults"},
}
