package configs

import (
	"fmt"
	"time"

	"clustergym/internal/fault"
)

// shop is a configuration with a field of every kind that configurations have.
type shop struct {
	Name    string             `yaml:"name"`
	Seed    uint64             `yaml:"seed"`
	Steps   int                `yaml:"steps"`
	Small   int8               `yaml:"small"`
	Rate    float64            `yaml:"rate"`
	Single  float32            `yaml:"single"`
	On      bool               `yaml:"on"`
	Wait    time.Duration      `yaml:"wait"`
	Mode    mode               `yaml:"mode"`
	Train   train              `yaml:"train"`
	Shelf   shelf              `yaml:",inline"`
	Racks   []rack             `yaml:"racks"`
	Limits  []int              `yaml:"limits"`
	Names   []string           `yaml:"names"`
	Pair    [2]int             `yaml:"pair"`
	Speeds  map[string]float64 `yaml:"speeds"`
	Groups  map[string]rack    `yaml:"groups"`
	Waits   []time.Duration    `yaml:"waits"`
	Secret  string             `yaml:"-"`
	Untaged int
	hidden  int
}

type train struct {
	Gamma float64 `yaml:"gamma"`
	Steps int     `yaml:"steps"`
	Inner inner   `yaml:"inner"`
}

type inner struct {
	Depth int `yaml:"depth"`
}

type shelf struct {
	Width int `yaml:"width"`
}

type rack struct {
	Count int           `yaml:"count"`
	Label string        `yaml:"label,omitempty"`
	Delay time.Duration `yaml:"delay"`
}

type mode uint8

func (m mode) MarshalText() ([]byte, error) { return []byte([]string{"fast", "slow"}[m&1]), nil }

func (m *mode) UnmarshalText(b []byte) error {
	switch string(b) {
	case "fast":
		*m = 0
	case "slow":
		*m = 1
	default:
		return fmt.Errorf("shop: mode %q, want fast or slow", b)
	}
	return nil
}

func defaults() *shop {
	return &shop{
		Name: "corner", Seed: 1, Steps: 100, Rate: 0.5, Wait: 40 * time.Second, Train: train{Gamma: 0.99, Steps: 10},
		Shelf: shelf{Width: 3}, Limits: []int{1, 2}, Names: []string{"a"}, Speeds: map[string]float64{"P100": 1},
		Racks: []rack{{Count: 1}}, Untaged: 4, hidden: 5, Secret: "kept",
	}
}

func (s *shop) Validate() error {
	var l fault.List
	l.Add(s.Name != "", "name", s.Name, "a word")
	l.Add(s.Steps >= 1, "steps", s.Steps, "1 or more")
	l.Add(s.Rate >= 0 && s.Rate <= 1, "rate", s.Rate, "a number in [0, 1]")
	l.Add(s.Wait >= 0, "wait", s.Wait, "0s or more")
	l.Add(s.Shelf.Width >= 1, "width", s.Shelf.Width, "1 or more")
	l.Join("train", s.Train.Validate())
	total := 0
	for i, r := range s.Racks {
		l.Add(r.Count >= 1, fmt.Sprintf("racks[%d].count", i), r.Count, "1 or more")
		total += r.Count
	}
	l.Add(total >= 1 || len(s.Racks) == 0, "racks", total, "a rack at least")
	for k, v := range s.Speeds { // at most one is wrong in these tests, so the order does not matter
		l.Add(v > 0, "speeds."+k, v, "a positive factor")
	}
	if s.Name == "closed" {
		l.Join("", fmt.Errorf("the shop is closed on %s", s.Wait))
	}
	return l.Err()
}

func (t train) Validate() error {
	var l fault.List
	l.Add(t.Gamma > 0 && t.Gamma <= 1, "gamma", t.Gamma, "a number in (0, 1]")
	return l.Err()
}
