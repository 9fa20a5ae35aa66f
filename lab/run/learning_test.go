package run

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"clustergym/internal/statistic"
)

// The statistics of the comparison with other libraries (experiments/learning) are written in Python; both sides are
// checked with the same example.
func TestStatisticsOfTheComparisonAreOurs(t *testing.T) {
	b, err := os.ReadFile("../../experiments/learning/testdata/statistics.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Runs [][]float64 `json:"runs"`
		IQM  float64     `json:"iqm"`
		CI95 [2]float64  `json:"ci95"`
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if got := statistic.IQM(slices.Concat(want.Runs...)); math.Abs(got-want.IQM) > 1e-9 {
		t.Errorf("IQM %v, want %v", got, want.IQM)
	}
	got := bootstrapSeeds(1, want.Runs)
	for i := range got {
		if math.Abs(got[i]-want.CI95[i]) > 1e-6 {
			t.Errorf("interval %v, want %v", got, want.CI95)
		}
	}
}
