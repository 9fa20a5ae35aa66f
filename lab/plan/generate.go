package plan

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"clustergym/internal/fault"
	"clustergym/internal/nearest"
	"clustergym/simulator/dag"
	"clustergym/simulator/dag/synth"
)

// GenerateForm is the form of Config.Generate: a family of synth.Families, the size, and optionally the number of the
// draw.
const GenerateForm = "FAMILY:TASKSxGPUS or FAMILY:TASKSxGPUS:DRAW"

// parseGenerate reads a text of GenerateForm. A text without a draw means draw 0, the first.
func parseGenerate(text string) (family string, tasks, gpus, draw int, err error) {
	families := synth.Families()
	named, _, _ := strings.Cut(text, ":")
	wrong := fault.New("generate", text,
		GenerateForm+", 1 to 100000 tasks, 1 to 5000 GPUs, FAMILY one of "+strings.Join(families,
			", ")+nearest.Meant(named, families))
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || !slices.Contains(families, parts[0]) {
		return "", 0, 0, 0, wrong
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

// count reads a whole number from low to high without a sign. It returns -1 for any other text.
func count(s string, low, high int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high || s[0] == '+' {
		return -1
	}
	return n
}

// generateGraph returns a source of the one graph that text, which has GenerateForm, describes.
func generateGraph(text string) (*graphSource, error) {
	family, tasks, gpus, draw, err := parseGenerate(text)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
	}
	q, err := synth.FamilyProblem(family, tasks, gpus, draw, true)
	if err != nil {
		return nil, &fault.Mistake{Err: err}
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
