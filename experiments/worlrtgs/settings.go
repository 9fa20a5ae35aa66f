package worlrtgs

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/experiments/plan"
	"clustergym/experiments/run"
	"clustergym/internal/fault"
)

// worlSettings are those of the study worl-rtgs.
type worlSettings struct {
	Graphs       int        `yaml:"graphs"` // for each correlation and each value of b
	Seeds        int        `yaml:"seeds"`
	Families     []string   `yaml:"families,flow"`
	Sizes        []worlSize `yaml:"sizes"`
	Iterations   int        `yaml:"iterations"` // of a search at most; it gets fewer where gymctl plan's own budget is less
	Whales       int        `yaml:"whales"`
	Generators   int        `yaml:"generators"` // trained here, one for each seed; 0 = the weights in the program
	DRAS         int        `yaml:"dras"`       // steps of training of the DRAS-like queue scheduler
	Tiny         int        `yaml:"tiny"`       // graphs of at most 12 tasks
	Plans        int        `yaml:"plans"`      // random plans of a correlation
	Correlations [][2]int   `yaml:"correlations,flow"`
	Shapes       []float64  `yaml:"shapes,flow"` // values of b
	Times        [][2]int   `yaml:"times,flow"`
	Real         int        `yaml:"real"` // graphs of each kind of recorded jobs, with --data
}

// worlSize is a size of graphs of every family.
type worlSize struct {
	Tasks   int      `yaml:"tasks"`
	GPUs    int      `yaml:"gpus"`
	Graphs  int      `yaml:"graphs"`       // of each family
	Without []string `yaml:"without,flow"` // planners that are left out
}

// planners are those that plan the graphs of the size.
func (z *worlSize) planners() []worlPlanner {
	return slices.DeleteFunc(slices.Clone(worlPlanners), func(p worlPlanner) bool { return slices.Contains(z.Without, p.name) })
}

// class is the paper's word for a number of tasks.
func (z *worlSize) class() string {
	switch {
	case z.Tasks <= 1000:
		return "small"
	case z.Tasks <= 3000:
		return "medium"
	}
	return "large"
}

// Validate reports every fault.
func (s *worlSettings) Validate() error {
	var l fault.List
	count := func(key string, v, low, high int) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("%d to %d", low, high))
	}
	count("graphs", s.Graphs, 1, 1000)
	count("seeds", s.Seeds, 1, run.MaxSeeds)
	for _, f := range s.Families {
		l.Add(slices.Contains(plan.FamilyNames(), f), "families", f, "some of "+strings.Join(plan.FamilyNames(), ", "))
	}
	for _, z := range s.Sizes {
		l.Add(z.Tasks >= 1 && z.Tasks <= 100_000 && z.GPUs >= 1 && z.GPUs <= 5_000, "sizes", fmt.Sprintf("%dx%d", z.Tasks, z.GPUs), "1 to 100000 tasks, 1 to 5000 GPUs")
		l.Add(z.Graphs >= 1 && z.Graphs <= 1000, "sizes", z.Graphs, "1 to 1000 graphs")
		for _, p := range z.Without {
			known := slices.Contains(worlPlannerNames(), p) && !slices.Contains(worlSix, p)
			l.Add(known, "sizes", p, "some of "+strings.Join(worlPlannerNames(), ", ")+"; not "+strings.Join(worlSix, ", "))
		}
	}
	for key, sizes := range map[string][][2]int{"correlations": s.Correlations, "times": s.Times} {
		for _, x := range sizes {
			l.Add(x[0] >= 1 && x[0] <= 100_000 && x[1] >= 1 && x[1] <= 5_000, key, x, "[1 to 100000 tasks, 1 to 5000 GPUs]")
		}
	}
	count("iterations", s.Iterations, 0, 1_000_000)
	count("whales", s.Whales, 0, 10_000)
	l.Add((s.Iterations == 0) == (s.Whales == 0) && s.Whales != 1, "whales", s.Whales, "2 or more beside iterations, or 0 with 0 iterations")
	count("generators", s.Generators, 0, run.MaxSeeds)
	count("dras", s.DRAS, 1, 1<<40)
	count("tiny", s.Tiny, 0, 10_000)
	count("plans", s.Plans, 3, 1_000_000)
	count("real", s.Real, 0, 1000)
	for _, b := range s.Shapes {
		l.Add(b >= -10 && b <= 10, "shapes", b, "-10 to 10")
	}
	return l.Err()
}
