package replay

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

func observations(n, width int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	obs := make([]float32, n*width)
	for i := range obs {
		obs[i] = float32(100*float64(i%width) + math.Pow(10, float64(i%width))*r.NormFloat64())
	}
	return obs
}

func TestScaledObservationsHaveMeanZeroAndDeviationOne(t *testing.T) {
	const n, width = 2000, 4
	obs, s := observations(n, width), NewObsScale(width, 0)
	for i := 0; i < n; i += 50 {
		s.Observe(obs[i*width:], 50)
	}
	s.Apply(obs, obs, n)
	for k := range width {
		var m moments
		for i := range n {
			m.add(float64(obs[i*width+k]))
		}
		if math.Abs(m.Mean) > 1e-5 || math.Abs(m.variance()-1) > 1e-4 {
			t.Errorf("element %d: mean %v and variance %v, want 0 and 1", k, m.Mean, m.variance())
		}
	}
}

func TestObservationScaleByHand(t *testing.T) {
	s := NewObsScale(1, 10)
	x := []float32{3}
	s.Apply(x, x, 1)
	if x[0] != 3 {
		t.Errorf("before anything was seen 3 becomes %v, want 3", x[0])
	}
	s.Observe([]float32{1, 3, 5, 7}, 4) // mean 4, variance (9+1+1+9)/4 = 5
	for _, c := range []struct{ in, want float64 }{{4, 0}, {9, math.Sqrt(5)}, {1000, 10}, {-1000, -10}} {
		x[0] = float32(c.in)
		s.Apply(x, x, 1)
		if math.Abs(float64(x[0])-c.want) > 1e-5 {
			t.Errorf("%v becomes %v, want %v", c.in, x[0], c.want)
		}
	}
	x[0] = float32(math.NaN())
	if s.Apply(x, x, 1); x[0] == x[0] {
		t.Errorf("NaN becomes %v", x[0])
	}
}

// Parts counted separately and merged equal the whole, with the same bits if the order is the same.
func TestMergedObservationScalesAreTheWhole(t *testing.T) {
	const n, width = 600, 3
	obs := observations(n, width)
	whole := NewObsScale(width, 10)
	whole.Observe(obs, n)
	merge := func() *ObsScale {
		sum := NewObsScale(width, 10)
		for _, cut := range [][2]int{{0, 0}, {0, 100}, {100, 450}, {450, 600}} {
			part := NewObsScale(width, 10)
			part.Observe(obs[cut[0]*width:], cut[1]-cut[0])
			sum.Merge(part)
		}
		return sum
	}
	one, two := merge(), merge()
	if !reflect.DeepEqual(one, two) {
		t.Error("merging twice gives other numbers")
	}
	for k := range width {
		if math.Abs(one.Mean[k]-whole.Mean[k]) > 1e-9*math.Abs(whole.Mean[k]) ||
			math.Abs(one.M2[k]-whole.M2[k]) > 1e-9*whole.M2[k] {
			t.Errorf("element %d: mean %v and squares %v, want %v and %v", k, one.Mean[k], one.M2[k], whole.Mean[k], whole.M2[k])
		}
	}
}

func TestObservationScaleIsSavedWhole(t *testing.T) {
	const width = 3
	s := NewObsScale(width, 10)
	s.Observe(observations(77, width), 77)
	data, err := json.Marshal(s.State())
	if err != nil {
		t.Fatal(err)
	}
	var state ObsScaleState
	if err := json.Unmarshal(data, &state); err != nil {
		t.Fatal(err)
	}
	again := NewObsScale(width, 10)
	if err := again.Check(&state); err != nil {
		t.Fatal(err)
	}
	again.Restore(&state)
	if !reflect.DeepEqual(again, s) {
		t.Errorf("restored %+v, want %+v", again, s)
	}
	if err := NewObsScale(width+1, 10).Check(&state); err == nil {
		t.Error("another length: no error")
	}
	state.M2[1] = -1
	if err := again.Check(&state); err == nil {
		t.Error("negative squares: no error")
	}
}

// A reward is clipped after it is scaled: 100/4 and −2/4 with a bound of 10 are 10 and −0.5.
func TestRewardsAreClippedAfterScaling(t *testing.T) {
	r, err := NewRollout(testSpec(), 1, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	r.RewardClip, r.t = 10, 1
	copy(r.Reward, []float32{100, -2})
	r.Live[0], r.Live[1] = true, true
	if err := r.Advantages([]float32{0, 0}, 0, 0.25); err != nil {
		t.Fatal(err)
	}
	if r.Return[0] != 10 || r.Return[1] != -0.5 {
		t.Errorf("returns %v, want 10 and -0.5", r.Return)
	}
}
