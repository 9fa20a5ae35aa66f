package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"clustergym/internal/fault"
)

func TestTrainingAGeneratorRepeatsForAnyNumberOfWorkers(t *testing.T) {
	c := DefaultGeneratorConfig()
	c.Steps, c.Judge, c.Place.Tasks, c.Place.GPUs, c.Learner.LearningStarts = 1500, 4, 20, 10, 500
	var first *TrainedGenerator
	for _, workers := range []int{1, 3} {
		var said []float64
		g, err := TrainGenerator(context.Background(), c, 3, workers,
			func(_ int, ratio float64) { said = append(said, ratio) })
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Ratios) != 11 || !slices.Equal(said, g.Ratios) || g.Best != slices.Min(g.Ratios) {
			t.Errorf("ratios %v, said %v, best %v", g.Ratios, said, g.Best)
		}
		if first == nil {
			first = g
		} else if !slices.Equal(g.Weights, first.Weights) || !slices.Equal(g.Ratios, first.Ratios) {
			t.Errorf("%d workers learn something else: %v, want %v", workers, g.Ratios, first.Ratios)
		}
	}
	if _, err := GeneratorPolicies(c, first.Weights)(); err != nil {
		t.Errorf("the weights do not fit: %v", err)
	}
}

func TestAGeneratorsConfigurationIsChecked(t *testing.T) {
	c := DefaultGeneratorConfig()
	c.Steps, c.Envs, c.Teach, c.Judge, c.Place.Slots = 0, 0, 2, 0, 0
	_, err := TrainGenerator(context.Background(), c, 1, 1, nil)
	var input *fault.Mistake
	if !errors.As(err, &input) {
		t.Fatalf("%v is not a mistake of the user's", err)
	}
	for _, want := range []string{"steps: got 0", "envs: got 0", "teach: got 2", "judge: got 0", "place.slots: got 0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// The network of a generator that learns to follow hopes is the default one's, so searches take either's weights.
func TestHopefulWeightsFitTheSearch(t *testing.T) {
	c := DefaultGeneratorConfig().Hopeful()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c.Steps, c.Judge, c.Place.Tasks = 320, 1, 20
	g, err := TrainGenerator(context.Background(), c, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := GeneratorPolicies(DefaultGeneratorConfig(), g.Weights)(); err != nil {
		t.Error(err)
	}
}
