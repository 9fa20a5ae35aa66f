package archtest

// house lists the top-level folders with Go in them, from the highest floor down. Imports point to lower floors only;
// folders of one floor do not import each other. The maps in CONTRIBUTING.md and docs, and the comments of folders
// without code of their own, are written from this list and from the packages' comments (map_test.go).
var house = []room{
	{"cmd", 12, "verbs, flags, signals, exit codes"},
	{"examples", 11, "the packages at work, in five programs of a page each"},
	{"pages", 11, "what a browser shows of runs, experiments and clusters, and the page of a result"},
	{"experiments", 10, "papers and studies, each with its README, settings and expected figures"},
	{"ops", 10, "work at a real cluster: a policy steers it, a twin forecasts it"},
	{"lab", 9, "what a run is: its configuration, workload and directory; training, evaluation, search and their reports"},
	{"agents", 8, "policies and learners"},
	{"bridge", 7, "the protocol by which other programs play environments, its server and its client"},
	{"replay", 7, "experience and advantages"},
	{"env", 6, "the contract of environments, the environments, their encoders and rewards, vectorisation"},
	{"peer", 5, "simulators that others published, rebuilt so that they give the same schedules"},
	{"live", 4, "the contract of real clusters, and the adapters for Slurm and Kubernetes, and a demo that replays a history"},
	{"simulator", 4, "machines, jobs on them, schedulers, predictors of run times, metrics, task graphs"},
	{"distributed", 3, "work on many machines: a queue of tasks, and processes that train one agent together"},
	{"traces", 3, "workloads: what a job is, the formats, the generator"},
	{"configs", 2, "presets, and the strict loader of configurations"},
	{"nets", 2, "networks: parameters, kernels, layers, losses' gradients, optimisers, ONNX"},
	{"internal", 1, "small tools, open to all"},
}

// room is a top-level folder.
type room struct {
	folder string
	floor  int
	holds  string // in a line of the map
}

// floors holds the floor of each top-level folder.
var floors = func() map[string]int {
	m := map[string]int{}
	for _, r := range house {
		m[r.folder] = r.floor
	}
	return m
}()
