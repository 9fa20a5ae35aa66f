package imitate

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"clustergym/env"
)

func TestReturnsByHand(t *testing.T) {
	s := env.Spec{Tau: time.Hour}
	p := Play{Reward: []float64{1, -2, 4}, Elapsed: []time.Duration{0, time.Hour, 2 * time.Hour}, Kind: env.Terminated}
	// 4; −2 + ½·4 = 0; 1 + 1·0 = 1: a step of no time does not discount, and the last one's discount meets nothing.
	if got, want := p.Returns(nil, s, 0.5), []float32{1, 0, 4}; !reflect.DeepEqual(got, want) {
		t.Errorf("returns %v, want %v", got, want)
	}
	p.Kind = env.Truncated
	for _, r := range p.Returns(nil, s, 0.5) {
		if !math.IsNaN(float64(r)) {
			t.Errorf("a truncated episode has the return %v", r)
		}
	}
}

func TestPlaysGoThroughTheirBytes(t *testing.T) {
	s := env.Spec{ID: "Test", Action: env.ActionSpec{Sizes: []int{3, 2}}}
	taught := Play{Seed: 1 << 63, Kind: env.Truncated, Label: []int32{2, 1, 0, 0}, Reward: []float64{-0.1, 1e300},
		Elapsed: []time.Duration{5, 1 << 60}}
	taught.Taken = taught.Label
	learnt := taught
	learnt.Kind, learnt.Taken = env.Terminated, []int32{1, 1, 2, 0}
	b := learnt.Append(taught.Append(nil))
	for _, want := range []Play{taught, learnt} {
		got, n, err := Read(b, s)
		if err != nil || !reflect.DeepEqual(got, want) || got.Taught() != want.Taught() {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		b = b[n:]
	}
	if len(b) != 0 {
		t.Errorf("%d bytes left", len(b))
	}
	whole := taught.Append(nil)
	for n := range whole {
		if _, _, err := Read(whole[:n], s); !errors.Is(err, ErrCut) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	for i := 4; i < len(whole); i++ {
		bad := append([]byte(nil), whole...)
		bad[i] ^= 8
		if _, _, err := Read(bad, s); err == nil || errors.Is(err, ErrCut) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	if _, _, err := Read(whole, env.Spec{ID: "Other", Action: env.ActionSpec{Sizes: []int{2, 2}}}); err == nil {
		t.Error("an action that the environment does not have was accepted")
	}
}
