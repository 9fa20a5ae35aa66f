package schedulers_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"clustergym/configs"
	"clustergym/simulator/schedulers"
)

// Zeros that mean something are written, so that reading gives them back and not the defaults.
func TestZerosAreWritten(t *testing.T) {
	for key, change := range map[string]func(c *schedulers.Config){
		"limits":    func(c *schedulers.Config) { c.Limits = nil },
		"align":     func(c *schedulers.Config) { c.Align = 0 },
		"migrate":   func(c *schedulers.Config) { c.Migrate = 0 },
		"rack_wait": func(c *schedulers.Config) { c.RackWait = 0 },
		"nw_wait":   func(c *schedulers.Config) { c.NetworkWait = 0 },
		"auto":      func(c *schedulers.Config) { c.Auto = false },
		"history":   func(c *schedulers.Config) { c.History = 0 },
		"accept":    func(c *schedulers.Config) { c.Accept = 0 },
		"patience":  func(c *schedulers.Config) { c.Patience = 0 },
	} {
		want := schedulers.DefaultConfig()
		change(&want)
		if err := want.Validate(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		text, err := configs.Encode(&want)
		if err != nil {
			t.Fatal(err)
		}
		got := schedulers.DefaultConfig()
		if err := configs.DecodeBytes("policy.yaml", text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v (%v), want %+v", key, got, err, want)
		}
	}
}

// The settings stand in parts by policy; in files they are one list, in the order in which they always were.
func TestConfigIsOneListOfKeys(t *testing.T) {
	c := schedulers.DefaultConfig()
	c.Round, c.Lease, c.Together, c.Ask, c.Seed = time.Minute, time.Hour, true, "las", 1
	c.Hold.Width, c.Index.Left = 1, 1
	text, err := configs.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		if key, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(key, " ") && !strings.HasPrefix(key, "-") {
			keys = append(keys, key)
		}
	}
	const want = "order admission backfill placement estimates limits promote quantum align round migrate rack_wait nw_wait auto lease history together ask accept patience hold index seed"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("keys are %s, want %s", got, want)
	}
}
