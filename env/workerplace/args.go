package workerplace

// ArgWords says of each argument what it can be and what it means.
func ArgWords() map[string][2]string {
	return map[string][2]string{
		"servers":      {"1 to 1024", "servers, M"},
		"gpus":         {"1 to 64", "GPUs of each server"},
		"cpus":         {"16 to 1024", "CPUs of each server; a worker takes 2"},
		"memory":       {"8 to 65536", "GB of each server; a worker takes 8"},
		"slots":        {"1 to 1024", "waiting jobs that are seen, the oldest"},
		"jobs":         {"1 to 100000", "jobs of an episode"},
		"interval":     {"1 to 1000000", "seconds between two closings"},
		"arrivals":     {"0.01 to 10", "jobs an interval in the mean"},
		"length":       {"0.01 to 1000", "intervals that a job takes alone, in the mean over types"},
		"comm":         {"allreduce, ps", "how workers exchange gradients"},
		"interference": {"0 to 4", "exponent of what jobs keep beside each other: 0 = none"},
		"crowding":     {"0 to 4", "exponent of what a job loses beside every two others on one server, on top of the pairs, times interference: 0 = nothing"},
		"table":        {"a seed", "of the table of interference"},
		"noise":        {"0 to 1", "deviation of the logarithm of a measured speed"},
		"failures":     {"0 to 0.5", "probability that a server fails in an interval"},
		"reward":       {"jct, progress", "see Rewards"},
		"obs":          {"flat, pairs", "the fields above, or one row of features for each action"},
		"limit":        {"1 to 1000000", "intervals after which an episode is cut off"},
	}
}
