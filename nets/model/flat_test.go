package model

import (
	"slices"
	"strings"
	"testing"

	"clustergym/internal/rng"
)

// kernelNetwork is RLScheduler's network over slots of eight numbers.
func kernelNetwork() Config {
	return Config{Kind: "cnn", Hidden: []int{64, 32, 8}, Activation: "relu", Separate: true, Head: "each", SlotHidden: 8,
		Critic:   "flat",
		Branches: []Branch{{Field: "jobs", Slots: true, Dense: []int{32, 16}}}}
}

// RLScheduler's policy has 961 parameters, whatever the number of slots; its critic has 961 for the slots, and
// 128·64+64 + 64·32+32 + 32·8+8 + 8+1 for what follows.
func TestTheKernelNetworkHasThePublishedParameters(t *testing.T) {
	for slots, critic := range map[int]int{128: 961 + 8256 + 2080 + 264 + 9, 5: 961 + 5*64 + 64 + 2080 + 264 + 9} {
		m, err := NewActorCritic(kernelNetwork(), Input{{Name: "jobs", Shape: []int{slots, 8}}}, slots,
			rng.Stream(1, "kernel"))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, v := range m.Params().Views {
			who, _, _ := strings.Cut(v.Name, ".")
			got[who] += len(v.Data)
		}
		if got["actor"] != 961 || got["critic"] != critic || len(got) != 2 {
			t.Errorf("%d slots: %v parameters, want 961 of the actor and %d of the critic", slots, got, critic)
		}
	}
}

// The policy scores each slot alone, so exchanged slots have exchanged logits; the flat critic knows the order.
func TestTheFlatCriticKnowsTheOrder(t *testing.T) {
	const slots = 6
	r := rng.Stream(2, "kernel")
	m, err := NewActorCritic(kernelNetwork(), Input{{Name: "jobs", Shape: []int{slots, 8}}}, slots, r)
	if err != nil {
		t.Fatal(err)
	}
	perturb(m.Params().Data, r)
	f := m.Forward(1)
	obs := noise(r, slots*8)
	logits, value := f.Run(obs, 1)
	before, worth := slices.Clone(logits), value[0]
	for c := range 8 {
		obs[c], obs[8+c] = obs[8+c], obs[c]
	}
	logits, value = f.Run(obs, 1)
	before[0], before[1] = before[1], before[0]
	if !slices.Equal(logits, before) {
		t.Errorf("logits of exchanged slots: got %v, want %v", logits, before)
	}
	if value[0] == worth {
		t.Errorf("the value is %v in both orders", worth)
	}
}

func TestFlatCriticsAreRefused(t *testing.T) {
	jobs, more := Input{{Name: "jobs", Shape: []int{4, 8}}},
		Input{{Name: "jobs", Shape: []int{4, 8}}, {Name: "cluster", Shape: []int{3}}}
	for _, c := range []struct {
		change func(*Config)
		in     Input
		want   string
	}{
		{func(c *Config) { c.Critic = "round" }, jobs, `critic: got "round", want "flat" or nothing`},
		{func(c *Config) { c.Head = "slots" }, jobs, `critic: got "flat", want nothing, except with head "each"`},
		{func(*Config) {}, more, `critic: got "flat", want nothing: the value sees other fields than the slots`},
	} {
		cfg := kernelNetwork()
		c.change(&cfg)
		if _, err := NewActorCritic(cfg, c.in, 4, rng.Stream(3, "kernel")); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
