package config

import (
	"errors"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/experiments/workload"
	"clustergym/internal/fault"
)

func TestOneWrongKeyIsOneFault(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"env.placement=foo", `env.placement: got "foo", want one of first-fit, `},
		{"env.estimates=noisy:x", `env.estimates: got "noisy:x", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with`},
		{"env.models=x", `env.models: got "x", want one of dally`},
		{"eval.windows=100000", "eval.windows: got 100000, want 1 to 65536"},
		{"eval.validation=0", "eval.validation: got 0, want 1 to 65536"},
		{"eval.policies=[fifo, bogus]", `eval.policies[1]: got "bogus", want `},
	} {
		cfg := Default()
		if err := configs.Set(&cfg, c.set); err != nil {
			t.Fatal(err)
		}
		err := cfg.Validate()
		if n := len(fault.All(err)); n != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %d faults: %v; want one, %s…", c.set, n, err, c.want)
		}
	}
}

func TestNumbersTooLargeAreQuotedAsWritten(t *testing.T) {
	const huge = "99999999999999999999"
	for _, name := range []string{"pool:" + huge, "swf-" + huge, "2x" + huge} {
		_, err := workload.ClusterSpec(name)
		if _, ok := errors.AsType[*fault.Mistake](err); !ok || !strings.Contains(err.Error(), "got "+huge+", want ") {
			t.Errorf("%s: %v, want the number as it was written", name, err)
		}
	}
}
