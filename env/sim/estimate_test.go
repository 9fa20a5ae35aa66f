package sim_test

import (
	"testing"

	"clustergym/env/sim"
)

func TestLabelsNameTheRung(t *testing.T) {
	for text, want := range map[string]string{
		"none": "none", "trace": "trace (submit-time)", "history": "history (causal)", "gbdt": "gbdt (causal)",
		"gbdt:noisy.bin": "gbdt:noisy.bin (causal)", "noisy:0.5": "noisy:0.5", "exact": "exact",
	} {
		e, err := sim.ParseEstimates(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Label(); got != want {
			t.Errorf("%s is shown as %q, want %q", text, got, want)
		}
	}
}
