package asrpt

import (
	"fmt"
	"slices"

	"clustergym/experiments/study"
	"clustergym/internal/fault"
)

// settings are the keys of one section of experiment.yaml, quick or full.
type settings struct {
	Servers int     `yaml:"servers"`
	GPUs    int     `yaml:"gpus"` // of a server
	NIC     float64 `yaml:"nic"`  // GB/s of a server, in each direction
	Link    float64 `yaml:"link"` // GB/s of a GPU inside its server
	Wait    waiting `yaml:"wait"` // A-SRPT's

	Jobs    int       `yaml:"jobs"`    // of a workload
	History int       `yaml:"history"` // jobs before it, from which predictors learn
	Trees   int       `yaml:"trees"`   // of the random forest
	Draws   int       `yaml:"draws"`   // generated workloads
	Load    float64   `yaml:"load"`    // of all tables but that of loads
	Loads   []float64 `yaml:"loads"`
	NICs    []float64 `yaml:"nics"`
	Errors  []float64 `yaml:"errors"` // standard deviations of the logarithm of the predictions
	Waits   []waiting `yaml:"waits"`
	Speeds  []float64 `yaml:"speeds"` // of the virtual machine, in terms of the cluster
	Cuts    int       `yaml:"cuts"`   // states of the cluster in which placements are compared, for each graph
	Logs    []record  `yaml:"logs"`   // played only with --data
}

// record is a recorded log.
type record struct {
	Name    string `yaml:"name"`
	File    string `yaml:"file"`    // in the folder of --data
	Windows int    `yaml:"windows"` // workloads, spread evenly over its second half
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	between := func(key string, v, low, high float64, want string) { l.Add(v >= low && v <= high, key, v, want) }
	l.Add(s.GPUs >= 2 && s.GPUs <= 64, "gpus", s.GPUs, "2 to 64: the table cuts has graphs of 8 GPUs on four servers")
	l.Add(s.Servers >= 1 && s.Servers <= 1024 && s.Servers*s.GPUs >= widest, "servers", s.Servers,
		"as many as have 32 GPUs, the largest job, to 1024")
	between("link", s.Link, .01, 1e6, "0.01 to 1000000 GB/s")
	for _, n := range append([]float64{s.NIC}, s.NICs...) {
		between("nic", n, .01, 1e6, "0.01 to 1000000 GB/s")
	}
	once(&l, "nics", s.NICs)
	once(&l, "loads", s.Loads)
	once(&l, "errors", s.Errors)
	once(&l, "speeds", s.Speeds)
	once(&l, "waits", append([]waiting{{}}, s.Waits...))
	for _, w := range append([]waiting{s.Wait}, s.Waits...) {
		l.Add(w.Ratio == 0 || w.Ratio >= 1 && w.Ratio <= 1e6, "ratio", w.Ratio, "0 (nobody waits) or 1 to 1000000")
		between("patience", w.Patience, 0, 1000, "0 to 1000")
	}
	for _, n := range []struct {
		key            string
		v, least, most int
	}{
		{"jobs", s.Jobs, 50, 100_000}, {"history", s.History, 200, 1_000_000}, {"trees", s.Trees, 1, 10_000},
		{"draws", s.Draws, 1, 10_000}, {"cuts", s.Cuts, 1, 1_000_000},
	} {
		l.Add(n.v >= n.least && n.v <= n.most, n.key, n.v, fmt.Sprintf("%d to %d", n.least, n.most))
	}
	for _, v := range append([]float64{s.Load}, s.Loads...) {
		between("load", v, .01, 100, "0.01 to 100")
	}
	for _, v := range s.Errors {
		between("errors", v, 0, 10, "0 to 10")
	}
	for _, v := range s.Speeds {
		between("speeds", v, .01, 100, "0.01 to 100")
	}
	seen := map[string]bool{}
	for _, w := range s.Logs {
		l.Add(study.Word(w.Name) && !seen[w.Name] && w.Name != generated, "logs", w.Name,
			"names of letters, digits and hyphens, each once")
		seen[w.Name] = true
		l.Add(w.File != "", "file", w.File, "a path in the folder of recorded workloads")
		l.Add(w.Windows >= 1 && w.Windows <= 1000, "windows", w.Windows, "1 to 1000")
	}
	return l.Err()
}

// once adds a fault for each value of list that is there before: its rows would be those of the other one again.
func once[T comparable](l *fault.List, key string, list []T) {
	for i, v := range list {
		l.Add(!slices.Contains(list[:i], v), key, v, "each once")
	}
}

// settingsOf returns the settings of p's form, quick or full, with p's number of seeds.
func settingsOf(p study.Plan) (settings, error) {
	s, err := study.Settings("a-srpt", files, p, settings{})
	s.Draws = p.SeedsOr(s.Draws)
	return s, err
}

// network returns the network with NICs of so many GB/s.
func (s *settings) network(nic float64) network {
	return network{NIC: nic, Link: s.Link, Server: s.GPUs}
}
