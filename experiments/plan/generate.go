package plan

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"clustergym/env/dag"
	"clustergym/env/dag/synth"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
	"clustergym/internal/rng"
)

// GenerateForm is the form that PlanConfig.Generate has.
const GenerateForm = "FAMILY:TASKSxGPUS or FAMILY:TASKSxGPUS:DRAW"

// PlanFamilies are the families of generated graphs.
func Families() []string { return FamilyNames() }

// parseGenerate reads a GenerateForm. Without a draw it is 0, the first.
func parseGenerate(text string) (family string, tasks, gpus, draw int, err error) {
	wrong := fault.New("generate", text, GenerateForm+", 1 to 100000 tasks, 1 to 5000 GPUs, FAMILY one of "+strings.Join(Families(), ", "))
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || !slices.Contains(Families(), parts[0]) {
		return "", 0, 0, 0, wrong
	}
	count := func(s string, low, high int) int {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high || s[0] == '+' {
			return -1
		}
		return n
	}
	left, right, both := strings.Cut(parts[1], "x")
	if tasks, gpus = count(left, 1, 100_000), count(right, 1, 5_000); len(parts) == 3 {
		draw = count(parts[2], 0, 1_000_000)
	}
	if !both || tasks < 0 || gpus < 0 || draw < 0 {
		return "", 0, 0, 0, wrong
	}
	return parts[0], tasks, gpus, draw, nil
}

// generateGraph is the source of the one graph that text asks for.
func generateGraph(text string) (*graphSource, error) {
	family, tasks, gpus, draw, err := parseGenerate(text)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	q, err := Generate(family, tasks, gpus, draw, true)
	if err != nil {
		return nil, &workload.InputError{Err: err}
	}
	return &graphSource{
		Closer: io.NopCloser(nil),
		next: func() (*dag.Graph, *dag.Platform, string, error) {
			if q == nil {
				return nil, nil, "", io.EOF
			}
			g, own := q.Graph, q.Platform
			q = nil
			return g, own, text, nil
		},
	}, nil
}

// worlFamilies are the kinds of graphs of the study: what each draws, and on which machines.
var worlFamilies = []struct {
	name   string
	graph  func(c *synth.Config)
	speeds string
}{
	{"alibaba", func(c *synth.Config) { c.Kind, c.Degree = "instances", 1 }, "busy"},
	{"degree-1", func(c *synth.Config) { c.Degree = 1 }, "idle"},
	{"degree-3", func(c *synth.Config) { c.Degree = 3 }, "busy"},
	{"degree-100", func(c *synth.Config) { c.Degree = 100 }, "idle"},
	{"training", func(c *synth.Config) { c.Kind = "training" }, "busy"},
}

func FamilyNames() []string {
	var names []string
	for _, f := range worlFamilies {
		names = append(names, f.name)
	}
	return names
}

// worlProblem draws graph k of a family.
func Generate(family string, tasks, gpus, k int, transfers bool) (*dag.Problem, error) {
	src := rng.Stream(uint64(k), fmt.Sprintf("worl-rtgs/%s/%d/%d", family, tasks, gpus))
	c, p := synth.DefaultConfig(), synth.DefaultPlatformConfig()
	for _, f := range worlFamilies {
		if f.name == family {
			f.graph(&c)
			p.Speeds = f.speeds
		}
	}
	c.Tasks, p.GPUs = tasks, gpus
	if !transfers {
		c.CCR = 0
	}
	platform, err := synth.Platform(p, src)
	if err != nil {
		return nil, err
	}
	return synth.Problem(c, platform, fmt.Sprintf("%s-%d-%d-%d", family, tasks, gpus, k), src)
}
