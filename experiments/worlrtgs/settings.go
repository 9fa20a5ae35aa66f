package worlrtgs

import (
	"fmt"
	"slices"
	"strings"

	"clustergym/configs"
	"clustergym/experiments/study"
	"clustergym/internal/fault"
	"clustergym/lab/plan"
	"clustergym/lab/run"
	"clustergym/simulator/dag/synth"
)

// settings are the keys of experiment.yaml.
type settings struct {
	Graphs   int         `yaml:"graphs"` // drawn for each correlation and each value of b
	Seeds    int         `yaml:"seeds"`
	Families []string    `yaml:"families,flow"`
	Sizes    []graphSize `yaml:"sizes"`
	// of a search, at most; fewer where the automatic budget of gymctl plan is smaller. 0 = the automatic budget
	Iterations int `yaml:"iterations"`
	Whales     int `yaml:"whales"`
	// trained in the study, used by the seeds in turn; 0 = the weights in the program
	Generators int `yaml:"generators"`
	// training steps of the generator that learns to follow hopes; 0 = it is left out
	Hopeful int `yaml:"hopeful"`
	// Generator says how generators are trained. The program's own weights were trained with the default values.
	Generator    plan.GeneratorConfig `yaml:"generator"`
	DRAS         int                  `yaml:"dras"` // training steps of the DRAS-like queue scheduler
	DRASAgent    drasAgent            `yaml:"dras_agent"`
	Tiny         int                  `yaml:"tiny"`  // graphs of at most 12 tasks, compared with the optimum
	Plans        int                  `yaml:"plans"` // random plans for each correlation
	Correlations [][2]int             `yaml:"correlations,flow"`
	Shapes       []float64            `yaml:"shapes,flow"` // values of b
	Times        [][2]int             `yaml:"times,flow"`  // [tasks, GPUs], as Correlations
	Real         int                  `yaml:"real"`        // graphs of each kind of recorded jobs; needs --data
}

// graphSize is a size at which graphs of every family are planned. Its JSON is part of cell keys.
type graphSize struct {
	Tasks   int      `yaml:"tasks"`
	GPUs    int      `yaml:"gpus"`
	Graphs  int      `yaml:"graphs"`       // of each family
	Without []string `yaml:"without,flow"` // planners that do not plan this size
}

// planners returns the planners that plan graphs of this size.
func (z graphSize) planners() []planner {
	return slices.DeleteFunc(slices.Clone(allPlanners), func(p planner) bool {
		return slices.Contains(z.Without, p.name) || p.part && slices.Contains(z.Without, parts)
	})
}

// parts in graphSize.Without stands for all planners that show what a part of another one does.
const parts = "parts"

// without returns z without the planners that these settings do not train.
func (s *settings) without(z graphSize) graphSize {
	if s.Hopeful == 0 {
		z.Without = append(slices.Clone(z.Without), hopefulPlanner)
	}
	return z
}

// every reports whether every planner of these settings plans z.
func (s *settings) every(z graphSize) bool {
	return len(s.without(z).planners()) == len(s.without(graphSize{}).planners())
}

// class returns the paper's word for the number of tasks.
func (z graphSize) class() string {
	switch {
	case z.Tasks <= 1000:
		return "small"
	case z.Tasks <= 3000:
		return "medium"
	}
	return "large"
}

// Validate returns an error that names every fault of s, or nil.
func (s *settings) Validate() error {
	var l fault.List
	count := func(key string, v, low, high int) {
		l.Add(v >= low && v <= high, key, v, fmt.Sprintf("%d to %d", low, high))
	}
	count("graphs", s.Graphs, 1, 1000)
	count("seeds", s.Seeds, 1, run.MaxSeeds)
	for _, f := range s.Families {
		l.Add(slices.Contains(synth.Families(), f), "families", f, "some of "+strings.Join(synth.Families(), ", "))
	}
	for _, z := range s.Sizes {
		l.Add(z.Tasks >= 1 && z.Tasks <= 100_000 && z.GPUs >= 1 && z.GPUs <= 5_000, "sizes",
			fmt.Sprintf("%dx%d", z.Tasks, z.GPUs), "1 to 100000 tasks, 1 to 5000 GPUs")
		l.Add(z.Graphs >= 1 && z.Graphs <= 1000, "sizes", z.Graphs, "1 to 1000 graphs")
		for _, p := range z.Without {
			known := p == parts || slices.Contains(plannerNames(),
				p) && !slices.Contains(sixPlanners, p) && p != plan.NoisyPolicy
			l.Add(known, "sizes", p,
				"parts, or some of "+strings.Join(plannerNames(),
					", ")+"; not "+plan.NoisyPolicy+", "+strings.Join(sixPlanners, ", "))
		}
	}
	pairs := func(key string, sizes [][2]int) {
		for _, x := range sizes {
			l.Add(x[0] >= 1 && x[0] <= 100_000 && x[1] >= 1 && x[1] <= 5_000, key, x, "[1 to 100000 tasks, 1 to 5000 GPUs]")
		}
	}
	pairs("correlations", s.Correlations)
	pairs("times", s.Times)
	count("iterations", s.Iterations, 0, 1_000_000)
	count("whales", s.Whales, 0, 10_000)
	l.Add((s.Iterations == 0) == (s.Whales == 0) && s.Whales != 1, "whales", s.Whales,
		"2 or more beside iterations, or 0 with 0 iterations")
	count("generators", s.Generators, 0, run.MaxSeeds)
	count("hopeful", s.Hopeful, 0, 1<<40)
	count("dras", s.DRAS, 1, 1<<40)
	count("tiny", s.Tiny, 0, 10_000)
	count("plans", s.Plans, 3, 1_000_000)
	count("real", s.Real, 0, 1000)
	for _, b := range s.Shapes {
		l.Add(b >= -10 && b <= 10, "shapes", b, "-10 to 10")
	}
	s.checkAgents(&l)
	return l.Err()
}

// checkAgents adds the faults of the keys that say how networks are trained.
func (s *settings) checkAgents(l *fault.List) {
	own := plan.DefaultGeneratorConfig()
	l.Join("generator", s.Generator.Validate())
	if s.Generators == 0 && s.Hopeful == 0 {
		changes, err := configs.Diff(own, s.Generator)
		l.Join("generator", err)
		for _, c := range changes {
			l.Join("generator",
				&fault.Fault{Key: c.Key, Value: c.To, Want: c.From + ", or generators or hopeful above 0: no generator is trained"})
		}
	}
	const search = "the search"
	study.SetElsewhere(l, "generator", own, s.Generator, map[string]string{
		"place.order": search, "place.insertion": search, "place.slots": search, "place.scale": search,
	})
	l.Join("dras_agent", s.DRASAgent.validate())
	const queue = "the queue"
	study.SetElsewhere(l, "dras_agent", defaultDRASAgent(), s.DRASAgent, map[string]string{
		"place.order": queue, "place.insertion": queue, "place.reward": queue, "place.hopes": queue, "place.slots": queue,
		"place.scale": queue, "place.max_steps": queue,
	})
}
