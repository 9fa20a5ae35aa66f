package synth

import (
	"fmt"
	"slices"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/internal/rng"
	"clustergym/simulator/dag"
)

// families are the kinds of problems that the study of WORL-RTGS plans: what each changes of DefaultConfig, and how
// fast its GPUs are.
var families = []struct {
	name   string
	graph  func(c *Config)
	speeds string
}{
	{"alibaba", func(c *Config) { c.Kind, c.Degree = "instances", 1 }, "busy"},
	{"degree-1", func(c *Config) { c.Degree = 1 }, "idle"},
	{"degree-3", func(c *Config) { c.Degree = 3 }, "busy"},
	{"degree-100", func(c *Config) { c.Degree = 100 }, "idle"},
	{"training", func(c *Config) { c.Kind = "training" }, "busy"},
}

// Families returns the names that FamilyProblem takes, in the order of the study's tables.
func Families() []string {
	names := make([]string, len(families))
	for i, f := range families {
		names[i] = f.name
	}
	return names
}

// FamilyProblem draws problem number draw of a family: a graph of the given number of tasks on a platform of the given
// number of GPUs. Equal arguments give equal problems. Without transfers, edges carry no bytes; since bytes are scaled
// after everything is drawn, the graph and the platform are otherwise the same as with them.
func FamilyProblem(family string, tasks, gpus, draw int, transfers bool) (*dag.Problem, error) {
	at := slices.Index(Families(), family)
	if at < 0 {
		return nil, fault.New("family", family, nearest.OneOf(family, Families()))
	}
	src := rng.Stream(uint64(draw), fmt.Sprintf("worl-rtgs/%s/%d/%d", family, tasks, gpus))
	c, p := DefaultConfig(), DefaultPlatformConfig()
	families[at].graph(&c)
	p.Speeds = families[at].speeds
	c.Tasks, p.GPUs = tasks, gpus
	if !transfers {
		c.CCR = 0
	}
	platform, err := Platform(p, src)
	if err != nil {
		return nil, err
	}
	return Problem(c, platform, fmt.Sprintf("%s-%d-%d-%d", family, tasks, gpus, draw), src)
}
