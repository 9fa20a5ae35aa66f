package config

import (
	"strings"

	"clustergym/configs"
	"clustergym/experiments/envs"
	"clustergym/internal/fault"
)

// Given holds the keys that the user set: in a file of their own, by --set or by a flag, as "env.window". What a preset says is not given, nor are defaults: such sizes may follow from the workload.
type Given map[string]bool

// Set is Config.Set that also notes the keys.
func (g Given) Set(c *Config, assignment string) error {
	key, value, _ := strings.Cut(assignment, "=")
	key = strings.TrimSpace(key)
	if key == "env.id" && envs.Find(value) != nil {
		g[key] = true
		return c.SetEnv(value)
	}
	if d := c.Descriptor(); d != nil && !d.HasSettings() && strings.HasPrefix(key, "env.") && key != "env.id" && key != "env.args" {
		return fault.New(key, value, "nothing: "+d.ID+" has no settings")
	}
	keys, err := configs.SetKeys(c, assignment)
	g.add(keys)
	return err
}

// DecodeGiven is Decode that also returns the keys that the document gives.
func DecodeGiven(name string, data []byte) (Config, Given, error) {
	c, err := Decode(name, data)
	if err != nil {
		return c, nil, err
	}
	base := For(c.Env.ID)
	keys, err := configs.Keys(name, data, &base)
	g := Given{}
	g.add(keys)
	return c, g, err
}

func (g Given) add(keys []string) {
	for _, k := range keys {
		g[k] = true
	}
}

// Args notes the keys of env.args, which Fold moves into the settings, the workload and the cluster.
func (g Given) Args(c *Config) {
	for _, set := range c.Env.Args {
		key, _, _ := strings.Cut(set, "=")
		if key = strings.TrimSpace(key); key != "cluster" && !strings.HasPrefix(key, "trace.") {
			key = "env." + key
		}
		g[key] = true
	}
}
