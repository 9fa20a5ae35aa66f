package configs

import (
	"math"
	"testing"
	"time"
)

func TestJSONHasTheKeysOfYAMLInTheirOrder(t *testing.T) {
	type inner struct {
		Zeta  float64            `yaml:"zeta"`
		Alpha map[string]float64 `yaml:"alpha"`
	}
	v := struct {
		Text  string        `yaml:"text"`
		Big   uint64        `yaml:"big"`
		Wait  time.Duration `yaml:"wait"`
		On    bool          `yaml:"on"`
		None  []int         `yaml:"none"`
		Far   float64       `yaml:"far"`
		Digit string        `yaml:"digit"`
		Inner inner         `yaml:"inner"`
	}{"a <b> \"c\"\nd", math.MaxUint64, 90 * time.Second, true, nil, math.Inf(1), "12",
		inner{1e21, map[string]float64{"x": 1, "b": 0.5}}}
	got, err := JSON(&v)
	const want = `{"text":"a <b> \"c\"\nd","big":18446744073709551615,"wait":"1m30s","on":true,"none":[],"far":".inf","digit":"12",` +
		`"inner":{"zeta":1e+21,"alpha":{"b":0.5,"x":1}}}`
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}
