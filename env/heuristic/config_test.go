package heuristic_test

import (
	"reflect"
	"testing"

	"clustergym/configs"
	"clustergym/env/heuristic"
)

// Zeros that mean something are written, so that reading gives them back and not the defaults.
func TestZerosAreWritten(t *testing.T) {
	for key, change := range map[string]func(c *heuristic.Config){
		"limits":    func(c *heuristic.Config) { c.Limits = nil },
		"align":     func(c *heuristic.Config) { c.Align = 0 },
		"migrate":   func(c *heuristic.Config) { c.Migrate = 0 },
		"rack_wait": func(c *heuristic.Config) { c.RackWait = 0 },
		"nw_wait":   func(c *heuristic.Config) { c.NetworkWait = 0 },
		"auto":      func(c *heuristic.Config) { c.Auto = false },
		"history":   func(c *heuristic.Config) { c.History = 0 },
		"accept":    func(c *heuristic.Config) { c.Accept = 0 },
		"patience":  func(c *heuristic.Config) { c.Patience = 0 },
	} {
		want := heuristic.DefaultConfig()
		change(&want)
		if err := want.Validate(); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		text, err := configs.Encode(&want)
		if err != nil {
			t.Fatal(err)
		}
		got := heuristic.DefaultConfig()
		if err := configs.DecodeBytes("policy.yaml", text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v (%v), want %+v", key, got, err, want)
		}
	}
}
