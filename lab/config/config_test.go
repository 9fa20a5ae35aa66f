package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/internal/fault"
	"clustergym/lab/workload"
)

func TestOneWrongKeyIsOneFault(t *testing.T) {
	for _, c := range []struct{ set, want string }{
		{"env.placement=foo", `env.placement: got "foo", want one of first-fit, `},
		{"env.estimates=noisy:x",
			`env.estimates: got "noisy:x", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with`},
		{"env.models=x", `env.models: got "x", want one of dally`},
		{"eval.windows=100000", "eval.windows: got 100000, want 1 to 65536"},
		{"eval.validation=0", "eval.validation: got 0, want 1 to 65536"},
		{"eval.greedy=max", `eval.greedy: got "max", want share, argmax or sample`},
		{"eval.greedy=own", `eval.greedy: got "own", want share, argmax or sample`},
		{"eval.policies=[fifo, bogus]", `eval.policies[1]: got "bogus", want `},
	} {
		cfg := Default()
		err := configs.Set(&cfg, c.set)
		if err == nil {
			err = cfg.Validate()
		}
		if n := len(fault.All(err)); n != 1 || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %d faults: %v; want one, %s…", c.set, n, err, c.want)
		}
	}
}

// A configuration without the rule has the bytes that it had before there was one.
func TestTheUsualRuleIsNotWritten(t *testing.T) {
	cfg := Default()
	for rule, want := range map[string]bool{"": false, "share": true, "argmax": true, "sample": true} {
		if err := cfg.Set("eval.greedy=" + rule); err != nil {
			t.Fatal(err)
		}
		b, err := configs.Encode(cfg)
		if err := errors.Join(err, cfg.Validate()); err != nil || strings.Contains(string(b), "\n  greedy: "+rule) != want ||
			strings.Contains(string(b), "greedy") != want {
			t.Errorf("%q: error %v, %s", rule, err, b)
		}
	}
}

// A configuration gives back the text of its estimates, in whatever form their number was.
func TestEstimatesAreWrittenAsTheyWereRead(t *testing.T) {
	for _, text := range []string{"none", "gbdt:a b.bin", "noisy:0.5", "noisy:0.50", "noisy:.5", "noisy:5e-1"} {
		cfg, err := Decode("run.yaml", []byte("env:\n  estimates: "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Set("env.window=30"); err != nil {
			t.Fatal(err)
		}
		for name, encode := range map[string]func(any) ([]byte, error){
			"YAML": configs.Encode, "JSON": func(v any) ([]byte, error) { return configs.JSON(v) },
			"encoding/json": json.Marshal,
		} {
			b, err := encode(cfg.Env.Settings)
			if err != nil || !strings.Contains(strings.ReplaceAll(string(b), `"`, ""),
				"stimates:"+strings.Repeat(" ", strings.Count(name, "YAML"))+text) {
				t.Errorf("%s: %s has %s, error %v", text, name, b, err)
			}
		}
	}
}

// A wrong value is reported with its file, line and key, as values of the wrong type are, and an empty one as well.
func TestWrongEstimatesAreReportedWhereTheyStand(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"rumours",
			`run.yaml:3: env.estimates: got "rumours", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10`},
		{"histroy",
			`run.yaml:3: env.estimates: got "histroy", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10; did you mean history?`},
		{`""`, `run.yaml:3: env.estimates: got "", want none, trace, history, gbdt, gbdt:FILE, exact or noisy:SIGMA with SIGMA from 0 to 10`},
	} {
		if _, err := Decode("run.yaml", []byte("seed: 2\nenv:\n  estimates: "+c.text+"\n")); err == nil ||
			err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
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
