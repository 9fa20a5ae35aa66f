package sched_test

import (
	"errors"
	"testing"

	"clustergym/env"
	"clustergym/env/sched"
	"clustergym/traces"
)

func TestASplitNamesAPart(t *testing.T) {
	for _, c := range []struct {
		split, named string
		part         traces.Part
	}{
		{"", "validation", traces.Validation}, {"train", "train", traces.Training},
		{"validation", "validation", traces.Validation}, {"test", "test", traces.Test},
	} {
		if p, named, err := sched.SplitPart("X-v1", c.split, traces.Validation); err != nil || p != c.part ||
			named != c.named {
			t.Errorf("split %q: %s, %q, %v", c.split, p, named, err)
		}
	}
	_, _, err := sched.SplitPart("X-v1", "dev", traces.Test)
	if !errors.Is(err, env.ErrEpisode) || err.Error() !=
		env.ErrEpisode.Error()+`: X-v1: split "dev", want train, validation, test or nothing` {
		t.Errorf("%v", err)
	}
}
